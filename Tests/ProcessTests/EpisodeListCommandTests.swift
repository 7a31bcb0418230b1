import Foundation
import TestSupport
import Testing

/// Tests the commands that list and select episodes by rules, and the inbox.
@Suite(.serialized, .timeLimit(.minutes(3))) struct EpisodeListCommandTests {
    /// A feed whose items have these titles and lengths in minutes, the first one the newest.
    private static func feed(_ items: [(title: String, minutes: Int)], _ server: HTTPTestServer) -> HTTPTestResponse {
        let items = items.enumerated().map { index, item in
            let day = String(format: "%02d", 20 - index)
            return """
                <item><title>\(item.title)</title><guid>\(item.title)</guid>
                <pubDate>Tue, \(day) Jan 2026 08:00:00 GMT</pubDate>
                <itunes:duration>\(item.minutes * 60)</itunes:duration>
                <enclosure url="\(server.url("/\(item.title).wav"))" type="audio/wav"/></item>
                """
        }
        return .feed(
            """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"
            xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel><title>Show</title>
            \(items.joined())</channel></rss>
            """)
    }

    private static let items = [(title: "Delta", minutes: 40), ("Gamma", 10), ("Beta", 20), ("Alpha", 90)]

    @Test func `rules, orders and a time select episodes for every command`() async throws {
        try await HTTPTestServer.with { server in
            server.route("/feed.xml", Self.feed(Self.items, server))
            try await ProcessFleet.with { fleet in
                try await fleet.succeed("subscribe", server.url("/feed.xml"))
                func titles(_ arguments: String...) async throws -> [String] {
                    let json = try await fleet.succeed(["episodes", "--json"] + arguments)
                    let rows = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [[String: Any]]
                    return (rows ?? []).compactMap { $0["title"] as? String }
                }
                #expect(try await titles() == ["Delta", "Gamma", "Beta", "Alpha"])
                #expect(try await titles("--sort", "shortest") == ["Gamma", "Beta", "Delta", "Alpha"])
                #expect(try await titles("--sort", "title", "--limit", "2") == ["Alpha", "Beta"])
                #expect(try await titles("--where", "length < 30m and not title ~ gam") == ["Beta"])
                let list = try await fleet.succeed("episodes", "--limit", "2")
                #expect(list.hasSuffix("2 of 4 episodes, 2 h 40 min; `--all` shows all.\n"), "\(list)")
                try await fleet.run([
                    CommandStep("mark played --where length_>_1h", 0, "Marked “Alpha” as played."),
                    CommandStep("mark played --where length_>_9h", 0, "No change: no episode matches."),
                    CommandStep("queue add --where unplayed --sort shortest --fit 35m", 0, "Added “Gamma” and “Beta”."),
                    CommandStep("queue add --where new", 0, "No change: no episode matches."),
                    CommandStep("episodes --where queued_and_played", 0, "No episode matches the rule."),
                    CommandStep(
                        "episodes --where unplaid", 64, "lockstep: The rule has an error at column 1: “unplaid”"),
                    CommandStep("episodes --sort loudest", 64, "lockstep: "),
                    CommandStep(
                        "mark played", 69,
                        "lockstep: Nothing is loaded. Name an episode: `lockstep mark played EPISODE`."),
                ])
                let left = try await fleet.succeed("episodes")
                #expect(left.hasSuffix("4 episodes, 2 h 40 min, 1 h 10 min left.\n"), "\(left)")
                #expect(try await titles("--where", "queued", "--sort", "oldest") == ["Beta", "Gamma"])
            }
        }
    }

    @Test func `the inbox has what refreshes find until it is cleared`() async throws {
        try await HTTPTestServer.with { server in
            server.route("/feed.xml", Self.feed([Self.items[3]], server))
            try await ProcessFleet.with { fleet in
                try await fleet.succeed("subscribe", server.url("/feed.xml"))
                try await fleet.run([CommandStep("inbox", 0, "The inbox is empty.")])
                server.route("/feed.xml", Self.feed(Self.items, server))
                try await fleet.succeed("refresh")
                let list = try await fleet.succeed("inbox")
                #expect(list.hasSuffix("3 episodes, 1 h 10 min.\n"), "\(list)")
                try await fleet.run([
                    CommandStep("inbox clear Alpha", 0, "No change: “Alpha” isn’t in the inbox."),
                    CommandStep("inbox clear Gamma", 0, "Removed “Gamma” from the inbox."),
                    CommandStep("queue add Beta", 0, "Added “Beta”."),
                    CommandStep("inbox --json", 0, "[{"),
                    CommandStep("inbox clear --where length_>_2h", 0, "No change: no new episode matches."),
                    CommandStep("inbox clear", 0, "Removed “Delta” from the inbox."),
                    CommandStep("inbox clear", 0, "No change: the inbox is empty."),
                ])
                try await fleet.succeed("restart", "persistence")
                // An entry that leaves the queue isn’t new again: the inbox was cleared.
                try await fleet.succeed("queue", "remove", "1")
                try await fleet.run([CommandStep("inbox", 0, "The inbox is empty.")])
            }
        }
    }

    @Test func `a search finds podcasts and episodes and shows where the words occur`() async throws {
        try await HTTPTestServer.with { server in
            let items = [("Swifts in town", "Birds of the air."), ("Gardens", "No bird but a <b>swift</b>, once.")]
            let feed = items.enumerated().map { index, item in
                """
                <item><title>\(item.0)</title><guid>\(index)</guid><description><![CDATA[\(item.1)]]></description>
                <pubDate>Tue, 1\(index) Jan 2026 08:00:00 GMT</pubDate>
                <enclosure url="\(server.url("/\(index).wav"))" type="audio/wav"/></item>
                """
            }
            server.route(
                "/feed.xml",
                .feed("<rss version=\"2.0\"><channel><title>Nätur Talk</title>\(feed.joined())</channel></rss>"))
            try await ProcessFleet.with { fleet in
                try await fleet.succeed("subscribe", server.url("/feed.xml"))
                let list = try await fleet.succeed("search", "swift")
                let lines = list.split(separator: "\n").map(String.init)
                #expect(lines.count == 5 && lines[1].contains("Swifts in town"), "\(list)")
                #expect(lines[3] == "    No bird but a swift, once." && lines[4] == "2 episodes.", "\(list)")
                let json = try await fleet.succeed("search", "--json", "swift", "--sort", "newest", "--limit", "1")
                #expect(json.contains(#""snippet":"No bird but a swift, once.","marks":[[14,5]]"#), "\(json)")
                #expect(json.hasPrefix(#"{"podcasts":[],"episodes":[{"id":"e"#), "\(json)")
                #expect(json.hasSuffix("],\"total\":2}\n"), "\(json)")
                try await fleet.run([
                    CommandStep("search natur", 0, "Podcasts:\n  Nätur Talk  2 episodes  p"),
                    CommandStep("search natur --in notes", 0, "Nothing matches “natur”."),
                    CommandStep("search \"of_the_air\"", 0, "%\tepisode"),
                    CommandStep("search swift nothing", 0, "Nothing matches “swift nothing”."),
                    CommandStep("search", 64, "lockstep: "),
                    CommandStep("search !!!", 64, "lockstep: The search has no word."),
                    CommandStep("search swi* ai*", 64, "lockstep: “ai*” is too short"),
                    CommandStep(
                        "search \(String(repeating: "w", count: 501))", 64, "lockstep: The text of the search has"),
                    CommandStep(
                        "search \(Array(repeating: "word", count: 90).joined(separator: " "))", 64,
                        "lockstep: The search has 90 words"),
                    CommandStep("search swift --limit 201", 64, "lockstep: --limit must be"),
                    CommandStep("search swift --in titels", 64, "lockstep: "),
                ])
            }
        }
    }
}
