import BusKit
import FeedFetching
import OwnerHarness
import OwnerKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import FeedsService

private let two = rss([("1", "1.mp3", "One"), ("2", "2.mp3", "Two")])

@Suite struct FeedsJobTests {
    private func add(
        _ rig: FeedsRig, _ urls: String..., dropFailing: Bool = false, id: RequestID? = nil,
        _ fill: (inout WireAddFeeds.Outline) -> Void = { _ in }
    ) -> String {
        let reply = rig.send(id: id) {
            $0.addFeeds.dropFailing = dropFailing
            $0.addFeeds.outlines = urls.map { url in
                var outline = WireAddFeeds.Outline.with { $0.url = url }
                fill(&outline)
                return outline
            }
        }
        return reply?.reply?.job ?? ""
    }

    private func job(_ rig: FeedsRig, _ id: String) -> WireJob? {
        rig.retained[.job(.feeds, id)].flatMap { try? WireJob(wireBytes: $0) }
    }

    private func results(_ rig: FeedsRig, _ job: String) -> [WireFeedResult] {
        rig.send { $0.jobResults.job = job }?.reply?.results ?? []
    }

    /// Answers the order of an address.
    private func deliver(_ rig: FeedsRig, _ url: String, _ feed: String = two) throws {
        let index = try #require(rig.orders.lastIndex { $0.request.address.text == url })
        try rig.deliver(feed, to: index)
    }

    private func fail(_ rig: FeedsRig, _ url: String) throws {
        let order = try #require(rig.orders.last { $0.request.address.text == url })
        rig.handle(.input(.fetched(order.number, .failed(Failure(.fetchFailed, "no"), retryAfter: nil))))
    }

    @Test func `added feeds are subscriptions before they are fetched`() throws {
        let rig = FeedsRig()
        let id = add(rig, "https://a.example/", "ftp://b.example/", "https://c.example/") {
            ($0.title, $0.tags) = ("Title", ["News"])
        }
        #expect(JobID(id) != nil && rig.orders.count == 2)
        #expect(rig.podcasts.values.map(\.subscribed) == [true, true])
        #expect(rig.podcasts.values.map(\.title) == ["Title", "Title"])
        #expect(rig.podcasts.values.map(\.tags) == [["News"], ["News"]])
        let begun = try #require(job(rig, id))
        #expect(begun.what == "subscribe" && begun.total == 3 && begun.done == 1 && begun.failed == 1)
        #expect(begun.failures.map(\.name) == ["ftp://b.example/"] && begun.ended == 0)
        try deliver(rig, "https://a.example/")
        #expect(rig.episodes.values.allSatisfy { $0.flags == 0 }, "the first episodes aren’t new")
        try fail(rig, "https://c.example/")
        #expect(results(rig, id).map(\.kind) == [.added, .failed, .failed])
        #expect(results(rig, id).map(\.kept) == [false, false, true])
        #expect(results(rig, id).first?.podcast.title == "Waves")
        #expect(results(rig, id).first?.newEpisodes == 2)
        #expect(rig.podcasts.values.map(\.subscribed) == [true, true])
        rig.advance(.seconds(1))
        #expect(job(rig, id)?.done == 3 && job(rig, id)?.ended ?? 0 > 0)
        #expect(rig.records["job"]?.isEmpty == true)
        rig.advance(.seconds(61))
        #expect(job(rig, id) == nil)
        #expect(rig.send { $0.jobResults.job = id }?.failure?.known == .notFound)
    }

