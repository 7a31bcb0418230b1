import BusKit
import Foundation
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests the history of what was heard with real audio and real processes.
@Suite(.serialized, .timeLimit(.minutes(5))) struct PlayHistoryTests {
    private struct Row: Decodable {
        var title: String?
        var podcast: String?
        var heard: Double
        var wall: Double
        var from: Double
        var to: Double
        var started: Double
        var ended: Double
        var playing: Bool
    }

    private struct Sums: Decodable {
        struct Row: Decodable {
            var title: String?
            var day: String?
            var heard: Double
        }
        var heard: Double
        var sessions: Int
        var rows: [Row]
    }

    @Test func `a killed player loses at most ten seconds of the history`() async throws {
        try await ProcessFleet.with(podcast: 2) { fleet in
            try await FleetObserver.with(1, of: fleet) { observers in
                let observer = observers[0]
                try await observer.untilReady()
                try await fleet.run([
                    CommandStep("history", 0, "You haven’t heard anything yet."),
                    CommandStep("history --episode Part_1", 0, "You haven’t heard “Part 1 of many” yet."),
                    CommandStep("history --json", 0, "[]"),
                    CommandStep("stats", 0, "You haven’t heard anything since 20"),
                    CommandStep("stats --since 2999-01-01", 64, "lockstep: "),
                    CommandStep("stats --by day --since 3y", 64, "lockstep: Statistics by day reach back at most 400"),
                ])
                try await fleet.succeed("play", "Part 2 of many")
                try await observer.untilEvents("the position is saved during playback") { events in
                    events.contains { event in
                        let state = try? WireEpisodeState(wireBytes: event.payload)
                        return event.topic.text.hasPrefix("stream/playback/episode/") && state?.position ?? 0 >= 8
                    }
                }
                let playing = try await fleet.decode([Row].self, from: "history")
                #expect(playing.map(\.playing) == [true])
                let before = try await fleet.status().position
                let generation = observer.view.replica.ready[.playback] ?? 0
                #expect(fleet.signal("playback", SIGKILL) != nil)
                try await observer.until("the player plays again") { view in
                    view.replica.ready[.playback] ?? 0 > generation && view.player?.status == .playing
                }
                try await fleet.succeed("stop")
                let row = try #require(try await fleet.decode([Row].self, from: "history").last)
                #expect(row.heard >= before - 10 && row.heard <= before + 2 && row.from < 0.5 && !row.playing)
                #expect(abs(row.to - row.heard) < 1.5 && abs(row.wall - row.heard) < 1)
                #expect(row.ended >= row.started + 7 && row.title == "Part 2 of many" && row.podcast == "Many parts")
                try await checkStatistics(fleet)
            }
        }
    }

    private func checkStatistics(_ fleet: ProcessFleet) async throws {
        let days = try await fleet.decode(Sums.self, from: "stats", "--by", "day", "--since", "2d")
        // Midnight may pass during the test.
        #expect((2...3).contains(days.rows.count) && days.rows.allSatisfy { $0.day != nil } && days.heard >= 7)
        #expect(abs(days.rows.reduce(0) { $0 + $1.heard } - days.heard) < 0.01)
        // The same sessions count, however they are grouped.
        let grouped = try await fleet.decode(Sums.self, from: "stats", "--since", "2d", "--limit", "1")
        #expect(grouped.heard == days.heard && grouped.sessions == days.sessions)
        let newest = try await fleet.decode(Sums.self, from: "stats", "--by", "day", "--since", "9d", "--limit", "1")
        #expect(newest.rows.count { $0.heard > 0 } == 1)
        let podcasts = try await fleet.decode(Sums.self, from: "stats")
        #expect(podcasts.rows.map(\.title) == ["Many parts"] && podcasts.sessions >= 1)
        let table = try await fleet.succeed("stats", "--by", "episode")
        #expect(
            table.hasPrefix("episode") && table.contains("Part 2 of many") && table.contains("\nHeard "), "\(table)")
        try await fleet.succeed("unsubscribe", "Many parts", "--forget", "--now")
        let removed = try await fleet.succeed("history")
        #expect(removed.contains("(removed episode)") && removed.contains("(removed podcast)"), "\(removed)")
        #expect(try await fleet.succeed("stats").contains("(removed podcast)"))
    }
}
