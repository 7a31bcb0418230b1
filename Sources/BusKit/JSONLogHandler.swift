import Logging
import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Writes a line of JSON for each message to the standard error, which the supervisor collects:
/// `{"at","level","service","message", …metadata}`, `at` in milliseconds since 1970.
struct JSONLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level
    var metadataProvider: Logger.MetadataProvider?
    private let service: String

    init(service: String, level: Logger.Level) {
        self.service = service
        logLevel = level
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var all = metadata
        all.merge(metadataProvider?.get() ?? [:]) { _, new in new }
        all.merge(event.metadata ?? [:]) { _, new in new }
        if let error = event.error { all["error"] = "\(error)" }
        var line = "{\"at\":\(SystemClocks.wall().milliseconds),\"level\":\"\(event.level.rawValue)\""
        line += ",\"service\":\(JSONText.quoted(service)),\"message\":\(JSONText.quoted(event.message.description))"
        for (key, value) in all.sorted(by: { $0.key < $1.key }) {
            line += ",\(JSONText.quoted(key)):\(JSONText.quoted(value.description))"
        }
        line += "}\n"
        // One call for each line, so that the lines of two threads never mix; what the reader does not take is lost.
        guard Self.isTaken else { return }
        _ = line.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    }

    /// Whether the standard error takes a line now. A reader that stands still must not hold up whoever logs.
    private static var isTaken: Bool {
        var error = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        return poll(&error, 1, 0) > 0 && error.revents & Int16(POLLOUT) != 0
    }
}
