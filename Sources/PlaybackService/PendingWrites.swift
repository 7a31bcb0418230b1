import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The changes that are not durable yet. Items are recorded by name and written with their newest values, also when a
/// failed save is retried.
struct PendingWrites: Sendable {
    enum Item: Sendable, Hashable, Comparable {
        case session
        case settings
        case episodeState(String)
        case alert(String)
        case setting(podcast: String, key: String)
        case sleep
        case chapters(String)
        /// A bookmark of a forgotten podcast; other bookmarks have transactions of their own.
        case bookmark(String)
        case playSession(String)
        case marks(String)

        /// Whether the item is written again after it was refused as invalid.
        var isKeptIfRefused: Bool {
            switch self {
            case .episodeState, .playSession: false
            default: true
            }
        }
    }

    enum Entry: Sendable {
        case state([Item])
        case answer(PlayerAlerts.Answer)
        case marks([EpisodeMark], MarksRecordChange?)
        case bookmark
    }

    private(set) var dirty: Set<Item> = []
    private var entries: [TransactionID: Entry] = [:]
    private(set) var unsavedStates: [String: WireEpisodeState] = [:]
    private(set) var unsavedSessions: [String: WirePlaySession] = [:]
    /// The unsaved play sessions that have ended.
    private var endedSessions: Set<String> = []
    /// The number of consecutive refused transactions.
    private(set) var refusals = 0
    /// An episode’s end that is not durable yet. Until then, the stream shows the episode as playing and
    /// stopped at its end, because observers such as the queue must not lose the end when this process dies.
    private var end: End?

    private enum End: Sendable, Equatable {
        case due
        case underWay(TransactionID)
    }

    var hasEnd: Bool { end != nil }

    mutating func markEnd() { end = .due }

    /// Removes the end, because it is published before it is durable.
    mutating func endIsShown() { end = nil }

    /// Handles the outcome of a transaction. An end that can’t be saved is published as well.
    ///
    /// - Returns: whether the transaction contained the end.
    mutating func concludeEnd(_ id: TransactionID) -> Bool {
        guard end == .underWay(id) else { return false }
        end = nil
        return true
    }

    var isBusy: Bool { !entries.isEmpty }

    mutating func mark(_ item: Item) { dirty.insert(item) }

    mutating func mark(_ episodeState: WireEpisodeState) {
        unsavedStates[episodeState.episode] = episodeState
        dirty.insert(.episodeState(episodeState.episode))
    }

    /// - Parameter hasEnded: whether the session’s end is published when it is saved.
    mutating func mark(_ session: WirePlaySession, hasEnded: Bool = false) {
        unsavedSessions[session.id] = session
        if hasEnded { endedSessions.insert(session.id) } else { endedSessions.remove(session.id) }
        dirty.insert(.playSession(session.id))
    }

    /// The event that is published when an item is saved; nil if there is none.
    func event(of item: Item) -> Publication? {
        switch item {
        case .episodeState(let id): unsavedStates[id].map { Publication(.event, .episodeState(id), $0.wireBytes) }
        case .playSession(let id) where endedSessions.contains(id):
            unsavedSessions[id].map { Publication(.event, .playSession, $0.wireBytes) }
        default: nil
        }
    }

    /// Updates an unsaved state of an episode whose state is being committed separately: the later write must not be
    /// older.
    mutating func supersede(_ episodeState: WireEpisodeState) {
        if unsavedStates[episodeState.episode] != nil { mark(episodeState) }
    }

    mutating func begin(_ id: TransactionID, _ entry: Entry) {
        entries[id] = entry
        guard case .state = entry else { return }
        dirty = []
        if end == .due { end = .underWay(id) }
    }

    mutating func committed(_ id: TransactionID) -> Entry? {
        let entry = entries.removeValue(forKey: id)
        refusals = 0
        forget()
        return entry
    }

    /// Marks the items of a refused transaction as unsaved again if `keeping` returns true.
    mutating func refused(_ id: TransactionID, keeping: (Item) -> Bool) -> Entry? {
        let entry = entries.removeValue(forKey: id)
        if case .state(let items)? = entry { dirty.formUnion(items.filter(keeping)) }
        if case .marks(let marks, _)? = entry { marks.forEach { rollBack($0) } }
        refusals += 1
        forget()
        return entry
    }

    /// Rolls back a refused mark in the later marks of the same episode.
    private mutating func rollBack(_ refused: EpisodeMark) {
        for case (let id, .marks(var marks, let record)) in entries {
            for index in marks.indices where marks[index].after.episode == refused.after.episode {
                marks[index].before = refused.rolledBack(from: marks[index].before)
            }
            entries[id] = .marks(marks, record)
        }
    }

    private mutating func forget() {
        var needed = dirty
        for case .state(let items) in entries.values { needed.formUnion(items) }
        unsavedStates = unsavedStates.filter { needed.contains(.episodeState($0.key)) }
        unsavedSessions = unsavedSessions.filter { needed.contains(.playSession($0.key)) }
        endedSessions.formIntersection(unsavedSessions.keys)
    }
}
