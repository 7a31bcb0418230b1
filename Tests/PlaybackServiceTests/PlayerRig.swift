import BusKit
import EngineDouble
import NIOConcurrencyHelpers
import OwnerHarness
import OwnerKit
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

@testable import PlaybackService

/// A player with a simulated engine, a disk and a library in memory, and a manual clock.
final class PlayerRig: OwnerRig {
    typealias Request = WirePlaybackRequest
    typealias Reply = WirePlaybackReply

    /// Whether the process was killed: no further effect is performed.
    struct Killed: Error {}

    let owner: OwnerHarness<PlaybackMachine>
    private(set) var engine: SimulatedEngine
    private let engineEvents = NIOLockedValueBox<[EngineEvent]>([])
    var context: PlaybackContext

    // State that survives a process.
    var library: [String: WireEpisode] = [:]
    var playSessions: [String: WirePlaySession] = [:]
    var files: [AudioSource: SimulatedEngine.Audio] = [:]
    /// The sound devices that the engine of the next process lists; nil means the simulated one.
    var devices: [OutputDevice]?
    /// Whether lookups are held until the test answers them.
    var holdsLookups = false
    /// The failure that lookups are answered with; a lookup without a time limit waits instead.
    var lookupFailure: Failure?

    // Output of the player.
    private(set) var examined: [String] = []
    private(set) var probes: [String] = []
    private(set) var allowedSuspends = 0
    /// The reasons for which the process was to exit.
    private(set) var endings: [Failure] = []
    /// The tags of the servers’ audio, by address.
    var tags: [String: AudioTag] = [:]
    /// The servers’ answers to probes, by address, if they aren’t the audio’s tag.
    var answers: [String: ProbeAnswer] = [:]
    /// Whether probes are held until the test answers them.
    var holdsProbes = false
    private var heldProbes: [(load: LoadID, serial: UInt64, url: String)] = []
    /// Whether the process is killed after a commit is durable and before it gets the outcome.
    var killsAtOutcome = false

    init(fleetRun: String = "run1", bootID: String = "boot1") {
        context = PlaybackContext(bootID: bootID, fleetRun: fleetRun)
        owner = OwnerHarness(PlaybackMachine(context: context)) { Issue.record("\($0)") }
        engine = SimulatedEngine(observer: { _ in })
    }

    /// Starts a new process without the previous one’s memory.
    func start() throws {
        heldProbes = []
        engineEvents.withLockedValue { $0 = [] }
        engine = SimulatedEngine(files: files, now: now.monotonic) { [engineEvents] event in
            engineEvents.withLockedValue { $0.append(event) }
        }
        if let devices { engine.setDevices(devices, works: true) }
        restart(PlaybackMachine(context: context))
        try checkAlive()
    }

    private func checkAlive() throws {
        if owner.isKilled { throw Killed() }
    }

    // MARK: Commands

