import BusKit
import Foundation
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests that marks of episodes and changes of playlists survive the deaths of the services, each completely or not at
/// all, and that all observers agree.
///
/// `LOCKSTEP_CHAOS_SEEDS=7,8,9` chooses the seeds, `LOCKSTEP_CHAOS_COMMANDS=10000` the number of commands.
@Suite(.serialized)
struct LibraryChaosTests {
    private static let commands =
        ProcessInfo.processInfo.environment["LOCKSTEP_CHAOS_COMMANDS"].flatMap { Int($0) } ?? 1_500

    @Test(.timeLimit(.minutes(30)), arguments: ChaosTests.seeds.prefix(1))
    func `no acknowledged mark or change of a playlist is lost or half done`(seed: UInt64) async throws {
        try await ProcessFleet.with(podcast: 90) { fleet in
            try await FleetObserver.with(4, of: fleet) { observers in
                try await observers[0].untilReady()
                let page = try await PersistenceClient(observers[0].client).episodes(.with { $0.limit = 90 })
                let episodes = page.episodes.map(\.id)
                try #require(episodes.count == 90)
                let editors = (0..<3).map { index in
                    LibraryEditor(
                        observers[index].client, playlist: "list-\(index)",
                        episodes: Array(episodes[(index * 30)..<(index * 30 + 30)]))
                }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    let killer = Task { try await kill(fleet, observers[3], editors, seed: seed) }
                    for (index, editor) in editors.enumerated() {
                        group.addTask {
                            await editor.edit(seed: seed &* 100 &+ UInt64(index), commands: Self.commands / 3)
                        }
                    }
                    try await group.waitForAll()
                    killer.cancel()
                    let kills = try await killer.value
                    let (changes, unknown) = editors.reduce((0, 0)) { ($0.0 + $1.changes, $0.1 + $1.unknown) }
                    print("chaos: seed \(seed): \(kills) kills, \(changes) changes acknowledged, \(unknown) unknown")
                    #expect(kills > 3 && changes > Self.commands / 3)
                }
                try await check(fleet, observers, editors)
            }
        }
    }

    /// Kills random services until it is cancelled; returns the number of kills.
    private func kill(
        _ fleet: ProcessFleet, _ observer: FleetObserver, _ editors: [LibraryEditor], seed: UInt64
    ) async throws -> Int {
        var random = SeededGenerator(seed: seed)
        var kills = 0
        var killed: [ServiceName: UInt32] = [:]
        var times: [ServiceName: [ContinuousClock.Instant]] = [:]
        while !Task.isCancelled {
            let service: ServiceName = [.persistence, .queue, .playback, .feeds][random.below(4)]
            let changes = editors.reduce(0) { $0 + $1.changes }
            // The supervisor gives up a service that ends six times within a minute.
            times[service, default: []].removeAll { $0.duration(to: .now) > .seconds(60) }
            guard times[service, default: []].count < 5 else {
                try? await ContinuousClock().sleep(for: .milliseconds(100))
                continue
            }
            times[service, default: []].append(.now)
            let last = killed[service] ?? 0
            try await observer.until("\(service) is ready again") { $0.replica.ready[service] ?? 0 > last }
            killed[service] = observer.view.replica.ready[service]
            fleet.signal(service.text, SIGKILL)
            kills += 1
            // Sometimes the next service is killed before the fleet has recovered.
            guard random.below(3) > 0 else { continue }
            let goal = changes + 5 + random.below(40)
            while !Task.isCancelled, editors.reduce(0, { $0 + $1.changes }) < goal {
                try? await ContinuousClock().sleep(for: .milliseconds(10))
            }
        }
        return kills
    }

    private func check(_ fleet: ProcessFleet, _ observers: [FleetObserver], _ editors: [LibraryEditor]) async throws {
        try await FleetObserver.untilAgreed(observers)
        for observer in observers {
            #expect(observer.retained == observers[0].retained)
            #expect(observer.conflicts.isEmpty)
        }
        let client = observers[0].client
        let page = try await PersistenceClient(client).episodes(.with { $0.limit = 90 })
        let played = page.episodes.filter(\.state.played).map(\.id)
        for editor in editors {
            let request = WireQueueRequest.with {
                ($0.playlist.playlist, $0.playlist.items) = (editor.playlist, WireItemsQuery())
            }
            let reply = try await client.ask(.queue, request, reply: WireQueueReply.self).reply
            editor.items.check(reply.entries.map(\.episode.id), "\(editor.playlist)")
            #expect(Int(reply.playlist.items) == reply.entries.count)
            editor.marks.check(played, "\(editor.playlist)")
            try await checkSmart(editor, items: reply.entries.map(\.episode.id), played: Set(played), client)
        }
    }

    /// Waits until the smart playlist has what its rule, one of the possible ones, finds.
    private func checkSmart(
        _ editor: LibraryEditor, items: [String], played: Set<String>, _ client: BusClient
    ) async throws {
        let request = WireQueueRequest.with {
            ($0.playlist.playlist, $0.playlist.items) = (editor.smartPlaylist, WireItemsQuery())
        }
        var found: Set<String> = []
        for _ in 1...200 {
            let reply = try await client.ask(.queue, request, reply: WireQueueReply.self).reply
            let rule = reply.playlist.smart.rule
            #expect(editor.rules.contains(rule), "\(rule)")
            found = Set(reply.entries.map(\.episode.id))
            guard found != Set(items.filter { played.contains($0) == (rule == editor.playedRule) }) else { return }
            try await ContinuousClock().sleep(for: .milliseconds(100))
        }
        Issue.record("\(editor.smartPlaylist) has \(found.count) items that don’t follow from its rule")
    }
}
