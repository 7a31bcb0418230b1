import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

@testable import QueueService

/// A queue machine with a library, a database and a player that obey at once, or as late as a test wants.
struct QueueHarness {
    var machine = QueueMachine()
    /// What the database holds: (collection, key) → value.
    var records: [String: [String: [UInt8]]] = [:]
    /// What the stream has carried, in order.
    var published: [Publication] = []
    /// Answers by request.
    var answers: [RequestID: Result<WireQueueReply, Failure>] = [:]
    /// Loads and resumes that the player was asked for.
    var playerRequests: [WirePlaybackRequest] = []
    /// The calls that carried these.
    private(set) var callsToPlayer: [Call] = []
    /// What the player was told to prepare.
    var preparations: [WirePrepareEpisode] = []
    /// Episodes whose chapters feeds was asked for, and those that the player was told to look up again.
    var chapterFetches: [String] = []
    var refreshes: [String] = []
    /// Transactions that wait for the database.
    var waiting: [Transaction] = []
    /// Whether commits wait until `settle` or `refuse`.
    var holdsCommits = false
    /// Whether the player answers what it is asked.
    var playerAnswers = true
    /// Whether the library answers what it is asked, and what it was asked and has not answered.
    var libraryAnswers = true
    private(set) var libraryCalls: [Call] = []
    /// What the player was asked and has not answered.
    private var heldCalls: [Call] = []
    var player = WirePlaybackState.with { $0.status = .idle }
    var library: Set<String> = []
    /// What the library knows of single episodes; those without an address have one by their id.
    var details: [String: WireEpisode] = [:]
    /// Episodes that have no audio.
    var withoutAudio: Set<String> = []
    /// Timers that are set.
    var timers: [TimerName: MonotonicTime] = [:]
    private var requests: UInt64 = 0
    var now = Moment(monotonic: MonotonicTime(nanoseconds: 1_000), wall: Timestamp(milliseconds: 1_700_000_000_000))

    init(episodes: Int = 30) {
        library = Set((1...episodes).map(Self.episode))
        perform(machine.restore([], now: now))
        playerChanges { _ in }
        playerReady(true)
        published = []
    }

    static func episode(_ number: Int) -> String { "e" + String(1_000 + number) }

    /// Sends a command and gives the answer, or nil while it is not answered.
    @discardableResult
    mutating func ask(
        id: RequestID? = nil, _ fill: (inout WireQueueRequest) -> Void
    ) -> Result<WireQueueReply, Failure>? {
        requests += 1
        let id = id ?? RequestID(high: 7, low: requests)
        let request = WireQueueRequest.with(fill)
        perform(
            machine.handle(.command(Command(id: id, origin: "test", payload: request.wireBytes)), now: now))
        return answers[id]
    }

    @discardableResult
    mutating func add(_ numbers: Int..., next: Bool = false) -> Result<WireQueueReply, Failure>? {
        ask {
            $0.add.episodes = numbers.map(Self.episode)
            $0.add.next = next
        }
    }

    @discardableResult
    mutating func play(_ number: Int) -> Result<WireQueueReply, Failure>? {
        ask { $0.play.episode = Self.episode(number) }
    }

    /// The main queue as numbers.
    var numbers: [Int] { machine.main.queue.entries.compactMap { Int($0.episode.dropFirst()).map { $0 - 1_000 } } }

    /// The current entry's number.
    var current: Int? {
        machine.main.queue.current.flatMap { machine.main.queue.entry($0) }.flatMap { Int($0.episode.dropFirst()) }
            .map { $0 - 1_000 }
    }

    /// The id of the entry that holds the episode of this number.
    func entry(_ number: Int) -> String { machine.main.queue.entry(episode: Self.episode(number))?.id ?? "" }

    mutating func playerReady(_ ready: Bool) {
        let status = WireServiceStatus.with {
            $0.name = "playback"
            $0.state = ready ? .ready : .down
        }
        observe(.put, .service(.playback), status.wireBytes)
    }

    mutating func playerChanges(_ change: (inout WirePlaybackState) -> Void) {
        let revision = player.revision
        change(&player)
        player.revision = revision + 1
        observe(.put, .playbackState, player.wireBytes)
    }

    /// The origin sequence is 0 of what the bus publishes for a service.
    mutating func observe(_ kind: MessageKind, _ topic: Topic, _ payload: [UInt8], originSequence: UInt64 = 0) {
        let header = BusHeader(kind, originSequence: originSequence)
        perform(machine.handle(.observed(StreamEvent(topic: topic, header: header, payload: payload)), now: now))
    }

    /// The oldest waiting transaction becomes durable.
    mutating func settle() {
        guard !waiting.isEmpty else { return }
        let transaction = waiting.removeFirst()
        store(transaction.changes)
        published += transaction.publications
        if let answer = transaction.answer {
            answers[answer.request] = .success((try? WireQueueReply(wireBytes: answer.reply)) ?? WireQueueReply())
        }
        perform(machine.handle(.committed(transaction.id), now: now))
    }

    /// The oldest waiting transaction, and all behind it, are refused.
    mutating func refuse(_ failure: Failure = Failure(.diskFull, "The disk is full.")) {
        let refused = waiting
        waiting = []
        for transaction in refused { perform(machine.handle(.refused(transaction.id, failure), now: now)) }
    }

    /// The player’s answer to the oldest call comes later than a newer state of it.
    mutating func answerHeldCalls(late state: WirePlaybackState) {
        let call = heldCalls.removeFirst()
        let reply = WirePlaybackReply.with { $0.state = state }
        perform(machine.handle(.answered(call.id, .success(reply.wireBytes)), now: now))
    }

    /// The player does what it has not answered, in order.
    mutating func answerHeldCalls() {
        let calls = heldCalls
        heldCalls = []
        for call in calls { perform(machine.handle(.answered(call.id, answer(call)), now: now)) }
    }

