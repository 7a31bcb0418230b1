import BusKit
import Foundation
import LockstepClient
import Logging
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// A client that follows a fleet’s stream and records every event.
final class FleetObserver: Sendable {
    let client: BusClient
    private struct State {
        var view = FleetView()
        var seen: [StreamPosition: StreamEvent] = [:]
        var events: [StreamEvent] = []
        var snapshots = 0
        var conflicts: [StreamPosition] = []
    }
    private let state = Awaited(State())

    init(_ fleet: ProcessFleet, origin: String = "test") {
        var logger = Logger(label: origin) { _ in SwiftLogNoOpLogHandler() }
        logger.logLevel = .critical
        client = BusClient(runDirectory: fleet.home.runDirectory, origin: origin, observes: .all, logger: logger)
    }

    /// Runs `body` with a fleet that has subscribed to the server’s `/feed.xml`, and with an observer of it.
    static func with<Result: Sendable>(
        feedOf server: HTTPTestServer, _ body: @Sendable (ProcessFleet, FleetObserver) async throws -> Result
    ) async throws -> Result {
        try await ProcessFleet.with { fleet in
            try await with(1, of: fleet) { observers in
                try await observers[0].untilReady()
                try await fleet.succeed("subscribe", server.url("/feed.xml"))
                return try await body(fleet, observers[0])
            }
        }
    }

    /// Runs `body` with `count` observers of the fleet, each of which calls `stall` after an update.
    static func with<Result: Sendable>(
        _ count: Int, of fleet: ProcessFleet, stall: @escaping @Sendable (Int) async -> Void = { _ in },
        _ body: @Sendable ([FleetObserver]) async throws -> Result
    ) async throws -> Result {
        let observers = (0..<count).map { FleetObserver(fleet, origin: "observer \($0)") }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, observer) in observers.enumerated() {
                group.addTask { try await observer.client.run() }
                group.addTask {
                    for await update in observer.client.updates() {
                        observer.handle(update)
                        await stall(index)
                    }
                }
            }
            do {
                let result = try await body(observers)
                for observer in observers { await observer.client.shutdown() }
                try await group.waitForAll()
                return result
            } catch {
                for observer in observers { await observer.client.shutdown() }
                try? await group.waitForAll()
                throw error
            }
        }
    }

    private func handle(_ update: ReplicaUpdate) {
        state.change { state in
            if case .snapshot = update { state.snapshots += 1 }
            if case .event(let event) = update {
                state.events.append(event)
                if let known = state.seen.updateValue(event, forKey: event.position), known != event {
                    state.conflicts.append(event.position)
                }
            }
            state.view.apply(update)
        }
    }

    var view: FleetView { state.now.view }
    var seen: [StreamPosition: StreamEvent] { state.now.seen }
    var events: [StreamEvent] { state.now.events }
    /// The positions of the stream at which two different events were received.
    var conflicts: [StreamPosition] { state.now.conflicts }

    /// Every retained message, in a comparable form.
    var retained: [String: [[UInt8]]] {
        var entries: [String: [[UInt8]]] = [:]
        for (topic, value) in view.replica.entries {
            entries[topic.text] = [value.put.payload] + value.deltas.map(\.payload)
        }
        return entries
    }

    /// Waits until the observed state meets a condition.
    /// - Throws: the observed state, after the limit.
    func until(
        _ what: String, within limit: Duration = .seconds(60), _ condition: @escaping @Sendable (FleetView) -> Bool
    ) async throws {
        guard await state.first(within: limit, where: { condition($0.view) }) == nil else { return }
        throw ProcessFleet.Unexpected(description: "waited for: \(what); seen: \(summary)")
    }

    /// Waits until the received events meet a condition.
    /// - Throws: the observed state, after the limit.
    func untilEvents(
        _ what: String, within limit: Duration = .seconds(60), _ condition: @escaping @Sendable ([StreamEvent]) -> Bool
    ) async throws {
        guard await state.first(within: limit, where: { condition($0.events) }) == nil else { return }
        throw ProcessFleet.Unexpected(description: "waited for: \(what); seen: \(summary)")
    }

    /// A summary of the observed state.
    var summary: String {
        let view = view
        let services = view.services.values.map { "\($0.name) \($0.state)#\($0.generation)" }.sorted()
        let queue = view.mainQueue.map { "queue revision \($0.revision), \($0.entries.count) entries" } ?? "no queue"
        let player = view.player.map { "player \($0.status) \($0.episode.title) \($0.anchor.position)" } ?? "no player"
        let alerts = view.alertsInOrder.map { "\($0.code): \($0.message)" }
        return "\(view.connection) \(view.replica.position) \(services) \(queue) \(player) \(alerts)"
    }

    /// Makes a change and waits until all observers have received it; repeats this until all are at the same position.
    ///
    /// Services may still publish after the test’s last change, so one change may not be enough.
    static func untilAgreed(_ observers: [FleetObserver]) async throws {
        for observer in observers { try await observer.untilReady() }
        for attempt in 0..<20 {
            let volume = 30 + Double(attempt) / 2
            let last = try await observers[0].client.ask(
                .playback, WirePlaybackRequest.with { $0.setVolume.volume = volume }, reply: WirePlaybackReply.self,
                within: .seconds(30))
            #expect(last.reply.state.volume == volume)
            for observer in observers {
                try await observer.until("volume \(volume)") { $0.player?.volume == volume && $0.connection == .live }
            }
            let views = observers.map(\.view)
            if Set(views.map(\.replica.position)).count == 1 { return }
        }
        throw ProcessFleet.Unexpected(description: "the stream does not come to rest: \(observers.map(\.summary))")
    }

    /// Waits until every service is ready in an epoch after `epoch`.
    func untilReady(after epoch: UInt64 = 0) async throws {
        try await until("all services ready after epoch \(epoch)") { view in
            view.connection == .live && view.replica.position.epoch > epoch
                && ProcessFleet.all.dropFirst().allSatisfy { name in
                    ServiceName(name).map { view.replica.ready[$0] != nil } ?? false
                }
        }
    }
}
