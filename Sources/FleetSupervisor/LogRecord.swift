import PodcastModel

enum LogRecord {
    enum Level: String, Sendable {
        case info, notice, warning, error
    }

    /// Returns the line itself if it looks like a JSON object, otherwise an object with the line as its message.
    static func json(_ line: [UInt8], service: String, at milliseconds: Int64) -> [UInt8] {
        if line.first == UInt8(ascii: "{"), line.last == UInt8(ascii: "}") { return line }
        return json(String(decoding: line, as: UTF8.self), level: .notice, service: service, at: milliseconds)
    }

    static func json(_ text: String, level: Level, service: String, at milliseconds: Int64) -> [UInt8] {
        Array(
            #"{"at":\#(milliseconds),"level":"\#(level.rawValue)","service":\#(JSONText.quoted(service)),"message":\#(JSONText.quoted(text))}"#
                .utf8)
    }
}
