package import BusKit
package import OwnerKit
package import PodcastModel
package import WireMessages

/// Owns the queues and decides what plays next.
///
/// A command changes the queues at once; the change is committed, published and answered in that order. The decided
/// load is part of the commit (`pending`), so a restarted queue requests it from the player again.
package struct QueueMachine: OwnerMachine {
    // The service has no hardware: its shell sends no inputs and performs no actions.
    package typealias Input = Never
    package typealias Action = Never

    package enum Query: Sendable {
        /// A request to the player for the load with this ID.
        case load(String)
        case preparation
        case player(PlayerCommand)
        /// A query to the library for the episodes of lookups.
        case episodes
        /// A query to the library for the newest episodes of a podcast.
        case newestEpisodes(AutoEnqueue.CheckID)
        /// A query to the library for the items of a smart playlist.
        case smartPlaylist(SmartPlaylistSchedule.EvaluationID)
        /// A request whose reply is ignored.
        case unawaited
    }

    package enum Timer: Sendable, Hashable {
        /// Checks again whether the queue has to advance or to request a load.
        case reconcile
        /// Queries the library again for new episodes.
        case ruleChecks
        /// Refuses the commands that wait for a new state of the player.
        case playerState
        /// Evaluates smart playlists.
        case smartPlaylists
        /// Erases playlists whose deletion can’t be undone any more.
        case deletedPlaylists
    }

    package struct Step: Sendable {
        package enum Purpose: Sendable {
            case edit
            /// Decides a load.
            case load
            case enqueue(podcast: String)
            /// Precedes a command that resumes the loaded episode, and that is answered by the player.
            case resume(PlayerCommand)
            /// Gives the queue with this name another one.
            case rename(String)
        }

        var id: TransactionID
        var purpose: Purpose
    }

    package static let owner = ServiceName.queue
    package static let observes = [
        "stream/playback/", "stream/feeds/", "stream/bus/service/playback", "stream/bus/service/feeds",
        "stream/downloads/download/",
    ]
    package static let followsPodcasts = true
    /// The wait before a failed load or advance is retried.
    static let retryBackoff = Backoff.constant(.seconds(1))

    private(set) var state = SpeculativeState(QueueState()) { didSet { isNextOutdated = true } }
    /// The stored queues, until all records have been read.
    private var stored = StoredQueues()
    /// The number of pending transactions that decide a load.
    private var undecidedLoads = 0
    var lookups = EpisodeLookups()
    var autoEnqueue = AutoEnqueue()
    var smartPlaylists = SmartPlaylists()

    /// The new names of renamed queues, by the names that the player’s state may still have.
    var renamedQueues: [String: String] = [:]
    /// The player’s last known state; nil until it is known.
    var player: WirePlaybackState? { didSet { isNextOutdated = true } }
    var playerIsReady = false { didSet { isNextOutdated = true } }
    var loads = LoadCoordinator() { didSet { isNextOutdated = true } }
    /// The newest state of the loaded episode; its entry is updated with it when another one is loaded.
    var loadedEpisodeState: WireEpisodeState?
    var failures = FailureWatch()
    /// The commands that are decided again at the player’s next state.
    var commandsAwaitingState: [PlayerCommand] = []
    /// The last published value of `stream/queue/next`.
    private var announced: WireQueueNext?
    /// Whether the next entry may have changed since it was determined.
    private var isNextOutdated = true
    var feedsIsReady = false
    /// The load for whose episode chapters were requested from feeds.
    var chaptersRequested = ""

    package init() {}

    var queues: Queues { state.current.queues }
    var playlists: Playlists { state.current.playlists }
    var rules: QueueRules { state.current.rules }
    var main: NamedQueue { queues.named(QueueName.default) }
    /// Whether a transaction that decides a load is pending.
    var isDecidingLoad: Bool { undecidedLoads > 0 }

    // MARK: - Starting

    package mutating func restore(_ record: StoredRecord, now: Moment) throws {
        guard try !stored.restore(record) else { return }
        try state.amend { try $0.rules.restore(record) }
    }

    package mutating func start(now: Moment, _ effects: inout [Effect]) {
        let restored = stored.queues { effects.append(.log(.error, $0)) }
        let playlists = stored.playlists { effects.append(.log(.error, $0)) }
        stored = StoredQueues()
        state.amend {
            $0.queues.merge(restored) { $1 }
            $0.playlists.merge(playlists.filter { $1.deletedAt == nil }) { $1 }
            $0.deleted = DeletedPlaylists(playlists.filter { $1.deletedAt != nil })
        }
        eraseDeleted(now: now, &effects)
        renameCollidingQueues(&effects)
        loads.track(queues.pendingLoads(whileShowing: nil))
        announced = next
        refreshEpisodes(Set(contents.flatMap { $0.entries.map(\.episode) }), &effects)
        smartPlaylistsChanged(nil, after: .zero, now: now)
        runSmartPlaylists(now: now, &effects)
    }

    package var knownPodcasts: Set<PodcastID> {
        let listed = Set(contents.flatMap { $0.entries.map(\.wire.episode.podcastID) })
        return Set((rules.podcasts + listed).compactMap { PodcastID($0) })
    }

    /// The entries of all queues and playlists.
    var contents: [Queue] { queues.values.map(\.queue) + playlists.values.map(\.queue) }

    package func retained(now: Moment) -> [Publication] {
        queues.inOrder.flatMap(\.wholePublications) + playlists.inOrder.map(\.publication) + rules.retained
            + [Publication(.put, .queueNext, next.wireBytes)]
    }

    package func everything() -> [WireChange] {
        queues.inOrder.flatMap(\.everything) + playlists.inOrder.flatMap(\.everything)
            + state.current.deleted.everything + rules.everything
    }

    // MARK: - Deciding

    package mutating func handle(_ event: Event, now: Moment) -> [Effect] {
        var effects: [Effect] = []
        decide(event, now: now, &effects)
        switch event {
        // A commit that a full disk refuses is not retried at once, but after the next event.
        case .command, .refused, .databaseReplaced, .stopping: break
        case .committed, .answered, .observed, .podcastForgotten, .timer, .input: endPastAlerts(&effects)
        }
        runSmartPlaylists(now: now, &effects)
        guard isNextOutdated else { return effects }
        loads.track(queues.pendingLoads(whileShowing: player?.loadID))
        // A command’s change is published when it is durable.
        if case .command = event { return effects }
        prepareNext(&effects)
        isNextOutdated = false
        return announceNext() + effects
    }

    /// Publishes the next entry if it has changed, once everything that it depends on is durable.
    private mutating func announceNext() -> [Effect] {
        guard state.isSettled else { return [] }
        let next = next
        guard next != announced else { return [] }
        announced = next
        return [.publish([Publication(.put, .queueNext, next.wireBytes)])]
    }

    private mutating func decide(_ event: Event, now: Moment, _ effects: inout [Effect]) {
        switch event {
        case .command(let command): handle(command, now: now, &effects)
        case .committed(let step):
            state.committed(step.id)
            smartPlaylistsChanged(.lists, now: now)
            switch step.purpose {
            case .load:
                undecidedLoads -= 1
                requestLoad(&effects)
            case .resume(let command): forward(command, &effects)
            case .rename(let name): sendNewName(of: name, &effects)
            case .edit, .enqueue: break
            }
        case .refused(let step, let failure):
            state.refused(step.id)
            // The rolled-back value may have been published at the start of the epoch.
            announced = nil
            // The items of smart playlists were rolled back, too.
            smartPlaylistsChanged(nil, now: now)
            // An advance that couldn’t be saved is still due: the player shows `finished` until it has its next load.
            effects.append(.timer(.reconcile, at: now.monotonic.advanced(by: Self.retryBackoff.wait())))
            switch step.purpose {
            case .load: undecidedLoads -= 1
            case .enqueue(let podcast): checkAgain(podcast: podcast, now: now, &effects)
            case .resume(let command): effects.append(.reply(command.command.id, .failure(failure)))
            case .edit, .rename: break
            }
        case .answered(let query, let result): handle(result, to: query, now: now, &effects)
        case .observed(let event): observe(event, now: now, &effects)
        case .podcastForgotten(let podcast): forget(podcast, now: now, &effects)
        case .timer(.reconcile): reconcile(now: now, &effects)
        case .timer(.ruleChecks): checkNextPodcast(&effects)
        case .timer(.smartPlaylists): smartPlaylists.timer = nil
        case .timer(.deletedPlaylists): eraseDeleted(now: now, &effects)
        case .timer(.playerState): refuseCommandsAwaitingState(&effects)
        case .databaseReplaced, .stopping: break
        }
    }

    private mutating func handle(
        _ result: Result<[UInt8], Failure>, to query: Query, now: Moment, _ effects: inout [Effect]
    ) {
        switch query {
        case .load(let load):
            guard let answer = loads.answered(result, to: load) else { return }
            loadAnswered(load, answer, now: now, &effects)
        case .preparation: loads.prepared()
        case .player(let command): playerAnswered(result, command, now: now, &effects)
        case .episodes: episodesAnswered(result, now: now, &effects)
        case .newestEpisodes(let check): podcastChecked(check, result.persistenceReply, now: now, &effects)
        case .smartPlaylist(let evaluation):
            smartPlaylistAnswered(evaluation, result.persistenceReply, now: now, &effects)
        case .unawaited: break
        }
    }

    // MARK: - Committing

    /// Applies a change speculatively and commits it. An empty change is only answered.
    ///
    /// - Parameter apply: Makes the same change to the state.
    mutating func commit(
        _ change: OwnerChange, as purpose: Step.Purpose = .edit, answering answer: Answer? = nil,
        _ effects: inout [Effect], _ apply: (inout QueueState) -> Void
    ) {
        guard !change.isEmpty else {
            if let answer { reply(answer, &effects) }
            return
        }
        let before = answer.flatMap { history(of: $0.list) }
        let id = state.apply(apply)
        if case .load = purpose { undecidedLoads += 1 }
        let reply = answer.map { answer in
            var answer = answer
            answer.reply.changed = true
            answer.reply.undo = history(of: answer.list)?.change(since: before) ?? 0
            return (answer.command.id, completed(answer).wireBytes)
        }
        effects.append(.commit(Transaction(Step(id: id, purpose: purpose), change, answering: reply)))
    }

    /// Changes the state in memory only.
    mutating func amend(_ apply: (inout QueueState) -> Void) { state.amend(apply) }

    /// Commits a changed queue, and the rules if they have changed with it.
    mutating func commit(
        _ named: NamedQueue, _ change: OwnerChange, as purpose: Step.Purpose = .edit, rules: QueueRules? = nil,
        answering answer: Answer? = nil, _ effects: inout [Effect]
    ) {
        commit(change, as: purpose, answering: answer, &effects) {
            $0.queues[named.name] = named
            $0.rules = rules ?? $0.rules
        }
    }

    /// Commits a changed playlist.
    mutating func commit(
        _ playlist: Playlist, _ change: OwnerChange, answering answer: Answer? = nil, _ effects: inout [Effect]
    ) {
        commit(change, answering: answer, &effects) { $0.playlists[playlist.name] = playlist }
    }

    private func history(of list: ListID) -> QueueHistory? {
        switch list {
        case .queue(let name): queues[name]?.history
        case .playlist(let id): playlists[id]?.history
        }
    }

    /// Answers a command that has changed no durable state.
    func reply(_ answer: Answer, _ effects: inout [Effect]) {
        effects.append(.reply(answer.command.id, .success(completed(answer).wireBytes)))
    }

    private func completed(_ answer: Answer) -> WireQueueReply {
        var reply = answer.reply
        switch answer.list {
        case .queue(let name):
            let named = queues.named(name)
            reply.revision = named.queue.revision
            reply.queue = named.name
            reply.limit = UInt32(clamping: named.limit)
            let following = following
            reply.playing = named.name == following.queue
            if let entry = following.entry { reply.following = entry }
        case .playlist(let id):
            guard let playlist = playlists[id] else { break }
            reply.revision = playlist.queue.revision
            reply.limit = UInt32(clamping: playlist.limit)
            reply.playlist = playlist.wire
        }
        return reply
    }
}
