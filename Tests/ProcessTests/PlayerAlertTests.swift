import BusKit
import Foundation
import TestSupport
import Testing

/// Tests that both players show the alert for a failing episode and can answer it.
@Suite(.serialized, .timeLimit(.minutes(5))) struct PlayerAlertTests {
    /// Runs with a fleet with one episode, whose audio is at `path` on the server.
    private static func withEpisode(
        answering response: HTTPTestResponse,
        _ body: @escaping @Sendable (ProcessFleet) async throws -> Void
    ) async throws {
        try await HTTPTestServer.with { server in
            server.route("/audio.mp3", response)
            try await ProcessFleet.with { fleet in
                let feed = """
                    <?xml version="1.0"?><rss version="2.0"><channel><title>A podcast</title><link>http://127.0.0.1/</link>
                    <description>x</description><item><title>An episode</title><guid>1</guid>
                    <enclosure url="\(server.url("/audio.mp3"))" type="audio/mpeg" length="1000"/></item></channel></rss>
                    """
                let path = fleet.root + "/feed.xml"
                try feed.write(toFile: path, atomically: true, encoding: .utf8)
                try await fleet.succeed("subscribe", path)
                try await body(fleet)
            }
        }
    }

    /// Runs `body` with both players, each on a terminal of its own.
    private static func withPlayers(
        _ fleet: ProcessFleet, showing first: String,
        _ body: (_ mini: TerminalShell, _ expanded: TerminalShell) async throws -> Void
    ) async throws {
        try await TerminalShell.with(fleet, "\"$LOCKSTEP\" mini", columns: 140) { mini in
            try await TerminalShell.with(fleet, "\"$LOCKSTEP\" expanded", columns: 140) { expanded in
                for player in [mini, expanded] { try await player.until(sees: first) }
                try await body(mini, expanded)
            }
        }
    }

    @Test func `a key that answers an alert removes it from every player`() async throws {
        try await Self.withEpisode(answering: .status(404)) { fleet in
            #expect(try await fleet.lockstep(["play", "An episode"]).status == 65)
            try await Self.withPlayers(fleet, showing: "An episode") { mini, expanded in
                for player in [mini, expanded] {
                    try await player.until("the alert and its keys") {
                        $0.text.contains("Playback stopped") && $0.text.contains("1 retry")
                            && $0.text.contains("3 dismiss")
                    }
                }
                mini.type("3")
                for player in [mini, expanded] {
                    try await player.until("no alert is shown") {
                        $0.text.contains("An episode") && !$0.text.contains("dismiss")
                    }
                }
                #expect(try await fleet.succeed("alerts") == "No alerts.\n")
            }
        }
    }

    @Test func `a retry counts down on both players and is announced once in plain text`() async throws {
        try await Self.withEpisode(answering: .status(503)) { fleet in
            try await fleet.succeed("queue", "add", "An episode")
            try await FleetProgram.with([["mini", "--plain"]], of: fleet) { programs in
                try await Self.withPlayers(fleet, showing: "Nothing is loaded.") { mini, expanded in
                    mini.type(" ")
                    try await mini.until(sees: "retry 1 of 3")
                    async let played = fleet.lockstep(["play"])
                    for player in [mini, expanded] {
                        // The players are checked one after the other; these texts are at least a second apart.
                        let moments = player === mini ? ["in 5 s", "in 4 s"] : ["in 3 s", "in 2 s"]
                        for moment in moments { try await player.until(sees: "retry 2 of 3 \(moment)") }
                    }
                    try await programs[0].until("the failure and its alert") { lines in
                        lines.contains { $0.hasPrefix("Failed at 0:00") }
                            && lines.contains { $0.contains("Answers: retry, skip, dismiss. `lockstep alerts answer ") }
                    }
                    let retries = programs[0].lines.filter { $0.contains("Retry 2 of 3") }
                    #expect(retries.count == 1, "\(programs[0].lines)")
                    // The command, the status and the alert report the same failure.
                    let (outcome, alerts) = try await (played, fleet.succeed("alerts"))
                    let error = outcome.errors.split(separator: "\n").last?.dropFirst("lockstep: ".count) ?? ""
                    #expect(outcome.status == 75 && error.contains("503"), "\(outcome)")
                    #expect(alerts.contains(error), "\(alerts)")
                    // The status names the episode elsewhere.
                    let reason = try #require(error.range(of: "”: ")).upperBound
                    #expect(try await fleet.succeed("status").contains(error[reason...]))
                }
            }
        }
    }

    @Test func `an episode with an unreachable address doesn’t end playback`() async throws {
        try await HTTPTestServer.with { server in
            for name in ["first", "third"] {
                server.route("/\(name).wav", .audio(Tone.wav(seconds: name == "first" ? 2 : 60), type: "audio/wav"))
            }
            server.route("/second.wav", .status(404))
            try await ProcessFleet.with { fleet in
                let items = ["first", "second", "third"].map {
                    "<item><title>\($0)</title><guid>\($0)</guid><enclosure url=\"\(server.url("/\($0).wav"))\"/></item>"
                }
                let path = fleet.root + "/feed.xml"
                try "<rss><channel><title>A podcast</title>\(items.joined())</channel></rss>".write(
                    toFile: path, atomically: true, encoding: .utf8)
                try await fleet.succeed("subscribe", path)
                try await fleet.succeed("queue", "add", "first", "second", "third")
                try await FleetProgram.with([["mini", "--plain"]], of: fleet) { programs in
                    try await fleet.succeed("play")
                    try await programs[0].until("the third episode and the alert") { lines in
                        lines.contains { $0.hasPrefix("Playing at") && $0.contains(": third") }
                            && lines.contains { $0.contains("Skipped “second”") && $0.contains("HTTP 404") }
                    }
                }
                let queue = try await fleet.succeed("queue")
                #expect(queue.contains("second") && queue.contains("third") && !queue.contains("first"), "\(queue)")
                #expect(try await !fleet.succeed("episodes", "--unplayed").contains("first"))
                #expect(try await fleet.succeed("episodes", "--unplayed").contains("second"))
                // The failure concerns a server, not this installation.
                #expect(try await fleet.lockstep(["doctor"]).status == 0)
            }
        }
    }

    @Test func `a player without a terminal accepts keys`() async throws {
        try await Self.withEpisode(answering: .status(404)) { fleet in
            #expect(try await fleet.lockstep(["play", "An episode"]).status == 65)
            let script = "\"$LOCKSTEP\" mini --plain; echo \"left with $?.\""
            try await TerminalShell.with(fleet, script, columns: 400) { shell in
                try await shell.until(sees: "Answers: 1 retry, 2 skip, 3 dismiss.")
                shell.type("i\n")
                try await shell.until(sees: "1 alert: Playback stopped (answer 1 retry, 2 skip, 3 dismiss)")
                shell.type("3\n")
                try await shell.until(sees: "Alert closed: Playback stopped.")
                shell.type("q\n")
                try await shell.until(sees: "left with 0.")
            }
        }
    }
}
