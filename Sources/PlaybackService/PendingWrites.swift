import OwnerKit
import PodcastModel
import WireMessages

/// The changes that are not durable yet. A change is remembered by its name and written with the value of the moment, so
/// that a failed save writes the newest value later.
struct PendingWrites: Sendable {
    /// A thing that is stored.
    enum Item: Sendable, Hashable, Comparable {
        case session
        case settings
        case episodeState(String)
        case alert(String)
        case setting(podcast: String, key: String)
        case sleep
        case chapters(String)
        /// One that was forgotten with its podcast; others have transactions of their own.
        case bookmark(String)

        private var order: (Int, String, String) {
            switch self {
            case .session: (0, "", "")
            case .settings: (1, "", "")
            case .episodeState(let episode): (2, episode, "")
            case .alert(let id): (3, id, "")
            case .setting(let podcast, let key): (4, podcast, key)
            case .sleep: (5, "", "")
            case .chapters(let episode): (6, episode, "")
            case .bookmark(let id): (7, id, "")
            }
        }

        static func < (left: Item, right: Item) -> Bool { left.order < right.order }
    }

    /// The purpose of a transaction.
    enum Entry: Sendable {
        /// These items, with their newest values.
        case state([Item])
        /// The answer to an alert.
        case answer(PlayerAlerts.Answer)
        /// The marks of some episodes.
        case marks([EpisodeMark])
        /// A bookmark that a request has set or removed.
        case bookmark
    }

    private(set) var dirty: Set<Item> = []
    private var entries: [TransactionID: Entry] = [:]
    /// The newest states of episodes that are unsaved or on their way.
    private(set) var unsavedStates: [String: WireEpisodeState] = [:]
    /// Refusals in a row.
    private(set) var refusals = 0
    /// An episode's end that is not durable yet. Until it is, the stream shows it as playing and stopped at its end: who
    /// acts on an end, as the queue does, must find it true also when this process dies.
    private var end: End?

    /// How far the saving of an end has come.
    private enum End: Sendable, Equatable {
        case due
        case underWay(TransactionID)
    }

    /// Whether an episode has ended and that isn't durable yet.
    var hasEnd: Bool { end != nil }

    /// The loaded episode has ended.
    mutating func markEnd() { end = .due }

    /// The end is shown, durable or not.
    mutating func endIsShown() { end = nil }

    /// A transaction has got its outcome. An end that can’t be saved is as true, and holds nothing up.
    ///
    /// - Returns: whether the end was in it.
    mutating func concludeEnd(_ id: TransactionID) -> Bool {
        guard end == .underWay(id) else { return false }
        end = nil
        return true
    }

    /// Whether a transaction has no outcome yet.
    var isBusy: Bool { !entries.isEmpty }

    mutating func mark(_ item: Item) { dirty.insert(item) }

    mutating func mark(_ episodeState: WireEpisodeState) {
        unsavedStates[episodeState.episode] = episodeState
        dirty.insert(.episodeState(episodeState.episode))
    }

    /// A state of an episode is being committed by itself. What is unsaved of that episode is written after it, and must not
    /// be older.
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

    /// Marks the items of a refused transaction as unsaved again, if `keeping` says that they are worth another try.
    mutating func refused(_ id: TransactionID, keeping: (Item) -> Bool) -> Entry? {
        let entry = entries.removeValue(forKey: id)
        if case .state(let items)? = entry { dirty.formUnion(items.filter(keeping)) }
        if case .marks(let marks)? = entry { marks.forEach { rollBack($0) } }
        refusals += 1
        forget()
        return entry
    }

    /// A mark never was: those behind it follow what there was before it.
    private mutating func rollBack(_ refused: EpisodeMark) {
        for case (let id, .marks(var marks)) in entries {
            for index in marks.indices where marks[index].after.episode == refused.after.episode {
                marks[index].before = refused.rolledBack(from: marks[index].before)
            }
            entries[id] = .marks(marks)
        }
    }

    private mutating func forget() {
        var needed: Set<String> = []
        for case .episodeState(let episode) in dirty { needed.insert(episode) }
        for case .state(let items) in entries.values {
            for case .episodeState(let episode) in items { needed.insert(episode) }
        }
        unsavedStates = unsavedStates.filter { needed.contains($0.key) }
    }
}