    @Test func `a feed whose first fetch fails is removed again if the command requests that`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://old.example/")
        try rig.deliver(two)
        let old = try #require(rig.podcasts.keys.first)
        rig.send { $0.unsubscribe.podcasts = [old] }
        let id = add(rig, "https://new.example/", "https://old.example/", dropFailing: true)
        #expect(rig.podcasts.values.count { $0.subscribed } == 2)
        try fail(rig, "https://new.example/")
        try fail(rig, "https://old.example/")
        #expect(results(rig, id).map(\.kind) == [.failed, .failed])
        #expect(results(rig, id).map(\.kept) == [false, false])
        #expect(rig.podcasts.values.map(\.subscribed) == [false], "the former subscription keeps its episodes")
        #expect(rig.podcasts.keys.map(\.self) == [old] && rig.episodes.count == 2)
    }

    @Test func `a job continues in the next process with what is not done`() throws {
        let rig = FeedsRig()
        let id = add(rig, "https://a.example/", "ftp://b.example/", "https://c.example/", "https://d.example/")
        try deliver(rig, "https://a.example/")
        let next = rig.restarted()
        #expect(job(next, id)?.done == 2 && job(next, id)?.total == 4)
        #expect(next.orders.map(\.request.address.text).sorted() == ["https://c.example/", "https://d.example/"])
        try deliver(next, "https://c.example/")
        try deliver(next, "https://d.example/")
        #expect(results(next, id).map(\.kind) == [.added, .failed, .added, .added])
        next.advance(.seconds(1))
        #expect(job(next, id)?.ended ?? 0 > 0)
        let last = next.restarted()
        #expect(job(last, id) == nil && last.orders.isEmpty, "a job that has ended isn’t known to the next process")
    }

    @Test func `a job that can’t be stored changes nothing`() throws {
        let rig = FeedsRig()
        rig.refusal = Failure(.diskFull, "The disk is full.")
        let request = RequestID.random()
        _ = add(rig, "https://a.example/", id: request)
        #expect(rig.reply(to: request)?.failure?.known == .diskFull)
        #expect(rig.podcasts.isEmpty && rig.orders.isEmpty && rig.retained.isEmpty)
        rig.refusal = nil
        _ = add(rig, "https://a.example/")
        #expect(rig.orders.count == 1)
    }

    @Test func `outlines add tags to an existing subscription and keep its own title`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/")
        try rig.deliver(two)
        let id = add(rig, "http://A.example", "https://a.example/") { ($0.ownTitle, $0.tags) = ("Mine", ["x", "y"]) }
        #expect(results(rig, id).map(\.kind) == [.alreadyThere, .alreadyThere])
        let podcast = try #require(rig.podcasts.values.first)
        #expect(podcast.title == "Mine" && podcast.feedTitle == "Waves" && podcast.tags == ["x", "y"])
        _ = add(rig, "https://a.example/") { ($0.ownTitle, $0.tags) = ("Yours", ["Y", "z"]) }
        #expect(rig.podcasts.values.map(\.title) == ["Mine"] && rig.podcasts.values.map(\.tags) == [["x", "y", "z"]])
        #expect(rig.orders.count == 1, "nothing is fetched for a subscription that exists")
    }

    @Test func `passwords in outlines are in the file before the subscription is stored, and nowhere else`() throws {
        let rig = FeedsRig()
        rig.holdsSecrets = true
        let request = RequestID.random()
        _ = add(rig, "https://u:geheim@a.example/", id: request)
        #expect(rig.saves.count == 1 && rig.owner.committed.isEmpty && rig.reply(to: request) == nil)
        rig.handle(.input(.secretsSaved(1, nil)))
        #expect(rig.podcasts.values.map(\.url) == ["https://a.example/"])
        #expect(rig.orders.first?.request.credentials.values.map(\.password) == ["geheim"])
        let stored = rig.owner.committed.flatMap(\.changes).map { "\($0)" }
        #expect(!stored.contains { $0.contains("geheim") })
        #expect(!rig.published.contains { String(decoding: $0.payload, as: UTF8.self).contains("geheim") })
    }

    @Test func `a feed that redirects to a subscribed one doesn’t become a second podcast`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(two)
        let id = add(rig, "https://short.example/1") { ($0.ownTitle, $0.tags) = ("Mine", ["x"]) }
        let index = rig.orders.count - 1
        try rig.deliver(two, to: index, at: "https://a.example/feed")
        #expect(results(rig, id).map(\.kind) == [.alreadyThere])
        #expect(rig.podcasts.values.map(\.url) == ["https://a.example/feed"])
        #expect(rig.podcasts.values.map(\.title) == ["Mine"] && rig.podcasts.values.map(\.tags) == [["x"]])
        #expect(rig.retained.keys.count { $0.text.hasPrefix("stream/feeds/podcast/") } == 1)
        let again = add(rig, "https://short.example/1")
        #expect(results(rig, again).map(\.kind) == [.alreadyThere])
    }

    @Test func `a refresh of all is one job at a time, after the commands that name podcasts`() throws {
        let rig = FeedsRig()
        for number in 0..<20 {
            _ = rig.subscribe("https://h\(number).example/")
            try rig.deliver(two)
        }
        rig.orders = []
        let id = rig.send { $0.refreshAll = WireRefreshAll() }?.reply?.job ?? ""
        #expect(rig.send { $0.refreshAll = WireRefreshAll() }?.reply?.job == id)
        #expect(rig.orders.count == 8)
        let waiting = try #require(
            rig.podcasts.values.first { podcast in !rig.orders.contains { $0.podcast?.text == podcast.id } })
        let request = rig.send { $0.refresh.podcasts = [waiting.id] }
        rig.handle(.input(.fetched(rig.orders[0].number, .unchanged(movedTo: nil))))
        #expect(rig.orders.last?.podcast?.text == waiting.id)
        let three = rss([("1", "1.mp3", "One"), ("2", "2.mp3", "Two"), ("3", "3.mp3", "Three")])
        try rig.deliver(three)
        #expect(rig.results(request).map(\.newEpisodes) == [1])
        var answered = 1
        while answered < rig.orders.count {
            rig.handle(.input(.fetched(rig.orders[answered].number, .unchanged(movedTo: nil))))
            answered += 1
        }
        #expect(results(rig, id).map(\.newEpisodes).reduce(0, +) == 1)
        #expect(results(rig, id).count { $0.kind == .unchanged } == 19)
        rig.advance(.seconds(1))
        #expect(job(rig, id)?.done == 20 && job(rig, id)?.ended ?? 0 > 0)
        #expect(rig.send { $0.refreshAll = WireRefreshAll() }?.reply?.job != id)
    }

    @Test func `a refresh of no podcasts is no job`() throws {
        let rig = FeedsRig()
        #expect(rig.send { $0.refreshAll = WireRefreshAll() }?.reply?.job == "")
    }

    @Test func `progress is published four times a second at most`() throws {
        let rig = FeedsRig()
        let request = RequestID.random()
        rig.send(id: request) {
            $0.addFeeds.outlines = (0..<250).map { number in .with { $0.url = "https://h\(number).example/" } }
        }
        rig.published = []
        var answered = 0
        while answered < rig.orders.count {
            try rig.deliver(two, to: answered)
            answered += 1
        }
        let puts = rig.published.count { $0.topic.text.hasPrefix("stream/feeds/job/") }
        #expect(answered == 250 && puts <= 2, "\(puts)")
        let id = rig.reply(to: request)?.reply?.job ?? ""
        let first = try #require(rig.send { $0.jobResults.job = id }?.reply)
        let rest = rig.send {
            $0.jobResults.job = id
            $0.jobResults.after = first.next
        }?.reply
        #expect(first.results.count + (rest?.results.count ?? 0) == 250 && first.next == 200)
        #expect(rest?.next == 0)
    }

    @Test func `a slow database delays the fetches of jobs, but not those of commands`() throws {
        let rig = FeedsRig()
        rig.send { $0.addFeeds.outlines = (0..<100).map { number in .with { $0.url = "https://h\(number).example/" } } }
        rig.holdsCommits = true
        var answered = 0
        while answered < rig.orders.count {
            try rig.deliver(two, to: answered)
            answered += 1
        }
        #expect((16...24).contains(answered), "\(answered)")
        _ = rig.subscribe("https://new.example/")
        #expect(rig.orders.count == answered + 1 && rig.orders.last?.request.address.text == "https://new.example/")
        rig.holdsCommits = false
        rig.releaseCommits()
        while answered < rig.orders.count {
            try rig.deliver(two, to: answered)
            answered += 1
        }
        #expect(answered == 101 && rig.podcasts.values.allSatisfy { $0.episodeCount == 2 })
    }

    @Test func `invalid requests are refused`() throws {
        let rig = FeedsRig()
        #expect(rig.send { $0.addFeeds = WireAddFeeds() }?.failure?.known == .invalidArgument)
        let many = (0...500).map { number in WireAddFeeds.Outline.with { $0.url = "https://h\(number).example/" } }
        #expect(rig.send { $0.addFeeds.outlines = many }?.failure?.known == .invalidArgument)
        #expect(rig.send { $0.jobResults.job = "x" }?.failure?.known == .notFound)
        let id = add(rig, "https://a.example/") { $0.tags = ["a\nb"] }
        #expect(results(rig, id).map(\.failure.code) == ["invalidArgument"])
        #expect(rig.podcasts.isEmpty)
    }
}

