import BusKit
import NIOConcurrencyHelpers
import PlaybackService
import PodcastModel
import QueueService
import SwiftProtobuf
import WireMessages

/// The machines of the queue and the player with a database and a stream between them, in which every message waits
/// until a seed lets it go on, audio fails and comes back, and either process can die at any moment.
final class QueueSimulation {
    private struct Waiting {
        var transaction: Transaction
        var models: QueueModels?
    }

    var random: SeededGenerator
    private var queue = QueueMachine()
    private(set) var player = PlaybackMachine(context: PlaybackContext(bootID: "boot", fleetRun: "run"))
    private(set) var engine: SimulatedEngine
    private let breaksPromise: Bool
    private let reported = NIOLockedValueBox<[EngineEvent]>([])
    private(set) var now: Moment
    var sources: SimulatedSources
    private var states: [String: WireEpisodeState] = [:]

    // What outlives processes.
    private(set) var queueRecords: [String: StoredRecord] = [:]
    private(set) var playerRecords: [String: StoredRecord] = [:]
    private var stored: [RequestID: [UInt8]] = [:]
    private var retained: [Topic: [Publication]] = [:]

    // What is on its way.
    var queueInbox: [OwnerEvent<Never>] = []
    var playerInbox: [OwnerEvent<PlaybackInput>] = []
    private var queueCommits: [Waiting] = []
    private var playerCommits: [Transaction] = []
    private var calls: [RequestID: Call] = [:]
    private var queueTimers: [TimerName: MonotonicTime] = [:]
    private var playerTimers: [TimerName: MonotonicTime] = [:]

    // What is checked.
    private(set) var speculative = QueueModels()
    private(set) var durable = QueueModels()
    private var seenByQueue = WirePlaybackState()
    private(set) var early = SimulatedScreen()
    private var late = SimulatedScreen()
    var checks = SimulationChecks()
    var isRestarting = false
    var requests: UInt64 = 0

