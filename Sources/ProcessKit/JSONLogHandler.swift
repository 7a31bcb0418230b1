import LibC
import Logging
import PodcastModel

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
        let line = self.line(event.level, event.message.description, all)
        // One call writes each line, so that threads’ lines never mix; lines that the pipe can’t accept are lost.
        guard Self.isWritable else { return }
        _ = line.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    }

    /// The size that a writable pipe accepts at once (`PIPE_BUF`); a longer line could block in the middle.
    static let lineLimit = 4_096

    /// The line, in at most `lineLimit` bytes; if it would be longer, the message is truncated without metadata.
    func line(_ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) -> String {
        let start =
            "{\"at\":\(SystemClocks.wall().milliseconds),\"level\":\"\(level.rawValue)\",\"service\":"
            + JSONText.quoted(service) + ",\"message\":"
        let more = metadata.sorted { $0.key < $1.key }
            .map { ",\(JSONText.quoted($0.key)):\(JSONText.quoted($0.value.description))" }.joined()
        let whole = start + JSONText.quoted(message) + more + "}\n"
        if whole.utf8.count <= Self.lineLimit { return whole }
        // A character may become six bytes (`\u0000`), or consist of several scalars.
        var length = Self.lineLimit - start.utf8.count - 16
        while length > 0 {
            let text = JSONText.quoted(String(message.unicodeScalars.prefix(length)) + "…")
            if start.utf8.count + text.utf8.count + 2 <= Self.lineLimit { return start + text + "}\n" }
            length /= 2
        }
        return start + "\"…\"}\n"
    }

    /// Whether the standard error accepts a line now: a hung reader must not block the logging thread.
    private static var isWritable: Bool {
        var error = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        return poll(&error, 1, 0) > 0 && error.revents & Int16(POLLOUT) != 0
    }
}
