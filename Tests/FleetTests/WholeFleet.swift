import BusKit
import DownloadsService
import EngineDouble
import FeedsService
import FoundationEssentials
import LockstepClient
import NIOConcurrencyHelpers
import PersistenceService
import PlaybackService
import PodcastModel
import ProcessKit
import QueueService
import ServiceLifecycle
import SwiftProtobuf
import TestSupport
import WireMessages

/// All services in this process, on a real bus and a real database; each can be restarted on its own.
final class WholeFleet: Sendable {
    /// One run of a service.
    private struct Run {
        var task: Task<Void, Never>
        var stop: @Sendable () async -> Void
        var generation: UInt32
    }

    let bus: TestFleet
    /// The watcher of the stream.
    let watcher: StreamWatcher
    /// The engine of the player’s current run; nil before its first load and if libmpv is used.
    private let simulated = NIOLockedValueBox<SimulatedEngine?>(nil)
    private let files: [AudioSource: SimulatedEngine.Audio]
    private let usesRealEngine: Bool
    private let limits: PlaybackLimits
    private let runs = NIOLockedValueBox<[ServiceName: Run]>([:])
    private let generation = NIOLockedValueBox<UInt32>(0)

    private init(
        _ bus: TestFleet, _ client: BusClient, files: [AudioSource: SimulatedEngine.Audio], usesRealEngine: Bool,
        limits: PlaybackLimits
    ) {
        self.limits = limits
        self.bus = bus
        self.files = files
        self.usesRealEngine = usesRealEngine
        watcher = StreamWatcher(client)
    }

    /// Runs `body` with a fleet that is ready.
    /// - Parameters:
    ///   - services: the services to start.
    ///   - files: the audio that the simulated engine knows.
    ///   - realEngine: whether libmpv, without a sound device, replaces the simulated engine.
    ///   - limits: the player’s timeouts; by default streams are retried quickly.
    static func with(
        _ services: [ServiceName] = [.persistence, .playback, .queue],
        files: [AudioSource: SimulatedEngine.Audio] = [:], realEngine: Bool = false,
        limits: PlaybackLimits = .promptRetries, _ body: @escaping @Sendable (WholeFleet) async throws -> Void
    ) async throws {
        try await TestFleet.with { bus in
            try await bus.withClient { client in
                let fleet = WholeFleet(bus, client, files: files, usesRealEngine: realEngine, limits: limits)
                let following = Task { await fleet.watcher.follow() }
                do {
                    for service in services { try fleet.start(service) }
                    try await fleet.untilReady(services)
                    try await body(fleet)
                } catch {
                    await fleet.end()
                    following.cancel()
                    throw error
                }
                await fleet.end()
                following.cancel()
            }
        }
    }

    // MARK: Runs

