public import BusKit
public import OwnerKit
public import PodcastModel
public import WireMessages

/// Owns the queues and decides what plays next.
///
/// A command changes the queues at once; the change is committed, published and answered in that order. What must
/// be played is itself part of the commit (`pending`), so that a crash between "this plays now" and the player's
/// hearing of it is repaired by whoever restarts.
public struct QueueMachine: OwnerMachine {
    /// What the shell reports: nothing, this service has no hardware.
    public typealias Input = Never
    /// What the shell does: nothing.
    public typealias Action = Never
    typealias Effect = OwnerEffect<Never>

    /// The name on the bus.
    public static let owner = ServiceName.queue
    /// The player, whose end of an episode moves the queue on, and news about episodes that stand in a queue.
    public static let observes = [
        "stream/playback/", "stream/feeds/", "stream/bus/service/playback", "stream/bus/service/feeds",
    ]
    /// So many loads that came before it a load remembers.
    static let overtakenLimit = 64
    /// So many entries an answer names; long lists are not sent back whole.
    static let answeredEntries = RequestSizes.episodes
    /// When to look again whether the queue has to move on.
    static let reconciliation = TimerName("reconcile")
    /// The wait before a load or an advance that failed is tried again.
    static let retry = Backoff.constant(.seconds(1))

    var queues: SpeculativeState<[String: NamedQueue]>
    /// What is set, and how far new episodes have been dealt with.
    var rules = SpeculativeState(QueueRules())
    private var lastTransaction: UInt64 = 0
    private var unsettled: [TransactionID: Unsettled] = [:]
    /// What waits for the library, in order. One question is under way; those that come meanwhile are asked together.
    var lookups: [PendingLookup] = []
    var lookingUp: (call: CallID, count: Int)?
    /// Names each call once in a life of the process.
    var callCount: UInt64 = 0

    /// The player as last seen; nil: not yet.
    var player: WirePlaybackState?
    var playerIsReady = false
    /// Positions of the loaded episode, which entries take over when it is no longer loaded.
    var loadedEpisodeState: WireEpisodeState?
    /// The load that playback is being asked for.
    var loadUnderWay: String?
    /// The newest load that the player has accepted in this life of the queue; the stream may not show it yet.
    var acceptedLoad: String?
    /// Whether what fails is passed over.
    var failures = FailureWatch()
    /// What the player was told last to prepare, and whether it has answered.
    var prepared: WirePrepareEpisode?
    var preparing: CallID?
    var feedsIsReady = false
    /// The load for which feeds was asked for chapters.
    var chaptersAsked = ""
    /// Podcasts whose new episodes are to be looked for, and the one that the library is being asked about.
    var ruleChecks: [String] = []
    var checking: CallID?
    /// How many episodes each podcast had when it was last looked at.
    var episodeCounts: [String: UInt32] = [:]
    /// Commands that wait for the player's answer, by call.
    var resuming: [CallID: Command] = [:]

    /// What to do once a transaction's fate is known.
    private struct Unsettled: Sendable {
        var command: Command?
        var loads: Bool
        /// The podcast of which new episodes entered by themselves, or would have.
        var podcast: String?
    }

    /// Episodes that the library is asked about, in one question or several.
    struct PendingLookup: Sendable {
        var episodes: [String]
        var purpose: Lookup
        /// How many of them it has been asked about, the question that is under way included.
        var asked = 0
        var found: [String: WireEpisodeSummary] = [:]
    }

    /// What an answer about episodes is for.
    enum Lookup: Sendable {
        case command(Command, WireQueueRequest)
        case refresh
    }

    /// An owner that knows nothing yet.
    public init() {
        queues = SpeculativeState([QueueName.usual: NamedQueue(name: QueueName.usual)])
    }

    // MARK: - Starting

    /// Takes the stored queues over; a record that cannot be read is left where it is and reported.
    public mutating func restore(_ records: [StoredRecord], now: Moment) -> [OwnerEffect<Never>] {
        var effects: [Effect] = []
        let stored = StoredQueues(records) { effects.append(.log(.error, $0)) }
        var restored = stored.queues
        rules = SpeculativeState(
            QueueRules(records) { record, reason in
                effects.append(.log(.error, "record \(record.collection)/\(record.key) is unreadable: \(reason)"))
            })
        restored[QueueName.usual] = restored[QueueName.usual] ?? NamedQueue(name: QueueName.usual)
        queues = SpeculativeState(restored)
        let episodes = restored.values.flatMap { $0.queue.entries.map(\.episode) }
        effects += refreshEpisodes(Set(episodes))
        return effects
    }

