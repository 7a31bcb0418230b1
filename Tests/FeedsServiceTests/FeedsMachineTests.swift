import BusKit
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import FeedsService

private let two = rss([("1", "1.mp3", "One"), ("2", "2.mp3", "Two")])

@Suite struct FeedsMachineTests {
    @Test func `a subscription is acknowledged when the feed is stored`() throws {
        var driver = MachineDriver()
        let request = driver.subscribe("https://waves.example/feed.xml")
        #expect(driver.replies.isEmpty)
        driver.holdsCommits = true
        try driver.deliver(two, etag: "\"x\"")
        #expect(driver.replies.isEmpty)
        driver.holdsCommits = false
        for transaction in driver.held { driver.commit(transaction) }
        let results = driver.results(request)
        #expect(results.map(\.kind) == [.added])
        #expect(results.first?.newEpisodes == 2)
        #expect(results.first?.podcast.title == "Waves")
        #expect(
            Set(driver.episodes.values.map(\.enclosureURL)) == [
                "https://waves.example/1.mp3", "https://waves.example/2.mp3",
            ])
        let podcast = try #require(driver.podcasts.values.first)
        #expect(podcast.subscribed && podcast.episodeCount == 2 && podcast.etag == "\"x\"" && podcast.failures == 0)
        #expect(driver.published.map(\.kind) == [.put, .event])
        let event = try WireEpisodesChanged(wireBytes: driver.published[1].payload)
        #expect(event.added.count == 2 && event.podcast == podcast.id)
    }

    @Test func `each feed of a command has its own result in order`() throws {
        var driver = MachineDriver()
        let request = driver.subscribe(
            "https://a.example/", "ftp://b.example/", "https://c.example/", "http://A.example")
        #expect(driver.orders.map(\.address.text) == ["https://a.example/", "https://c.example/"])
        driver.fail(Failure(.notAFeed, "This is a web page."))
        #expect(driver.replies.isEmpty)
        try driver.deliver(two, to: 0)
        let results = driver.results(request)
        #expect(results.map(\.kind) == [.added, .failed, .failed, .alreadyThere])
        #expect(results.map(\.failure.code) == ["", "badURL", "notAFeed", ""])
        #expect(driver.podcasts.count == 1)
    }

    @Test func `a failing feed is stored only if asked`() throws {
        var driver = MachineDriver()
        let request = driver.subscribe("https://a.example/", keep: true)
        driver.fail()
        #expect(driver.results(request).map(\.kept) == [true])
        #expect(driver.results(request).map(\.kind) == [.failed])
        let podcast = try #require(driver.podcasts.values.first)
        #expect(podcast.subscribed && podcast.errorCode == "fetchFailed" && podcast.failures == 1)
        driver.advance(.seconds(700))
        #expect(driver.orders.count == 2)
        try driver.deliver(two)
        #expect(driver.podcasts.values.first?.errorCode == "")
        #expect(driver.podcasts.values.first?.title == "Waves")
    }

    @Test func `subscribing twice changes nothing`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://a.example/feed")
        try driver.deliver(two)
        let count = driver.transactions.count
        let again = driver.subscribe("http://A.example/feed/")
        #expect(driver.results(again).map(\.kind) == [.alreadyThere])
        #expect(driver.transactions.count == count && driver.orders.count == 1)
    }

    @Test func `a refresh stores only what changed`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://a.example/feed")
        try driver.deliver(two)
        let before = driver.episodes
        let id = try #require(driver.podcasts.keys.first)
        let request = driver.send { $0.refresh.podcasts = [id] }
        let puts = driver.transactions.count
        try driver.deliver(rss([("3", "3.mp3", "Three"), ("1", "1.mp3", "One again")]))
        #expect(driver.results(request).map(\.kind) == [.updated])
        #expect(driver.results(request).map(\.url) == ["https://a.example/feed"], "not the id that was asked for")
        #expect(driver.results(request).map(\.newEpisodes) == [1])
        #expect(driver.episodes.count == 3, "what vanished from the feed is kept")
        let changed = driver.transactions[puts...].flatMap(\.changes).filter {
            if case .putEpisode = $0.change { true } else { false }
        }
        #expect(changed.count == 2)
        #expect(Set(before.keys).isSubset(of: driver.episodes.keys))
        let nothing = driver.send { $0.refresh.podcasts = [] }
        try driver.deliver(rss([("3", "3.mp3", "Three"), ("1", "1.mp3", "One again")]))
        #expect(driver.results(nothing).map(\.kind) == [.unchanged])
    }

    @Test func `an episode keeps its ID when its GUID changes`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://a.example/feed")
        try driver.deliver(two)
        let ids = Set(driver.episodes.keys)
        driver.send { $0.refresh.podcasts = [] }
        try driver.deliver(rss([("new-1", "1.mp3", "One"), ("new-2", "2.mp3", "Two"), ("3", "3.mp3", "Three")]))
        #expect(driver.episodes.count == 3)
        #expect(ids.isSubset(of: driver.episodes.keys))
        driver.send { $0.refresh.podcasts = [] }
        try driver.deliver(
            rss([("new-1", "moved-1.mp3", "One"), ("new-2", "moved-2.mp3", "Two"), ("3", "3.mp3", "Three")]))
        #expect(driver.episodes.count == 3, "a chain of changes still finds it")
    }

    @Test func `another episode never takes an ID that is still used`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://a.example/feed")
        try driver.deliver(rss([("1", "soon.mp3", "One")]))
        driver.send { $0.refresh.podcasts = [] }
        try driver.deliver(rss([("2", "soon.mp3", "Two"), ("1", "soon.mp3", "One")]))
        #expect(Set(driver.episodes.values.map(\.title)) == ["One", "Two"])
    }

    @Test func `a shared GUID makes two episodes and keeps the first`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://a.example/feed")
        try driver.deliver(rss([("g", "1.mp3", "One")]))
        let id = try #require(driver.episodes.keys.first)
        driver.send { $0.refresh.podcasts = [] }
        try driver.deliver(rss([("g", "2.mp3", "Two"), ("g", "1.mp3", "One")]))
        #expect(driver.episodes.count == 2)
        #expect(driver.episodes[id]?.title == "One")
    }

    @Test func `a permanent redirect moves the podcast and keeps its identity`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://old.example/feed")
        try driver.deliver(rss([("", "https://cdn.example/1.mp3", "One")]))
        let id = try #require(driver.podcasts.keys.first)
        let episode = driver.episodes.keys.first
        driver.send { $0.refresh.podcasts = [] }
        try driver.deliver(rss([("", "https://cdn.example/1.mp3", "One")]), at: "https://new.example/feed")
        #expect(driver.podcasts[id]?.url == "https://new.example/feed")
        #expect(driver.podcasts[id]?.previousUrls == ["https://old.example/feed"])
        #expect(driver.episodes.keys.first == episode && driver.episodes.count == 1)
        for url in ["https://old.example/feed", "https://new.example/feed"] {
            let again = driver.subscribe(url)
            #expect(driver.results(again).map(\.kind) == [.alreadyThere])
        }
    }

    @Test func `an address that redirects to a known podcast is already subscribed to`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://a.example/feed")
        try driver.deliver(two)
        let request = driver.subscribe("https://short.example/x")
        try driver.deliver(two, at: "https://a.example/feed")
        #expect(driver.results(request).map(\.kind) == [.alreadyThere])
        #expect(driver.podcasts.count == 1)
    }

    @Test func `unsubscribing keeps episodes and forgetting removes all`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://a.example/feed")
        try driver.deliver(two)
        let id = try #require(driver.podcasts.keys.first)
        let leave = driver.send { $0.unsubscribe.podcasts = [id] }
        #expect(driver.results(leave).map(\.kind) == [.removed])
        #expect(driver.episodes.count == 2 && driver.podcasts[id]?.subscribed == false)
        driver.advance(.seconds(100_000))
        #expect(driver.orders.count == 1)
        let refused = driver.send { $0.refresh.podcasts = [id] }
        #expect(driver.results(refused).map(\.failure.code) == ["notFound"])
        #expect(driver.results(refused).map(\.podcast.id) == [id])
        let back = driver.subscribe("https://a.example/feed")
        try driver.deliver(two)
        #expect(driver.results(back).map(\.kind) == [.added])
        #expect(driver.episodes.count == 2)
        driver.send {
            $0.unsubscribe.podcasts = [id]
            $0.unsubscribe.forget = true
        }
        #expect(driver.podcasts.isEmpty && driver.episodes.isEmpty && driver.records.isEmpty && driver.aliases.isEmpty)
        #expect(driver.published.contains { $0.kind == .delete })
        #expect(driver.machine.retained(now: driver.now).isEmpty)
    }

    private func largeFeed(episodes: Int) -> String {
        let notes = String(repeating: "x", count: 100_000)
        return "<rss><channel><title>Big</title>"
            + (0..<episodes).map {
                "<item><guid>\($0)</guid><title>\($0)</title><description>\(notes)</description><enclosure url=\"\($0).mp3\"/></item>"
            }.joined()
            + "</channel></rss>"
    }

    @Test func `a large feed is stored in one transaction, so that a full disk leaves nothing of it`() throws {
        var driver = MachineDriver()
        driver.holdsCommits = true
        let refused = driver.subscribe("https://a.example/feed")
        try driver.deliver(largeFeed(episodes: 50), etag: "e")
        #expect(driver.held.count == 1)
        for transaction in driver.held { driver.refuse(transaction, Failure(.diskFull, "The disk is full.")) }
        driver.held = []
        driver.holdsCommits = false
        #expect(driver.results(refused).map(\.failure.code) == ["diskFull"])
        #expect(driver.machine.retained(now: driver.now).isEmpty && driver.published.isEmpty)
        let stored = driver.subscribe("https://a.example/feed")
        try driver.deliver(largeFeed(episodes: 50), etag: "e")
        #expect(driver.results(stored).map(\.newEpisodes) == [50])
        #expect(driver.episodes.count == 50)
    }

    @Test func `a stored subscription isn’t reported as failed when its reply can’t be stored`() throws {
        var driver = MachineDriver()
        driver.holdsCommits = true
        let request = driver.subscribe("https://a.example/feed")
        try driver.deliver(two)
        let feed = try #require(driver.held.first)
        driver.held = []
        driver.commit(feed)
        let answer = try #require(driver.held.first)
        driver.refuse(answer, Failure(.diskFull, "The disk is full: nothing was saved."))
        #expect(driver.results(request).map(\.kind) == [.added])
    }

    @Test func `events name at most 10,000 episodes each`() throws {
        let ids = (0..<10_001).map(String.init)
        let podcast = try #require(PodcastID("p1"))
        let events = try WireEpisodesChanged.events(of: podcast, ids.count) { $0.removed = Array(ids[$1]) }
            .map { try WireEpisodesChanged(wireBytes: $0.payload).removed }
        #expect(events.map(\.count) == [10_000, 1])
        #expect(events.flatMap { $0 } == ids)
    }

    @Test func `a refused commit leaves nothing behind and reports the failure`() throws {
        var driver = MachineDriver()
        driver.holdsCommits = true
        let request = driver.subscribe("https://a.example/feed")
        try driver.deliver(two)
        for transaction in driver.held { driver.refuse(transaction, Failure(.diskFull, "The disk is full.")) }
        driver.held = []
        driver.holdsCommits = false
        #expect(driver.results(request).map(\.failure.code) == ["diskFull"])
        #expect(driver.machine.retained(now: driver.now).isEmpty)
    }

    @Test func `a restarted service publishes its stored podcasts`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://a.example/feed")
        try driver.deliver(two, etag: "e")
        var next = driver.restarted()
        #expect(next.machine.retained(now: next.now) == driver.machine.retained(now: driver.now))
        next.advance(.seconds(7_200))
        #expect(next.orders.map(\.etag) == ["e"])
        next.handle(.input(.fetched(next.orders[0].number, .unchanged(movedTo: nil))))
        next.handle(.stopping)
        #expect(next.podcasts.values.first?.lastRefresh == next.now.wall.milliseconds)
    }

    @Test func `after a restored backup every feed is read completely`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://a.example/feed")
        try driver.deliver(two, etag: "e")
        driver.episodes = [:]
        driver.handle(.databaseReplaced)
        driver.advance(.seconds(1))
        #expect(driver.orders.count == 2 && driver.orders[1].etag == "")
        try driver.deliver(two, etag: "e")
        #expect(driver.episodes.count == 2)
    }

    @Test func `checking a feed changes nothing`() throws {
        var driver = MachineDriver()
        let request = driver.send { $0.check.urls = ["https://a.example/feed", "gopher://b"] }
        try driver.deliver(two)
        let results = driver.results(request)
        #expect(results.map(\.kind) == [.checked, .failed])
        #expect(results.first?.report.episodes == 2)
        #expect(driver.transactions.isEmpty && driver.published.isEmpty)
    }

    @Test(arguments: [[UInt8](), [0xff, 0xff, 0xff], [0x0a, 0x00]])
    func `an unreadable request is answered with a failure`(payload: [UInt8]) {
        var driver = MachineDriver()
        let id = RequestID.random()
        driver.handle(.command(Command(id: id, origin: "test", payload: payload)))
        #expect(throws: Failure.self) { try driver.replies[id]?.get() }
    }
}
