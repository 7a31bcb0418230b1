import LibC

/// Reads the levels that a filter of libmpv measures through a pipe, because libmpv reports only the latest level.
///
/// The filter blocks when some thousand levels have filled the pipe, so the pipe must be read during playback.
struct LevelReader: ~Copyable {
    private let reading: Int32
    private let writing: Int32
    private var parser = LevelParser()

    init?() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        (reading, writing) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        _ = fcntl(reading, F_SETFL, O_NONBLOCK)
        #if os(Linux)
        // F_SETPIPE_SZ, which is available only in C; if the system allows less, the pipe keeps its 64 KiB.
        _ = fcntl(writing, 1_031, 1 << 20)
        #endif
    }

    deinit {
        close(reading)
        close(writing)
    }

    /// Filters that leave the sound unchanged and write its levels into the pipe.
    var filter: String {
        "asetnsamples=n=\(AudioLevel.window):p=0,"
            + "astats=metadata=1:reset=1:measure_perchannel=none:measure_overall=RMS_level,asettb=1/1000000,"
            + "ametadata=mode=print:key=\(LevelParser.key):file=pipe\\\\:\(writing):direct=1"
    }

    mutating func newItems() -> [LevelParser.Item] {
        var items: [LevelParser.Item] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while case let count = read(reading, &chunk, chunk.count), count > 0 { items += parser.parse(chunk[..<count]) }
        return items
    }
}

/// Parses the output of the filter `ametadata`: for each window a line with its number and start in microseconds, and
/// a line with its level.
struct LevelParser {
    enum Item: Hashable {
        /// The filter restarts, in another file or at another position.
        case beginning
        case level(AudioLevel)
    }

    static let key = "lavfi.astats.Overall.RMS_level"
    private static let longest = 256

    private var line: [UInt8] = []
    private var start: Double?

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
