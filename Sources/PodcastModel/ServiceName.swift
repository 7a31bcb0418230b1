/// The name of a service on the bus: `playback`, `queue` …
public struct ServiceName: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The name: 1 to 32 lower-case ASCII letters.
    public let text: String

    /// Creates a name; nil unless `text` is 1 to 32 lower-case ASCII letters.
    public init?(_ text: String) {
        guard (1...32).contains(text.utf8.count),
            text.utf8.allSatisfy({ (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) })
        else { return nil }
        self.text = text
    }

    private init(known text: String) { self.text = text }

    /// The bus, to which the other services connect.
    public static let bus = ServiceName(known: "bus")
    /// The service that owns the database.
    public static let persistence = ServiceName(known: "persistence")
    /// The service that plays episodes.
    public static let playback = ServiceName(known: "playback")
    /// The service that owns Up Next and the other queues.
    public static let queue = ServiceName(known: "queue")
    /// The service that owns the subscriptions.
    public static let feeds = ServiceName(known: "feeds")
    /// The service that owns the downloaded files.
    public static let downloads = ServiceName(known: "downloads")
    /// The service that synchronises with other devices.
    public static let sync = ServiceName(known: "sync")
    /// The supervisor of the processes, which joins the bus only for its alerts.
    public static let supervisor = ServiceName(known: "supervisor")

    /// Orders names by their text.
    public static func < (left: ServiceName, right: ServiceName) -> Bool { left.text < right.text }
    /// The name as text.
    public var description: String { text }
}
