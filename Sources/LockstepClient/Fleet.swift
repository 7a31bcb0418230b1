package import BusKit
import Logging
public import PodcastModel
package import SwiftProtobuf
package import WireMessages

/// A program’s connection to a running fleet; screens are built on it.
///
/// It follows the fleet from `connect` until `disconnect`, or until it and its sequences are released, and reconnects
/// when the bus restarts. `state` is the newest state; `states` and `updates` deliver later ones. Every command
/// returns when its effect is in `state`. Texts are safe for a terminal; times are seconds.
public final class Fleet: Sendable {
    let hub: FleetHub
    package let client: BusClient
    /// The time for which a request to an absent service is retried; nil for no limit.
    private let reachLimit: Duration?
    private let subscription: FeedSubscription?
    private let tasks: [Task<Void, Never>]

    init(client: BusClient, observing selection: TopicSelection?, reachLimit: Duration? = nil) {
        let hub = FleetHub(observing: selection)
        let subscription = selection.map { _ in client.subscribe() }
        self.client = client
        self.hub = hub
        self.subscription = subscription
        self.reachLimit = reachLimit
        tasks = [
            Task {
                do {
                    try await client.run()
                    hub.end(nil)
                } catch {
                    hub.end(error as? Failure ?? Failure(.internalError, "The connection has ended: \(error)"))
                }
            },
            Task {
                while let update = await subscription?.feed.next() { hub.apply(update) }
            },
        ]
    }

    deinit {
        for task in tasks { task.cancel() }
    }

    /// Connects to the user’s fleet.
    ///
    /// - Parameters:
    ///   - origin: the program’s short name, as the histories show it, such as `tray`.
    ///   - home: the folder with the fleet’s files; nil for the one in `LOCKSTEP_HOME`, or else the user’s default.
    ///   - observing: the part of the state that the connection follows.
    /// - Throws: `noFleet` at once if none is running; `badConfiguration` for an invalid home.
    public static func connect(
        as origin: String, home: String? = nil, observing: Observation = .everything
    ) throws(Failure) -> Fleet {
        var environment = ProcessEnvironment.current
        if let home { environment["LOCKSTEP_HOME"] = home }
        return try connect(as: origin, to: try LockstepHome.find(environment), observing: observing.selection)
    }

    /// - Parameter reachLimit: the time for which a request to an absent service is retried; nil for no limit.
    package static func connect(
        as origin: String, to home: LockstepHome, observing selection: TopicSelection?, reachLimit: Duration? = nil
    ) throws(Failure) -> Fleet {
        let home = home.ofRunningFleet()
        try FleetPresence.require(home)
        var logger = Logger(label: "lockstep") { _ in SwiftLogNoOpLogHandler() }
        logger.logLevel = .critical
        let client = BusClient(
            runDirectory: home.runDirectory, origin: origin, observes: selection, logger: logger)
        return Fleet(client: client, observing: selection, reachLimit: reachLimit)
    }

    /// Ends the connection. The sequences of states and changes end; pending commands fail with `unavailable`.
    public func disconnect() async {
        await client.shutdown()
        for task in tasks { await task.value }
    }

    // MARK: - State

    /// The newest state; reading it never waits.
    public var state: FleetState { hub.state }

    /// The current state as soon as it is known, and the state after every change; a slow consumer gets the newest.
    ///
    /// - Parameter tick: the interval of additional states while a value is counting: position, sleep timer or
    ///   retry. Nil for none.
    public func states(every tick: Duration? = nil) -> FleetSequence<FleetState> {
        FleetSequence(fleet: self) { fleet in
            let feed = fleet.hub.updates(limit: 1)
            if let tick { fleet.hub.repeatState(in: feed, every: tick) }
            return { await feed.next()?.state }
        }
    }

    /// Every change with the state after it, in order. `everything` replaces changes that a slow consumer or a broken
    /// connection has missed.
    public func updates() -> FleetSequence<FleetUpdate> {
        FleetSequence(fleet: self) { fleet in
            let feed = fleet.hub.updates()
            return { await feed.next() }
        }
    }

    /// The events of the stream, in order, with the topics that the connection observes.
    ///
    /// - Parameters:
    ///   - prefixes: the prefixes of the topics, such as `playback`; empty for all.
    ///   - changesOnly: whether to omit the events that were retained before.
    public func events(prefixes: [String] = [], changesOnly: Bool = false) -> FleetSequence<FleetEvent> {
        FleetSequence(fleet: self) { fleet in
            let subscription = fleet.client.subscribe()
            var log = WatchLog(prefixes: prefixes, changesOnly: changesOnly)
            var waiting: ArraySlice<FleetEvent> = []
            return {
                while waiting.isEmpty {
                    guard let update = await subscription.feed.next() else { return nil }
                    waiting = log.events(for: update)[...]
                }
                return waiting.popFirst()
            }
        }
    }