    /// Every queue, whole.
    public func retained(now: Moment) -> [Publication] {
        queues.current.values.sorted { $0.name < $1.name }.flatMap(\.wholePublications)
            + rules.current.retained
    }

    /// Every record.
    public func everything() -> [WireChange] {
        queues.current.values.sorted { $0.name < $1.name }.flatMap(\.everything)
            + rules.current.everything
    }

    // MARK: - Deciding

    /// Decides.
    public mutating func handle(_ event: OwnerEvent<Never>, now: Moment) -> [OwnerEffect<Never>] {
        let effects = decide(event, now: now)
        switch event {
        case .command, .databaseReplaced, .stopping: return effects
        // What a full disk refuses is not committed again at once, but with the next news.
        case .refused: return effects + prepareNext()
        case .committed, .answered, .observed, .timer, .input: return effects + endPastAlerts() + prepareNext()
        }
    }

    private mutating func decide(_ event: OwnerEvent<Never>, now: Moment) -> [Effect] {
        switch event {
        case .command(let command):
            return handle(command, now: now)
        case .committed(let id):
            queues.committed(id)
            rules.committed(id)
            guard let settled = unsettled.removeValue(forKey: id), settled.loads else { return [] }
            return requestLoad()
        case .refused(let id, let failure):
            queues.refused(id)
            rules.refused(id)
            let settled = unsettled.removeValue(forKey: id)
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
        case .databaseReplaced, .timer, .stopping:
            return []
        }
    }

    private mutating func handle(_ command: Command, now: Moment) -> [Effect] {
        let request: WireQueueRequest
        do {
            request = try WireQueueRequest(wireBytes: command.payload)
        } catch {
            return [
                .reply(command.id, .failure(Failure(.malformed, "The request to the queue cannot be read: \(error)")))
            ]
        }
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
        guard !change.isEmpty else {
            return command.map { [.reply($0.id, .success(reply.wireBytes))] } ?? []
        }
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
        unsettled[id] = Unsettled(command: command, loads: loads, podcast: podcast)
        let transaction = Transaction(
            id: id, changes: change.changes, publications: change.publications,
            answering: command.map { ($0.id, reply.wireBytes) })
        return [.commit(transaction)]
    }

    /// Whether a decision about what plays waits for the database.
    var isDecidingLoad: Bool { unsettled.values.contains { $0.loads } }

    /// The queue as it is now, to be changed and committed.
    func named(_ name: String) -> NamedQueue { queues.current[name] ?? NamedQueue(name: name) }

    /// The queue that a request is about. Playing without a name goes on in the queue that plays.
    func name(_ request: WireQueueRequest) -> String {
        guard request.queue.isEmpty else { return request.queue }
        switch request.command {
        case .play(let play): return queueToPlay(play)
        case .next, .previous: return playingQueue
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

    func reply(_ named: NamedQueue) -> WireQueueReply {
        var reply = WireQueueReply()
        reply.revision = named.queue.revision
        return reply
    }
}

/// Queues out of their records.
private struct StoredQueues {
    private(set) var queues: [String: NamedQueue] = [:]

    init(_ records: [StoredRecord], report: (String) -> Void) {
        var headers: [String: WireQueueHeaderRecord] = [:]
        var entries: [String: [Queue.Entry]] = [:]
        var histories: [String: QueueHistory] = [:]
        for record in records {
            let parts = record.collection.split(separator: "/", maxSplits: 1).map(String.init)
            do {
                switch (parts.first, parts.count) {
                case ("queue", 1):
                    headers[record.key] = try WireQueueHeaderRecord(wireBytes: record.value)
                case ("entry", 2):
                    let stored = try WireQueueEntryRecord(wireBytes: record.value)
                    entries[parts[1], default: []].append(Queue.Entry(stored.entry, rank: stored.rank))
                case ("history", 2):
                    histories[parts[1], default: QueueHistory()].restore(
                        try WireQueueHistoryRecord(wireBytes: record.value), key: record.key, size: record.value.count)
                default:
                    continue
                }
            } catch {
                report("record \(record.collection)/\(record.key) is unreadable: \(error)")
            }
        }
        for name in Set(headers.keys).union(entries.keys) {
            let header = headers[name] ?? WireQueueHeaderRecord()
            var history = histories[name] ?? QueueHistory()
            for revision in history.restored(undone: header.hasUndone ? Int(header.undone) : nil) {
                report("the queue \(name) cannot be taken back to before revision \(revision): a part of it is missing")
            }
            queues[name] = NamedQueue(name: name, header: header, entries: entries[name] ?? [], history: history)
        }
    }
}
