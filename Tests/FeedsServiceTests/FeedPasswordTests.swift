import BusKit
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import FeedsService

@Suite struct FeedPasswordTests {
    private static let planted = "geheim"

    /// Whether any output of the machine, except to the file, contains the password.
    private func leaks(_ driver: MachineDriver) -> Bool {
        var texts = driver.transactions.flatMap(\.changes).map { "\($0)" }
        texts += driver.published.map { String(decoding: $0.payload, as: UTF8.self) }
        texts += driver.replies.values.map { "\($0.map { String(decoding: $0, as: UTF8.self) })" }
        texts += driver.logged.map(\.text)
        return texts.contains { $0.contains(Self.planted) }
    }

    private func credentials(_ driver: MachineDriver) -> [WebOrigin: WebCredentials] {
        driver.podcasts.keys.first.flatMap { driver.saves.last?.credentials(of: $0) } ?? [:]
    }

    @Test func `the password of an address is saved to the file before the podcast is stored`() throws {
        var driver = MachineDriver()
        driver.holdsSecrets = true
        let request = driver.subscribe("https://me%40mail:\(Self.planted)@host.example/feed")
        let order = try #require(driver.orders.first)
        let mine = WebCredentials(user: "me@mail", password: Self.planted)
        let origin = try #require(WebOrigin("https://host.example"))
        #expect(order.address.text == "https://host.example/feed")
        #expect(order.credentials == [origin: mine])
        try driver.deliver(rss([("1", "https://u:\(Self.planted)@cdn.example/1.mp3", "One")]))
        #expect(driver.transactions.isEmpty && driver.saves.count == 1)
        driver.handle(.input(.secretsSaved(order.number, nil)))
        #expect(driver.results(request).map(\.kind) == [.added])
        #expect(driver.results(request).map(\.url) == ["https://host.example/feed"])
        #expect(driver.episodes.values.map(\.enclosureURL) == ["https://cdn.example/1.mp3"])
        #expect(credentials(driver)[origin] == mine)
        #expect(credentials(driver).count == 2)
        #expect(!leaks(driver))
        let next = driver.restarted()
        #expect(next.machine.secrets == driver.saves.last)
    }

    @Test func `a password that can’t be saved isn’t acknowledged`() throws {
        var driver = MachineDriver()
        driver.secretsFailure = Failure(.diskFull, "The disk is full.")
        let request = driver.subscribe("https://u:\(Self.planted)@host.example/feed")
        try driver.deliver(rss([("1", "1.mp3", "One")]))
        #expect(driver.results(request).map(\.failure.code) == ["diskFull"])
        #expect(driver.podcasts.isEmpty && !leaks(driver))
        driver.secretsFailure = nil
        _ = driver.subscribe("https://u:\(Self.planted)@host.example/feed")
        try driver.deliver(rss([("1", "1.mp3", "One")]))
        #expect(driver.podcasts.count == 1)
    }

    @Test func `subscribing again with another password tries it, then changes it`() throws {
        var driver = MachineDriver()
        func subscribe(_ driver: inout MachineDriver, _ password: String) -> RequestID {
            driver.send {
                $0.subscribe.urls = ["https://host.example/feed"]
                $0.subscribe.user = "u"
                $0.subscribe.password = password
            }
        }
        _ = subscribe(&driver, "old")
        try driver.deliver(rss([("1", "1.mp3", "One")]))
        let same = subscribe(&driver, "old")
        #expect(driver.results(same).map(\.passwordChanged) == [false])
        let wrong = subscribe(&driver, "wrong")
        driver.fail(Failure(.fetchFailed, "host.example does not let us read this feed (HTTP 401)."))
        #expect(driver.results(wrong).map(\.kind) == [.failed])
        #expect(credentials(driver).values.map(\.password) == ["old"])
        let right = subscribe(&driver, Self.planted)
        try driver.deliver(rss([("1", "1.mp3", "One")]))
        #expect(driver.results(right).map(\.kind) == [.alreadyThere])
        #expect(driver.results(right).map(\.passwordChanged) == [true])
        #expect(credentials(driver).values.map(\.password) == [Self.planted])
        #expect(driver.podcasts.count == 1 && !leaks(driver))
    }

    @Test func `a password that is given during a fetch of the same feed is tried and stored`() throws {
        var driver = MachineDriver()
        let first = driver.send {
            $0.subscribe.urls = ["https://host.example/feed"]
            $0.subscribe.keep = true
        }
        let second = driver.send {
            $0.subscribe.urls = ["https://host.example/feed"]
            $0.subscribe.user = "u"
            $0.subscribe.password = Self.planted
        }
        let third = driver.subscribe("https://host.example/feed")
        #expect(driver.orders.map(\.credentials.count) == [0, 1], "who gives no password waits for any fetch")
        try driver.deliver(rss([("1", "1.mp3", "One")]), to: 1)
        #expect(driver.results(second).map(\.kind) == [.added])
        #expect(credentials(driver).values.map(\.password) == [Self.planted])
        let refusal = Failure(.fetchFailed, "host.example does not let us read this feed (HTTP 401).")
        driver.handle(.input(.fetched(driver.orders[0].number, .failed(refusal, retryAfter: nil))))
        #expect(driver.results(first).map(\.kind) == [.failed] && driver.results(third).map(\.kind) == [.failed])
        #expect(driver.podcasts.values.map(\.errorMessage) == [""])
        #expect(credentials(driver).values.map(\.password) == [Self.planted] && !leaks(driver))
    }