/// Tests changes of podcasts’ addresses.
@Suite struct AddressChangeTests {
    private let rig = FeedsRig()
    private let id: String

    init() throws {
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(two)
        id = try #require(rig.podcasts.keys.first)
    }

    private func change(to url: String) -> RequestID {
        rig.send {
            $0.changeAddress.podcast = id
            $0.changeAddress.url = url
        }
    }

    @Test func `a podcast keeps its episodes at another address, and has none of them as new`() throws {
        let before = Set(rig.episodes.keys)
        let request = change(to: "https://b.example/feed")
        #expect(rig.podcasts[id]?.url == "https://a.example/feed")
        try rig.deliver(rss([("1", "1.mp3", "One"), ("2", "2.mp3", "Two"), ("3", "3.mp3", "Three")]))
        #expect(rig.results(request).map(\.kind) == [.updated])
        #expect(rig.podcasts.count == 1 && rig.podcasts[id]?.url == "https://b.example/feed")
        #expect(rig.podcasts[id]?.previousUrls == ["https://a.example/feed"])
        #expect(rig.episodes.count == 3 && before.isSubset(of: rig.episodes.keys))
        #expect(rig.episodes.values.allSatisfy { $0.flags == 0 })
        let back = change(to: "https://a.example/feed")
        try rig.deliver(two)
        #expect(rig.results(back).map(\.kind) == [.updated] && rig.podcasts[id]?.url == "https://a.example/feed")
    }

