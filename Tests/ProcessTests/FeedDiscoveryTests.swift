import Foundation
import TestSupport
import Testing

/// Tests `subscribe` with web pages, and `podcast address`, with real processes.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct FeedDiscoveryTests {
    private struct Podcast: Decodable {
        var id: String
        var title: String
        var url: String
        var episodeCount: Int
    }

    private static func feed(_ title: String, _ parts: ClosedRange<Int>) -> HTTPTestResponse {
        let items = parts.map { number in
            """
            <item><title>Part \(number)</title><guid>\(number)</guid>
            <enclosure url="https://a.example/\(number).mp3" type="audio/mpeg"/></item>
            """
        }
        return .feed("<rss version=\"2.0\"><channel><title>\(title)</title>\(items.joined())</channel></rss>")
    }

    private static func page(_ links: [(path: String, title: String)]) -> HTTPTestResponse {
        let links = links.map { link in
            "<link rel=\"alternate\" type=\"application/rss+xml\" title=\"\(link.title)\" href=\"\(link.path)\">"
        }
        return HTTPTestResponse(
            headers: [("Content-Type", "text/html")],
            body: .bytes(Array("<!DOCTYPE html><html><head>\(links.joined())</head><body></body></html>".utf8)))
    }

    @Test func `the only feed of a web page is subscribed to, and several are offered as commands`() async throws {
        try await HTTPTestServer.with { server in
            server.route("/a.xml", Self.feed("Show A", 1...2))
            server.route("/b.xml", Self.feed("Show B", 1...3))
            server.route("/one", Self.page([("a.xml", "A")]))
            server.route("/two", Self.page([("a.xml", "A"), ("/b.xml", "B's \u{1b}[31m")]))
            server.route("/none", Self.page([]))
            server.route("/page", Self.page([("/one", "Another page")]))
            try await ProcessFleet.with { fleet in
                let one = try await fleet.lockstep(["subscribe", server.url("/one")])
                #expect(one.status == 0 && one.output == "Subscribed to Show A: 2 episodes.\n", "\(one)")
                #expect(
                    one.errors
                        == "lockstep: \(server.url("/one")) is a web page. Its feed is \(server.url("/a.xml")).\n")
                let two = try await fleet.lockstep(["subscribe", server.url("/two")])
                #expect(two.status == 65, "\(two)")
                let lines = two.errors.split(separator: "\n").map(String.init)
                #expect(
                    lines == [
                        "lockstep: \(server.url("/two")): This is a web page, not a podcast feed. It links to 2 feeds.",
                        "  lockstep subscribe \(server.url("/a.xml"))   # A",
                        "  lockstep subscribe \(server.url("/b.xml"))   # B's [31m",
                    ])
                let json = try await fleet.lockstep(["subscribe", server.url("/two"), "--json"])
                #expect(
                    json.status == 65 && json.errors.contains("\"candidates\":[{\"id\":\"\(server.url("/a.xml"))\""))
                let none = try await fleet.lockstep(["subscribe", server.url("/none")])
                #expect(none.status == 65 && none.errors.contains("This is a web page, not a podcast feed."))
                let nested = try await fleet.lockstep(["subscribe", server.url("/page")])
                #expect(nested.status == 65 && nested.errors.contains("It links to the feed"), "\(nested)")
                let checked = try await fleet.lockstep(["feed", "check", server.url("/two")])
                #expect(checked.status == 65 && checked.errors.contains("links to 2 feeds"), "\(checked)")
                #expect(try await fleet.decode([Podcast].self, from: "podcasts").map(\.title) == ["Show A"])
            }
        }
    }

    @Test func `a podcast is read from another address, and keeps its episodes`() async throws {
        try await HTTPTestServer.with { server in
            server.route("/a.xml", Self.feed("Show A", 1...2))
            server.route("/moved.xml", Self.feed("Show A", 1...3))
            server.route("/other.xml", Self.feed("Other", 1...1))
            server.route("/page", Self.page([("a.xml", "A"), ("moved.xml", "B")]))
            try await ProcessFleet.with { fleet in
                try await fleet.succeed("subscribe", server.url("/a.xml"), server.url("/other.xml"))
                let before = try await fleet.decode([Podcast].self, from: "podcasts")
                let id = try #require(before.first { $0.title == "Show A" }?.id)
                try await fleet.succeed("mark", "played", "Show A: Part 1")
                func address(_ path: String) async throws -> ProcessFleet.Outcome {
                    try await fleet.lockstep(["podcast", "address", "Show A", server.url(path)])
                }
                let changed = try await address("/moved.xml")
                #expect(
                    changed.status == 0 && changed.output == "“Show A” is now read from \(server.url("/moved.xml")).\n",
                    "\(changed)")
                let podcasts = try await fleet.decode([Podcast].self, from: "podcasts")
                let podcast = try #require(podcasts.first { $0.id == id })
                #expect(podcast.url == server.url("/moved.xml") && podcast.episodeCount == 3)
                #expect(try await fleet.succeed("episodes", "--where", "played").contains("Part 1"))
                #expect(try await fleet.succeed("inbox").contains("Part") == false)
                let again = try await address("/moved.xml")
                #expect(again.output == "No change: “Show A” is already read from there.\n")
                let old = try await fleet.lockstep(["subscribe", server.url("/a.xml")])
                #expect(old.output.hasPrefix("No change: you are already subscribed to Show A."), "\(old)")
                let other = try await address("/other.xml")
                #expect(other.status == 65 && other.errors.hasPrefix("lockstep: “Other” (p"), "\(other)")
                let page = try await address("/page")
                #expect(
                    page.status == 65 && page.errors.contains("wasn’t changed") && page.errors.contains("/a.xml"),
                    "\(page)")
                let absent = try await address("/absent")
                #expect(absent.status == 65 && absent.errors.contains("404"), "\(absent)")
                try await fleet.run([
                    CommandStep("podcast address no_such https://a.example/", 65, "lockstep: No podcast"),
                    CommandStep("podcast address Other ftp://a.example/", 64, "lockstep: “ftp://a.example/”"),
                ])
                let after = try await fleet.decode([Podcast].self, from: "podcasts")
                #expect(after.first { $0.id == id }?.url == server.url("/moved.xml"))
            }
        }
    }
}
