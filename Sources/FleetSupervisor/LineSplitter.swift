import PodcastModel

/// Cuts a stream of bytes into lines of at most a limit. What is longer is cut there, and the rest of it left out, so
/// that no output makes the supervisor grow.
struct LineSplitter: Sendable {
    /// The maximum length of a line in bytes.
    static let limit = 65_536

    private var partial: [UInt8] = []
    private var isCut = false

    /// The lines that `bytes` complete, without their ends.
    mutating func lines(_ bytes: some Collection<UInt8>) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var rest = bytes[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            take(rest[..<end])
            if let line = finish() { lines.append(line) }
            rest = rest[rest.index(after: end)...]
        }
        take(rest)
        return lines
    }

    /// The last line, if the stream ended within it.
    mutating func finish() -> [UInt8]? {
        defer {
            partial = []
            isCut = false
        }
        return partial.isEmpty ? nil : partial
    }

    private mutating func take(_ bytes: some Collection<UInt8>) {
        guard !isCut else { return }
        let room = Self.limit - partial.count
        partial.append(contentsOf: bytes.prefix(room))
        isCut = bytes.count > room
    }
}

/// A record of a log: a line of JSON as the services write it, or one that is made of any other line.
enum LogRecord {
    /// The line itself if it looks like a JSON object, else an object that carries it.
    static func json(_ line: [UInt8], service: String, at milliseconds: Int64) -> [UInt8] {
        if line.first == UInt8(ascii: "{"), line.last == UInt8(ascii: "}") { return line }
        return json(String(decoding: line, as: UTF8.self), level: "notice", service: service, at: milliseconds)
    }

    /// A line of the supervisor's own making.
    static func json(_ text: String, level: String, service: String, at milliseconds: Int64) -> [UInt8] {
        Array(
            #"{"at":\#(milliseconds),"level":"\#(level)","service":\#(JSONText.quoted(service)),"message":\#(JSONText.quoted(text))}"#
                .utf8)
    }
}
