import BusKit
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests a queue longer than any message: its changes reach the database and the stream in parts, or not at all.
@Suite(.timeLimit(.minutes(5)))
struct LongQueueTests {
    private static let count = 2_200

    /// An address of the maximum length; every hundredth repeats the one before it.
    private static func address(_ number: Int) -> String {
        let file = number % 100 == 0 ? number - 1 : number
        return "https://media.example.net/\(file)/" + String(repeating: "x", count: 3_900) + ".mp3?\(file)"
    }

    private static func ids(_ view: FleetView) -> [String] { view.mainQueue?.entries.map(\.episode.id) ?? [] }

    private func expect(_ episodes: [String], _ fleet: WholeFleet, _ what: String) async throws {
        try await fleet.watcher.until(what) {
            $0.connection == .live && $0.mainQueue?.more == false && Self.ids($0) == episodes
        }
    }

    @Test func `a change of all entries is saved and undone although the database crashes in between`() async throws {
        try await WholeFleet.with([.persistence, .playback, .queue]) { fleet in
            try await fleet.fillLibrary(episodes: Self.count, address: Self.address)
            let all = (1...Self.count).map(WholeFleet.episode)
            for start in stride(from: 0, to: Self.count, by: 500) {
                try await fleet.queue { $0.add.episodes = Array(all[start..<min(start + 500, Self.count)]) }
            }
            try await expect(all, fleet, "all are there")
            let full = try #require(fleet.watcher.view.mainQueue?.revision)

            try await fleet.queue {
                $0.sort.by = .title
                $0.sort.descending = true
            }
            try await expect(all.sorted { "part \($0.dropFirst())" > "part \($1.dropFirst())" }, fleet, "sorted")
            try await fleet.queue { $0.undo = WireUndo() }
            let twice = try await fleet.queue { $0.deduplicate = WireRemoveDuplicates() }
            #expect(twice.entries.count == Self.count / 100)
            let single = all.filter { Int($0.dropFirst()).map { $0 % 100 != 0 } ?? false }
            try await expect(single, fleet, "without duplicates")

            try await fleet.queue { $0.clear = WireClearQueue() }
            async let undone = fleet.queue { $0.undo = WireUndo() }
            try await fleet.restart(.persistence)
            try await fleet.untilReady([.persistence])
            _ = try await undone
            try await expect(single, fleet, "undone")
            try await fleet.queue { $0.restore.revision = full }
            try await fleet.restart(.queue)
            try await fleet.untilReady([.queue])
            try await expect(all, fleet, "restored, after a restart")
        }
    }
}