    @Test func `a password for an http address is used for https too, with a warning`() throws {
        var driver = MachineDriver()
        func subscribe(_ driver: inout MachineDriver, _ password: String) -> RequestID {
            driver.send {
                $0.subscribe.urls = ["http://host.example/feed"]
                $0.subscribe.user = "u"
                $0.subscribe.password = password
            }
        }
        let origins = ["http://host.example", "https://host.example"]
        let first = subscribe(&driver, "old")
        #expect(driver.orders.last?.credentials.keys.map(\.text).sorted() == origins)
        try driver.deliver(rss([("1", "1.mp3", "One")]), at: "https://host.example/feed")
        #expect(driver.results(first).first?.warnings.contains { $0.contains("unencrypted") } == true)
        #expect(driver.podcasts.values.map(\.url) == ["https://host.example/feed"])
        #expect(credentials(driver).keys.map(\.text).sorted() == origins)
        let second = subscribe(&driver, Self.planted)
        #expect(driver.orders.last?.address.text == "https://host.example/feed")
        try driver.deliver(rss([("1", "1.mp3", "One")]))
        #expect(driver.results(second).first?.passwordChanged == true && driver.results(second)[0].warnings.isEmpty)
        let origin = try #require(WebOrigin("https://host.example"))
        #expect(credentials(driver)[origin]?.password == Self.planted && !leaks(driver))
    }