    /// What the player has not answered fails; unless `limit` is given, all of it.
    mutating func failHeldCalls(_ failure: Failure, first limit: Int = .max) {
        let calls = heldCalls.prefix(limit)
        heldCalls.removeFirst(calls.count)
        for call in calls { perform(machine.handle(.answered(call.id, .failure(failure)), now: now)) }
    }

    /// All timers that are set become due.
    mutating func fireTimers() {
        let due = timers.keys
        timers = [:]
        for name in due { perform(machine.handle(.timer(name), now: now)) }
    }

    /// The process dies and comes back with what was durable, before the player does if `withPlayer` is false.
    mutating func restart(withPlayer: Bool = true) {
        machine = QueueMachine()
        waiting = []
        timers = [:]
        heldCalls = []
        let stored = records.keys.sorted().flatMap { collection in
            (records[collection] ?? [:]).sorted { $0.key < $1.key }.map {
                StoredRecord(collection: collection, key: $0.key, value: $0.value)
            }
        }
        perform(machine.restore(stored, now: now))
        published += machine.retained(now: now)
        guard withPlayer else { return }
        playerReady(true)
        observe(.put, .playbackState, player.wireBytes)
    }

    private mutating func store(_ changes: [WireChange]) {
        for change in changes {
            switch change.change {
            case .put(let record): records[record.collection, default: [:]][record.key] = Array(record.value)
            case .delete(let key): records[key.collection]?[key.key] = nil
            case .deleteCollection(let collection): records[collection] = nil
            default: break
            }
        }
    }

    mutating func perform(_ effects: [OwnerEffect<Never>]) {
        for effect in effects {
            switch effect {
            case .commit(let transaction):
                waiting.append(transaction)
                if !holdsCommits { settle() }
            case .publish(let publications):
                published += publications
            case .reply(let id, let result):
                answers[id] = result.map { (try? WireQueueReply(wireBytes: $0)) ?? WireQueueReply() }
            case .call(let call) where call.service == .persistence && !libraryAnswers: libraryCalls.append(call)
            case .call(let call) where isAside(call):
                perform(machine.handle(.answered(call.id, .success([])), now: now))
            case .call(let call) where call.service == .persistence || playerAnswers:
                perform(machine.handle(.answered(call.id, answer(call)), now: now))
            case .call(let call):
                heldCalls.append(call)
            case .timer(let name, let time):
                timers[name] = time
            case .log:
                break
            case .perform(let action):
                switch action {}
            }
        }
    }

    /// The library answers what it was asked first, or refuses.
    mutating func answerLibrary(_ failure: Failure? = nil) {
        let call = libraryCalls.removeFirst()
        perform(machine.handle(.answered(call.id, failure.map { .failure($0) } ?? answer(call)), now: now))
    }

    /// Takes what nobody waits for.
    private mutating func isAside(_ call: Call) -> Bool {
        if call.service == .feeds {
            let request = try? WireFeedsRequest(wireBytes: call.payload)
            chapterFetches.append(request?.fetchChapters.episode ?? "")
            return true
        }
        guard call.service == .playback, let request = try? WirePlaybackRequest(wireBytes: call.payload) else {
            return false
        }
        switch request.command {
        case .prepare(let prepare): preparations.append(prepare)
        case .refreshEpisode(let refresh): refreshes.append(refresh.episode)
        default: return false
        }
        return true
    }

    private func episodes(of podcast: String) -> WirePersistenceReply {
        var reply = WirePersistenceReply()
        reply.episodes.episodes = details.values.filter { $0.podcastID == podcast }
            .sorted { ($0.published, $0.id) > ($1.published, $1.id) }
        return reply
    }

    private mutating func answer(_ call: Call) -> Result<[UInt8], Failure> {
        if call.service == .persistence {
            let request = try? WirePersistenceRequest(wireBytes: call.payload)
            if case .episodes(let query) = request?.command { return .success(episodes(of: query.podcast).wireBytes) }
            let ids = request?.episodesByID.ids ?? []
            let reply = WirePersistenceReply.with { reply in
                reply.episodes.episodes = ids.filter { library.contains($0) || details[$0] != nil }.map { id in
                    var episode =
                        details[id]
                        ?? WireEpisode.with {
                            $0.id = id
                            $0.title = "Episode \(id)"
                        }
                    if withoutAudio.contains(id) {
                        episode.enclosureURL = ""
                    } else if episode.enclosureURL.isEmpty {
                        episode.enclosureURL = "http://127.0.0.1/\(id).mp3"
                    }
                    return episode
                }
            }
            return .success(reply.wireBytes)
        }
        guard let request = try? WirePlaybackRequest(wireBytes: call.payload) else {
            return .failure(Failure(.malformed, "unreadable"))
        }
        let before = player
        playerRequests.append(request)
        callsToPlayer.append(call)
        switch request.command {
        case .load(let load):
            player.status = load.paused ? .paused : .playing
            player.episode = load.episode
            player.loadID = load.loadID
            player.queueEntry = load.queueEntry
            player.queue = load.queue
        case .setPaused(let pause):
            player.status = pause.paused ? .paused : .playing
        case .togglePaused:
            player.status = player.status == .playing ? .paused : .playing
        default:
            break
        }
        let changed = player != before
        if changed { player.revision += 1 }
        let reply = WirePlaybackReply.with {
            $0.state = player
            $0.changed = changed
        }
        return .success(reply.wireBytes)
    }
}

extension Result where Success == WireQueueReply, Failure == PodcastModel.Failure {
    var failure: PodcastModel.Failure? { if case .failure(let failure) = self { failure } else { nil } }
    var reply: WireQueueReply? { try? get() }
}
