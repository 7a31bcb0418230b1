import OwnerKit
import PodcastModel
package import WireMessages

/// What is not yet durable. A change is remembered by its name and written with the value of the moment, so that
/// what could not be saved is saved later as it is then.
struct PlaybackBook: Sendable {
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

    /// What a transaction is about.
    enum Entry: Sendable {
        /// These things, and perhaps the answer to a command that did `fact`.
        case state([Item], request: RequestID?, fact: String)
        /// The answer to an alert, by a request.
        case answer(alert: String, WirePlaybackAnswerRecord, request: RequestID)
        /// Marks of episodes, by a request.
        case marks([EpisodeMark], request: RequestID)
        /// A bookmark that a request has set or removed.
        case request(RequestID)
    }

    private(set) var dirty: Set<Item> = []
    private var entries: [TransactionID: Entry] = [:]
    /// The newest states of episodes that are unsaved or on their way.
    private(set) var unsavedStates: [String: WireEpisodeState] = [:]
    /// Refusals in a row.
    private(set) var refusals = 0

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
        if case .state = entry { dirty = [] }
    }

    mutating func committed(_ id: TransactionID) -> Entry? {
        let entry = entries.removeValue(forKey: id)
        refusals = 0
        forget()
        return entry
    }

    /// What was in a refused transaction is unsaved again; `keeping` says which of it is worth trying again.
    mutating func refused(_ id: TransactionID, keeping: (Item) -> Bool) -> Entry? {
        let entry = entries.removeValue(forKey: id)
        if case .state(let items, _, _)? = entry { dirty.formUnion(items.filter(keeping)) }
        if case .marks(let marks, _)? = entry { marks.forEach { takeBack($0) } }
        refusals += 1
        forget()
        return entry
    }

    /// A mark never was: those behind it follow what there was before it.
    private mutating func takeBack(_ refused: EpisodeMark) {
        for case (let id, .marks(var marks, let request)) in entries {
            for index in marks.indices where marks[index].after.episode == refused.after.episode {
                marks[index].before = refused.takenBack(from: marks[index].before)
            }
            entries[id] = .marks(marks, request: request)
        }
    }

    private mutating func forget() {
        var needed: Set<String> = []
        for case .episodeState(let episode) in dirty { needed.insert(episode) }
        for case .state(let items, _, _) in entries.values {
            for case .episodeState(let episode) in items { needed.insert(episode) }
        }
        unsavedStates = unsavedStates.filter { needed.contains($0.key) }
    }
}

extension PlaybackMachine {
    static let sessionKey = ("session", "current")
    static let settingsKey = ("settings", "current")
    private static let saveRetries = Backoff.exponential(first: .seconds(2), longest: .seconds(30))

    /// Writes a thing as it is now.
    func change(_ item: PlaybackBook.Item) -> WireChange {
        switch item {
        case .session:
            guard let session else { return .deleting(Self.sessionKey.0, Self.sessionKey.1) }
            let record = session.record(now: now, context: context, clean: isStopping)
            return .putting(Self.sessionKey.0, Self.sessionKey.1, record)
        case .settings:
            return .putting(Self.settingsKey.0, Self.settingsKey.1, outputSettings)
        case .episodeState(let episode):
            var change = WireChange()
            change.putEpisodeState = book.unsavedStates[episode] ?? WireEpisodeState()
            return change
        case .alert(let id):
            // The answer to it is on its way, and must not find it stored again behind it.
            guard answering[id] == nil, let record = alerts[id] else { return .deleting("alert", id) }
            return .putting("alert", id, record)
        case .setting(let podcast, let key):
            return settings.record(podcast, key)
        case .sleep:
            let timer = sleepTimer.wire(bootID: context.bootID)
            return timer.map { .putting("sleep", "current", $0) } ?? .deleting("sleep", "current")
        case .chapters(let episode):
            return chapters.files[episode].map { .putting("chapters", episode, $0) } ?? .deleting("chapters", episode)
        case .bookmark(let id):
            return bookmarks.bookmarks[id].map { .putting("bookmark", id, $0) } ?? .deleting("bookmark", id)
        }
    }