    /// Starts a service’s next run.
    func start(_ name: ServiceName) throws {
        let generation = generation.withLockedValue { count in
            count += 1
            return count
        }
        let service = try service(name, generation)
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [
                    .init(service: service, successTerminationBehavior: .ignore, failureTerminationBehavior: .ignore)
                ], logger: bus.logger))
        let run = Run(
            task: Task { try? await group.run() }, stop: { await group.triggerGracefulShutdown() },
            generation: generation)
        runs.withLockedValue { $0[name] = run }
    }

    private func service(_ name: ServiceName, _ generation: UInt32) throws -> any Service {
        var context = bus.context(name, generation: generation)
        switch name {
        case .persistence: return PersistenceShell(context)
        case .queue: return QueueShell(context)
        case .feeds: return try FeedsShell(context)
        case .downloads: return DownloadsShell(context, stall: .seconds(2))
        case .playback:
            context.environment["LOCKSTEP_AO"] = "null"
            let playback = PlaybackContext(bootID: SystemClocks.bootID, fleetRun: "fleet", limits: limits)
            guard !usesRealEngine else { return PlaybackShell(context, playback: playback) }
            let (files, simulated) = (files, simulated)
            return PlaybackShell(context, playback: playback) { observer in
                let engine = SimulatedEngine(files: files, now: SystemClocks.monotonic(), observer: observer)
                simulated.withLockedValue { $0 = engine }
                return engine
            }
        default: throw UnexpectedState(description: "there is no service \(name)")
        }
    }

    /// Cancels the service, so it handles no further event, as after a crash.
    func kill(_ name: ServiceName) {
        runs.withLockedValue { $0[name] }?.task.cancel()
    }

    /// Waits until a killed run has ended, and starts the next.
    func restart(_ name: ServiceName) async throws {
        kill(name)
        await untilStopped(name)
        try start(name)
    }

    /// Waits until a killed run has ended.
    func untilStopped(_ name: ServiceName) async {
        await runs.withLockedValue { $0[name] }?.task.value
    }

    /// Shuts a service down gracefully.
    func stop(_ name: ServiceName) async {
        let run = runs.withLockedValue { $0.removeValue(forKey: name) }
        await run?.stop()
        await run?.task.value
    }

    /// Waits until the current runs of the services are ready.
    func untilReady(_ services: [ServiceName]) async throws {
        let wanted = runs.withLockedValue { runs in
            services.compactMap { name in runs[name].map { (name, $0.generation) } }
        }
        try await watcher.until("ready: \(services)") { view in
            view.connection == .live && wanted.allSatisfy { view.replica.ready[$0.0] == $0.1 }
        }
    }

    private func end() async {
        for name in [ServiceName.downloads, .feeds, .queue, .playback, .persistence] { await stop(name) }
    }

    // MARK: Queries

    /// Returns the simulated engine.
    func engine() throws -> SimulatedEngine {
        guard let engine = simulated.withLockedValue({ $0 }) else {
            throw UnexpectedState(description: "the player has created no engine")
        }
        return engine
    }

    var client: BusClient { watcher.client }
    var database: PersistenceClient { PersistenceClient(client, within: .seconds(60)) }

    @discardableResult
    func queue(
        id: RequestID = .random(), mayBeRepeat: Bool = false, _ fill: (inout WireQueueRequest) -> Void
    ) async throws(Failure) -> WireQueueReply {
        var request = WireQueueRequest()
        fill(&request)
        return try await client.ask(
            .queue, request, reply: WireQueueReply.self, id: id, within: .seconds(60), mayBeRepeat: mayBeRepeat
        ).reply
    }

    @discardableResult
    func player(_ fill: (inout WirePlaybackRequest) -> Void) async throws(Failure) -> WirePlaybackReply {
        var request = WirePlaybackRequest()
        fill(&request)
        return try await client.ask(.playback, request, reply: WirePlaybackReply.self, within: .seconds(60)).reply
    }

    @discardableResult
    func feeds(_ fill: (inout WireFeedsRequest) -> Void) async throws(Failure) -> WireFeedsReply {
        var request = WireFeedsRequest()
        fill(&request)
        return try await client.ask(.feeds, request, reply: WireFeedsReply.self, within: .seconds(60)).reply
    }

    @discardableResult
    func downloads(_ fill: (inout WireDownloadsRequest) -> Void) async throws(Failure) -> WireDownloadsReply {
        var request = WireDownloadsRequest()
        fill(&request)
        return try await client.ask(.downloads, request, reply: WireDownloadsReply.self, within: .seconds(60)).reply
    }

    // MARK: Library

    /// The audio source of the library’s episode `number`.
    static func source(_ number: Int) -> AudioSource { .file(path: "/dev/null/\(number).wav") }
    /// The ID of episode `number`.
    static func episode(_ number: Int) -> String { "e\(number)" }

    /// Stores a podcast of `count` episodes in the database, as feeds does.
    /// - Parameters:
    ///   - bytes: the size of their audio in the feed; 0 if there is none.
    ///   - address: the audio address of episode `number`; by default a file that only the simulated
    ///     engine knows.
    func fillLibrary(
        episodes count: Int, length: Double = 100, bytes: Int = 0,
        address: (Int) -> String = { "file:///dev/null/\($0).wav" }
    ) async throws {
        var load = WirePersistenceRequest()
        load.load.owner = ServiceName.feeds.text
        load.load.generation = 1
        _ = try await client.ask(.persistence, load, reply: WirePersistenceReply.self, within: .seconds(60))
        var podcast = WireChange()
        podcast.putPodcast.id = "p1"
        podcast.putPodcast.title = "Show"
        podcast.putPodcast.subscribed = true
        let episodes = (1...count).map { number in
            var change = WireChange()
            change.putEpisode.id = Self.episode(number)
            change.putEpisode.podcastID = "p1"
            change.putEpisode.title = "Part \(number)"
            change.putEpisode.duration = length
            change.putEpisode.enclosureURL = address(number)
            change.putEpisode.enclosureLength = UInt64(bytes)
            return change
        }
        // The number is small enough for one message, even with long addresses.
        for (revision, start) in stride(from: 0, to: count, by: 500).enumerated() {
            var request = WirePersistenceRequest()
            request.commit.owner = ServiceName.feeds.text
            request.commit.generation = 1
            // A sequence makes the request idempotent: a repeat gets the first reply.
            request.commit.sequence = UInt64(revision) + 1
            request.commit.commits = [
                .with {
                    $0.id = RequestID.random().data
                    $0.expectedRevision = UInt64(revision)
                    $0.changes = (start == 0 ? [podcast] : []) + episodes[start..<min(start + 500, count)]
                }
            ]
            let reply = try await client.ask(
                .persistence, request, reply: WirePersistenceReply.self, within: .seconds(60))
            guard reply.reply.outcomes.outcomes.map(\.kind) == [.committed] else {
                throw UnexpectedState(description: "the library could not be filled: \(reply.reply)")
            }
        }
    }

    /// Returns files of this length for the library’s episodes.
    static func files(_ count: Int, length: Double = 100) -> [AudioSource: SimulatedEngine.Audio] {
        let files = (1...count).map { (source($0), SimulatedEngine.Audio(length: length)) }
        return Dictionary(files) { first, _ in first }
    }
}

extension PlaybackLimits {
    /// Retries failed streams at once, so that a test doesn’t wait.
    static let promptRetries: PlaybackLimits = {
        var limits = PlaybackLimits()
        limits.reconnectBackoff = .steps(
            [.milliseconds(20), .milliseconds(50), .milliseconds(100)], repeatsLast: false)
        return limits
    }()
}
