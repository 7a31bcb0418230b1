import BusKit
import FeedFetching
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import FeedsService

private let two = rss([("1", "1.mp3", "One"), ("2", "2.mp3", "Two")])

@Suite struct FeedsMachineTests {
    @Test func `a subscription is acknowledged when the feed is stored`() throws {
        let rig = FeedsRig()
        let request = rig.subscribe("https://waves.example/feed.xml")
        #expect(rig.replies.isEmpty)
        rig.holdsCommits = true
        try rig.deliver(two, etag: "\"x\"")
        #expect(rig.replies.isEmpty)
        rig.holdsCommits = false
        rig.releaseCommits()
        let results = rig.results(request)
        #expect(results.map(\.kind) == [.added])
        #expect(results.first?.newEpisodes == 2)
        #expect(results.first?.podcast.title == "Waves")
        #expect(
            Set(rig.episodes.values.map(\.enclosureURL)) == [
                "https://waves.example/1.mp3", "https://waves.example/2.mp3",
            ])
        let podcast = try #require(rig.podcasts.values.first)
        #expect(podcast.subscribed && podcast.episodeCount == 2 && podcast.etag == "\"x\"" && podcast.failures == 0)
        #expect(rig.published.map(\.kind) == [.put, .event])
        let event = try WireEpisodesChanged(wireBytes: rig.published[1].payload)
        #expect(event.added.count == 2 && event.podcast == podcast.id)
    }

    @Test func `each feed of a command has its own result in order`() throws {
        let rig = FeedsRig()
        let request = rig.subscribe(
            "https://a.example/", "ftp://b.example/", "https://c.example/", "http://A.example")
        #expect(rig.orders.map(\.request.address.text) == ["https://a.example/", "https://c.example/"])
        rig.fail(Failure(.notAFeed, "This is a web page."))
        #expect(rig.replies.isEmpty)
        try rig.deliver(two, to: 0)
        let results = rig.results(request)
        #expect(results.map(\.kind) == [.added, .failed, .failed, .alreadyThere])
        #expect(results.map(\.failure.code) == ["", "badURL", "notAFeed", ""])
        #expect(rig.podcasts.count == 1)
    }

    @Test func `a failing feed is stored only if the command requests that`() throws {
        let rig = FeedsRig()
        let request = rig.subscribe("https://a.example/", keep: true)
        rig.fail()
        #expect(rig.results(request).map(\.kept) == [true])
        #expect(rig.results(request).map(\.kind) == [.failed])
        let podcast = try #require(rig.podcasts.values.first)
        #expect(podcast.subscribed && podcast.errorCode == "fetchFailed" && podcast.failures == 1)
        rig.advance(.seconds(700))
        #expect(rig.orders.count == 2)
        try rig.deliver(two)
        #expect(rig.episodes.values.allSatisfy { $0.flags == 0 }, "the first episodes aren’t new")
        #expect(rig.podcasts.values.first?.errorCode == "")
        #expect(rig.podcasts.values.first?.title == "Waves")
    }

    @Test func `a second subscription to a feed changes nothing`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(two)
        let count = rig.owner.committed.count
        let again = rig.subscribe("http://A.example/feed/")
        #expect(rig.results(again).map(\.kind) == [.alreadyThere])
        #expect(rig.owner.committed.count == count && rig.orders.count == 1)
    }

    @Test func `a refresh stores only changed episodes`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(two)
        let before = rig.episodes
        let id = try #require(rig.podcasts.keys.first)
        let request = rig.send { $0.refresh.podcasts = [id] }
        let puts = rig.owner.committed.count
        try rig.deliver(rss([("3", "3.mp3", "Three"), ("1", "1.mp3", "One again")]))
        #expect(rig.results(request).map(\.kind) == [.updated])
        #expect(rig.results(request).map(\.url) == ["https://a.example/feed"], "not the id that was asked for")
        #expect(rig.results(request).map(\.newEpisodes) == [1])
        #expect(rig.episodes.count == 3, "what vanished from the feed is kept")
        let changed = rig.owner.committed[puts...].flatMap(\.changes).filter {
            if case .putEpisode = $0.change { true } else { false }
        }
        #expect(changed.count == 2)
        #expect(Set(before.keys).isSubset(of: rig.episodes.keys))
        let nothing = rig.send { $0.refresh.podcasts = [] }
        try rig.deliver(rss([("3", "3.mp3", "Three"), ("1", "1.mp3", "One again")]))
        #expect(rig.results(nothing).map(\.kind) == [.unchanged])
    }

    @Test func `episodes that a refresh finds are new until the inbox is cleared`() throws {
        let rig = FeedsRig()
        func new() -> Set<String> { Set(rig.episodes.values.filter { $0.flags == 1 }.map(\.title)) }
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(two)
        #expect(new() == [], "the back catalogue isn’t new")
        rig.send { $0.refresh.podcasts = [] }
        try rig.deliver(rss([("4", "4.mp3", "Four"), ("3", "3.mp3", "Three"), ("1", "1.mp3", "One again")]))
        #expect(new() == ["Three", "Four"])
        let three = try #require(rig.episodes.values.first { $0.title == "Three" }?.id)
        let cleared = rig.send { $0.inbox.episodes = [three] }
        #expect(rig.results(cleared).isEmpty && new() == ["Four"])
        let event = rig.owner.published.last { $0.topic == .inbox }
        #expect(try WireClearInbox(wireBytes: event?.payload ?? []).episodes == [three])
        rig.send { $0.inbox.all = true }
        #expect(new() == [])
        for invalid in [[], ["x y"], Array(repeating: three, count: 501)] {
            #expect(rig.reply(to: rig.send { $0.inbox.episodes = invalid })?.failure != nil, "\(invalid.count)")
        }
    }

    @Test func `an episode has the same ID after its GUID changes`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(two)
        let ids = Set(rig.episodes.keys)
        rig.send { $0.refresh.podcasts = [] }
        try rig.deliver(rss([("new-1", "1.mp3", "One"), ("new-2", "2.mp3", "Two"), ("3", "3.mp3", "Three")]))
        #expect(rig.episodes.count == 3)
        #expect(ids.isSubset(of: rig.episodes.keys))
        rig.send { $0.refresh.podcasts = [] }
        try rig.deliver(
            rss([("new-1", "moved-1.mp3", "One"), ("new-2", "moved-2.mp3", "Two"), ("3", "3.mp3", "Three")]))
        #expect(rig.episodes.count == 3, "a chain of changes still finds it")
    }

    @Test func `a new episode never has an ID that is in use`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(rss([("1", "soon.mp3", "One")]))
        rig.send { $0.refresh.podcasts = [] }
        try rig.deliver(rss([("2", "soon.mp3", "Two"), ("1", "soon.mp3", "One")]))
        #expect(Set(rig.episodes.values.map(\.title)) == ["One", "Two"])
    }

    @Test func `two items with the same GUID are two episodes, and the first one’s ID doesn’t change`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(rss([("g", "1.mp3", "One")]))
        let id = try #require(rig.episodes.keys.first)
        rig.send { $0.refresh.podcasts = [] }
        try rig.deliver(rss([("g", "2.mp3", "Two"), ("g", "1.mp3", "One")]))
        #expect(rig.episodes.count == 2)
        #expect(rig.episodes[id]?.title == "One")
    }

    @Test func `a permanent redirect changes the podcast’s address but not its ID`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://old.example/feed")
        try rig.deliver(rss([("", "https://cdn.example/1.mp3", "One")]))
        let id = try #require(rig.podcasts.keys.first)
        let episode = rig.episodes.keys.first
        rig.send { $0.refresh.podcasts = [] }
        try rig.deliver(rss([("", "https://cdn.example/1.mp3", "One")]), at: "https://new.example/feed")
        #expect(rig.podcasts[id]?.url == "https://new.example/feed")
        #expect(rig.podcasts[id]?.previousUrls == ["https://old.example/feed"])
        #expect(rig.episodes.keys.first == episode && rig.episodes.count == 1)
        for url in ["https://old.example/feed", "https://new.example/feed"] {
            let again = rig.subscribe(url)
            #expect(rig.results(again).map(\.kind) == [.alreadyThere])
        }
    }

    @Test func `an address that redirects to a known podcast is already subscribed to`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(two)
        let request = rig.subscribe("https://short.example/x")
        try rig.deliver(two, at: "https://a.example/feed")
        #expect(rig.results(request).map(\.kind) == [.alreadyThere])
        #expect(rig.podcasts.count == 1)
    }

    @Test func `unsubscribing keeps episodes and forgetting removes all`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(two)
        let id = try #require(rig.podcasts.keys.first)
        let leave = rig.send { $0.unsubscribe.podcasts = [id] }
        #expect(rig.results(leave).map(\.kind) == [.removed])
        #expect(rig.episodes.count == 2 && rig.podcasts[id]?.subscribed == false)
        rig.advance(.seconds(100_000))
        #expect(rig.orders.count == 1)
        let refused = rig.send { $0.refresh.podcasts = [id] }
        #expect(rig.results(refused).map(\.failure.code) == ["notFound"])
        #expect(rig.results(refused).map(\.podcast.id) == [id])
        let back = rig.subscribe("https://a.example/feed")
        try rig.deliver(two)
        #expect(rig.results(back).map(\.kind) == [.added])
        #expect(rig.episodes.count == 2)
        rig.send {
            $0.unsubscribe.podcasts = [id]
            $0.unsubscribe.forget = true
        }
        #expect(rig.podcasts.isEmpty && rig.episodes.isEmpty && rig.aliases.isEmpty)
        #expect(rig.records.values.joined().isEmpty)
        #expect(rig.published.contains { $0.kind == .delete })
        #expect(rig.machine.retained(now: rig.now).isEmpty)
    }

    private func largeFeed(episodes: Int) -> String {
        let notes = String(repeating: "x", count: 100_000)
        return "<rss><channel><title>Big</title>"
            + (0..<episodes).map {
                "<item><guid>\($0)</guid><title>\($0)</title><description>\(notes)</description><enclosure url=\"\($0).mp3\"/></item>"
            }.joined()
            + "</channel></rss>"
    }

    @Test func `a large feed is stored in one transaction, so that a full disk stores none of it`() throws {
        let rig = FeedsRig()
        rig.holdsCommits = true
        let refused = rig.subscribe("https://a.example/feed")
        try rig.deliver(largeFeed(episodes: 50), etag: "e")
        #expect(rig.owner.heldTransactions.count == 1)
        rig.refuse()
        rig.holdsCommits = false
        #expect(rig.results(refused).map(\.failure.code) == ["diskFull"])
        #expect(rig.machine.retained(now: rig.now).isEmpty && rig.published.isEmpty)
        let stored = rig.subscribe("https://a.example/feed")
        try rig.deliver(largeFeed(episodes: 50), etag: "e")
        #expect(rig.results(stored).map(\.newEpisodes) == [50])
        #expect(rig.episodes.count == 50)
    }

    @Test func `a stored subscription isn’t reported as failed when its reply can’t be stored`() throws {
        let rig = FeedsRig()
        rig.holdsCommits = true
        let request = rig.subscribe("https://a.example/feed")
        try rig.deliver(two)
        rig.settle()
        rig.refuse(Failure(.diskFull, "The disk is full: nothing was saved."))
        #expect(rig.results(request).map(\.kind) == [.added])
    }

    @Test func `each event names at most 10,000 episodes`() throws {
        let ids = (0..<10_001).map(String.init)
        let podcast = try #require(PodcastID("p1"))
        let events = try WireEpisodesChanged.events(of: podcast, ids.count) { $0.removed = Array(ids[$1]) }
            .map { try WireEpisodesChanged(wireBytes: $0.payload).removed }
        #expect(events.map(\.count) == [10_000, 1])
        #expect(events.flatMap { $0 } == ids)
    }

    @Test func `a refused commit is rolled back and its failure is reported`() throws {
        let rig = FeedsRig()
        rig.holdsCommits = true
        let request = rig.subscribe("https://a.example/feed")
        try rig.deliver(two)
        rig.refuse()
        rig.holdsCommits = false
        #expect(rig.results(request).map(\.failure.code) == ["diskFull"])
        #expect(rig.machine.retained(now: rig.now).isEmpty)
    }

    @Test func `a restarted service publishes its stored podcasts`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(two, etag: "e")
        let next = rig.restarted()
        #expect(next.machine.retained(now: next.now) == rig.machine.retained(now: rig.now))
        next.advance(.seconds(7_200))
        #expect(next.orders.map(\.request.etag) == ["e"])
        next.handle(.input(.fetched(next.orders[0].number, .unchanged(movedTo: nil))))
        next.handle(.stopping)
        #expect(next.podcasts.values.first?.lastRefresh == next.now.wall.milliseconds)
    }

    @Test func `after a restored backup every feed is read completely`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(two, etag: "e")
        rig.episodes = [:]
        rig.handle(.databaseReplaced)
        rig.advance(.seconds(1))
        #expect(rig.orders.count == 2 && rig.orders[1].request.etag == "")
        try rig.deliver(two, etag: "e")
        #expect(rig.episodes.count == 2)
    }

    @Test func `a check of a feed changes nothing`() throws {
        let rig = FeedsRig()
        let request = rig.send { $0.check.urls = ["https://a.example/feed", "gopher://b"] }
        try rig.deliver(two)
        let results = rig.results(request)
        #expect(results.map(\.kind) == [.checked, .failed])
        #expect(results.first?.report.episodes == 2)
        #expect(rig.owner.committed.isEmpty && rig.published.isEmpty)
    }

    @Test(arguments: [[UInt8](), [0xff, 0xff, 0xff], [0x0a, 0x00]])
    func `a malformed request is answered with a failure`(payload: [UInt8]) {
        let rig = FeedsRig()
        let id = RequestID.random()
        rig.handle(.command(Command(id: id, origin: "test", payload: payload)))
        #expect(throws: Failure.self) { try rig.replies[id]?.get() }
    }
}
