/// The name of a service on the bus: `playback`, `queue` …
public struct ServiceName: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Lower-case ASCII letters, 1 to 32 of them.
    public let text: String

    /// Nil unless `text` is 1 to 32 lower-case ASCII letters.
    public init?(_ text: String) {
        guard (1...32).contains(text.utf8.count),
            text.utf8.allSatisfy({ (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) })
        else { return nil }
        self.text = text
    }

    private init(known text: String) { self.text = text }

    /// The bus, which the others connect to.
    public static let bus = ServiceName(known: "bus")
    /// The service that owns the database.
    public static let persistence = ServiceName(known: "persistence")
    /// The service that plays.
    public static let playback = ServiceName(known: "playback")
    /// The service that owns Up Next and the other queues.
    public static let queue = ServiceName(known: "queue")
    /// The service that owns the subscriptions.
    public static let feeds = ServiceName(known: "feeds")
    /// The service that owns the downloaded files.
    public static let downloads = ServiceName(known: "downloads")
    /// The exchange with other devices.
    public static let sync = ServiceName(known: "sync")
    /// The supervisor of the processes, which joins the bus for its alerts alone.
    public static let supervisor = ServiceName(known: "supervisor")

    /// Orders names by their text.
    public static func < (left: ServiceName, right: ServiceName) -> Bool { left.text < right.text }
    /// The name as text.
    public var description: String { text }
}
