import BusKit
import NIOConcurrencyHelpers
import PlaybackService
import PodcastModel
import QueueService
import SwiftProtobuf
import WireMessages

/// What the stream shows, as one player's screen puts it together.
struct QueueObserver: Equatable {
    var queue = WireQueueState()
    var player = WirePlaybackState()

    mutating func apply(_ publication: Publication) throws {
        switch (publication.topic, publication.kind) {
        case (.queue("main"), .put): queue = try WireQueueState(wireBytes: publication.payload)
        case (.queue("main"), .delta): queue.apply(try WireQueueDelta(wireBytes: publication.payload))
        case (.playbackState, .put): player = try WirePlaybackState(wireBytes: publication.payload)
        default: break
        }
    }
}

/// The machines of the queue and the player with a database and a stream between them, in which every message waits
/// until a seed lets it go on, and either process can die at any moment.
final class QueueSimulation {
    private struct Waiting {
        var transaction: Transaction
        var model: QueueModel?
    }

    private var random: SeededGenerator
    private var queue = QueueMachine()
    private var player = PlaybackMachine(context: PlaybackContext(bootID: "boot", fleetRun: "run"))
    private var engine: SimulatedEngine
    private let reported = NIOLockedValueBox<[EngineEvent]>([])
    private let now0 = MonotonicTime(nanoseconds: 1_000_000_000_000)
    private(set) var now: Moment
    private let episodes: [String: WireEpisode]
    private var states: [String: WireEpisodeState] = [:]

    // What outlives processes.
    private var queueRecords: [String: StoredRecord] = [:]
    private var playerRecords: [String: StoredRecord] = [:]
    private var stored: [RequestID: [UInt8]] = [:]
    private var retained: [Topic: [Publication]] = [:]

    // What is on its way.
    private var queueInbox: [OwnerEvent<Never>] = []
    private var playerInbox: [OwnerEvent<PlaybackInput>] = []
    private var queueCommits: [Waiting] = []
    private var playerCommits: [Transaction] = []
    private var calls: [RequestID: Call] = [:]

    // What is checked.
    private var speculative = QueueModel()
    private var durable = QueueModel()
    private var seenByQueue = WirePlaybackState()
    private var early = QueueObserver()
    private var late = QueueObserver()
    private var leftLoads: Set<String> = []
    private var shownLoads: [String] = []
    private var isRestarting = false
    private var hasSaved = false
    private(set) var complaints: [String] = []
    private(set) var advances = 0
    private var requests: UInt64 = 0

    init(seed: UInt64, episodes count: Int = 12) throws {
        random = SeededGenerator(seed: seed)
        now = Moment(monotonic: now0, wall: Timestamp(milliseconds: 1_700_000_000_000))
        engine = SimulatedEngine(observer: { _ in })
        var episodes: [String: WireEpisode] = [:]
        for number in 1...count {
            let id = EpisodeID.derived(from: "simulated/\(number)").text
            episodes[id] = .with {
                $0.id = id
                $0.title = "Episode \(100 + number)"
                $0.enclosureURL = "file:///audio/\(number).mp3"
                $0.duration = 600
            }
        }
        self.episodes = episodes
        try startPlayer()
        try startQueue()
    }

    // MARK: Lives

    private func startPlayer() throws {
        player = PlaybackMachine(context: PlaybackContext(bootID: "boot", fleetRun: "run"))
        reported.withLockedValue { $0 = [] }
        var files: [AudioSource: SimulatedEngine.Audio] = [:]
        for episode in episodes.values {
            files[try AudioSource(enclosure: episode.enclosureURL)] = SimulatedEngine.Audio(length: 600)
        }
        engine = SimulatedEngine(files: files, now: now.monotonic) { [reported] event in
            reported.withLockedValue { $0.append(event) }
        }
        playerInbox = []
        playerCommits = []
        let effects = player.restore(Self.inOrder(playerRecords), now: now)
        try publish(player.retained(now: now))
        perform(effects)
        try announcePlayer(.ready)
        for call in calls.values.sorted(by: { $0.id.text < $1.id.text }) { deliver(call) }
    }

