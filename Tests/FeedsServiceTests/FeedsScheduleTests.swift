import BusKit
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import FeedsService

@Suite struct FeedsScheduleTests {
    private let feed = rss([("1", "1.mp3", "One")])

    @Test func `a feed is refreshed hourly with jitter`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://a.example/feed")
        try driver.deliver(feed)
        let wait = try #require(driver.podcasts.values.first?.nextRefresh) - driver.now.wall.milliseconds
        #expect((3_240_000...3_960_000).contains(wait))
        driver.advance(.seconds(3_000))
        #expect(driver.orders.count == 1)
        driver.advance(.seconds(1_000))
        #expect(driver.orders.count == 2)
    }

    @Test func `without an interval feeds are refreshed on command only`() throws {
        var schedule = RefreshSchedule()
        schedule.isAutomatic = false
        var driver = MachineDriver(machine: FeedsMachine(schedule: schedule))
        _ = driver.subscribe("https://a.example/feed")
        try driver.deliver(feed)
        driver.advance(.seconds(1_000_000))
        #expect(driver.orders.count == 1)
        driver.send { $0.refresh.podcasts = [] }
        #expect(driver.orders.count == 2)
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
        var driver = MachineDriver()
        _ = driver.subscribe("https://a.example/feed")
        try driver.deliver(feed)
        for count in 1...3 {
            driver.send { $0.refresh.podcasts = [] }
            driver.fail(Failure(.fetchFailed, "a.example has a problem of its own."))
            #expect(driver.podcasts.values.first?.failures == UInt32(count))
        }
        #expect(driver.podcasts.values.first?.errorMessage == "a.example has a problem of its own.")
        #expect(driver.episodes.count == 1)
    }

    @Test func `at most eight feeds are fetched at once, not counting stalled ones`() {
        var driver = MachineDriver()
        driver.send { $0.subscribe.urls = (0..<30).map { "https://h\($0).example/" } }
        #expect(driver.orders.count == 8)
        driver.advance(.seconds(4))
        #expect(driver.orders.count == 16, "slow ones no longer take a place")
        driver.fail()
        #expect(driver.orders.count == 17)
    }

    @Test func `a feed that stalls never delays another`() throws {
        var driver = MachineDriver()
        driver.send { $0.subscribe.urls = (0..<8).map { "https://stall\($0).example/" } }
        let other = driver.subscribe("https://quick.example/")
        driver.advance(.seconds(4))
        #expect(driver.orders.count == 9)
        try driver.deliver(feed)
        #expect(driver.results(other).map(\.kind) == [.added])
    }

    @Test func `a fetch that takes too long is cancelled`() {
        var driver = MachineDriver()
        let request = driver.subscribe("https://a.example/feed")
        driver.advance(.seconds(46))
        #expect(driver.cancelled == [driver.orders[0].number])
        #expect(driver.results(request).map(\.failure.code) == ["fetchFailed"])
        driver.fail()
        #expect(driver.podcasts.isEmpty, "a late report is ignored")
    }

    @Test func `a postponed fetch is timed from its start`() {
        var driver = MachineDriver()
        let request = driver.subscribe("https://a.example/feed")
        let number = driver.orders[0].number
        driver.handle(.input(.postponed(number)))
        driver.advance(.seconds(600))
        #expect(driver.cancelled.isEmpty && driver.results(request).isEmpty)
        driver.handle(.input(.began(number)))
        driver.advance(.seconds(44))
        #expect(driver.cancelled.isEmpty)
        driver.advance(.seconds(2))
        #expect(driver.cancelled == [number])
        #expect(driver.results(request).map(\.failure.code) == ["fetchFailed"])
        driver.handle(.input(.began(number)))
        #expect(driver.timers[.limit(number)] == nil, "a late report sets no timer")
    }

    @Test func `a fetch with a waiting command runs first`() throws {
        var driver = MachineDriver()
        for index in 0..<20 {
            _ = driver.subscribe("https://h\(index).example/")
            try driver.deliver(feed)
        }
        driver.advance(.seconds(4_000))
        #expect(driver.orders.count == 28)
        _ = driver.subscribe("https://new.example/")
        driver.fail()
        #expect(driver.orders.last?.address.text == "https://new.example/")
    }

    @Test func `a refresh that can’t be saved isn’t repeated at once`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://a.example/feed")
        try driver.deliver(feed)
        driver.advance(.seconds(4_000))
        driver.holdsCommits = true
        try driver.deliver(rss([("2", "2.mp3", "Two")]))
        for transaction in driver.held { driver.refuse(transaction, Failure(.diskFull, "The disk is full.")) }
        driver.advance(.seconds(30))
        #expect(driver.orders.count == 2)
        driver.advance(.seconds(40))
        #expect(driver.orders.count == 3)
    }

    @Test func `stopping cancels running fetches`() {
        var driver = MachineDriver()
        _ = driver.subscribe("https://a.example/feed")
        driver.handle(.stopping)
        #expect(driver.cancelled.count == 1)
    }
}