    /// Returns the state when it is live and none of these parts is stale.
    ///
    /// - Parameter services: further services that must be ready.
    /// - Throws: `unavailable`, naming what is missing, on timeout or cancellation; `invalidArgument` for a part
    ///   that the connection doesn’t observe.
    public func current(
        _ parts: Set<FleetPart> = [.player], services: Set<ServiceName> = [], within limit: Duration = .seconds(2)
    ) async throws(Failure) -> FleetState {
        let known = self.state
        guard known.selection != nil else { throw Failure(.invalidArgument, "This connection observes nothing.") }
        if let part = parts.first(where: { !known.observes($0) }) {
            throw Failure(.invalidArgument, "This connection doesn’t observe `\(part)`.")
        }
        let owners = services.union(parts.compactMap(\.owner)).sorted()
        let (state, isCurrent) = await hub.first(within: limit) { state in
            state.connection == .live && owners.allSatisfy(state.isReady)
        }
        guard !isCurrent else { return state }
        if Task.isCancelled { throw Failure(.unavailable, "Waiting for the state was cancelled.") }
        if case .ended(let failure) = state.connection {
            throw failure ?? Failure(.unavailable, "The connection to the fleet has ended.")
        }
        guard state.connection == .live else {
            throw Failure(
                .unavailable,
                "The bus isn’t answering. It may be starting; `lockstep ps` shows what the fleet is doing.")
        }
        let missing = WordList.and(owners.filter { !state.isReady($0) }.map(\.text))
        throw Failure(
            .unavailable,
            "The \(missing) service isn’t ready. It may be starting; `lockstep ps` shows what it is doing.")
    }

    /// Returns the state when it is live and none of these services is starting, or the newest on timeout: for programs
    /// that show the available parts without waiting for services that are down.
    package func availableState(
        of services: [ServiceName] = [.playback, .queue, .downloads], within limit: Duration = .seconds(2)
    ) async -> FleetState {
        await hub.first(within: limit) { state in
            state.connection == .live
                && services.allSatisfy { state.isReady($0) || state.view.services[$0]?.state != .starting }
        }.state
    }

    /// Returns the first state for which `condition` holds, or the newest on timeout, and whether it holds.
    package func first(
        within limit: Duration, where condition: @escaping @Sendable (FleetState) -> Bool
    ) async -> (state: FleetState, isMet: Bool) {
        await hub.first(within: limit, where: condition)
    }

    /// Returns when the effect of an answer is in `state`, or after two seconds: the command is complete, and a late
    /// state isn’t a failure.
    package func arrive(at position: StreamPosition?, of service: ServiceName) async {
        guard let position, let subscription else { return }
        do throws(Failure) {
            // This also applies if its topic isn’t observed.
            try await client.wait(for: position, of: service, within: .seconds(2))
        } catch { return }
        await subscription.feed.drained()
    }

    // MARK: - Commands

    /// Commands to the player.
    public var player: PlayerClient { PlayerClient(fleet: self) }
    /// Commands to Up Next and the other queues.
    public var queue: QueueClient { QueueClient(fleet: self) }
    /// Commands to the playlists.
    public var playlists: PlaylistClient { PlaylistClient(fleet: self) }
    /// Commands for subscriptions.
    public var feeds: FeedsClient { FeedsClient(fleet: self) }
    /// Commands for downloaded files.
    public var downloads: DownloadsClient { DownloadsClient(fleet: self) }
    /// Commands for settings.
    public var settings: SettingsClient { SettingsClient(fleet: self) }
    /// Commands that answer alerts.
    public var alerts: AlertsClient { AlertsClient(fleet: self) }
    /// Queries to the library of podcasts and episodes.
    public var library: LibraryClient { LibraryClient(fleet: self) }

    /// Sends a request to a service, and returns when the effect of its answer is in `state`.
    package func ask<Reply: SwiftProtobuf.Message>(
        _ service: ServiceName, _ request: some SwiftProtobuf.Message, reply: Reply.Type,
        within limit: Duration = .seconds(10)
    ) async throws(Failure) -> Reply {
        let answer: (reply: Reply, position: StreamPosition?)
        do throws(Failure) {
            answer = try await client.ask(service, request, reply: reply, within: limit, reaching: reachLimit)
        } catch {
            throw error.sanitised
        }
        await arrive(at: answer.position, of: service)
        return answer.reply
    }

    package static let serviceNames = ServiceCatalog.all.filter { $0.start != .planned }.map(\.name.text)

    /// The version of libzmq, the messaging library.
    package static var messagingVersion: (major: Int, minor: Int, patch: Int) { BusLibrary.version }
}

extension Moment {
    /// The current time.
    public static var now: Moment { SystemClocks.now() }
}
