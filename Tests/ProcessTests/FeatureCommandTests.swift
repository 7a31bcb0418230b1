import BusKit
import LockstepClient
import TestSupport
import Testing
import WireMessages

/// Tests the commands for settings, the sleep timer, bookmarks, queues and files, each also repeated.
@Suite(.serialized, .timeLimit(.minutes(5))) struct FeatureCommandTests {
    @Test func `settings apply to all podcasts or to one`() async throws {
        try await ProcessFleet.with(podcast: 2) { fleet in
            try await fleet.run([
                CommandStep("play Part_1", 0, "Playing at "), CommandStep("pause", 0, "Paused at "),
                CommandStep("set speed", 0, "speed 1 (default): "),
                CommandStep("set speed 1.50", 0, "speed is 1.5."),
                CommandStep("set speed 1.5", 0, "No change: speed is already 1.5."),
                CommandStep("speed", 0, "Speed 1.5."),
                CommandStep("set --podcast Many speed 2", 0, "speed for “Many parts” is 2."),
                CommandStep("speed", 0, "Speed 2 for “Many parts” only; other podcasts play at 1.5."),
                CommandStep("set speed", 0, "speed 1.5 (set): the playback speed.\n  2 for Many parts"),
                CommandStep("set --podcast Many --unset speed", 0, "speed for “Many parts” is 1.5 (set for all)."),
                CommandStep(
                    "set --podcast Many --unset speed", 0,
                    "No change: speed for “Many parts” is already 1.5 (set for all)."),
                CommandStep("set --unset speed", 0, "speed is 1 (default)."),
                CommandStep("set gain -5", 0, "gain is -5."),
                CommandStep("set skip-forward 45", 0, "skipForward is 45."),
                CommandStep("seek 0:10", 0, "Paused at 0:10"), CommandStep("skip forward", 0, "Paused at 0:55"),
                CommandStep("set --podcast Many skipBack 5", 0, "skipBack for “Many parts” is 5."),
                CommandStep("skip back", 0, "Paused at 0:50"),
                CommandStep("skip back --seconds 20", 0, "Paused at 0:30"),
                CommandStep("set trimSilence yes", 0, "trimSilence is on."),
            ])
            let environment = ["LOCKSTEP_SKIP_FORWARD": "60"]
            let set = try await fleet.lockstep(["skip", "forward"], environment: environment)
            #expect(set.output.contains("1:15"), "\(set)")
            try await fleet.succeed("set", "--unset", "skipForward")
            let unset = try await fleet.lockstep(["skip", "forward"], environment: environment)
            #expect(unset.output.contains("2:15"), "\(unset)")
            // Settings survive a restart of the fleet.
            try await fleet.succeed("down")
            try await fleet.up()
            try await fleet.run([
                CommandStep("set gain", 0, "gain -5 (set): "),
                CommandStep("set --podcast Many skipBack", 0, "skipBack 5 (set for this podcast): "),
            ])
        }
    }

    @Test func `show reads chapters that have not been read yet`() async throws {
        try await HTTPTestServer.with { server in
            server.route(
                "/feed.xml",
                .feed(
                    """
                    <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"
                    xmlns:podcast="https://podcastindex.org/namespace/1.0"><channel><title>Show</title>
                    <item><title>One</title><guid>1</guid><enclosure url="\(server.url("/1.wav"))" type="audio/wav"/>
                    <podcast:chapters url="\(server.url("/1.json"))" type="application/json+chapters"/></item>
                    <item><title>Two</title><guid>2</guid><enclosure url="\(server.url("/2.wav"))" type="audio/wav"/>
                    <podcast:chapters url="\(server.url("/2.json"))" type="application/json+chapters"/></item>
                    </channel></rss>
                    """))
            let chapters =
                #"{"version":"1.2.0","chapters":[{"startTime":0,"title":"Hello"},{"startTime":61,"title":"More"}]}"#
            server.route(
                "/1.json",
                HTTPTestResponse(
                    headers: [("Content-Type", "application/json+chapters")], body: .bytes(Array(chapters.utf8))))
            try await ProcessFleet.with { fleet in
                _ = try await fleet.succeed("subscribe", server.url("/feed.xml"))
                #expect(try await fleet.succeed("show", "One").contains("Chapters\n  0:00  Hello\n  1:01  More"))
                #expect(try await fleet.succeed("show", "Two").hasPrefix("Two\nShow\n"))
                _ = try await fleet.succeed("show", "One")
                #expect(server.requests(for: "/1.json").count == 1)
            }
        }
    }

    @Test func `the sleep timer is set, extended and turned off`() async throws {
        try await ProcessFleet.with(podcast: 2) { fleet in
            try await fleet.run([
                CommandStep("play Part_1", 0, "Playing at "), CommandStep("pause", 0, "Paused at "),
                CommandStep("sleep", 0, "No sleep timer."),
                CommandStep("sleep off", 0, "No change: no sleep timer."),
                CommandStep("sleep 1h30m", 0, "Sleep in 1:30:00."), CommandStep("sleep +10", 0, "Sleep in 1:40:0"),
                CommandStep("sleep episode", 0, "Sleep at the end of the episode."),
                CommandStep("sleep episode", 0, "No change: sleep at the end of the episode."),
                CommandStep("sleep 3_episodes", 0, "Sleep after 3 episodes."),
                CommandStep(
                    "sleep +10", 65, "lockstep: The sleep timer ends after 3 episodes and has no time to extend."),
                CommandStep("sleep off", 0, "No sleep timer."),
            ])
        }
    }

    @Test func `a sleep timer that ends pauses playback`() async throws {
        try await ProcessFleet.with(podcast: 1) { fleet in
            try await fleet.run([
                CommandStep("set sleepFade 0", 0, "sleepFade is 0."), CommandStep("play Part_1", 0, "Playing at "),
            ])
            try await FleetProgram.with([["mini", "--plain"]], of: fleet) { programs in
                try await programs[0].until("the episode plays") { $0.contains { $0.hasPrefix("Playing at ") } }
                try await fleet.run([CommandStep("sleep 2s", 0, "Sleep in 0:0")])
                try await programs[0].until("playback is paused") { lines in
                    lines.last { $0.hasPrefix("Paused by the sleep timer at ") } != nil
                        && lines.contains("No sleep timer.")
                }
                // The timer’s remaining time is never printed.
                #expect(programs[0].lines.filter { $0.hasPrefix("Sleep in ") }.count == 1)
            }
        }
    }

    private struct Bookmark: Decodable {
        var id: String
        var position: Double
        var note: String?
    }

    @Test func `bookmarks are added, annotated, played and removed`() async throws {
        try await ProcessFleet.with(podcast: 2) { fleet in
            try await fleet.run([
                CommandStep("bookmark add", 69, "lockstep: Nothing is loaded."),
                CommandStep("play Part_1", 0, "Playing at "), CommandStep("pause", 0, "Paused at "),
                CommandStep("seek 1:30", 0, "Paused at 1:30"),
                CommandStep("bookmark add --note hear_this", 0, "Bookmarked 1:30 of “Part 1 of many”."),
                CommandStep("bookmark add --at -15", 0, "Bookmarked 1:15 of “Part 1 of many”."),
                CommandStep("bookmark add --episode Part_2 --at 2:00", 0, "Bookmarked 2:00 of “Part 2 of many”."),
            ])
            let all = try await fleet.decode([Bookmark].self, from: "bookmark", "list")
            #expect(Set(all.map(\.position)) == [75, 90, 120])
            let other = try #require(all.first { $0.position == 120 }).id
            try await fleet.run([
                CommandStep("bookmark note \(other) a_note", 0, "Changed the note of 2:00 of “Part 2 of many”."),
                CommandStep("bookmark note \(other) a_note", 0, "No change: "),
                CommandStep("bookmark play \(other)", 0, "Playing at 2:0"), CommandStep("pause", 0, "Paused at 2:0"),
                CommandStep("bookmark remove \(other)", 0, "Removed the bookmark 2:00"),
                CommandStep("bookmark remove \(other)", 65, "lockstep: There is no bookmark"),
            ])
            #expect(try await fleet.succeed("show", "Part 1").contains("  1:30  hear this  b"))
        }
    }

    @Test func `the data of a podcast is deleted when it is forgotten`() async throws {
        try await ProcessFleet.with(podcast: 2) { fleet in
            try await fleet.run([
                CommandStep("play Part_1", 0, "Playing at "), CommandStep("pause", 0, "Paused at "),
                CommandStep("bookmark add --at 1:30", 0, "Bookmarked 1:30 "),
                CommandStep("bookmark add --episode Part_2 --at 2m", 0, "Bookmarked 2:00 "),
                CommandStep("set --podcast Many speed 2", 0, "speed for “Many parts” is 2."),
                CommandStep("unsubscribe Many", 0, "Unsubscribed from Many parts."),
            ])
            #expect(try await fleet.succeed("bookmark").contains("1:30"))
            try await FleetObserver.with(1, of: fleet) { observers in
                try await observers[0].untilReady()
                try await observers[0].until("the data of the podcast is shown") {
                    !$0.bookmarks.isEmpty && $0.player?.speed == 2
                }
                try await fleet.run([CommandStep("unsubscribe --forget --now many_parts", 0, "Forgot Many parts.")])
                try await observers[0].until("the podcast is forgotten") {
                    $0.bookmarks.isEmpty && $0.player?.speed == 1
                }
            }
            try await fleet.succeed("down")
            try await fleet.up()
            try await fleet.run([CommandStep("bookmark", 0, "No bookmarks.")])
        }
    }

    @Test func `a seek to the very end reports that the episode is played`() async throws {
        try await ProcessFleet.with(podcast: 2) { fleet in
            try await fleet.run([
                CommandStep("play Part_1", 0, "Playing at "), CommandStep("seek 9m", 0, "Playing at 9:0"),
                CommandStep("pause", 0, "Paused at 9:"), CommandStep("seek 100%", 0, "Paused at 9:59"),
                CommandStep("play Part_2", 0, "Playing at "),
                CommandStep("seek 10:00", 0, "Reached the end of “Part 2 of many”, which is now marked as played."),
                CommandStep("mark played Part_2", 0, "No change: “Part 2 of many” is already played."),
                CommandStep("volume 40", 0, "Volume 40 %."), CommandStep("volume +5", 0, "Volume 45 %."),
                CommandStep("volume -10", 0, "Volume 35 %."),
            ])
        }
    }

    @Test func `marks are set, removed and explained`() async throws {
        try await ProcessFleet.with(podcast: 3) { fleet in
            try await fleet.run([
                CommandStep("mark played Part_1", 0, "Marked “Part 1 of many” as played."),
                CommandStep("mark played Part_1", 0, "No change: “Part 1 of many” is already played."),
                CommandStep(
                    "mark played Part_1 Part_2", 0,
                    "Marked “Part 2 of many” as played; “Part 1 of many” is already played."),
                CommandStep("mark unplayed Part_2", 0, "Marked “Part 2 of many” as unplayed."),
                CommandStep("why Part_1", 0, "Part 1 of many\n"),
            ])
            #expect(try await fleet.succeed("episodes", "--unplayed", "--json").contains("Part 1") == false)
        }
    }
}
