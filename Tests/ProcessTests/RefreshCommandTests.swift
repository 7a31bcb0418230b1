import Foundation
import TestSupport
import Testing

/// Tests `refresh` and `subscribe` of many feeds with real processes.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct RefreshCommandTests {
    private struct Result: Decodable {
        struct Episode: Decodable {
            var title: String
        }
        var result: String
        var newEpisodes: Int
        var episodes: [Episode]
    }

    private static func feed(_ title: String, _ parts: Int) -> HTTPTestResponse {
        let items = (0..<parts).map { number in
            """
            <item><title>Part \(number)</title><guid>\(number)</guid>
            <enclosure url="https://a.example/\(number).mp3" type="audio/mpeg"/></item>
            """
        }
        return .feed("<rss version=\"2.0\"><channel><title>\(title)</title>\(items.joined())</channel></rss>")
    }

    @Test func `a refresh prints the titles of new episodes by podcast, and one line about the rest`() async throws {
        try await HTTPTestServer.with { server in
            for name in ["b", "A", "c"] { server.route("/\(name)", Self.feed("\(name) show", 2)) }
            try await ProcessFleet.with { fleet in
                #expect(try await fleet.succeed("refresh") == "No change: there are no podcasts.\n")
                try await fleet.succeed("subscribe", server.url("/b"), server.url("/A"), server.url("/c"))
                #expect(try await fleet.succeed("refresh") == "Nothing new in 3 podcasts.\n")
                server.route("/b", Self.feed("b show", 3))
                server.route("/A", Self.feed("A show", 24))
                server.route("/c", .status(404))
                let outcome = try await fleet.lockstep(["refresh"])
                #expect(outcome.status == 75)
                let lines = outcome.output.split(separator: "\n").map(String.init)
                #expect(lines.count == 23, "\(outcome.output)")
                #expect(lines.prefix(20).allSatisfy { $0.hasPrefix("A show: Part ") })
                #expect(
                    Array(lines.suffix(3)) == [
                        "A show: … and 2 more", "b show: Part 2", "23 new episodes in 2 of 3 podcasts; 1 failed.",
                    ])
                #expect(outcome.errors.hasPrefix("lockstep: c show: "), "\(outcome.errors)")
                #expect(try await fleet.succeed("refresh", "b show") == "Nothing new in b show.\n")
                server.route("/b", Self.feed("b show", 5))
                server.route("/c", Self.feed("c show", 2))
                let results = try await fleet.decode([Result].self, from: "refresh")
                #expect(results.map(\.newEpisodes).reduce(0, +) == 2 && results.count == 3)
                #expect(Set(results.flatMap(\.episodes).map(\.title)) == ["Part 3", "Part 4"])
                #expect(try await fleet.succeed("refresh", "--quiet").isEmpty)
            }
        }
    }

    @Test func `many feeds are added with a bar, and failing ones are not kept`() async throws {
        try await HTTPTestServer.with { server in
            for number in 0..<12 { server.route("/\(number)", Self.feed("Show \(number)", 1)) }
            server.route("/3", .status(404))
            server.route("/5", .stalled(then: ""))
            try await ProcessFleet.with { fleet in
                let urls = (0..<12).map { server.url("/\($0)") }.joined(separator: " ")
                let script = "\"$LOCKSTEP\" subscribe \(urls) ftp://a.example/; echo \"status $?\"; read line"
                try await TerminalShell.with(fleet, script, rows: 40) { shell in
                    try await shell.until(sees: "12 of 13 feeds fetched, 2 failed")
                    server.release("/5")
                    try await shell.until(sees: "status 75")
                    let text = shell.screen.text
                    #expect(text.contains("Subscribed to 10 of 13 podcasts; 3 failed."), "\(text)")
                    #expect(text.contains("Subscribed to Show 7: 1 episode.") && text.contains("404"), "\(text)")
                    #expect(!text.contains("feeds fetched"), "\(text)")
                }
                let podcasts = try await fleet.succeed("podcasts")
                #expect(podcasts.split(separator: "\n").count == 11, "\(podcasts)")
            }
        }
    }
}
