import FoundationEssentials

/// A line of a service's log as people read it.
enum LogLine {
    private struct Fields: Decodable {
        var at: Int64?
        var level: String?
        var service: String?
        var message: String?
    }

    /// `time service level message`, or the line as it is where it is no JSON of this shape.
    static func text(_ line: String) -> String {
        guard let fields = try? JSONDecoder().decode(Fields.self, from: Data(line.utf8)), let message = fields.message
        else { return DisplayText.sanitised(line) }
        let parts = [fields.at.map { TimeText.second(milliseconds: $0) }, fields.service, fields.level, message]
            .compactMap { $0 }
        return DisplayText.sanitised(parts.joined(separator: " "))
    }
}
