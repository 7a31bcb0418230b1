import LibC

/// A pipe that wakes who waits in `poll`; writing into it never waits, and may be done from any thread and in a handler
/// of signals.
struct WakePipe: Sendable {
    /// What to poll.
    let descriptor: Int32
    /// Where bytes are put in.
    let writing: Int32

    /// An empty pipe, to be closed by who made it.
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

    /// Wakes who waits.
    func wake() {
        var byte: UInt8 = 1
        _ = write(writing, &byte, 1)
    }

    /// Takes a byte out; nil: there is none.
    func next() -> UInt8? {
        var byte: UInt8 = 0
        return read(descriptor, &byte, 1) == 1 ? byte : nil
    }

    /// Closes both ends.
    func close() {
        for end in [descriptor, writing] { closeDescriptor(end) }
    }
}

/// `close` by another name.
private func closeDescriptor(_ descriptor: Int32) {
    _ = close(descriptor)
}
