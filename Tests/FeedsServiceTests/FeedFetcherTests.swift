import FeedParsing
import FoundationEssentials
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import FeedFetching
@testable import FeedsService

@Suite struct FeedFetcherTests {
    private let text = rss([("1", "1.mp3", "One")])

    private func fetching<Value: Sendable>(
        limits: FeedLimits = FeedLimits(), _ body: @Sendable (HTTPTestServer, FeedFetcher) async throws -> Value
    ) async throws -> Value {
        let fetcher = FeedFetcher(limits: limits)
        do {
            let value = try await HTTPTestServer.with { try await body($0, fetcher) }
            await fetcher.shutdown()
            return value
        } catch {
            await fetcher.shutdown()
            throw error
        }
    }

    private func order(_ url: String, etag: String = "", lastModified: String = "") throws -> FetchOrder {
        var order = FetchOrder(number: 1, request: FeedRequest(try #require(WebAddress(url))))
        order.request.etag = etag
        order.request.lastModified = lastModified
        return order
    }

    @Test func `a conditional request for an unchanged feed returns “unchanged”`() async throws {
        try await fetching { server, fetcher in
            server.route("/feed", .feed(text, etag: "\"v1\"", lastModified: "Wed, 02 Oct 2002 13:00:00 GMT"))
            let first = await fetcher.fetch(try order(server.url("/feed")))
            guard case .feed(let feed) = first else { throw Unexpected("\(first)") }
            #expect(feed.etag == "\"v1\"" && feed.lastModified == "Wed, 02 Oct 2002 13:00:00 GMT")
            #expect(feed.changed.map(\.episode.enclosureURL) == [server.url("/1.mp3")])
            let second = await fetcher.fetch(
                try order(server.url("/feed"), etag: feed.etag, lastModified: feed.lastModified))
            guard case .unchanged(movedTo: nil) = second else { throw Unexpected("\(second)") }
            #expect(server.requests(for: "/feed").last?.header("If-None-Match") == "\"v1\"")
        }
    }

    @Test func `only permanent redirects change a feed’s address`() async throws {
        try await fetching { server, fetcher in
            server.route("/old", .redirect(to: "/new", status: 301))
            server.route("/new", .redirect(to: "/today", status: 302))
            server.route("/today", .redirect(to: "/cdn", status: 301))
            server.route("/cdn", .feed(text))
            let outcome = await fetcher.fetch(try order(server.url("/old")))
            guard case .feed(let feed) = outcome else { throw Unexpected("\(outcome)") }
            #expect(feed.address.text == server.url("/new"))
        }
    }

    @Test(arguments: [
        ("https://h/feed", "http://h/new", true), ("https://h/feed", "https://h/new", false),
        ("http://h/feed", "https://h/new", false), ("http://h/feed", "http://h/new", false),
    ])
    func `a feed read over TLS never moves to an address without it`(old: String, new: String, refused: Bool) throws {
        let (old, new) = (try #require(WebAddress(old)), try #require(WebAddress(new)))
        #expect(FeedLoader.isDowngrade(from: old, to: new) == refused)
    }

    @Test func `a feed that names a new address is fetched from that address`() async throws {
        try await fetching { server, fetcher in
            let moved = text.replacing(
                "<title>Waves", with: "<itunes:new-feed-url>\(server.url("/new"))</itunes:new-feed-url><title>Waves")
            server.route("/old", .feed(moved))
            server.route("/new", .feed(rss([("1", "1.mp3", "One")], title: "New")))
            let outcome = await fetcher.fetch(try order(server.url("/old")))
            guard case .feed(let feed) = outcome else { throw Unexpected("\(outcome)") }
            #expect(feed.address.text == server.url("/new") && feed.channel.title == "New")
            server.route("/new", .status(404))
            let back = await fetcher.fetch(try order(server.url("/old")))
            guard case .feed(let feed) = back else { throw Unexpected("\(back)") }
            #expect(feed.address.text == server.url("/old"))
        }
    }

    @Test(
        arguments: [
            ("a missing feed", .status(404), "notFound", "404"),
            ("a feed that is gone", .status(410), "notFound", "no longer has"),
            ("a closed feed", .status(403), "fetchFailed", "403"),
            ("a server in trouble", .status(503), "fetchFailed", "503"),
            ("a circle", .redirect(to: "/feed"), "fetchFailed", "loop"),
            (
                "a redirect to a file", .redirect(to: "file:///etc/passwd"), "fetchFailed",
                "redirects to an address that can’t be used"
            ),
            ("a web page", .feed("<!DOCTYPE html><html></html>"), "notAFeed", "web page"),
            ("nothing", .feed(""), "notAFeed", "empty"),
            (
                "50 MB of garbage",
                HTTPTestResponse(body: .repeated(Array("garbage ".utf8), total: 50_000_000), announcesLength: false),
                "notAFeed", "not XML"
            ),
            (
                "50 MB, announced", HTTPTestResponse(body: .repeated(Array("<rss> ".utf8), total: 50_000_000)),
                "tooLarge", "32 MiB"
            ),
            (
                "a body cut short",
                HTTPTestResponse.feed("<rss><channel><title>x</title></channel></rss>").with(.close(afterBytes: 20)),
                "fetchFailed", "closed the connection"
            ),
            (
                "a connection closed at once", HTTPTestResponse().with(.close(afterBytes: -1)), "fetchFailed",
                "closed the connection"
            ),
        ] as [(String, HTTPTestResponse, String, String)])
    func `a failed fetch reports its reason`(_ what: String, response: HTTPTestResponse, code: String, says: String)
        async throws
    {
        try await fetching { server, fetcher in
            server.route("/feed", response)
            let outcome = await fetcher.fetch(try order(server.url("/feed")))
            guard case .failed(let failure, _) = outcome else { throw Unexpected("\(outcome)") }
            #expect(failure.code == code, "\(what)")
            #expect(failure.message.contains(says), "\(what): \(failure.message)")
        }
    }

    @Test(arguments: [
        (401, false), (403, false), (404, false), (410, false), (408, true), (429, true), (500, true), (503, true),
    ])
    func `only transient failures are retried`(status: Int, retry: Bool) async throws {
        try await fetching { server, fetcher in
            server.route("/feed", .status(status))
            let outcome = await fetcher.fetch(try order(server.url("/feed")))
            guard case .failed(let failure, _) = outcome else { throw Unexpected("\(outcome)") }
            #expect(failure.retry == retry, "\(failure.message)")
        }
    }

    @Test(arguments: ["http://]/m/x", "http://[::", "http://%00/", "file:///etc/passwd"])
    func `a malformed new address of a feed is ignored`(address: String) async throws {
        try await fetching { server, fetcher in
            let moved = text.replacing(
                "<title>Waves", with: "<itunes:new-feed-url>\(address)</itunes:new-feed-url><title>Waves")
            server.route("/old", .feed(moved))
            let outcome = await fetcher.fetch(try order(server.url("/old")))
            guard case .feed(let feed) = outcome else { throw Unexpected("\(outcome)") }
            #expect(feed.address.text == server.url("/old"))
        }
    }

    @Test func `a fetch stops when a feed is too long`() async throws {
        var limits = FeedLimits()
        limits.bytes = 1 << 20
        try await fetching(limits: limits) { server, fetcher in
            let body = HTTPTestResponse.Body.repeated(Array("<rss><channel>".utf8), total: 20_000_000)
            server.route("/feed", HTTPTestResponse(body: body, announcesLength: false))
            let outcome = await fetcher.fetch(try order(server.url("/feed")))
            guard case .failed(let failure, _) = outcome else { throw Unexpected("\(outcome)") }
            #expect(failure.code == "tooLarge")
        }
    }

    @Test func `the delay that a server requests is reported`() async throws {
        try await fetching { server, fetcher in
            server.route("/feed", .status(429, headers: [("Retry-After", "120")]))
            let outcome = await fetcher.fetch(try order(server.url("/feed")))
            guard case .failed(_, let wait) = outcome else { throw Unexpected("\(outcome)") }
            #expect(wait == .seconds(120))
        }
    }

    @Test(.timeLimit(.minutes(2))) func `a stalled fetch is cancelled and others continue`() async throws {
        try await fetching { server, fetcher in
            server.route("/stall", .feed(text).with(.stall(afterBytes: 10)))
            server.route("/feed", .feed(text))
            let stalled = try order(server.url("/stall"))
            fetcher.start(1, { _ in }) { .fetched(1, await fetcher.fetch(stalled)) }
            await server.received(1, at: "/stall")
            let outcome = await fetcher.fetch(try order(server.url("/feed")))
            guard case .feed = outcome else { throw Unexpected("\(outcome)") }
            fetcher.cancel(1)
        }
    }

    @Test func `a local feed with relative audio addresses is read`() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.file("feed one.xml", text.utf8)
        try await fetching { _, fetcher in
            let address = try #require(WebAddress(filePath: path))
            let outcome = await fetcher.fetch(FetchOrder(number: 1, request: FeedRequest(address)))
            guard case .feed(let feed) = outcome else { throw Unexpected("\(outcome)") }
            let audio = try #require(feed.changed.first.flatMap { WebAddress($0.episode.enclosureURL) })
            #expect(audio.filePath == folder.path + "/1.mp3")
            var again = FetchOrder(number: 2, request: FeedRequest(address), podcast: feed.podcast)
            again.request.etag = feed.etag
            guard case .unchanged = await fetcher.fetch(again) else { throw Unexpected("read again") }
        }
    }

    @Test(arguments: [
        ("file:///nowhere/feed.xml", "fileMissing"), ("file:///dev/null", "notAFeed"), ("file:///tmp", "notAFeed"),
    ])
    func `a file that isn’t a feed is refused`(url: String, code: String) async throws {
        try await fetching { _, fetcher in
            let outcome = await fetcher.fetch(try order(url))
            guard case .failed(let failure, _) = outcome else { throw Unexpected("\(outcome)") }
            #expect(failure.code == code)
        }
    }

    @Test func `an episode of a web feed whose audio URL is a local file is skipped with a warning`() async throws {
        try await fetching { server, fetcher in
            server.route("/feed", .feed(rss([("1", "file:///etc/passwd", "One"), ("2", "2.mp3", "Two")])))
            let outcome = await fetcher.fetch(try order(server.url("/feed")))
            guard case .feed(let feed) = outcome else { throw Unexpected("\(outcome)") }
            #expect(feed.changed.map(\.episode.title) == ["Two"])
            #expect(feed.report.warnings.contains { $0.code == "badAudioURL" })
        }
    }
}

struct Unexpected: Error, CustomStringConvertible {
    var description: String
    init(_ text: String) { description = String(text.prefix(500)) }
}
