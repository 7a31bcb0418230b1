import FoundationEssentials
import LockstepClient
import PodcastModel

enum LogLine {
    private struct Fields: Decodable {
        var at: Int64?
        var level: String?
        var service: String?
        var message: String?
    }

    /// The line with its time in seconds since 1970, as in all JSON; the files have milliseconds.
    static func json(_ line: String) -> String {
        let beginning = "{\"at\":"
        guard line.hasPrefix(beginning) else { return line }
        let digits = line.dropFirst(beginning.count).prefix { $0.isASCII && $0.isNumber }
        guard let time = Int64(digits) else { return line }
        return beginning + JSONValue.moment(milliseconds: time).line + line[digits.endIndex...]
    }

    /// `time service level message`, or the line itself if it has another form.
    static func text(_ line: String) -> String {
        guard let fields = try? JSONDecoder().decode(Fields.self, from: Data(line.utf8)), let message = fields.message
        else { return DisplayText.sanitised(line) }
        let time = fields.at.map { LocalTime.calendar(Timestamp(milliseconds: $0)).secondText }
        let parts = [time, fields.service, fields.level, message].compactMap(\.self)
        return DisplayText.sanitised(parts.joined(separator: " "))
    }
}
