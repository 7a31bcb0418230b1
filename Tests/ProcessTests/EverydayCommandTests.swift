import BusKit
import Foundation
import LockstepClient
import PodcastModel
import TestSupport
import Testing

/// Tests the short forms of everyday commands: the loaded episode, rows of the last list, qualified names, undo.
@Suite(.serialized, .timeLimit(.minutes(3))) struct EverydayCommandTests {
    private static func feed(_ title: String, _ items: [(title: String, day: Int)], _ server: HTTPTestServer)
        -> HTTPTestResponse
    {
        let items = items.map { item in
            """
            <item><title>\(item.title)</title><guid>\(item.title)</guid>
            <pubDate>Tue, \(String(format: "%02d", item.day)) Jan 2026 20:00:00 GMT</pubDate>
            <enclosure url="\(server.url("/\(item.day).wav"))" type="audio/wav"/></item>
            """
        }
        return .feed("<rss version=\"2.0\"><channel><title>\(title)</title>\(items.joined())</channel></rss>")
    }

    @Test func `episodes are named by podcast, by row and as the newest, and marks are undone`() async throws {
        try await HTTPTestServer.with { server in
            server.route("/a.xml", Self.feed("Alpha", [("Weekly news", 3), ("Extra", 2), ("Old one", 1)], server))
            server.route("/b.xml", Self.feed("Beta", [("Weekly news", 5)], server))
            try await ProcessFleet.with { fleet in
                try await fleet.succeed("subscribe", server.url("/a.xml"), server.url("/b.xml"))
                try await fleet.run([
                    CommandStep("show %1", 65, "lockstep: %1 is a row of the last printed list"),
                    CommandStep("show", 69, "lockstep: Nothing is loaded. Name an episode: `lockstep show EPISODE"),
                    CommandStep("why", 69, "lockstep: Nothing is loaded."),
                    CommandStep("mark played", 69, "lockstep: Nothing is loaded."),
                    CommandStep("mark undo", 0, "No change: there is no mark to undo."),
                    CommandStep("mark undo Extra", 64, "lockstep: `mark undo` undoes the last `mark`"),
                ])
                let ambiguous = try await fleet.lockstep(["show", "weekly"], environment: ["TZ": "XYZ-9"])
                #expect(ambiguous.status == 65)
                for words in ["Weekly news (Alpha) (2026-01-0", "Weekly news (Beta) (2026-01-0"] {
                    #expect(ambiguous.errors.contains(words), "\(ambiguous.errors)")
                }
                // Times are local: the feed’s 20:00 is the next day nine hours to the east.
                let list = try await fleet.lockstep(["episodes"], environment: ["TZ": "XYZ-9"])
                let rows = list.output.split(separator: "\n").map { $0.split(separator: "\t").map(String.init) }
                #expect(rows[0] == ["%", "episode", "podcast", "length", "at", "date", "id"], "\(list.output)")
                #expect(rows[1].starts(with: ["1", "Weekly news", "Beta"]) && rows[1].contains("2026-01-06"))
                #expect(rows[3].starts(with: ["3", "Extra", "Alpha"]) && rows[3].contains("2026-01-03"))
                try await fleet.run([
                    CommandStep("show alpha:weekly", 0, "Weekly news\nAlpha\n"),
                    CommandStep("show Beta:_news", 0, "Weekly news\nBeta\n"),
                    CommandStep("show Beta:_extra", 65, "lockstep: No episode"),
                    CommandStep("show %3", 0, "Extra\nAlpha\n"),
                    CommandStep("show %5", 65, "lockstep: The last printed list has 4 rows"),
                    CommandStep("queue add %4 %3", 0, "Added “Old one” and “Extra”."),
                    CommandStep("queue remove %3", 0, "Removed “Extra”"),
                    CommandStep("mark played %3 %4", 0, "Marked “Extra” and “Old one” as played."),
                ])
                try await FleetObserver.with(1, of: fleet) { observers in
                    let observer = observers[0]
                    try await observer.until("the player is ready") { $0.replica.ready[.playback] != nil }
                    let generation = observer.view.replica.ready[.playback] ?? 0
                    #expect(fleet.signal("playback", SIGKILL) != nil)
                    try await observer.until("it is ready again") { $0.replica.ready[.playback] ?? 0 > generation }
                }
                try await fleet.run([
                    CommandStep("mark undo", 0, "Undone: marked “Extra” and “Old one” as played."),
                    CommandStep("mark undo", 0, "No change: there is no mark to undo."),
                    CommandStep("mark played --where unplayed", 0, "Marked 4 episodes as played."),
                    CommandStep("mark undo --json", 0, "[{"),
                ])
                #expect(try await fleet.succeed("episodes", "--where", "played") == "No episode matches the rule.\n")
            }
        }
    }

    @Test func `the loaded episode is the default of commands, and the newest one plays by name`() async throws {
        try await ProcessFleet.with(podcast: 3) { fleet in
            try await fleet.succeed("play", "latest")
            let newest = try await fleet.succeed("status", "--format", "{title}")
            let list = try await fleet.succeed("episodes", "--limit", "1")
            #expect(list.contains("\t\(newest.trimmingCharacters(in: .newlines))\t"), "\(list)\(newest)")
            #expect(try await fleet.succeed("show").hasPrefix(newest))
            #expect(try await fleet.succeed("why").hasPrefix(newest))
            try await fleet.succeed("pause")
            let title = newest.trimmingCharacters(in: .newlines)
            #expect(try await fleet.succeed("mark", "played") == "Marked “\(title)” as played.\n")
            #expect(try await fleet.succeed("mark", "undo") == "Undone: marked “\(title)” as played.\n")
            try await fleet.run([
                CommandStep("play latest no_such_podcast", 65, "lockstep: No podcast"),
                CommandStep("play one two", 64, "lockstep: Play one episode"),
                CommandStep("queue shuffle", 0, ""),
                CommandStep("queue create evening", 0, "Created"),
                CommandStep("queue rename evening night", 0, "Renamed the queue “evening” to “night”."),
                CommandStep("queue rename evening x", 65, "lockstep: There is no queue “evening”."),
                CommandStep("queue rename main x", 65, "lockstep: “main” is Up Next"),
                CommandStep("set onFailure skip", 0, ""),
                CommandStep("set onFailure never", 64, "lockstep: onFailure can’t be “never”"),
            ])
        }
    }

    @Test func `tables fit a terminal of 80 columns, and their short IDs and rows name episodes`() async throws {
        let title = "An episode with a title that is longer than any terminal of this test would be able to show: 0"
        try await HTTPTestServer.with { server in
            let items = (1...5).map { (title: "\(title)\($0)", day: $0) }
            server.route("/a.xml", Self.feed("A podcast whose title is long as well, so that it is cut", items, server))
            try await ProcessFleet.with { fleet in
                try await fleet.succeed("subscribe", server.url("/a.xml"))
                let script = """
                    for command in episodes history podcasts queues playlist downloads set "search episode"; do
                        "$LOCKSTEP" $command
                    done
                    "$LOCKSTEP" queue add %1 %2 >"$LOCKSTEP_HOME/added"
                    for command in queue "queue history"; do "$LOCKSTEP" $command; done
                    "$LOCKSTEP" show %5 >"$LOCKSTEP_HOME/shown"; "$LOCKSTEP" episodes %0; "$LOCKSTEP" inbox
                    echo "All printed."
                    read line
                    """
                try await TerminalShell.with(fleet, script, wraps: true) { shell in
                    try await shell.until(sees: "All printed.")
                    let lines = shell.written.split(whereSeparator: \.isNewline).map(String.init)
                    let wide = lines.filter { DisplayText.width($0) > 80 && !$0.hasPrefix("lockstep: ") }
                    #expect(wide.isEmpty, "\(wide)")
                    let row = try #require(lines.first { $0.hasPrefix("1  An episode") })
                    let id = String(try #require(row.split(separator: " ").last))
                    #expect(id.count == 8 && row.contains("…"))
                    let found = try await fleet.succeed("show", id)
                    #expect(found.hasPrefix("\(title)5\n"), "\(found)")
                    let shown = try String(contentsOfFile: fleet.root + "/shown", encoding: .utf8)
                    #expect(shown.isEmpty, "the queue was listed last, and has two rows: \(shown)")
                }
            }
        }
    }

    @Test func `completions are titles, quoted for the shell`() async throws {
        try await ProcessFleet.with(podcast: 2) { fleet in
            let bash = try await fleet.lockstep(["candidates", "episodes"], environment: ["SAP_SHELL": "bash"])
            #expect(bash.output.contains(#"Part\\\ 1\\\ of\\\ many"#), "\(bash.output)")
            let plain = try await fleet.lockstep(["candidates", "episodes"])
            #expect(plain.output.contains("Part 1 of many\n"), "\(plain.output)")
        }
    }
}
