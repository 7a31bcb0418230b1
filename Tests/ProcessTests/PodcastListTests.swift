import BusKit
import Foundation
import LockstepClient
import PodcastModel
import TestSupport
import Testing
import WireMessages

/// Tests `import` and `export` with real processes.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct PodcastListTests {
    private struct Podcast: Decodable, Hashable {
        var url: String
        var title: String
        var feedTitle: String?
        var tags: [String]
    }

    private struct Outcome: Decodable {
        struct Problem: Decodable {
            var line: Int
            var name: String?
            var reason: String
        }
        var podcasts: Int
        var added: Int
        var alreadyThere: Int
        var failed: Int
        var problems: [Problem]
    }

    private static func feed(_ title: String) -> HTTPTestResponse {
        .feed(
            """
            <rss version="2.0"><channel><title>\(title)</title><item><title>One</title><guid>1</guid>
            <enclosure url="https://a.example/1.mp3" type="audio/mpeg"/></item></channel></rss>
            """)
    }

    private func podcasts(_ fleet: ProcessFleet) async throws -> Set<Podcast> {
        Set(
            try await fleet.decode([Podcast].self, from: "podcasts").map { podcast in
                var podcast = podcast
                podcast.tags.sort()
                return podcast
            })
    }

    @Test func `a list is exported and imported with the same addresses, titles and tags, and without passwords`()
        async throws
    {
        try await HTTPTestServer.with { server in
            for number in 0..<4 { server.route("/\(number)", Self.feed("Show \(number) & more")) }
            let list = try await ProcessFleet.with { fleet -> String in
                try await fleet.succeed("subscribe", server.url("/0"), server.url("/1"), server.url("/2"))
                let local = try fleet.writeFeed(episodes: 1)
                try await fleet.succeed("subscribe", local)
                let address = server.url("/3").replacing("http://", with: "http://me:geheim@")
                try await fleet.succeed("subscribe", address)
                try await fleet.succeed("tag", "add", "News & views", "Show 0", "Show 1")
                try await fleet.succeed("tag", "add", "daily", "Show 0")
                try await fleet.succeed("podcast", "rename", "Show 2", "My \"own\" <title>")
                let printed = try await fleet.lockstep(["export"])
                #expect(printed.status == 0 && printed.errors.contains("is a local file"), "\(printed)")
                #expect(!printed.output.contains("geheim") && !printed.output.contains("file:"))
                let path = fleet.root + "/list.opml"
                #expect(try await fleet.succeed("export", path) == "Exported 4 podcasts to \(path).\n")
                #expect(try String(contentsOfFile: path, encoding: .utf8) == printed.output)
                #expect(try await fleet.succeed("export", "--json").hasPrefix("{\"path\":null,\"podcasts\":4,"))
                let before = try await podcasts(fleet)
                let again = try await fleet.succeed("import", path)
                #expect(again == "Subscribed to 0 podcasts; 4 already subscribed.\n", "\(again)")
                #expect(try await podcasts(fleet) == before)
                try await fleet.run([
                    CommandStep("export \(fleet.root)", 65, "lockstep: \(fleet.root) is a folder."),
                    CommandStep("export /no/such/folder/x.opml", 65, "lockstep: Couldn’t write /no/such/folder/x.opml"),
                ])
                return printed.output
            }
            try await ProcessFleet.with { fleet in
                let path = fleet.root + "/list.opml"
                try list.write(toFile: path, atomically: true, encoding: .utf8)
                #expect(try await fleet.succeed("import", path) == "Subscribed to 4 podcasts.\n")
                #expect(try await fleet.succeed("export") == list)
                let found = try await podcasts(fleet)
                #expect(found.count == 4 && found.contains { $0.tags == ["News & views", "daily"] })
                #expect(found.contains { $0.title == "My \"own\" <title>" && $0.feedTitle == "Show 2 & more" })
            }
        }
    }

    @Test func `broken entries are listed, and the rest arrives`() async throws {
        try await HTTPTestServer.with { server in
            server.route("/good", Self.feed("Good"))
            server.route("/gone", .status(404))
            try await ProcessFleet.with { fleet in
                let path = fleet.root + "/list.opml"
                let local = try fleet.writeFeed(episodes: 1)
                try """
                <opml version="1.0"><body>
                <outline text="Good" xmlUrl="\(server.url("/good"))"/>
                <outline text="Gone" xmlUrl="\(server.url("/gone"))"/>
                <outline text="Local" xmlUrl="file://\(local)"/>
                <outline text="Itself" xmlUrl="file://\(path)"/>
                <outline text="List" type="include" url="\(path)"/>
                <outline text="Relative" xmlUrl="feed.xml"/>
                <outline text="No address" type="rss"/>
                </body></opml>
                """.write(toFile: path, atomically: true, encoding: .utf8)
                let outcome = try await fleet.lockstep(["import", path])
                #expect(outcome.status == 65)
                #expect(
                    outcome.output
                        == "Subscribed to 2 podcasts; 1 of them can’t be read now; 5 entries not imported.\n",
                    "\(outcome.output)")
                let errors = outcome.errors.split(separator: "\n")
                for (line, words) in [
                    "lockstep: “Local”, line 4: A list can’t name local files.",
                    "lockstep: “Itself”, line 5: A list can’t",
                    "lockstep: “List”, line 6: ", "lockstep: “Relative”, line 7: ", "lockstep: “No address”, line 8: ",
                    "lockstep: Gone: ",
                ].enumerated() {
                    #expect(
                        errors.indices.contains(line) && errors[line].hasPrefix(words), "\(words): \(outcome.errors)")
                }
                #expect(errors.count == 6)
                let json = try await fleet.lockstep(["import", path, "--json"])
                let decoded = try JSONDecoder().decode(Outcome.self, from: Data(json.output.utf8))
                #expect(decoded.podcasts == 2 && decoded.alreadyThere == 2 && decoded.failed == 0)
                #expect(decoded.problems.map(\.line) == [4, 5, 6, 7, 8] && json.errors.isEmpty)
            }
        }
    }

    @Test func `files that aren’t lists are refused with a reason`() async throws {
        try await ProcessFleet.with { fleet in
            let feed = try fleet.writeFeed(episodes: 1)
            let files: [(name: String, content: Data)] = [
                ("empty.opml", Data()), ("text.opml", Data(String(repeating: "a line\n", count: 100_000).utf8)),
                ("binary.opml", Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7919 >> 3) })),
                (
                    "long.opml",
                    Data(
                        ("<opml><body>"
                            + String(repeating: "<outline xmlUrl=\"https://a.example/\"/>\n", count: 100_000))
                            .utf8)
                ),
                ("none.opml", Data("<opml><body/></opml>".utf8)),
            ]
            for file in files { try file.content.write(to: URL(fileURLWithPath: fleet.root + "/" + file.name)) }
            let folder = fleet.root
            try await fleet.run([
                CommandStep("import \(folder)/empty.opml", 65, "lockstep: \(folder)/empty.opml is empty."),
                CommandStep("import \(folder)/text.opml", 65, "lockstep: \(folder)/text.opml isn’t an OPML list"),
                CommandStep("import \(folder)/binary.opml", 65, "lockstep: \(folder)/binary.opml isn’t an OPML list"),
                CommandStep(
                    "import \(folder)/long.opml", 65, "lockstep: \(folder)/long.opml has more than 20000 entries"),
                CommandStep("import \(folder)/none.opml", 0, "No change: \(folder)/none.opml lists no podcasts."),
                CommandStep("import \(folder)", 65, "lockstep: \(folder) is a folder. Name a file."),
                CommandStep("import \(folder)/absent.opml", 65, "lockstep: There is no file \(folder)/absent.opml."),
                CommandStep(
                    "import \(feed)", 65, "lockstep: \(feed) isn’t an OPML list of podcasts: it is the feed of"),
                CommandStep("import -", 65, "lockstep: Standard input is empty."),
                CommandStep("import", 64, "lockstep: "),
                CommandStep("podcasts", 0, "You have no subscriptions."),
            ])
        }
    }

    @Test func `an import shows its progress, and goes on after ^C`() async throws {
        try await HTTPTestServer.with { server in
            for number in 0..<20 { server.route("/\(number)", Self.feed("Show \(number)")) }
            server.route("/7", .stalled(then: ""))
            try await ProcessFleet.with { fleet in
                let outlines = (0..<20).map { "<outline text=\"\($0)\" xmlUrl=\"\(server.url("/\($0)"))\"/>" }
                try "<opml><body>\(outlines.joined())</body></opml>".write(
                    toFile: fleet.root + "/list.opml", atomically: true, encoding: .utf8)
                let script = "\"$LOCKSTEP\" import \"$LOCKSTEP_HOME/list.opml\"; echo \"status $?\"; read line"
                try await TerminalShell.with(fleet, script) { shell in
                    try await shell.until(sees: "19 of 20 feeds fetched")
                    #expect(
                        shell.screen.text.contains("[####") && shell.screen.text.contains("--]"), "\(shell.screen.text)"
                    )
                    shell.type("\u{3}")
                    try await shell.until(sees: "The import goes on without this command.")
                    try await shell.until(sees: "status 130")
                }
                #expect(try await podcasts(fleet).count == 20)
                server.route("/7", Self.feed("Show 7"))
                server.release("/7")
                try await FleetObserver.with(1, of: fleet) { observers in
                    try await observers[0].until("the job has ended") { view in
                        view.connection == .live && view.replica.ready[.feeds] != nil
                            && view.jobs.values.allSatisfy { $0.ended > 0 }
                    }
                    #expect(observers[0].view.jobs.values.map(\.done) == [20])
                }
            }
        }
    }
}
