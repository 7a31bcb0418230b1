import LibC

/// Reads the levels that a filter of libmpv’s measures, through a pipe, so that none is missed: libmpv itself shows of a
/// filter’s findings only the latest.
///
/// The writer waits while the pipe is full, which takes some thousand levels: it is read while sound goes out.
struct LevelReader: ~Copyable {
    private let reading: Int32
    private let writing: Int32
    private var parser = LevelParser()

    /// A pipe; nil: there are too many open files.
    init?() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        (reading, writing) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        _ = fcntl(reading, F_SETFL, O_NONBLOCK)
        #if os(Linux)
        // F_SETPIPE_SZ, which the header shows to C alone; where the system allows less it stays at 64 KiB.
        _ = fcntl(writing, 1_031, 1 << 20)
        #endif
    }

    deinit {
        close(reading)
        close(writing)
    }

    /// The filters that pass the sound on as it is and write its levels into the pipe.
    var filter: String {
        "asetnsamples=n=\(AudioLevel.window):p=0,"
            + "astats=metadata=1:reset=1:measure_perchannel=none:measure_overall=RMS_level,asettb=1/1000000,"
            + "ametadata=mode=print:key=\(LevelParser.key):file=pipe\\\\:\(writing):direct=1"
    }

    /// Returns the bytes written since the last call.
    mutating func read() -> [LevelParser.Item] {
        var items: [LevelParser.Item] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while case let count = Self.read(reading, &chunk), count > 0 { items += parser.parse(chunk[..<count]) }
        return items
    }

    private static func read(_ descriptor: Int32, _ chunk: inout [UInt8]) -> Int {
        #if canImport(Glibc)
        Glibc.read(descriptor, &chunk, chunk.count)
        #elseif canImport(Musl)
        Musl.read(descriptor, &chunk, chunk.count)
        #else
        Darwin.read(descriptor, &chunk, chunk.count)
        #endif
    }
}

/// Reads what the filter `ametadata` prints: for each window a line with its number and start in microseconds, and one
/// with its level.
struct LevelParser {
    /// A piece of what was read.
    enum Item: Hashable {
        /// The filter begins anew, in another file or at another position.
        case beginning
        case level(AudioLevel)
    }

    static let key = "lavfi.astats.Overall.RMS_level"
    /// Longer lines are none of the filter’s.
    private static let longest = 256

    private var line: [UInt8] = []
    private var start: Double?

    /// Handles bytes, which may end within a line.
    mutating func parse(_ bytes: some Sequence<UInt8>) -> [Item] {
        var items: [Item] = []
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                items += item(in: String(decoding: line, as: UTF8.self))
                line = []
            } else if line.count < Self.longest {
                line.append(byte)
            }
        }
        return items
    }

    private mutating func item(in line: String) -> [Item] {
        if line.hasPrefix("frame:") {
            let words = line.split(separator: " ")
            start = words.first { $0.hasPrefix("pts:") }.flatMap { Double($0.dropFirst(4)) }.map { $0 / 1e6 }
            return words.first == "frame:0" ? [.beginning] : []
        }
        guard let start, line.hasPrefix(Self.key + "="), let level = Double(line.dropFirst(Self.key.count + 1)) else {
            return []
        }
        self.start = nil
        return [.level(AudioLevel(start: start, decibels: level))]
    }
}
