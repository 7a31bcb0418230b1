import BusKit
import FeedFetching
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import FeedsService

@Suite struct FeedsScheduleTests {
    private let feed = rss([("1", "1.mp3", "One")])

    @Test func `a feed is refreshed hourly with jitter`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(feed)
        let wait = try #require(rig.podcasts.values.first?.nextRefresh) - rig.now.wall.milliseconds
        #expect((3_240_000...3_960_000).contains(wait))
        rig.advance(.seconds(3_000))
        #expect(rig.orders.count == 1)
        rig.advance(.seconds(1_000))
        #expect(rig.orders.count == 2)
    }

    @Test func `feeds without an interval are refreshed only on command`() throws {
        var schedule = RefreshSchedule()
        schedule.isAutomatic = false
        let rig = FeedsRig(machine: FeedsMachine(schedule: schedule))
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(feed)
        rig.advance(.seconds(1_000_000))
        #expect(rig.orders.count == 1)
        rig.send { $0.refresh.podcasts = [] }
        #expect(rig.orders.count == 2)
    }

    @Test func `failures are retried at growing intervals`() throws {
        var schedule = RefreshSchedule()
        let now = Timestamp(milliseconds: 0)
        let waits = (1...12).map { schedule.next(after: now, failures: UInt32($0)).seconds }
        for (index, wait) in waits.enumerated() {
            let nominal = min(86_400, 600 * Double(1 << index))
            #expect((nominal * 0.9 - 1...nominal * 1.1 + 1).contains(wait))
        }
        #expect(schedule.next(after: now, failures: .max).seconds <= 86_400 * 1.1)
    }

    @Test func `the delay that a server requests is respected up to a day`() {
        var schedule = RefreshSchedule()
        let now = Timestamp(milliseconds: 0)
        #expect(schedule.next(after: now, failures: 1, retryAfter: .seconds(7_200)).seconds >= 7_200)
        #expect(schedule.next(after: now, failures: 1, retryAfter: .seconds(1_000_000_000)).seconds <= 86_400 * 1.1)
    }

    @Test func `a failure is recorded and counted`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(feed)
        for count in 1...3 {
            rig.send { $0.refresh.podcasts = [] }
            rig.fail(Failure(.fetchFailed, "a.example has a problem of its own."))
            #expect(rig.podcasts.values.first?.failures == UInt32(count))
        }
        #expect(rig.podcasts.values.first?.errorMessage == "a.example has a problem of its own.")
        #expect(rig.episodes.count == 1)
    }

    @Test func `at most eight feeds are fetched at a time, not counting stalled ones`() {
        let rig = FeedsRig()
        rig.send { $0.subscribe.urls = (0..<30).map { "https://h\($0).example/" } }
        #expect(rig.orders.count == 8)
        rig.advance(.seconds(4))
        #expect(rig.orders.count == 16, "slow ones no longer take a place")
        rig.fail()
        #expect(rig.orders.count == 17)
    }

    @Test func `a feed that stalls never delays another`() throws {
        let rig = FeedsRig()
        rig.send { $0.subscribe.urls = (0..<8).map { "https://stall\($0).example/" } }
        let other = rig.subscribe("https://quick.example/")
        rig.advance(.seconds(4))
        #expect(rig.orders.count == 9)
        try rig.deliver(feed)
        #expect(rig.results(other).map(\.kind) == [.added])
    }

    @Test func `a fetch that takes too long is cancelled`() {
        let rig = FeedsRig()
        let request = rig.subscribe("https://a.example/feed")
        rig.advance(.seconds(46))
        #expect(rig.cancelled == [rig.orders[0].number])
        #expect(rig.results(request).map(\.failure.code) == ["fetchFailed"])
        rig.fail()
        #expect(rig.podcasts.isEmpty, "a late report is ignored")
    }

    @Test func `a postponed fetch is timed from its start`() {
        let rig = FeedsRig()
        let request = rig.subscribe("https://a.example/feed")
        let number = rig.orders[0].number
        rig.handle(.input(.postponed(number)))
        rig.advance(.seconds(600))
        #expect(rig.cancelled.isEmpty && rig.results(request).isEmpty)
        rig.handle(.input(.began(number)))
        rig.advance(.seconds(44))
        #expect(rig.cancelled.isEmpty)
        rig.advance(.seconds(2))
        #expect(rig.cancelled == [number])
        #expect(rig.results(request).map(\.failure.code) == ["fetchFailed"])
        rig.handle(.input(.began(number)))
        #expect(rig.owner.timers[.limit(number)] == nil, "a late report sets no timer")
    }

    @Test func `a fetch with a waiting command runs first`() throws {
        let rig = FeedsRig()
        for index in 0..<20 {
            _ = rig.subscribe("https://h\(index).example/")
            try rig.deliver(feed)
        }
        rig.advance(.seconds(4_000))
        #expect(rig.orders.count == 28)
        _ = rig.subscribe("https://new.example/")
        rig.fail()
        #expect(rig.orders.last?.request.address.text == "https://new.example/")
    }

    @Test func `a refresh that can’t be saved isn’t retried at once`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        try rig.deliver(feed)
        rig.advance(.seconds(4_000))
        rig.holdsCommits = true
        try rig.deliver(rss([("2", "2.mp3", "Two")]))
        rig.refuse()
        rig.advance(.seconds(30))
        #expect(rig.orders.count == 2)
        rig.advance(.seconds(40))
        #expect(rig.orders.count == 3)
    }

    @Test func `a stop cancels running fetches`() {
        let rig = FeedsRig()
        _ = rig.subscribe("https://a.example/feed")
        rig.handle(.stopping)
        #expect(rig.cancelled.count == 1)
    }
}