    @discardableResult
    func send(_ fill: (inout WirePlaybackRequest) -> Void) throws -> Result<WirePlaybackReply, Failure>? {
        let reply = send(id: nil, fill)
        try checkAlive()
        return reply
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
        handle(.stopping)
        try checkAlive()
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

    /// An episode that is streamed; `setStream` sets its server’s audio.
    func streamedEpisode(_ id: String = "e1", announced: Double = 600) -> WireEpisodeSummary {
        var summary = episode(id, announced: announced)
        summary.enclosureURL = "https://a/\(id).mp3"
        return summary
    }

    func setStream(_ audio: SimulatedEngine.Audio, of id: String = "e1") {
        set(.web(url: "https://a/\(id).mp3"), audio)
    }

    /// Adds a downloaded file of an episode.
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

    /// Writes a record into the database without the player.
    func store(_ collection: String, _ key: String, _ value: [UInt8]) {
        owner.records[collection, default: [:]][key] = value
    }

    // MARK: State

    /// The number of `open` commands to the engine.
    var opens: Int { engine.performed.count { if case .open = $0 { true } else { false } } }

    /// The serial number of the engine’s current reports about the loaded episode.
    var serial: UInt64 { machine.session?.tracker.requestedSeek ?? 0 }

    /// The states that were published, in order.
    var states: [WirePlaybackState] {
        published.filter { $0.topic == .playbackState }.compactMap { try? WirePlaybackState(wireBytes: $0.payload) }
    }
    var state: WirePlaybackState {
        retained[.playbackState].flatMap { try? WirePlaybackState(wireBytes: $0) } ?? WirePlaybackState()
    }
    var position: Double { machine.session?.position(at: now.monotonic).seconds ?? -1 }
    var session: WireSessionRecord? {
        records["session"]?["current"].flatMap { try? WireSessionRecord(wireBytes: $0) }
    }
    func stored(_ episode: String = "e1") -> WireEpisodeState { library[episode]?.state ?? WireEpisodeState() }

    /// The number of `sample` commands to the engine.
    var samples: Int { engine.performed.count { $0 == .sample } }

    // MARK: Time

    /// Advances the clocks, the engine and the timers.
    func advance(_ seconds: Double) throws {
        for _ in 0..<Int((seconds * 20).rounded()) {
            rest(0.05)
            fireDueTimers()
            run()
            try checkAlive()
        }
    }

    /// Advances only the clocks, as while no process is running.
    func advanceClocks(by seconds: Double) { advanceClocks(by: .seconds(seconds)) }

    /// Advances the clocks and the engine, without firing timers.
    func rest(_ seconds: Double) {
        advanceClocks(by: seconds)
        engine.advance(seconds: seconds)
    }

    /// Settles the held commits.
    func releaseCommits() throws {
        owner.isKilled = killsAtOutcome
        holdsCommits = false
        settleAll()
        run()
        try checkAlive()
    }

    /// Refuses the first held commit and keeps holding the others.
    func refuseFirstCommit() throws {
        refuse(Failure(.storageFailed, "away"), first: 1)
        try checkAlive()
    }

    func report(_ event: EngineEvent) throws {
        try report(.engine(event))
    }

    func report(_ input: PlaybackInput) throws {
        handle(.input(input))
        try checkAlive()
    }

    /// Removes a podcast from the library.
    func forget(_ podcast: String) throws {
        handle(.podcastForgotten(try #require(PodcastID(podcast))))
        try checkAlive()
    }

    // MARK: The simulated shell

    func reported() -> [PlaybackInput] {
        engineEvents.withLockedValue { events in
            defer { events = [] }
            return events.map { .engine($0) }
        }
    }

    func perform(_ action: PlaybackAction) {
        switch action {
        case .engine(let command): engine.perform(command)
        case .examine(let load, let path):
            examined.append(path)
            owner.enqueue(.input(.examined(load, isThere: files[.file(path: path)] != nil)))
        case .probe(let load, let url, _, let serial):
            probes.append(url)
            heldProbes.append((load, serial, url))
            if !holdsProbes { answerProbes() }
        case .allowSuspend: allowedSuspends += 1
        case .endProcess(let failure): endings.append(failure)
        }
    }

    private func answerProbes() {
        for (load, serial, url) in heldProbes {
            let answer = answers[url] ?? .audio(tags[url] ?? AudioTag(etag: "", size: 0))
            owner.enqueue(.input(.probed(load, serial: serial, answer)))
        }
        heldProbes = []
    }

    func apply(_ changes: [WireChange]) {
        for change in changes {
            switch change.change {
            case .put?, .delete?: break
            case .putPlaySession(let session)?: playSessions[session.id] = session
            case .putEpisodeState(let state)?: library[state.episode]?.state = state
            default: Issue.record("a change that the player never makes: \(change)")
            }
        }
    }

    func holds(_ call: PlaybackMachine.Call) -> Bool { lookupFailure == nil ? holdsLookups : call.limit == nil }

    func answer(_ call: PlaybackMachine.Call) -> Result<[UInt8], Failure> {
        if let lookupFailure { return .failure(lookupFailure) }
        let ids = (try? WirePersistenceRequest(wireBytes: call.payload))?.episodesByID.ids ?? []
        return .success(WirePersistenceReply.with { $0.episodes.episodes = ids.compactMap { library[$0] } }.wireBytes)
    }

    /// Answers the held probes.
    func releaseProbes() throws {
        holdsProbes = false
        answerProbes()
        run()
        try checkAlive()
    }

    /// Answers the held lookups.
    func releaseLookups() throws {
        holdsLookups = false
        lookupFailure = nil
        releaseCalls()
        try checkAlive()
    }
}