    private func announcePlayer(_ state: WireServiceStatus.State) throws {
        let status = WireServiceStatus.with {
            $0.name = "playback"
            $0.state = state
        }
        try publish([Publication(.put, .service(.playback), status.wireBytes)])
    }

    private func startQueue() throws {
        queue = QueueMachine()
        queueInbox = []
        queueCommits = []
        calls = [:]
        speculative = durable
        perform(queue.restore(Self.inOrder(queueRecords), now: now), model: nil)
        try publish(queue.retained(now: now))
        for topic in retained.keys.sorted() where topic.owner == .playback || topic == .service(.playback) {
            for publication in retained[topic] ?? [] { tellQueue(publication) }
        }
    }

    private static func inOrder(_ records: [String: StoredRecord]) -> [StoredRecord] {
        records.values.sorted { ($0.collection, $0.key) < ($1.collection, $1.key) }
    }

    // MARK: Steps

    /// One random step of anything.
    func step() throws {
        switch random.below(100) {
        case 0: try startQueue()
        case 1:
            forgetUnsavedLoads()
            isRestarting = true
            try announcePlayer(.down)
            try startPlayer()
            isRestarting = false
        case 2...17: command()
        case 18...24:
            let seconds = random.below(500)
            engine.advance(seconds: Double(seconds))
            pass(seconds)
        case 25:
            pass(1)
            queueInbox.append(.timer(TimerName("reconcile")))
        case 26...50: try settleQueue()
        case 51...70: try settlePlayer()
        case 71...85: handleQueue()
        default: handlePlayer()
        }
        try collect()
    }

    /// Lets everything that is on its way arrive.
    func settle() throws {
        for _ in 0..<10_000 {
            try collect()
            guard !(queueInbox.isEmpty && playerInbox.isEmpty && queueCommits.isEmpty && playerCommits.isEmpty) else {
                break
            }
            handlePlayer()
            handleQueue()
            try settlePlayer()
            try settleQueue()
        }
        let seen = early.queue.entries.map(\.episode.id)
        if seen != durable.list { complaints.append("in the end \(seen) instead of \(durable.list)") }
    }

    private func collect() throws {
        let events = reported.withLockedValue { events in
            defer { events = [] }
            return events
        }
        playerInbox += events.map { .input(.engine($0)) }
    }

    private func pass(_ seconds: Int) {
        now.monotonic = now.monotonic.advanced(by: .seconds(seconds))
        now.wall = Timestamp(milliseconds: now.wall.milliseconds + Int64(seconds) * 1_000)
    }

    // MARK: Commands

    private func command() {
        requests += 1
        let id = RequestID(high: 5, low: requests)
        var request = WireQueueRequest()
        let model = speculative
        let all = episodes.keys.sorted()
        let entries = early.queue.entries
        func any() -> WireQueueEntry? { entries.isEmpty ? nil : entries[random.below(entries.count)] }
        switch random.below(16) {
        case 14, 15: request.play.resume = true
        case 0...3: request.add.episodes = [all[random.below(all.count)], all[random.below(all.count)]]
        case 4: if let entry = any() { request.remove.entries = [entry.id] }
        case 5, 6:
            if let entry = any() {
                request.move.entry = entry.id
                request.move.index = UInt32(random.below(entries.count))
            }
        case 7: request.undo = WireUndo()
        case 8: request.redo = WireRedo()
        case 9: if let entry = any() { request.play.entry = entry.id }
        case 10: request.next = WireNext()
        case 11: request.previous = WirePrevious()
        case 12:
            request.sort.by = .title
            request.sort.descending = random.below(2) == 0
        default:
            if random.below(4) == 0 { request.clear = WireClearQueue() } else { model.aRevision(&request, &random) }
        }
        guard request.command != nil else { return }
        queueInbox.append(.command(Command(id: id, origin: "test", payload: request.wireBytes)))
    }

    // MARK: The queue

