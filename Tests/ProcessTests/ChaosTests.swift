import BusKit
import Foundation
import LockstepClient
import NIOConcurrencyHelpers
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests that, whichever process is killed or stopped, no acknowledged change is lost, nothing happens twice and
/// all observers end in the same state.
///
/// `LOCKSTEP_CHAOS_SEEDS=7,8,9` chooses the seeds; a failing run names its own.
@Suite(.serialized)
struct ChaosTests {
    static let seeds: [UInt64] = {
        let chosen = ProcessInfo.processInfo.environment["LOCKSTEP_CHAOS_SEEDS"] ?? "1,2"
        return chosen.split(separator: ",").compactMap { UInt64($0) }
    }()

    @Test(.timeLimit(.minutes(10)), arguments: seeds)
    func `nothing acknowledged is lost and all observers agree`(seed: UInt64) async throws {
        print("chaos: seed \(seed)")
        try await ProcessFleet.with(podcast: 60) { fleet in
            let stalls = NIOLockedValueBox(SeededGenerator(seed: seed &* 31))
            let stall: @Sendable (Int) async -> Void = { index in
                // Every observer but the first pauses at random.
                let milliseconds = stalls.withLockedValue { $0.below(40) == 0 ? $0.below(200) : 0 }
                if index > 0, milliseconds > 0 { try? await ContinuousClock().sleep(for: .milliseconds(milliseconds)) }
            }
            try await FleetObserver.with(6, of: fleet, stall: stall) { observers in
                try await injectFaults(fleet, observers, seed: seed)
            }
        }
    }

    private func injectFaults(_ fleet: ProcessFleet, _ observers: [FleetObserver], seed: UInt64) async throws {
        let first = observers[0]
        try await first.untilReady()
        let page = try await PersistenceClient(first.client).episodes(.with { $0.limit = 60 })
        let episodes = page.episodes.map(\.id)
        #expect(episodes.count == 60)
        let editors = (0..<3).map { index in
            QueueEditor(observers[index].client, episodes: Array(episodes[(index * 20)..<(index * 20 + 20)]))
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, editor) in editors.enumerated() {
                group.addTask { await editor.edit(seed: seed &* 100 &+ UInt64(index)) }
            }
            group.addTask { await self.turnVolume(observers[3].client) }
            try await killProcesses(fleet, first, editors, seed: seed)
            group.cancelAll()
            try await group.waitForAll()
        }
        try await checkEnd(fleet, observers, editors, seed: seed)
    }

    /// Changes the state of another service at the same time.
    private func turnVolume(_ client: BusClient) async {
        var volume = 0.0
        while !Task.isCancelled {
            volume = volume >= 100 ? 0 : volume + 1
            _ = try? await client.ask(
                .playback, WirePlaybackRequest.with { $0.setVolume.volume = volume }, reply: WirePlaybackReply.self,
                within: .seconds(20))
        }
    }

    /// Kills the bus ten times and random services, and stops random processes between the kills.
    private func killProcesses(
        _ fleet: ProcessFleet, _ observer: FleetObserver, _ editors: [QueueEditor], seed: UInt64
    ) async throws {
        var random = SeededGenerator(seed: seed)
        var blows =
            Array(repeating: "bus", count: 10) + ["queue", "queue", "persistence", "persistence", "playback", "feeds"]
        blows.shuffle(using: &random)
        for service in blows {
            let before = observer.view
            let epoch = service == "bus" ? before.replica.position.epoch : 0
            let generation = ServiceName(service).flatMap { before.replica.ready[$0] } ?? 0
            if random.below(4) == 0, fleet.signal("queue", SIGSTOP) != nil {
                try await ContinuousClock().sleep(for: .milliseconds(random.below(1_500)))
                fleet.signal("queue", SIGCONT)
            }
            fleet.signal(service, SIGKILL)
            // Sometimes the next fault occurs before the fleet has recovered from this one.
            guard random.below(3) > 0 else { continue }
            try await observer.until("\(service) is ready again") { view in
                view.connection == .live && view.replica.position.epoch > epoch
                    && ProcessFleet.all.dropFirst().allSatisfy { name in
                        guard let name = ServiceName(name), let now = view.replica.ready[name] else { return false }
                        return name.text != service || now > generation
                    }
            }
            try await awaitMoreEdits(observer, editors)
        }
    }

    /// Waits until more edits have been acknowledged, despite the faults.
    private func awaitMoreEdits(_ observer: FleetObserver, _ editors: [QueueEditor]) async throws {
        let changes = editors.reduce(0) { $0 + $1.outcomes.changes }
        let revision = observer.view.mainQueue?.revision ?? 0
        try await observer.until("more edits are acknowledged") { $0.mainQueue?.revision ?? 0 > revision + 10 }
        #expect(editors.reduce(0) { $0 + $1.outcomes.changes } > changes)
    }

    private func checkEnd(
        _ fleet: ProcessFleet, _ observers: [FleetObserver], _ editors: [QueueEditor], seed: UInt64
    ) async throws {
        try await FleetObserver.untilAgreed(observers)
        let everything = observers[0].retained
        for (index, observer) in observers.enumerated() {
            #expect(observer.retained == everything, "observer \(index), seed \(seed)")
            #expect(observer.conflicts.isEmpty, "observer \(index), seed \(seed)")
        }
        checkOneStream(observers, seed: seed)
        let queue = try #require(observers[0].view.mainQueue)
        for editor in editors {
            editor.outcomes.check(queue.entries.map(\.episode.id), "seed \(seed)")
        }
        let changes = editors.reduce(0) { $0 + $1.outcomes.changes }
        let unknown = editors.reduce(0) { $0 + $1.outcomes.unknown }
        #expect(changes > 20, "seed \(seed)")
        #expect(
            Int(queue.revision) >= changes && Int(queue.revision) <= changes + unknown,
            "seed \(seed): revision \(queue.revision), \(changes) changes acknowledged, \(unknown) unknown")
        print(
            "chaos: seed \(seed): \(changes) changes acknowledged, \(unknown) unknown, \(observers[0].events.count) events seen"
        )
    }

    /// Checks that no two observers received different events at one position.
    private func checkOneStream(_ observers: [FleetObserver], seed: UInt64) {
        var stream: [StreamPosition: StreamEvent] = [:]
        for observer in observers {
            for (position, event) in observer.seen {
                if let known = stream.updateValue(event, forKey: position) {
                    #expect(known == event, "two events at \(position), seed \(seed)")
                }
            }
        }
    }
}
