package import BusKit
import Logging
import NIOConcurrencyHelpers
public import PodcastModel
package import SwiftProtobuf
package import WireMessages

/// A program’s connection to a running fleet: what a screen is written with.
///
/// It follows the fleet from `connect` until `disconnect`, or until it is released, and joins it again by itself when the bus
/// is restarted. `state` is what is known now; `states` and `changes` tell what becomes of it. Every command returns when its
/// effect is in `state`. Texts are safe for a terminal; times are seconds.
public final class Fleet: Sendable {
    let hub: FleetHub
    package let client: BusClient
    /// How long a request is tried that reaches no service; nil: as long as any.
    private let reachLimit: Duration?
    /// Nil: nothing is observed.
    private let updates: FeedSubscription?
    private let tasks: [Task<Void, Never>]

    private init(client: BusClient, observes: Bool, reachLimit: Duration?) {
        let hub = FleetHub(observes: observes)
        let updates = observes ? client.subscribe() : nil
        self.client = client
        self.hub = hub
        self.updates = updates
        self.reachLimit = reachLimit
        tasks = [
            Task {
                // It fails only where the run directory can’t be one, which was found out before.
                try? await client.run()
                hub.end()
            },
            Task {
                while let update = await updates?.feed.next() { hub.apply(update) }
            },
        ]
    }

    deinit {
        for task in tasks { task.cancel() }
    }

    /// Connects to the fleet of this user.
    ///
    /// - Parameters:
    ///   - origin: who asks, in a word or two, as the histories show it: `tray`.
    ///   - home: the folder that the fleet keeps its files in; nil: the one that `LOCKSTEP_HOME` names, or else the user’s own.
    ///   - observing: what the state holds.
    /// - Throws: `noFleet` at once when none runs; `badConfiguration` for a home that can’t be one.
    public static func connect(
        as origin: String, home: String? = nil, observing: Observation = .everything
    ) throws(Failure) -> Fleet {
        var environment = ProcessEnvironment.current
        if let home { environment["LOCKSTEP_HOME"] = home }
        return try connect(as: origin, to: try LockstepHome.find(environment), observing: observing.selection)
    }

    /// - Parameter reachLimit: how long a request is tried while the service isn’t there; nil: as long as any.
    package static func connect(
        as origin: String, to home: LockstepHome, observing selection: TopicSelection?, reachLimit: Duration? = nil
    ) throws(Failure) -> Fleet {
        let home = home.ofRunningFleet()
        try FleetPresence.require(home)
        var logger = Logger(label: "lockstep") { _ in SwiftLogNoOpLogHandler() }
        logger.logLevel = .critical
        let client = BusClient(
            runDirectory: home.runDirectory, origin: origin, observes: selection, logger: logger)
        return Fleet(client: client, observes: selection != nil, reachLimit: reachLimit)
    }

    /// Ends the connection. The sequences of states and changes end; commands under way fail with `unavailable`.
    public func disconnect() async {
        await client.shutdown()
        for task in tasks { await task.value }
    }

    // MARK: - State

    /// What is known now. Never waits.
    public var state: FleetState { hub.state }

    /// The state now, as soon as there has been one, and after every change; a slow consumer gets the newest one.
    ///
    /// - Parameter tick: also after this time, for as long as something is counting: the position of what plays, the rest of a
    ///   sleep timer, the wait for another attempt; nil: only after changes.
    public func states(every tick: Duration? = nil) -> AsyncStream<FleetState> { hub.states(every: tick) }

    /// Every change, in order. In place of changes that a slow consumer or a broken connection has missed comes `.everything`.
    public func changes() -> AsyncStream<FleetChange> { hub.changes() }

    /// The state once it is live and none of these parts is stale.
    ///
    /// - Throws: `unavailable` naming what isn’t there when the time is over.
    public func current(
        _ parts: Set<FleetPart> = [.player, .queues], within limit: Duration = .seconds(2)
    ) async throws(Failure) -> FleetState {
        try await current(of: parts.map(\.owner).sorted(), within: limit)
    }

    /// The state once it is live and all that these services put is up to date.
    ///
    /// - Throws: `unavailable` naming the services that aren’t ready when the time is over.
    package func current(of owners: [ServiceName], within limit: Duration) async throws(Failure) -> FleetState {
        let (state, isCurrent) = await hub.first(within: limit) { state in
            state.connection == .live && owners.allSatisfy { !state.view.isStale($0) }
        }
        guard !isCurrent else { return state }
        guard state.connection == .live else {
            throw Failure(
                .unavailable,
                "The bus isn’t answering. It may be starting; `lockstep ps` shows what the fleet is doing.")
        }
        let missing = owners.filter { state.view.isStale($0) }.map(\.text).joined(separator: " and ")
        throw Failure(
            .unavailable,
            "The \(missing) service isn’t ready. It may be starting; `lockstep ps` shows what it is doing.")
    }

    /// The first state for which `condition` holds, or the newest when the time is over, and whether it holds.
    package func first(
        within limit: Duration, where condition: @escaping @Sendable (FleetState) -> Bool
    ) async -> (state: FleetState, isMet: Bool) {
        await hub.first(within: limit, where: condition)
    }

    /// Returns when the effect of an answer is in `state`, or after two seconds: the command is done, and a late state is no
    /// failure of it.
    package func arrive(at position: StreamPosition?, of service: ServiceName) async {
        guard let position, let updates else { return }
        do throws(Failure) {
            // Also where its topic isn’t observed.
            try await client.wait(for: position, of: service, within: .seconds(2))
        } catch { return }
        await updates.feed.drained()
    }

    // MARK: - Commands

    /// The player: what is loaded, and how it plays.
    public var player: PlayerClient { PlayerClient(fleet: self) }
    /// Up Next and the other queues.
    public var queue: QueueClient { QueueClient(fleet: self) }
    /// Subscriptions.
    public var feeds: FeedsClient { FeedsClient(fleet: self) }
    /// Downloaded files.
    public var downloads: DownloadsClient { DownloadsClient(fleet: self) }
    /// What needs an answer.
    public var alerts: AlertsClient { AlertsClient(fleet: self) }
    /// Podcasts and episodes, as the database has them.
    public var library: LibraryClient { LibraryClient(fleet: self) }

    /// Asks a service, and returns when the effect of its answer is in `state`.
    package func ask<Reply: SwiftProtobuf.Message>(
        _ service: ServiceName, _ request: some SwiftProtobuf.Message, reply: Reply.Type,
        within limit: Duration = .seconds(10)
    ) async throws(Failure) -> Reply {
        let answer = try await client.ask(service, request, reply: reply, within: limit, reaching: reachLimit)
        await arrive(at: answer.position, of: service)
        return answer.reply
    }

    /// Questions to the database.
    package var persistence: PersistenceClient { PersistenceClient(client) }
}

extension Moment {
    /// The moment at which it is called.
    public static var now: Moment { SystemClocks.now() }
}