    private func handleQueue() {
        guard !queueInbox.isEmpty else { return }
        let event = queueInbox.removeFirst()
        var model = speculative
        switch event {
        case .command(let command):
            guard let request = try? WireQueueRequest(wireBytes: command.payload) else { return }
            model.apply(request, titles: episodes, seen: seenByQueue)
        case .observed(let event) where event.topic == .playbackState:
            if let state = try? WirePlaybackState(wireBytes: event.payload) {
                seenByQueue = state
                model.observe(state)
            }
        case .answered(_, .success(let reply)):
            if let state = try? WirePlaybackReply(wireBytes: reply).state, !state.loadID.isEmpty { seenByQueue = state }
        case .timer: model.observe(seenByQueue)
        default: break
        }
        perform(queue.handle(event, now: now), model: model)
    }

    private func perform(_ effects: [OwnerEffect<Never>], model: QueueModel?) {
        var model = model
        for effect in effects {
            switch effect {
            case .commit(let transaction):
                if var changed = model, changed != speculative {
                    changed.name(transaction)
                    speculative = changed
                }
                model = nil
                queueCommits.append(Waiting(transaction: transaction, model: speculative))
            case .call(let call) where call.service == .persistence:
                perform(queue.handle(.answered(call.id, lookUp(call)), now: now), model: model)
                model = nil
            case .call(let call) where call.service == .playback:
                calls[call.request] = call
                deliver(call)
            default: break
            }
        }
    }

    private func settleQueue() throws {
        guard !queueCommits.isEmpty else { return }
        let waiting = queueCommits.removeFirst()
        store(waiting.transaction.changes, in: &queueRecords)
        durable = waiting.model ?? durable
        try publish(waiting.transaction.publications)
        queueInbox.append(.committed(waiting.transaction.id))
        let seen = early.queue.entries.map(\.episode.id)
        if seen != durable.list { complaints.append("\(seen) instead of \(durable.list)") }
    }

    // MARK: The player

    private func handlePlayer() {
        guard !playerInbox.isEmpty else { return }
        perform(player.handle(playerInbox.removeFirst(), now: now))
    }

    private func perform(_ effects: [OwnerEffect<PlaybackAction>]) {
        for effect in effects {
            switch effect {
            case .commit(let transaction): playerCommits.append(transaction)
            case .publish(let publications): try? publish(publications)
            case .reply(let request, let result): answer(request, result)
            case .call(let call): playerInbox.append(.answered(call.id, lookUp(call)))
            case .perform(.engine(let command)): engine.perform(command)
            case .perform(.examine(let load, _)): playerInbox.append(.input(.examined(load, isThere: true)))
            default: break
            }
        }
    }

    private func settlePlayer() throws {
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
    private func deliver(_ call: Call) {
        if let reply = stored[call.request] { return answer(call.request, .success(reply)) }
        playerInbox.append(.command(Command(id: call.request, origin: "queue", payload: call.payload)))
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
            var episode = episodes[id]
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
        for publication in publications {
            switch publication.kind {
            case .put: retained[publication.topic] = [publication]
            case .delta: retained[publication.topic, default: []].append(publication)
            case .delete: retained[publication.topic] = nil
            default: break
            }
            let before = early.player
            try early.apply(publication)
            try late.apply(publication)
            // The second screen comes and goes: what it finds must be what the first one has seen all along.
            if random.below(5) == 0 {
                late = QueueObserver()
                for topic in retained.keys.sorted() { try (retained[topic] ?? []).forEach { try late.apply($0) } }
            }
            if early != late { complaints.append("two screens disagree after \(publication.topic)") }
            if publication.topic == .playbackState { check(before) }
            if publication.topic.owner == .playback || publication.topic == .service(.playback) {
                tellQueue(publication)
            }
        }
    }

    /// What a dead player had shown but not saved may be shown again: the session before it, and the load that is repeated.
    /// Nothing older: what was saved when it died must have been shown, unless nothing was ever saved.
    private func forgetUnsavedLoads() {
        let session = playerRecords["session/current"].flatMap { try? WireSessionRecord(wireBytes: $0.value) }
        hasSaved = hasSaved || session != nil
        let saved = shownLoads.lastIndex { $0 == session?.loadID }
        if saved == nil, hasSaved { complaints.append("the saved load \(session?.loadID ?? "none") was never shown") }
        leftLoads.subtract(shownLoads[(saved ?? 0)...])
    }

    private func check(_ before: WirePlaybackState) {
        let player = early.player
        if before.loadID != player.loadID { shownLoads.append(player.loadID) }
        guard !isRestarting, !before.loadID.isEmpty else { return }
        if before.loadID != player.loadID {
            if before.status == .finished { advances += 1 }
            leftLoads.insert(before.loadID)
            if leftLoads.contains(player.loadID) {
                complaints.append("load \(player.loadID) was shown again after \(before.loadID)")
            }
        }
        if player.status == .idle { complaints.append("idle after \(before.status) of \(before.loadID)") }
    }
}

/// The list as it must be: commands and ends of episodes as plain changes of an array, with a stack of what it was.
struct QueueModel: Equatable {
    private struct Past: Equatable {
        var before: [String]
        var after: [String]
        var revision: UInt64 = 0
    }

