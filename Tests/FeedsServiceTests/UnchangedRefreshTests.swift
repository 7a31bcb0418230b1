import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import FeedsService

@Suite struct UnchangedRefreshTests {
    /// Creates `count` podcasts, each refreshed once.
    private func library(_ count: Int, description: String = "") throws -> FeedsRig {
        let rig = FeedsRig()
        for number in 0..<count {
            _ = rig.subscribe("https://h\(number).example/feed")
            try rig.deliver(rss([("1", "1.mp3", "One")]), etag: "\"1\"")
        }
        rig.owner.committed = []
        rig.published = []
        rig.orders = []
        return rig
    }

    @Test func `unchanged refreshes of sixty feeds are stored once an hour in one commit`() throws {
        let rig = try library(60)
        var refreshes = 0
        // Six hours pass in steps of a minute; every feed answers at once that it hasn’t changed.
        for _ in 0..<360 {
            rig.advance(.seconds(60))
            for order in rig.orders {
                refreshes += 1
                rig.handle(.input(.fetched(order.number, .unchanged(movedTo: nil))))
            }
            rig.orders = []
        }
        #expect(refreshes > 300)
        #expect(rig.owner.committed.count <= 6)
        #expect(rig.owner.committed.count >= 3)
        #expect(rig.owner.committed.allSatisfy { $0.changes.count > 40 })
        rig.handle(.stopping)
        let last = rig.podcasts.values.map(\.lastRefresh).min() ?? 0
        #expect(rig.now.wall.milliseconds - last < 4_000_000, "stopping stores what is left")
    }

    @Test func `a refresh that reads the same feed again is stored with the others`() throws {
        let rig = try library(1)
        rig.advance(.seconds(4_000))
        try rig.deliver(rss([("1", "1.mp3", "One")]), etag: "\"2\"")
        #expect(rig.owner.committed.isEmpty && rig.published.isEmpty)
        rig.handle(.stopping)
        #expect(rig.podcasts.values.map(\.etag) == ["\"2\""])
    }

    @Test func `a refresh with a waiting command is stored before the reply`() throws {
        let rig = try library(1)
        let request = rig.send { $0.refresh.podcasts = [] }
        rig.handle(.input(.fetched(rig.orders[0].number, .unchanged(movedTo: nil))))
        #expect(rig.results(request).map(\.kind) == [.unchanged])
        #expect(rig.owner.committed.count == 1)
    }

    @Test func `a podcast on the stream has only the beginning of its description`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        let text = String(repeating: "äöü🎧 ", count: 500)
        let feed = rss([("1", "1.mp3", "One")]).replacing(
            "<title>Waves</title>", with: "<title>Waves</title><description>\(text)</description>")
        try rig.deliver(feed, etag: "\"1\"")
        let put = try #require(rig.published.first { $0.kind == .put })
        let podcast = try WirePodcast(wireBytes: put.payload)
        #expect(podcast.description_p.utf8.count <= 300 && podcast.description_p.utf8.count > 280)
        #expect(text.hasPrefix(podcast.description_p))
        #expect(podcast.etag.isEmpty)
        let stored = try #require(rig.podcasts.values.first)
        #expect(stored.etag == "\"1\"" && stored.description_p.utf8.count > 3_900)
        #expect(
            try rig.machine.retained(now: rig.now).map { try WirePodcast(wireBytes: $0.payload) } == [podcast])
    }
}