    package func everything() -> [WireChange] {
        var changes = [change(.settings)]
        if let session {
            changes.append(change(.session))
            if session.episodeState.updatedAt > 0 {
                var change = WireChange()
                change.putEpisodeState = session.episodeState
                changes.append(change)
            }
        }
        changes += settings.everything
        changes += bookmarks.bookmarks.keys.sorted().map { change(.bookmark($0)) }
        if sleepTimer.phase != .off { changes.append(change(.sleep)) }
        changes += chapters.files.keys.sorted().map { change(.chapters($0)) }
        changes += alerts.keys.sorted().map { change(.alert($0)) }
        changes += answers.sorted { $0.key < $1.key }.map { .putting("answer", $0.key, $0.value) }
        return changes
    }

    private var outputSettings: WirePlaybackSettingsRecord {
        var record = WirePlaybackSettingsRecord()
        record.volume = volume.percent
        output.fill(&record)
        return record
    }

    /// Notes the position as unsaved: in the session, and as the episode's own, unless it is at the very start, where
    /// there is nothing to resume, or at the end.
    mutating func markPosition() {
        guard var session, session.status != .finished else { return }
        book.mark(.session)
        // What is stored of the episode is not known yet, and must not be lost.
        guard session.isStateKnown else { return }
        let position = session.position(at: now.monotonic).seconds
        if session.audio.measured?.source == .declared, let end = session.duration?.seconds, position >= end - 0.5 {
            return
        }
        guard position > 0 || session.episodeState.position > 0 else { return }
        let before = session.episodeState
        session.episodeState.position = position
        if let duration = session.audio.provenDuration {
            session.episodeState.duration = duration.seconds
        } else if position > session.episodeState.duration + 1 {
            // It is not as long as it was taken to be, but longer.
            session.episodeState.duration = 0
        }
        // What has not changed is not of now: it would win over what was heard elsewhere meanwhile.
        let isNewTag = session.audio.saved()
        guard session.episodeState != before || isNewTag else { return }
        session.episodeState.updatedAt = now.wall.milliseconds
        self.session = session
        book.mark(session.episodeState)
    }

    /// Notes the position as unsaved, and saves it now.
    mutating func savePosition() {
        markPosition()
        pending.commit = true
    }

    /// Saves what is loaded now, and shows it.
    mutating func saveSession() {
        book.mark(.session)
        pending.state = true
        pending.commit = true
    }

    mutating func handleCommitted(_ id: TransactionID) {
        timers.wanted[PlaybackTimers.retry] = nil
        switch book.committed(id) {
        case .answer(let alert, let record, _)?: settle(alert, record)
        case .state?, .marks?, .request?, nil: bookmarks.committed(id)
        }
        if book.refusals == 0, !book.dirty.isEmpty, !book.isBusy { pending.commit = true }
        showEnd(id)
        if session?.engine == .awaitingCommit(id) { openEngine() }
    }

    mutating func handleRefused(_ id: TransactionID, _ failure: Failure) {
        // A state of an episode that the library has forgotten is not wanted any more.
        let forgotten = failure.known == .notFound || failure.known == .invalidArgument
        let answered = failure.code == "duplicateRequest"
        switch book.refused(id, keeping: { if case .episodeState = $0 { !forgotten } else { true } }) {
        case .state(_, let request?, let fact)? where !answered:
            pending.refuse(request, Failure(.notSaved, "\(fact), but not saved: \(failure.message)"))
        case .answer(let alert, _, let request)?:
            if !answered { pending.refuse(request, failure) }
            overruled.remove(alert)
            book.mark(.alert(alert))
            (answering.removeValue(forKey: alert) ?? []).forEach { giveAnswer($0) }
        case .marks(let marks, let request)?:
            takeBack(marks)
            if !answered { pending.refuse(request, failure) }
        case .request(let request)?:
            if let episode = bookmarks.refused(id) {
                pending.publications.append(bookmarks.publication(of: episode))
            }
            if !answered { pending.refuse(request, failure) }
        default:
            break
        }
        timers.wanted[PlaybackTimers.retry] = now.monotonic.advanced(by: Self.saveRetries.wait(after: book.refusals))
        showEnd(id)
        guard session?.engine == .awaitingCommit(id) else { return }
        if session?.resumedAt != nil {
            // What crashed may crash again, and that could not be found out now.
            session?.engine = .closed
            session?.status = .paused
            pending.state = true
        } else {
            openEngine()
        }
    }

    /// An end is shown when it is durable; one that cannot be saved is as true, and holds nothing up.
    private mutating func showEnd(_ id: TransactionID) {
        guard unsavedEnd == .underWay(id) else { return }
        unsavedEnd = nil
        pending.state = true
    }
}