    @Test func `a password for an http address with its own port isn’t used for https`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("http://u:\(Self.planted)@host.example:8080/feed")
        #expect(driver.orders.last?.credentials.keys.map(\.text) == ["http://host.example:8080"])
    }

    @Test func `forgetting a podcast deletes its password`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://u:\(Self.planted)@host.example/feed")
        try driver.deliver(rss([("1", "1.mp3", "One")]))
        let id = try #require(driver.podcasts.keys.first)
        driver.send {
            $0.unsubscribe.podcasts = [id]
            $0.unsubscribe.forget = true
        }
        #expect(driver.saves.last?.isEmpty == true)
    }

    @Test func `a permanent redirect with a user keeps it for that server`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://host.example/feed")
        try driver.deliver(
            rss([("1", "1.mp3", "One")]), at: "https://u:\(Self.planted)@other.example/feed")
        #expect(driver.podcasts.values.map(\.url) == ["https://other.example/feed"])
        // The typed address also identifies the podcast.
        #expect(driver.podcasts.values.map(\.previousUrls) == [["https://host.example/feed"]])
        #expect(credentials(driver).keys.map(\.text) == ["https://other.example"])
        #expect(!leaks(driver))
    }

    @Test func `passwords from an older database are migrated once they are saved`() throws {
        var moved = FeedSecrets()
        moved.set(
            WebCredentials(user: "u", password: Self.planted), for: "p1",
            at: try #require(WebOrigin("https://host.example")), isGiven: true)
        var driver = MachineDriver()
        driver.handle(.input(.secretsMoved(moved)))
        #expect(driver.saves == [moved] && driver.dropsMovedSecrets)
    }

    private func moved() throws -> FeedSecrets {
        var moved = FeedSecrets()
        moved.set(
            WebCredentials(user: "u", password: Self.planted), for: "p1",
            at: try #require(WebOrigin("https://host.example")), isGiven: true)
        return moved
    }

    @Test func `passwords from an older database stay in their file until a save with them succeeds`() throws {
        var driver = MachineDriver()
        driver.holdsSecrets = true
        _ = driver.subscribe("https://u:\(Self.planted)@host.example/feed")
        try driver.deliver(rss([("1", "1.mp3", "One")]))
        driver.handle(.input(.secretsMoved(try moved())))
        #expect(driver.saves.count == 2)
        driver.handle(.input(.secretsSaved(1, nil)))
        #expect(!driver.dropsMovedSecrets, "the first save lacks them")
        driver.handle(.input(.secretsSaved(2, Failure(.diskFull, "The disk is full."))))
        #expect(!driver.dropsMovedSecrets)
        driver.advance(.seconds(61))
        #expect(driver.saves.count == 3 && driver.saves.last?.credentials(of: "p1").count == 1)
        driver.handle(.input(.secretsSaved(3, nil)))
        #expect(driver.dropsMovedSecrets)
    }

    @Test func `a failed save after a successful one is retried`() throws {
        var driver = MachineDriver()
        driver.holdsSecrets = true
        driver.handle(.input(.secretsMoved(try moved())))
        driver.handle(.input(.secretsMoved(try moved())))
        driver.handle(.input(.secretsSaved(2, Failure(.diskFull, "The disk is full."))))
        driver.handle(.input(.secretsSaved(1, nil)))
        #expect(driver.machine.secretsAreUnsaved)
        driver.advance(.seconds(61))
        #expect(driver.saves.count == 3)
    }

    @Test func `a damaged file of passwords from an older database raises an alert`() throws {
        var driver = MachineDriver()
        driver.handle(.input(.secretsDamaged("The file of passwords is damaged.")))
        let alert = try #require(driver.published.first.flatMap { try? WireAlert(wireBytes: $0.payload) })
        #expect(alert.code == "secretsDamaged")
    }

    @Test func `a fetch that ends after its podcast was forgotten stores no password`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://u:\(Self.planted)@host.example/feed")
        try driver.deliver(rss([("1", "1.mp3", "One")]))
        let id = try #require(driver.podcasts.keys.first)
        driver.send {
            $0.subscribe.urls = ["https://host.example/feed"]
            $0.subscribe.user = "u"
            $0.subscribe.password = "other"
        }
        driver.send {
            $0.unsubscribe.podcasts = [id]
            $0.unsubscribe.forget = true
        }
        try driver.deliver(rss([("1", "https://x:\(Self.planted)@host.example/1.mp3", "One")]))
        #expect(driver.saves.last?.isEmpty == true && driver.machine.secrets.isEmpty)
    }

    @Test func `a password of a missing podcast is deleted at the next start`() throws {
        var driver = MachineDriver()
        _ = driver.subscribe("https://u:\(Self.planted)@host.example/feed")
        try driver.deliver(rss([("1", "1.mp3", "One")]))
        let own = try #require(driver.saves.last)
        var more = own
        more.merge(try moved())
        driver.saves.append(more)
        #expect(driver.restarted().saves.last == own)
        driver.records = [:]
        #expect(driver.restarted().saves.last == more, "a database that was lost takes no passwords along")
    }

    @Test func `a damaged file of passwords raises an alert until it is answered`() throws {
        var driver = MachineDriver(machine: FeedsMachine(damage: "The file of passwords is damaged."))
        driver.perform(driver.machine.restore([], now: driver.now))
        let alert = try #require(driver.published.first.flatMap { try? WireAlert(wireBytes: $0.payload) })
        #expect(alert.code == "secretsDamaged" && alert.message.contains("damaged"))
        let request = driver.send {
            $0.answerAlert.alert = alert.id
            $0.answerAlert.action = "dismiss"
        }
        #expect(try driver.replies[request]?.get() != nil)
        #expect(driver.machine.retained(now: driver.now).isEmpty)
        #expect(driver.restarted().machine.library.current.alerts.standing.isEmpty)
    }

    @Test func `an alert whose answer can’t be saved waits for another answer`() throws {
        var driver = MachineDriver(machine: FeedsMachine(damage: "The file of passwords is damaged."))
        driver.perform(driver.machine.restore([], now: driver.now))
        let alert = try #require(driver.machine.library.current.alerts.standing.keys.first)
        func answer() -> RequestID {
            driver.send {
                $0.answerAlert.alert = alert
                $0.answerAlert.action = "dismiss"
            }
        }
        driver.holdsCommits = true
        let refused = answer()
        for transaction in driver.held { driver.refuse(transaction, Failure(.diskFull, "The disk is full.")) }
        #expect(throws: Failure.self) { try driver.replies[refused]?.get() }
        #expect(driver.machine.retained(now: driver.now).count == 1)
        driver.holdsCommits = false
        #expect(try driver.replies[answer()]?.get() != nil)
        #expect(driver.machine.retained(now: driver.now).isEmpty)
    }

    @Test func `an unreadable address doesn’t show its password`() throws {
        var driver = MachineDriver()
        let addresses = [
            "https://u:\(Self.planted)@ho st/feed", "ftp://u:\(Self.planted)@host/feed",
            "https://u:a/\(Self.planted)@host/feed", "https://u:a#\(Self.planted)@host/feed",
            "https://u:a\"\(Self.planted)@ho st/feed",
        ]
        let request = driver.send { $0.subscribe.urls = addresses }
        #expect(driver.results(request).map(\.kind) == addresses.map { _ in .failed })
        #expect(driver.results(request)[2].failure.message.contains("%2F"))
        let check = driver.send { $0.check.urls = addresses }
        #expect(driver.results(check).count == addresses.count)
        _ = driver.subscribe("https://u:a\"\(Self.planted)@host.example/feed")
        driver.fail()
        #expect(!leaks(driver))
    }
}
