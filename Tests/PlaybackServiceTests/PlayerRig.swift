import BusKit
import EngineDouble
import NIOConcurrencyHelpers
import OwnerKit
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import PlaybackService

/// A player with a simulated engine, a disk and a library in memory, and a clock that the test turns.
final class PlayerRig {
    /// The process was killed: nothing more is performed.
    struct Killed: Error {}

    private(set) var machine: PlaybackMachine
    private(set) var engine: SimulatedEngine
    private let reported = NIOLockedValueBox<[EngineEvent]>([])
    private var inbox: [PlaybackMachine.Event] = []
    private var timers: [PlaybackMachine.Timer: MonotonicTime] = [:]
    var context: PlaybackContext
    var now = Moment(
        monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000),
        wall: Timestamp(milliseconds: 1_700_000_000_000))

    // What outlives the process.
    private(set) var records: [String: StoredRecord] = [:]
    var library: [String: WireEpisode] = [:]
    var files: [AudioSource: SimulatedEngine.Audio] = [:]
    /// The sound devices that the engine of the next process lists; nil: the simulated one.
    var devices: [OutputDevice]?
    /// Why commits are refused.
    var refusal: Failure?
    /// Commits have no outcome yet.
    var holdsCommits = false
    private var held: [PlaybackMachine.Transaction] = []
    /// Transactions whose refusal the machine has not heard of.
    private var refused: [TransactionID: PlaybackMachine.Transaction] = [:]
    /// Lookups have no answer yet.
    var holdsLookups = false
    /// Why lookups are answered with a failure; one that has no limit waits then.
    var lookupFailure: Failure?
    private var heldAnswers: [PlaybackMachine.Event] = []

    // What the world has seen.
    private(set) var states: [WirePlaybackState] = []
    private(set) var retained: [Topic: [UInt8]] = [:]
    private(set) var replies: [RequestID: Result<WirePlaybackReply, Failure>] = [:]
    private(set) var commits = 0
    private(set) var performed = 0
    private(set) var examined: [String] = []
    private(set) var probes: [String] = []
    private(set) var logs: [String] = []
    private(set) var allowedSuspends = 0
    /// Why the process was to end by itself.
    private(set) var endings: [Failure] = []
    /// Which audio servers have.
    var tags: [String: AudioTag] = [:]
    /// What servers say when they are asked beside the engine, where that is not which audio they have.
    var answers: [String: ProbeAnswer] = [:]
    /// Servers give no answer yet.
    var holdsProbes = false
    private var heldProbes: [(load: LoadID, serial: UInt64, url: String)] = []
    /// The process is killed when something has become durable, before it hears of it.
    var killsAtOutcome = false
    /// After so many effects the process is killed.
    var killAfter: Int?

    init(fleetRun: String = "run1", bootID: String = "boot1") {
        context = PlaybackContext(bootID: bootID, fleetRun: fleetRun)
        machine = PlaybackMachine(context: context)
        engine = SimulatedEngine(observer: { _ in })
    }

    /// A new life of the process; what the old one had in memory is gone.
    func start() throws {
        inbox = []
        heldProbes = []
        timers = [:]
        held = []
        reported.withLockedValue { $0 = [] }
        machine = PlaybackMachine(context: context)
        engine = SimulatedEngine(files: files, now: now.monotonic) { [reported] event in
            reported.withLockedValue { $0.append(event) }
        }
        if let devices { engine.setDevices(devices, works: true) }
        let stored = records.values.sorted { ($0.collection, $0.key) < ($1.collection, $1.key) }
        let effects = machine.restore(stored, now: now)
        retained = [:]
        publish(machine.retained(now: now))
        try perform(effects)
        try settle()
    }

    // MARK: Commands

    @discardableResult
    func send(_ fill: (inout WirePlaybackRequest) -> Void) throws -> Result<WirePlaybackReply, Failure>? {
        var request = WirePlaybackRequest()
        fill(&request)
        let id = RequestID.random()
        inbox.append(.command(Command(id: id, origin: "test", payload: request.wireBytes)))
        try settle()
        return replies[id]
    }

    @discardableResult
    func load(
        _ episode: WireEpisodeSummary, as load: String = "l1", at position: Double? = nil, paused: Bool = false
    ) throws -> Result<WirePlaybackReply, Failure>? {
        try send {
            $0.load.episode = episode
            $0.load.loadID = load
            $0.load.paused = paused
            $0.load.queueEntry = "q1"
            if let position { $0.load.position = position }
        }
    }

    @discardableResult
    func setPaused(_ paused: Bool) throws -> Result<WirePlaybackReply, Failure>? {
        try send { $0.setPaused.paused = paused }
    }

    @discardableResult
    func seek(_ position: Double, load: String = "") throws -> Result<WirePlaybackReply, Failure>? {
        try send {
            $0.seek.position = position
            $0.seek.loadID = load
        }
    }

    @discardableResult
    func answer(_ alert: String, _ action: String) throws -> Result<WirePlaybackReply, Failure>? {
        try send {
            $0.answerAlert.alert = alert
            $0.answerAlert.action = action
        }
    }

    func stopProcess() throws {
        inbox.append(.stopping)
        try settle()
    }

    /// An episode of the library whose file lasts `length` seconds.
    func episode(
        _ id: String = "e1", length: Double = 600, announced: Double = 600, position: Double = 0, played: Bool = false
    ) -> WireEpisodeSummary {
        var summary = WireEpisodeSummary()
        summary.id = id
        summary.title = "Episode \(id)"
        summary.podcastID = "p1"
        summary.duration = announced
        summary.enclosureURL = "file:///audio/\(id).mp3"
        var episode = WireEpisode()
        episode.id = id
        episode.state.episode = id
        episode.state.position = position
        episode.state.played = played
        library[id] = episode
        files[.file(path: "/audio/\(id).mp3")] = SimulatedEngine.Audio(length: length)
        setFile(id, SimulatedEngine.Audio(length: length))
        return summary
    }

    func setFile(_ id: String, _ audio: SimulatedEngine.Audio) {
        files[.file(path: "/audio/\(id).mp3")] = audio
        engine.setFile(.file(path: "/audio/\(id).mp3"), audio)
    }

    /// An episode that is streamed; `setStream` says what its server has.
    func streamedEpisode(_ id: String = "e1", announced: Double = 600) -> WireEpisodeSummary {
        var summary = episode(id, announced: announced)
        summary.enclosureURL = "https://a/\(id).mp3"
        return summary
    }

    func setStream(_ audio: SimulatedEngine.Audio, of id: String = "e1") {
        set(.web(url: "https://a/\(id).mp3"), audio)
    }

    /// The episode's file is downloaded.
    func download(_ id: String, _ audio: SimulatedEngine.Audio, etag: String = "") {
        library[id]?.download.state = .downloaded
        library[id]?.download.path = "/downloads/\(id).mp3"
        library[id]?.download.etag = etag
        set(.file(path: "/downloads/\(id).mp3"), audio)
    }

    private func set(_ source: AudioSource, _ audio: SimulatedEngine.Audio) {
        files[source] = audio
        engine.setFile(source, audio)
    }

    /// Puts a record into the database behind the player's back.
    func store(_ collection: String, _ key: String, _ value: [UInt8]) {
        records["\(collection)/\(key)"] = StoredRecord(collection: collection, key: key, value: value)
    }

    // MARK: Looking

    /// How often the engine was told to open something.
    var opens: Int { engine.performed.count { if case .open = $0 { true } else { false } } }

    /// What the engine's word of the loaded episode carries, unless it is past.
    var serial: UInt64 { machine.session?.tracker.seekAsked ?? 0 }

    var state: WirePlaybackState { states.last ?? WirePlaybackState() }
    var position: Double { machine.session?.position(at: now.monotonic).seconds ?? -1 }
    var alerts: [WireAlert] {
        retained.filter { $0.key.text.hasPrefix("stream/playback/alert/") }
            .compactMap { try? WireAlert(wireBytes: $0.value) }
    }
    var session: WireSessionRecord? {
        records["session/current"].flatMap { try? WireSessionRecord(wireBytes: $0.value) }
    }
    func stored(_ episode: String = "e1") -> WireEpisodeState { library[episode]?.state ?? WireEpisodeState() }

    /// How often the engine was asked where it is.
    var samples: Int { engine.performed.count { $0 == .sample } }

    // MARK: Time

    /// Lets time pass for the clock, the engine and the timers.
    func advance(_ seconds: Double) throws {
        var left = Int((seconds * 20).rounded())
        while left > 0 {
            left -= 1
            turn(0.05)
            engine.advance(seconds: 0.05)
            for (name, at) in timers.sorted(by: { $0.value < $1.value }) where at <= now.monotonic {
                timers[name] = nil
                inbox.append(.timer(name))
            }
            try settle()
        }
    }

    /// Moves the clocks alone, as while the process is not there.
    func turn(_ seconds: Double) {
        now.monotonic = now.monotonic.advanced(by: .seconds(seconds))
        now.wall = Timestamp(milliseconds: now.wall.milliseconds + Int64((seconds * 1_000).rounded()))
    }

    /// Lets time pass in which nothing happens, for the clocks and the engine's.
    func rest(_ seconds: Double) {
        turn(seconds)
        engine.advance(seconds: seconds)
    }

    /// Gives the commits that were held back their outcome.
    func releaseCommits() throws {
        holdsCommits = false
        let waiting = held
        held = []
        waiting.forEach(conclude)
        if killsAtOutcome { throw Killed() }
        try settle()
    }

    /// Refuses the first of the commits that were held back, and holds the others.
    func refuseFirstCommit() throws {
        guard !held.isEmpty else { return }
        let refusal = refusal
        self.refusal = Failure(.storageFailed, "away")
        conclude(held.removeFirst())
        self.refusal = refusal
        try settle()
    }

    func report(_ event: EngineEvent) throws {
        try report(.engine(event))
    }

    func report(_ input: PlaybackInput) throws {
        inbox.append(.input(input))
        try settle()
    }

    /// The library does not have a podcast any more.
    func forget(_ podcast: String) throws {
        inbox.append(.podcastForgotten(try #require(PodcastID(podcast))))
        try settle()
    }

    // MARK: The service around the machine

    private func settle() throws {
        while true {
            let events = reported.withLockedValue { events in
                defer { events = [] }
                return events
            }
            inbox += events.map { .input(.engine($0)) }
            guard !inbox.isEmpty else { return }
            let event = inbox.removeFirst()
            try perform(machine.handle(event, now: now))
            guard case .refused(let step, let failure) = event, let transaction = refused.removeValue(forKey: step),
                let answer = transaction.answer
            else { continue }
            reply(answer.request, transaction.onRefusal.result(failure))
        }
    }

    private func perform(_ effects: [PlaybackMachine.Effect]) throws {
        for effect in effects {
            if let killAfter, performed >= killAfter { throw Killed() }
            performed += 1
            switch effect {
            case .commit(let transaction): if holdsCommits { held.append(transaction) } else { conclude(transaction) }
            case .publish(let publications): publish(publications)
            case .reply(let request, let result): reply(request, result)
            case .call(let call): look(call)
            case .timer(let name, let at): timers[name] = at
            case .perform(.engine(let command)): engine.perform(command)
            case .perform(.examine(let load, let path)):
                examined.append(path)
                inbox.append(.input(.examined(load, isThere: files[.file(path: path)] != nil)))
            case .perform(.probe(let load, let url, _, let serial)):
                probes.append(url)
                heldProbes.append((load, serial, url))
                if !holdsProbes { answerProbes() }
            case .perform(.allowSuspend): allowedSuspends += 1
            case .perform(.endProcess(let failure)): endings.append(failure)
            case .log(_, let line): logs.append(line)
            }
        }
    }

    private func answerProbes() {
        for (load, serial, url) in heldProbes {
            let answer = answers[url] ?? .audio(tags[url] ?? AudioTag(etag: "", size: 0))
            inbox.append(.input(.probed(load, serial: serial, answer)))
        }
        heldProbes = []
    }

    private func conclude(_ transaction: PlaybackMachine.Transaction) {
        if let refusal {
            inbox.append(.refused(transaction.step, refusal))
            refused[transaction.step] = transaction
            return
        }
        commits += 1
        for change in transaction.changes {
            switch change.change {
            case .put(let record)?:
                records["\(record.collection)/\(record.key)"] = StoredRecord(
                    collection: record.collection, key: record.key, value: Array(record.value))
            case .delete(let key)?: records["\(key.collection)/\(key.key)"] = nil
            case .putEpisodeState(let state)?: library[state.episode]?.state = state
            default: Issue.record("a change that the player never makes: \(change)")
            }
        }
        publish(transaction.publications)
        if let answer = transaction.answer { reply(answer.request, .success(answer.reply)) }
        inbox.append(.committed(transaction.step))
    }

    private func publish(_ publications: [Publication]) {
        for publication in publications {
            if publication.topic == .playbackState, let state = try? WirePlaybackState(wireBytes: publication.payload) {
                states.append(state)
            }
            switch publication.kind {
            case .put: retained[publication.topic] = publication.payload
            case .delete: retained[publication.topic] = nil
            default: break
            }
            #expect(publication.topic.isPublishable(by: .playback, kind: publication.kind))
        }
    }

    private func reply(_ request: RequestID, _ result: Result<[UInt8], Failure>) {
        #expect(replies[request] == nil, "a request is answered once")
        replies[request] = result.flatMap { bytes in
            Result { try WirePlaybackReply(wireBytes: bytes) }.mapError { Failure(.malformed, "\($0)") }
        }
    }

    private func look(_ call: PlaybackMachine.Call) {
        guard let request = try? WirePersistenceRequest(wireBytes: call.payload) else { return }
        var reply = WirePersistenceReply()
        reply.episodes.episodes = request.episodesByID.ids.compactMap { library[$0] }
        let answer = PlaybackMachine.Event.answered(call.query, .success(reply.wireBytes))
        if let lookupFailure, call.limit != nil {
            inbox.append(.answered(call.query, .failure(lookupFailure)))
        } else if holdsLookups || lookupFailure != nil {
            heldAnswers.append(answer)
        } else {
            inbox.append(answer)
        }
    }

    /// Lets servers answer what they were asked while they were silent.
    func releaseProbes() throws {
        holdsProbes = false
        answerProbes()
        try settle()
    }

    /// Gives the lookups that were held back their answers.
    func releaseLookups() throws {
        holdsLookups = false
        lookupFailure = nil
        inbox += heldAnswers
        heldAnswers = []
        try settle()
    }
}

extension Result where Success == WirePlaybackReply, Failure == PodcastModel.Failure {
    var failure: PodcastModel.Failure? { if case .failure(let failure) = self { failure } else { nil } }
    var reply: WirePlaybackReply? { try? get() }
}