    private(set) var list: [String] = []
    /// By episode: the entry's id.
    private var ids: [String: String] = [:]
    private var past: [Past] = []
    private var undone = 0
    private var ended = ""

    /// A revision to which the list can be brought back.
    func aRevision(_ request: inout WireQueueRequest, _ random: inout SeededGenerator) {
        let known = past.map(\.revision).filter { $0 > 0 }
        guard !known.isEmpty else { return }
        request.restore.revision = known[random.below(known.count)]
    }

    /// The revision that the transaction led to.
    mutating func name(_ transaction: Transaction) {
        for change in transaction.changes {
            guard case .put(let record)? = change.change else { continue }
            if record.collection == "entry/main",
                let entry = try? WireQueueEntryRecord(wireBytes: Array(record.value)).entry
            {
                ids[entry.episode.id] = entry.id
            }
            if record.collection == "history/main", undone == 0, let last = past.indices.last,
                past[last].revision == 0,
                let history = try? WireQueueHistoryRecord(wireBytes: Array(record.value))
            {
                past[last].revision = history.item.revision
            }
        }
    }

    private mutating func change(to next: [String]) {
        guard next != list else { return }
        past.removeLast(undone)
        undone = 0
        past.append(Past(before: list, after: next))
        if past.count > 100 { past.removeFirst() }
        list = next
    }

    private func episode(of entry: String) -> String? { list.first { ids[$0] == entry } }

    mutating func apply(_ request: WireQueueRequest, titles: [String: WireEpisode], seen: WirePlaybackState) {
        switch request.command {
        case .add(let add):
            var next = list
            for episode in add.episodes where !next.contains(episode) { next.append(episode) }
            change(to: next)
        case .remove(let remove):
            let going = remove.entries.compactMap(episode(of:))
            if going.count == remove.entries.count { change(to: list.filter { !going.contains($0) }) }
        case .move(let move):
            guard let moved = episode(of: move.entry), Int(move.index) < list.count else { return }
            var next = list.filter { $0 != moved }
            next.insert(moved, at: Int(move.index))
            change(to: next)
        case .clear:
            let isLoaded = seen.status != .idle && seen.status != .finished
            change(to: list.filter { isLoaded && ids[$0] == seen.queueEntry })
        case .undo where undone < past.count:
            undone += 1
            list = past[past.count - undone].before
        case .redo where undone > 0:
            list = past[past.count - undone].after
            undone -= 1
        case .sort(let sort):
            change(
                to: list.sorted {
                    let titles = (titles[$0]?.title ?? "", titles[$1]?.title ?? "")
                    return sort.descending ? titles.0 > titles.1 : titles.0 < titles.1
                })
        case .restore(let restore):
            if let found = past.first(where: { $0.revision == restore.revision }) { change(to: found.after) }
        default: break
        }
    }

    /// An episode has ended: its entry leaves, once.
    mutating func observe(_ state: WirePlaybackState) {
        guard state.status == .finished, state.loadID != ended else { return }
        ended = state.loadID
        if let episode = episode(of: state.queueEntry) { change(to: list.filter { $0 != episode }) }
    }
}
