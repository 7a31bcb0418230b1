package import BusKit
package import OwnerKit
package import PodcastModel
package import WireMessages

/// Owns the queues and decides what plays next.
///
/// A command changes the queues at once; the change is committed, published and answered in that order. What must
/// be played is itself part of the commit (`pending`), so that a crash between "this plays now" and the player's
/// hearing of it is repaired by whoever restarts.
package struct QueueMachine: OwnerMachine {
    /// What the shell reports: nothing, this service has no hardware.
    package typealias Input = Never
    /// What the shell does: nothing.
    package typealias Action = Never
    typealias Effect = OwnerEffect<Never>

    /// The name on the bus.
    package static let owner = ServiceName.queue
    /// The player, whose end of an episode moves the queue on, and news about episodes that stand in a queue.
    package static let observes = [
        "stream/playback/", "stream/feeds/", "stream/bus/service/playback", "stream/bus/service/feeds",
    ]
    /// The maximum number of entries in an answer; long lists are not sent back whole.
    static let answeredEntries = RequestSizes.episodes
    /// When to look again whether the queue has to move on.
    static let reconciliation = TimerName("reconcile")
    /// The wait before a load or an advance that failed is tried again.
    static let retry = Backoff.constant(.seconds(1))

    var queues: SpeculativeState<Queues> { didSet { isNextOutdated = true } }
    /// What is set, and how far new episodes have been dealt with.
    var rules = SpeculativeState(QueueRules())
    private var lastTransaction: UInt64 = 0
    private var pendingTransactions: [TransactionID: PendingTransaction] = [:]
    var lookups = EpisodeLookups<LookupPurpose>()
    /// Names each call once in a life of the process.
    private var callCount: UInt64 = 0

    /// The player as last seen; nil: not yet.
    var player: WirePlaybackState? { didSet { isNextOutdated = true } }
    var playerIsReady = false { didSet { isNextOutdated = true } }
    /// Positions of the loaded episode, which entries take over when it is no longer loaded.
    var loadedEpisodeState: WireEpisodeState?
    var loads = LoadCoordinator() { didSet { isNextOutdated = true } }
    /// Whether what fails is passed over.
    var failures = FailureWatch()
    /// The value of `stream/queue/next` that was published last.
    private var announced: WireQueueNext?
    /// Whether what plays next may be different since it was determined.
    private var isNextOutdated = true
    var feedsIsReady = false
    /// The load for which feeds was asked for chapters.
    var chaptersAsked = ""
    var autoEnqueue = AutoEnqueue()
    /// Commands that wait for the player's answer, by call.
    var commandsOfPlayer: [CallID: PlayerCommand] = [:]
    /// Commands that are decided again at the player’s next state.
    var commandsAwaitingState: [PlayerCommand] = []

    /// An owner that knows nothing yet.
    package init() {
        queues = SpeculativeState([QueueName.usual: NamedQueue(name: QueueName.usual)])
    }

    // MARK: - Starting

    /// Takes the stored queues over; a record that cannot be read is left where it is and reported.
    package mutating func restore(_ records: [StoredRecord], now: Moment) -> [OwnerEffect<Never>] {
        var effects: [Effect] = []
        let stored = StoredQueues(records) { effects.append(.log(.error, $0)) }
        var restored = stored.queues
        rules = SpeculativeState(
            QueueRules(records) { record, reason in
                effects.append(.log(.error, "record \(record.collection)/\(record.key) is unreadable: \(reason)"))
            })
        restored[QueueName.usual] = restored[QueueName.usual] ?? NamedQueue(name: QueueName.usual)
        queues = SpeculativeState(restored)
        loads.follow(queues.current.pendingLoads(whileShowing: nil))
        announced = next
        return effects + refreshEpisodes(Set(restored.values.flatMap { $0.queue.entries.map(\.episode) }))
    }

    /// Every queue, whole.
    package func retained(now: Moment) -> [Publication] {
        queues.current.inOrder.flatMap(\.wholePublications)
            + rules.current.retained + [Publication(.put, .queueNext, next.wireBytes)]
    }

    package func everything() -> [WireChange] {
        queues.current.inOrder.flatMap(\.everything) + rules.current.everything
    }

    // MARK: - Deciding

    package mutating func handle(_ event: OwnerEvent<Never>, now: Moment) -> [OwnerEffect<Never>] {
        var effects = decide(event, now: now)
        switch event {
        // What a full disk refuses is not committed again at once, but with the next news.
        case .command, .refused, .databaseReplaced, .stopping: break
        case .committed, .answered, .observed, .podcastForgotten, .timer, .input: effects += endPastAlerts()
        }
        guard isNextOutdated else { return effects }
        loads.follow(queues.current.pendingLoads(whileShowing: player?.loadID))
        // What a command changes is told when it is durable.
        if case .command = event { return effects }
        effects += prepareNext()
        isNextOutdated = false
        return announceNext() + effects
    }

    /// Puts what plays next where that has changed, once all that it depends on is durable.
    private mutating func announceNext() -> [Effect] {
        guard queues.isSettled else { return [] }
        let next = next
        guard next != announced else { return [] }
        announced = next
        return [.publish([Publication(.put, .queueNext, next.wireBytes)])]
    }

    private mutating func decide(_ event: OwnerEvent<Never>, now: Moment) -> [Effect] {
        switch event {
        case .command(let command):
            return handle(command, now: now)
        case .committed(let id):
            queues.committed(id)
            rules.committed(id)
            guard let settled = pendingTransactions.removeValue(forKey: id), settled.loads else { return [] }
            return requestLoad()
        case .refused(let id, let failure):
            queues.refused(id)
            rules.refused(id)
            // At the start of an epoch it may have been put with what is taken back now.
            announced = nil
            let settled = pendingTransactions.removeValue(forKey: id)
            // An advance that could not be saved is due still: the player says `finished` until it has its next load.
            var effects = [Effect.timer(Self.reconciliation, at: now.monotonic.advanced(by: Self.retry.wait()))]
            if let podcast = settled?.podcast { effects += checkAgain(podcast: podcast, now: now) }
            guard let command = settled?.command, failure.code != "duplicateRequest" else { return effects }
            return [.reply(command.id, .failure(failure))] + effects
        case .answered(let call, let result):
            return handle(answer: result, to: call, now: now)
        case .observed(let event):
            return observe(event, now: now)
        case .timer(Self.reconciliation):
            return reconcile(now: now)
        case .timer(Self.ruleRepetition):
            return checkNextPodcast()
        case .timer(Self.stateDeadline):
            return refuseCommandsAwaitingState()
        case .databaseReplaced, .podcastForgotten, .timer, .stopping:
            return []
        }
    }

    private mutating func handle(_ command: Command, now: Moment) -> [Effect] {
        let request: WireQueueRequest
        do {
            let unresolved = try WireQueueRequest(wireBytes: command.payload)
            let resolver = RequestResolver(queues: queues.current, queuesToPlayFrom: queuesToPlayFrom)
            request = try resolver.resolved(unresolved, about: name(unresolved))
        } catch {
            let failure =
                error as? Failure ?? Failure(.malformed, "The request to the queue cannot be read: \(error)")
            return [.reply(command.id, .failure(failure))]
        }
        return carryOut(request, of: command, now: now)
    }

    /// Carries a command out once the episodes that it names are known.
    mutating func carryOut(_ request: WireQueueRequest, of command: Command, now: Moment) -> [Effect] {
        let named = episodes(in: request)
        guard named.count <= Queue.limit else {
            let failure = Failure(.limitReached, "At most \(Queue.limit) episodes can be added at once.")
            return [.reply(command.id, .failure(failure))]
        }
        let unknown = queues.current[name(request)]?.queue.absent(among: named) ?? named
        guard !unknown.isEmpty else { return perform(request, of: command, knowing: [:], now: now) }
        return lookUp(unknown, for: .command(command, request))
    }

    private func episodes(in request: WireQueueRequest) -> [String] {
        switch request.command {
        case .add(let add): add.episodes
        case .play(let play): play.episode.isEmpty ? [] : [play.episode]
        default: []
        }
    }

    mutating func perform(
        _ request: WireQueueRequest, of command: Command, knowing episodes: [String: WireEpisodeSummary], now: Moment
    ) -> [Effect] {
        do throws(Failure) {
            return try execute(request, of: command, knowing: episodes, now: now)
        } catch {
            return [.reply(command.id, .failure(error))]
        }
    }

    // MARK: - Committing

    /// Puts a changed queue in force and has it committed. A change that is none is answered without that.
    mutating func commit(
        _ named: NamedQueue, _ change: OwnerChange, _ reply: WireQueueReply = WireQueueReply(),
        answering command: Command? = nil, loads: Bool = false, with others: [NamedQueue] = [],
        rules newRules: QueueRules? = nil, checking podcast: String? = nil, deleting: Bool = false
    ) -> [OwnerEffect<Never>] {
        guard !change.isEmpty else { return command.map { [answer($0, reply, about: named)] } ?? [] }
        var reply = reply
        reply.revision = named.queue.revision
        reply.changed = true
        lastTransaction += 1
        let id = TransactionID(lastTransaction)
        queues.apply(id) { queues in
            for other in others { queues[other.name] = other }
            queues[named.name] = deleting ? nil : named
        }
        if let newRules { rules.apply(id) { $0 = newRules } }
        pendingTransactions[id] = PendingTransaction(command: command, loads: loads, podcast: podcast)
        complete(&reply, about: named)
        let transaction = Transaction(
            id: id, changes: change.changes, publications: change.publications,
            answering: command.map { ($0.id, reply.wireBytes) })
        return [.commit(transaction)]
    }

    /// Whether a decision about what plays waits for the database.
    var isDecidingLoad: Bool { pendingTransactions.values.contains { $0.loads } }

    /// A name for a call that no other has.
    mutating func nextCall(_ kind: String) -> CallID {
        callCount += 1
        return CallID("\(kind)/\(callCount)")
    }

    /// The queue as it is now, to be changed and committed.
    func named(_ name: String) -> NamedQueue { queues.current.named(name) }

    /// The queue that a request is about. Playing without a name goes on in the queue that plays.
    func name(_ request: WireQueueRequest) -> String {
        guard request.queue.isEmpty else { return request.queue }
        switch request.command {
        case .play(let play): return queueToPlay(play)
        case .next, .previous, .toggle: return playingQueue
        default: return QueueName.usual
        }
    }

    private func queueToPlay(_ play: WirePlay) -> String {
        let names = [playingQueue, QueueName.usual] + queues.current.keys.sorted()
        let holder =
            switch play.what {
            case .entry(let id): names.first { queues.current[$0]?.queue.index(of: id) != nil }
            case .episode(let episode): names.first { queues.current[$0]?.queue.entry(episode: episode) != nil }
            case .resume, nil: String?.none
            }
        return holder ?? playingQueue
    }

    var main: NamedQueue { named(QueueName.usual) }

    // MARK: - Answering

    func reply(_ named: NamedQueue) -> WireQueueReply {
        var reply = WireQueueReply()
        reply.revision = named.queue.revision
        return reply
    }

    /// Answers a command that has changed nothing that must be durable.
    func answer(_ command: Command, _ reply: WireQueueReply, about named: NamedQueue) -> OwnerEffect<Never> {
        var reply = reply
        complete(&reply, about: named)
        return .reply(command.id, .success(reply.wireBytes))
    }

    /// Says how it is now, as every reply does.
    private func complete(_ reply: inout WireQueueReply, about named: NamedQueue) {
        reply.queue = named.name
        reply.playing = named.name == playingQueue
        reply.limit = UInt32(clamping: named.limit)
        if let entry = following.entry { reply.following = entry }
    }
}