    @Test func `an address without a feed changes nothing`() throws {
        let request = change(to: "https://b.example/feed")
        rig.fail(Failure(.notAFeed, "This is a web page."))
        #expect(rig.results(request).map(\.failure.code) == ["notAFeed"])
        #expect(rig.podcasts[id]?.url == "https://a.example/feed" && rig.podcasts[id]?.failures == 0)
        let same = change(to: "https://a.example/feed")
        #expect(rig.results(same).map(\.kind) == [.unchanged])
        let invalid = change(to: "ftp://b.example/")
        #expect(rig.reply(to: invalid)?.failure?.known == .badURL)
    }

    @Test func `another podcast’s address is refused, also at the end of a redirect`() throws {
        _ = rig.subscribe("https://other.example/feed")
        try rig.deliver(two)
        let direct = change(to: "https://other.example/feed")
        #expect(rig.reply(to: direct)?.failure?.known == .notApplicable)
        let redirected = change(to: "https://short.example/")
        try rig.deliver(two, at: "https://other.example/feed")
        #expect(rig.results(redirected).map(\.failure.code) == ["notApplicable"])
        #expect(rig.podcasts.count == 2 && rig.podcasts[id]?.url == "https://a.example/feed")
    }

    @Test func `a refresh from the old address that ends after the change is repeated from the new one`() throws {
        let refresh = rig.send { $0.refresh.podcasts = [id] }
        let old = rig.orders.count - 1
        let request = change(to: "https://b.example/feed")
        try rig.deliver(two)
        #expect(rig.results(request).map(\.kind) == [.updated])
        try rig.deliver(rss([("9", "9.mp3", "Nine")], title: "Old"), to: old)
        #expect(rig.results(refresh).isEmpty && rig.podcasts[id]?.title == "Waves")
        #expect(rig.orders.last?.request.address.text == "https://b.example/feed")
        try rig.deliver(two)
        #expect(rig.results(refresh).map(\.kind) == [.unchanged])
        #expect(rig.podcasts[id]?.url == "https://b.example/feed")
    }
}