    /// - Parameter breaksPromise: the engine begins what was prepared when something fails.
    init(seed: UInt64, episodes count: Int = 12, breaksPromise: Bool = false) throws {
        random = SeededGenerator(seed: seed)
        self.breaksPromise = breaksPromise
        now = Moment(
            monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000),
            wall: Timestamp(milliseconds: 1_700_000_000_000))
        engine = SimulatedEngine(observer: { _ in })
        sources = try SimulatedSources(count: count, random: &random)
        try startPlayer()
        try startQueue()
        command {
            $0.queue = "work"; $0.create = WireCreateQueue()
        }
        handleQueue()
        try settleQueue()
    }

    // MARK: Lives

    func startPlayer() throws {
        player = PlaybackMachine(context: PlaybackContext(bootID: "boot", fleetRun: "run"))
        reported.withLockedValue { $0 = [] }
        engine = SimulatedEngine(files: sources.files(&random), now: now.monotonic) { [reported] event in
            reported.withLockedValue { $0.append(event) }
        }
        if breaksPromise { engine.beginPreparedAfterFailure() }
        playerInbox = []
        playerCommits = []
        playerTimers = [:]
        let effects = player.restore(Self.inOrder(playerRecords), now: now)
        try publish(begin(.playback, with: player.retained(now: now)))
        perform(effects)
        try announcePlayer(.ready)
        for (request, call) in calls.sorted(by: { $0.value.id.text < $1.value.id.text }) {
            deliver(call.payload, as: request)
        }
    }

    func announcePlayer(_ state: WireServiceStatus.State) throws {
        let status = WireServiceStatus.with {
            $0.name = "playback"
            $0.state = state
        }
        try publish([Publication(.put, .service(.playback), status.wireBytes)])
    }

    func startQueue() throws {
        queue = QueueMachine()
        queueInbox = []
        queueCommits = []
        queueTimers = [:]
        calls = [:]
        speculative = durable
        perform(queue.restore(Self.inOrder(queueRecords), now: now), models: nil)
        try publish(begin(.queue, with: queue.retained(now: now)))
        for topic in retained.keys.sorted() where topic.owner == .playback || topic == .service(.playback) {
            for publication in retained[topic] ?? [] { tellQueue(publication) }
        }
    }

    /// A new life's values take the place of all that the one before had left.
    private func begin(_ owner: ServiceName, with values: [Publication]) -> [Publication] {
        let gone = Set(retained.keys.filter { $0.owner == owner }).subtracting(values.map(\.topic))
        return gone.sorted().map { Publication(.delete, $0) } + values
    }

    private static func inOrder(_ records: [String: StoredRecord]) -> [StoredRecord] {
        records.values.sorted { ($0.collection, $0.key) < ($1.collection, $1.key) }
    }

    // MARK: Time

    /// Lets time pass; what is due meanwhile goes off when it is, or late.
    func pass(_ seconds: Double) throws {
        let end = now.monotonic.advanced(by: .seconds(seconds))
        for _ in 0..<8 {
            let due = playerTimers.map { ($0.value, $0.key, true) } + queueTimers.map { ($0.value, $0.key, false) }
            guard let (time, name, isPlayers) = due.min(by: { ($0.0, $0.1.text) < ($1.0, $1.1.text) }), time <= end
            else { break }
            try advance(to: max(now.monotonic, time))
            if isPlayers {
                playerTimers[name] = nil
                take(OwnerEvent<PlaybackInput>.timer(name))
            } else {
                queueTimers[name] = nil
                take(OwnerEvent<Never>.timer(name))
            }
        }
        try advance(to: end)
    }

    private func advance(to time: MonotonicTime) throws {
        let passed = time.since(now.monotonic)
        engine.advance(seconds: passed / .seconds(1))
        now.wall = Timestamp(milliseconds: now.wall.milliseconds + Int64(passed / .milliseconds(1)))
        now.monotonic = time
        checks.time = time
        collect()
    }

    func collect() {
        let events = reported.withLockedValue { events in
            defer { events = [] }
            return events
        }
        playerInbox += events.map { .input(.engine($0)) }
    }

    /// Whether nothing is on its way.
    var isQuiet: Bool {
        queueInbox.isEmpty && playerInbox.isEmpty && queueCommits.isEmpty && playerCommits.isEmpty
    }

    // MARK: The queue

    func command(_ fill: (inout WireQueueRequest) -> Void) {
        var request = WireQueueRequest()
        fill(&request)
        guard request.command != nil else { return }
        requests += 1
        let id = RequestID(high: 5, low: requests)
        checks.noteWish(id)
        queueInbox.append(.command(Command(id: id, origin: "test", payload: request.wireBytes)))
    }

    func handleQueue() {
        if !queueInbox.isEmpty { take(queueInbox.removeFirst()) }
    }

    private func take(_ event: OwnerEvent<Never>) {
        var models = speculative
        switch event {
        case .command(let command):
            guard let request = try? WireQueueRequest(wireBytes: command.payload) else { return }
            checks.note("queue takes", request)
            models.apply(request, command.id, titles: sources.episodes, seen: seenByQueue)
        case .observed(let event) where event.topic == .playbackState:
            if let state = try? WirePlaybackState(wireBytes: event.payload) {
                seenByQueue = state
                models.observe(state)
            }
        case .answered(let call, .success(let reply)) where call.text.hasPrefix("load/"):
            if let state = try? WirePlaybackReply(wireBytes: reply).state, call.text == "load/\(state.loadID)" {
                seenByQueue = state
            }
        case .timer: models.observe(seenByQueue)
        default: break
        }
        perform(queue.handle(event, now: now), models: models)
    }

    private func perform(_ effects: [OwnerEffect<Never>], models: QueueModels?) {
        var models = models
        for effect in effects {
            switch effect {
            case .commit(let transaction):
                if var changed = models, changed != speculative, isCarried(by: transaction) {
                    changed.name(transaction)
                    speculative = changed
                    models = nil
                }
                queueCommits.append(Waiting(transaction: transaction, models: speculative))
            case .call(let call) where call.service == .persistence:
                perform(queue.handle(.answered(call.id, lookUp(call)), now: now), models: models)
                models = nil
            case .call(let call) where call.service == .playback:
                let request = call.request ?? .random()
                calls[request] = call
                deliver(call.payload, as: request)
            case .timer(let name, let time): queueTimers[name] = time
            case .log(_, let text): checks.note("queue: \(text)")
            default: break
            }
        }
    }

    /// Whether a transaction is what the models have just gone through: a command's answer, or an advance.
    private func isCarried(by transaction: Transaction) -> Bool {
        if transaction.answer != nil { return true }
        return transaction.changes.contains { change in
            guard case .put(let record)? = change.change, record.collection == "queue" else { return false }
            return (try? WireQueueHeaderRecord(wireBytes: Array(record.value)).advancedLoad) == seenByQueue.loadID
        }
    }

    func settleQueue() throws {
        guard !queueCommits.isEmpty else { return }
        let waiting = queueCommits.removeFirst()
        store(waiting.transaction.changes, in: &queueRecords)
        durable = waiting.models ?? durable
        try publish(waiting.transaction.publications)
        queueInbox.append(.committed(waiting.transaction.id))
        checkLists("after \(waiting.transaction.id)")
    }

    // MARK: The player

    func handlePlayer() {
        if !playerInbox.isEmpty { take(playerInbox.removeFirst()) }
    }

    private func take(_ event: OwnerEvent<PlaybackInput>) {
        if case .command(let command) = event, let request = try? WirePlaybackRequest(wireBytes: command.payload) {
            checks.note("player takes", request)
        }
        perform(player.handle(event, now: now))
        checkSound()
    }

    private func perform(_ effects: [OwnerEffect<PlaybackAction>]) {
        for effect in effects {
            switch effect {
            case .commit(let transaction): playerCommits.append(transaction)
            case .publish(let publications): try? publish(publications)
            case .reply(let request, let result): answer(request, result)
            case .call(let call): playerInbox.append(.answered(call.id, lookUp(call)))
            case .perform(.engine(let command)):
                if command != .sample { checks.note("engine does \(String(describing: command).prefix(150))") }
                engine.perform(command)
            case .perform(.examine(let load, _)): playerInbox.append(.input(.examined(load, isThere: true)))
            case .perform(.identify(let load, let url)): identify(load, url)
            case .timer(let name, let time): playerTimers[name] = time
            case .log(_, let text): checks.note("player: \(text)")
            default: break
            }
        }
    }

    /// What a server says beside the engine, if it says anything.
    private func identify(_ load: LoadID, _ url: String) {
        guard random.below(2) == 0 else { return }
        switch sources.fault(of: url) {
        case .gone: playerInbox.append(.input(.refused(load, status: 404)))
        case .busy: playerInbox.append(.input(.refused(load, status: 503)))
        case .silent: break
        default: playerInbox.append(.input(.identified(load, AudioTag(etag: "\"\(url)\"", size: 0))))
        }
    }

    func settlePlayer() throws {
        guard !playerCommits.isEmpty else { return }
        let transaction = playerCommits.removeFirst()
        store(transaction.changes, in: &playerRecords)
        try publish(transaction.publications)
        if let answered = transaction.answer {
            stored[answered.request] = answered.reply
            answer(answered.request, .success(answered.reply))
        }
        playerInbox.append(.committed(transaction.id))
    }

    /// A request is joined while it runs and answered from what is stored once it was durable.
    private func deliver(_ payload: [UInt8], as request: RequestID) {
        if let reply = stored[request] { return answer(request, .success(reply)) }
        playerInbox.append(.command(Command(id: request, origin: "queue", payload: payload)))
    }

    private func answer(_ request: RequestID, _ result: Result<[UInt8], Failure>) {
        guard let call = calls.removeValue(forKey: request) else { return }
        queueInbox.append(.answered(call.id, result))
    }

    // MARK: The database and the stream

    private func lookUp(_ call: Call) -> Result<[UInt8], Failure> {
        guard let request = try? WirePersistenceRequest(wireBytes: call.payload) else {
            return .failure(Failure(.malformed, "unreadable"))
        }
        var reply = WirePersistenceReply()
        reply.episodes.episodes = request.episodesByID.ids.compactMap { id in
            var episode = sources.episodes[id]
            if let state = states[id] { episode?.state = state }
            return episode
        }
        return .success(reply.wireBytes)
    }

    private func store(_ changes: [WireChange], in records: inout [String: StoredRecord]) {
        for change in changes {
            switch change.change {
            case .put(let record)?:
                records["\(record.collection)/\(record.key)"] = StoredRecord(
                    collection: record.collection, key: record.key, value: Array(record.value))
            case .delete(let key)?: records["\(key.collection)/\(key.key)"] = nil
            case .deleteCollection(let name)?: records = records.filter { $0.value.collection != name }
            case .putEpisodeState(let state)?: states[state.episode] = state
            default: break
            }
        }
    }

    private func tellQueue(_ publication: Publication) {
        queueInbox.append(
            .observed(
                StreamEvent(
                    topic: publication.topic, header: BusHeader(publication.kind), payload: publication.payload)))
    }

    private func publish(_ publications: [Publication]) throws {
        let before = early.player
        for publication in publications {
            switch publication.kind {
            case .put: retained[publication.topic] = [publication]
            case .delta: retained[publication.topic, default: []].append(publication)
            case .delete: retained[publication.topic] = nil
            default: break
            }
            try early.apply(publication)
            try late.apply(publication)
            // The second screen comes and goes: what it finds must be what the first one has seen all along.
            if random.below(5) == 0 {
                late = SimulatedScreen()
                for topic in retained.keys.sorted() { try (retained[topic] ?? []).forEach { try late.apply($0) } }
            }
            if early != late { checks.complain("two screens disagree after \(publication.topic)") }
            if publication.topic.owner == .playback || publication.topic == .service(.playback) {
                tellQueue(publication)
            }
        }
        if publications.contains(where: { $0.topic == .playbackState }) {
            checks.compare(before, with: early, isRestarting: isRestarting)
        }
    }
}
