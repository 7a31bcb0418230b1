import LibC

/// A pipe that wakes `poll`. Writing never blocks, and is safe in any thread and in signal handlers.
struct WakePipe: Sendable {
    /// The descriptor to poll.
    let descriptor: Int32
    let writing: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        _ = pipe(&ends)
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        descriptor = ends[0]
        writing = ends[1]
    }

    func wake() {
        var byte: UInt8 = 1
        _ = write(writing, &byte, 1)
    }

    /// Removes and returns a byte; nil if there is none.
    func next() -> UInt8? {
        var byte: UInt8 = 0
        return read(descriptor, &byte, 1) == 1 ? byte : nil
    }

    func close() {
        for end in [descriptor, writing] { closeDescriptor(end) }
    }
}
