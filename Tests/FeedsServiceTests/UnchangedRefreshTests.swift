import BusKit
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import FeedsService

@Suite struct UnchangedRefreshTests {
    /// Creates `count` podcasts, each read once.
    private func library(_ count: Int, description: String = "") throws -> MachineDriver {
        var driver = MachineDriver()
        for number in 0..<count {
            _ = driver.subscribe("https://h\(number).example/feed")
            try driver.deliver(rss([("1", "1.mp3", "One")]), etag: "\"1\"")
        }
        driver.transactions = []
        driver.published = []
        driver.orders = []
        return driver
    }

    @Test func `unchanged refreshes of sixty feeds are stored once an hour in one commit`() throws {
        var driver = try library(60)
        var refreshes = 0
        // Six hours pass in steps of a minute; every feed answers at once that it hasn’t changed.
        for _ in 0..<360 {
            driver.advance(.seconds(60))
            for order in driver.orders {
                refreshes += 1
                driver.handle(.input(.fetched(order.number, .unchanged(movedTo: nil))))
            }
            driver.orders = []
        }
        #expect(refreshes > 300)
        #expect(driver.transactions.count <= 6)
        #expect(driver.transactions.count >= 3)
        #expect(driver.transactions.allSatisfy { $0.changes.count > 40 })
        driver.handle(.stopping)
        let last = driver.podcasts.values.map(\.lastRefresh).min() ?? 0
        #expect(driver.now.wall.milliseconds - last < 4_000_000, "stopping stores what is left")
    }

    @Test func `a refresh that reads the same feed again is stored with the others`() throws {
        var driver = try library(1)
        driver.advance(.seconds(4_000))
        try driver.deliver(rss([("1", "1.mp3", "One")]), etag: "\"2\"")
        #expect(driver.transactions.isEmpty && driver.published.isEmpty)
        driver.handle(.stopping)
        #expect(driver.podcasts.values.map(\.etag) == ["\"2\""])
    }

    @Test func `a refresh with a waiting command is stored before the reply`() throws {
        var driver = try library(1)
        let request = driver.send { $0.refresh.podcasts = [] }
        driver.handle(.input(.fetched(driver.orders[0].number, .unchanged(movedTo: nil))))
        #expect(driver.results(request).map(\.kind) == [.unchanged])
        #expect(driver.transactions.count == 1)
    }

    @Test func `a podcast on the stream has only the beginning of its description`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://a.example/feed")
        let text = String(repeating: "äöü🎧 ", count: 500)
        let feed = rss([("1", "1.mp3", "One")]).replacing(
            "<title>Waves</title>", with: "<title>Waves</title><description>\(text)</description>")
        try driver.deliver(feed, etag: "\"1\"")
        let put = try #require(driver.published.first { $0.kind == .put })
        let podcast = try WirePodcast(wireBytes: put.payload)
        #expect(podcast.description_p.utf8.count <= 300 && podcast.description_p.utf8.count > 280)
        #expect(text.hasPrefix(podcast.description_p))
        #expect(podcast.etag.isEmpty)
        let stored = try #require(driver.podcasts.values.first)
        #expect(stored.etag == "\"1\"" && stored.description_p.utf8.count > 3_900)
        #expect(
            try driver.machine.retained(now: driver.now).map { try WirePodcast(wireBytes: $0.payload) } == [podcast])
    }
}
