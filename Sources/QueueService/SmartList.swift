import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// The rule, the order and the limit by which a smart playlist chooses its items.
struct SmartList: Sendable {
    /// The maximum number of items.
    static let limit: UInt32 = 1_000
    private static let defaultLimit: UInt32 = 100

    private(set) var wire: WireSmartList
    /// The parsed rule; nil if a newer version stored it and this one can’t read it.
    private(set) var rule: EpisodeRule?
    /// A hash of the IDs of the items.
    var digest: UInt64 = 0
    /// The number and the length of the items, until they are known.
    var stored: (count: UInt32, duration: Double)?

    /// Creates a list from a request.
    ///
    /// - Parameter known: the names of queues and manual playlists, which rules may contain.
    /// - Throws: `invalidArgument`, `notFound`.
    init(_ request: WireSmartList, of name: String, queues: Set<String>, playlists: Playlists) throws(Failure) {
        let rule = try RuleLists(queues: queues, playlists: playlists).resolved(try EpisodeRule(request.rule), of: name)
        wire = request
        wire.rule = rule.description
        if wire.limit == 0 { wire.limit = Self.defaultLimit }
        guard wire.limit <= Self.limit else {
            throw Failure(
                .invalidArgument, "A smart playlist has 1 to \(Self.limit) episodes, not \(wire.limit).")
        }
        switch wire.order {
        case .relevance, .UNRECOGNIZED:
            throw Failure(.invalidArgument, "A smart playlist can’t have this order; use newest, oldest, shortest, …")
        default: break
        }
        guard wire.queue.isEmpty || queues.contains(wire.queue) else {
            throw ListID.queue(wire.queue).missing(among: queues.sorted())
        }
        self.rule = rule
        stored = (0, 0)
    }

    /// Restores a stored list.
    init(_ record: WirePlaylistRecord) {
        wire = record.smart
        rule = try? EpisodeRule(record.smart.rule)
        digest = record.digest
        stored = (record.items, record.duration)
    }

    /// Follows a queue that has a new name; returns whether the list names it.
    mutating func rename(queue name: String, to new: String) -> Bool {
        let before = wire
        if wire.queue == name { wire.queue = new }
        if let rule, rule.lists.contains(name) {
            let renamed = rule.renaming(list: name, to: new)
            (self.rule, wire.rule) = (renamed, renamed.description)
        }
        return wire != before
    }

    /// Changes the fields that a request contains; nil if it contains none.
    func changed(by change: WireChangePlaylist) -> WireSmartList? {
        guard change.hasRule || change.hasOrder || change.hasLimit || change.hasQueue else { return nil }
        var list = wire
        if change.hasRule { list.rule = change.rule }
        if change.hasOrder { list.order = change.order }
        if change.hasLimit { list.limit = change.limit }
        if change.hasQueue { list.queue = change.queue }
        return list
    }

    /// A hash of IDs in order that is equal in every process (FNV-1a).
    static func digest(of ids: [String]) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for id in ids {
            for byte in Array(id.utf8) + [0] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        }
        return hash
    }
}

/// The smart playlists’ evaluations: when they run, what they have found so far, and the commands that wait for them.
struct SmartPlaylists: Sendable {
    var schedule = SmartPlaylistSchedule()
    /// The list that the evaluation in progress queries, and the episodes that it has found.
    var queried: WireSmartList?
    var found: [WireEpisodeSummary] = []
    /// The commands to playlists whose items aren’t known yet.
    var waiting: [(playlist: String, context: CommandContext)] = []
    /// The episode whose state was observed last, and whether it is started and played.
    var lastState: (episode: String, started: Bool, played: Bool)?
    /// The time of the timer that is set.
    var timer: MonotonicTime?

    /// Removes and returns the commands that wait for a playlist’s items.
    mutating func release(_ playlist: String) -> [CommandContext] {
        let released = waiting.filter { $0.playlist == playlist }.map(\.context)
        waiting.removeAll { $0.playlist == playlist }
        return released
    }
}
