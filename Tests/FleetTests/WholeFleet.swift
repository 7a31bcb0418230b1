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

/// All services in this process, on a real bus and a real database; each can end and begin again by itself.
final class WholeFleet: Sendable {
    /// One life of a service.
    private struct Life {
        var task: Task<Void, Never>
        var stop: @Sendable () async -> Void
        var generation: UInt32
    }

    let bus: TestFleet
    /// Follows the stream.
    let watcher: StreamWatcher
    /// The engine of the player's present life; nil before its first load, and with libmpv.
    private let simulated = NIOLockedValueBox<SimulatedEngine?>(nil)
    private let files: [AudioSource: SimulatedEngine.Audio]
    private let usesLibrary: Bool
    private let limits: PlaybackLimits
    private let lives = NIOLockedValueBox<[ServiceName: Life]>([:])
    private let generation = NIOLockedValueBox<UInt32>(0)

    private init(
        _ bus: TestFleet, _ client: BusClient, files: [AudioSource: SimulatedEngine.Audio], usesLibrary: Bool,
        limits: PlaybackLimits
    ) {
        self.limits = limits
        self.bus = bus
        self.files = files
        self.usesLibrary = usesLibrary
        watcher = StreamWatcher(client)
    }

    /// Runs `body` with a fleet that is ready.
    /// - Parameters:
    ///   - services: those that are started.
    ///   - files: what the simulated engine knows.
    ///   - realEngine: libmpv in its place, without a sound device.
    ///   - limits: how long the player waits; streams are tried again quickly unless a test says otherwise.
    static func with(
        _ services: [ServiceName] = [.persistence, .playback, .queue],
        files: [AudioSource: SimulatedEngine.Audio] = [:], realEngine: Bool = false,
        limits: PlaybackLimits = .hasty, _ body: @escaping @Sendable (WholeFleet) async throws -> Void
    ) async throws {
        try await TestFleet.with { bus in
            try await bus.withClient { client in
                let fleet = WholeFleet(bus, client, files: files, usesLibrary: realEngine, limits: limits)
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

    // MARK: Lives

    /// Begins a service's next life.
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
        let life = Life(
            task: Task { try? await group.run() }, stop: { await group.triggerGracefulShutdown() },
            generation: generation)
        lives.withLockedValue { $0[name] = life }
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
            guard !usesLibrary else { return PlaybackShell(context, playback: playback) }
            let (files, simulated) = (files, simulated)
            return PlaybackShell(context, playback: playback) { observer in
                let engine = SimulatedEngine(files: files, now: SystemClocks.monotonic(), observer: observer)
                simulated.withLockedValue { $0 = engine }
                return engine
            }
        default: throw Unseen(description: "there is no service \(name)")
        }
    }

    /// The service decides nothing any more and hears of no answer, as if it had died at this moment.
    func kill(_ name: ServiceName) {
        lives.withLockedValue { $0[name] }?.task.cancel()
    }

    /// Waits until a life that was killed has gone, and begins the next.
    func restart(_ name: ServiceName) async throws {
        kill(name)
        await stopped(name)
        try start(name)
    }

    /// Waits until a life that was killed has gone.
    func stopped(_ name: ServiceName) async {
        await lives.withLockedValue { $0[name] }?.task.value
    }

    /// Ends a service in good order.
    func stop(_ name: ServiceName) async {
        let life = lives.withLockedValue { $0.removeValue(forKey: name) }
        await life?.stop()
        await life?.task.value
    }

    /// Waits until the present lives of the services are ready.
    func untilReady(_ services: [ServiceName]) async throws {
        let wanted = lives.withLockedValue { lives in
            services.compactMap { name in lives[name].map { (name, $0.generation) } }
        }
        try await watcher.until("ready: \(services)") { view in
            view.connection == .live && wanted.allSatisfy { view.replica.ready[$0.0] == $0.1 }
        }
    }

    private func end() async {
        for name in [ServiceName.downloads, .feeds, .queue, .playback, .persistence] { await stop(name) }
    }

    // MARK: Questions

    /// The simulated engine.
    func engine() throws -> SimulatedEngine {
        guard let engine = simulated.withLockedValue({ $0 }) else {
            throw Unseen(description: "the player has made no engine")
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

    // MARK: Material

    /// Where the audio of the library's `number`th episode is.
    static func source(_ number: Int) -> AudioSource { .file(path: "/dev/null/\(number).wav") }
    /// Its id.
    static func episode(_ number: Int) -> String { "e\(number)" }

    /// Puts a podcast of that many episodes into the database, as feeds would.
    /// - Parameters:
    ///   - bytes: how large their audio is, as the feed says; 0: it does not.
    ///   - address: where the audio of the `number`th one is; without it, in a file that only the simulated engine
    ///     knows.
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
        // Few enough for one message, also with long addresses.
        for (revision, start) in stride(from: 0, to: count, by: 500).enumerated() {
            var request = WirePersistenceRequest()
            request.commit.owner = ServiceName.feeds.text
            request.commit.generation = 1
            // Counted, so that one that takes long and is asked for again gets the answer of the first.
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
                throw Unseen(description: "the library could not be filled: \(reply.reply)")
            }
        }
    }

    /// Files of that length for the library's episodes.
    static func files(_ count: Int, length: Double = 100) -> [AudioSource: SimulatedEngine.Audio] {
        let files = (1...count).map { (source($0), SimulatedEngine.Audio(length: length)) }
        return Dictionary(files) { first, _ in first }
    }
}

extension PlaybackLimits {
    /// Failed feeds are retried at once, so that a test need not wait.
    static let hasty: PlaybackLimits = {
        var limits = PlaybackLimits()
        limits.reconnect = .steps([.milliseconds(20), .milliseconds(50), .milliseconds(100)], repeatsLast: false)
        return limits
    }()
}
