import BusKit
import FeedFetching
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import FeedsService

@Suite struct FeedPasswordTests {
    private static let planted = "geheim"

    /// Whether any output of the machine, except to the file, contains the password.
    private func leaks(_ rig: FeedsRig) -> Bool {
        var texts = rig.owner.committed.flatMap(\.changes).map { "\($0)" }
        texts += rig.published.map { String(decoding: $0.payload, as: UTF8.self) }
        texts += rig.owner.replies.values.map { "\($0.map { String(decoding: $0, as: UTF8.self) })" }
        texts += rig.owner.logged.map(\.text)
        return texts.contains { $0.contains(Self.planted) }
    }

    private func credentials(_ rig: FeedsRig) -> [WebOrigin: WebCredentials] {
        rig.podcasts.keys.first.flatMap { rig.saves.last?.credentials(of: $0) } ?? [:]
    }

    @Test func `the password of an address is saved to the file before the podcast is stored`() throws {
        let rig = FeedsRig()
        rig.holdsSecrets = true
        let request = rig.subscribe("https://me%40mail:\(Self.planted)@host.example/feed")
        let order = try #require(rig.orders.first)
        let mine = WebCredentials(user: "me@mail", password: Self.planted)
        let origin = try #require(WebOrigin("https://host.example"))
        #expect(order.request.address.text == "https://host.example/feed")
        #expect(order.request.credentials == [origin: mine])
        try rig.deliver(rss([("1", "https://u:\(Self.planted)@cdn.example/1.mp3", "One")]))
        #expect(rig.owner.committed.isEmpty && rig.saves.count == 1)
        rig.handle(.input(.secretsSaved(order.number, nil)))
        #expect(rig.results(request).map(\.kind) == [.added])
        #expect(rig.results(request).map(\.url) == ["https://host.example/feed"])
        #expect(rig.episodes.values.map(\.enclosureURL) == ["https://cdn.example/1.mp3"])
        #expect(credentials(rig)[origin] == mine)
        #expect(credentials(rig).count == 2)
        #expect(!leaks(rig))
        let next = rig.restarted()
        #expect(next.machine.secrets == rig.saves.last)
    }

    @Test func `a password that can’t be saved isn’t acknowledged`() throws {
        let rig = FeedsRig()
        rig.secretsFailure = Failure(.diskFull, "The disk is full.")
        let request = rig.subscribe("https://u:\(Self.planted)@host.example/feed")
        try rig.deliver(rss([("1", "1.mp3", "One")]))
        #expect(rig.results(request).map(\.failure.code) == ["diskFull"])
        #expect(rig.podcasts.isEmpty && !leaks(rig))
        rig.secretsFailure = nil
        _ = rig.subscribe("https://u:\(Self.planted)@host.example/feed")
        try rig.deliver(rss([("1", "1.mp3", "One")]))
        #expect(rig.podcasts.count == 1)
    }

    @Test func `a repeated subscription with another password replaces the password if it works`() throws {
        let rig = FeedsRig()
        func subscribe(_ rig: FeedsRig, _ password: String) -> RequestID {
            rig.send {
                $0.subscribe.urls = ["https://host.example/feed"]
                $0.subscribe.user = "u"
                $0.subscribe.password = password
            }
        }
        _ = subscribe(rig, "old")
        try rig.deliver(rss([("1", "1.mp3", "One")]))
        let same = subscribe(rig, "old")
        #expect(rig.results(same).map(\.passwordChanged) == [false])
        let wrong = subscribe(rig, "wrong")
        rig.fail(Failure(.fetchFailed, "host.example does not let us read this feed (HTTP 401)."))
        #expect(rig.results(wrong).map(\.kind) == [.failed])
        #expect(credentials(rig).values.map(\.password) == ["old"])
        let right = subscribe(rig, Self.planted)
        try rig.deliver(rss([("1", "1.mp3", "One")]))
        #expect(rig.results(right).map(\.kind) == [.alreadyThere])
        #expect(rig.results(right).map(\.passwordChanged) == [true])
        #expect(credentials(rig).values.map(\.password) == [Self.planted])
        #expect(rig.podcasts.count == 1 && !leaks(rig))
    }

    @Test func `a password in a command during a fetch of the same feed is tried and stored`() throws {
        let rig = FeedsRig()
        let first = rig.send {
            $0.subscribe.urls = ["https://host.example/feed"]
            $0.subscribe.keep = true
        }
        let second = rig.send {
            $0.subscribe.urls = ["https://host.example/feed"]
            $0.subscribe.user = "u"
            $0.subscribe.password = Self.planted
        }
        let third = rig.subscribe("https://host.example/feed")
        #expect(rig.orders.map(\.request.credentials.count) == [0, 1], "who gives no password waits for any fetch")
        try rig.deliver(rss([("1", "1.mp3", "One")]), to: 1)
        #expect(rig.results(second).map(\.kind) == [.added])
        #expect(credentials(rig).values.map(\.password) == [Self.planted])
        let refusal = Failure(.fetchFailed, "host.example does not let us read this feed (HTTP 401).")
        rig.handle(.input(.fetched(rig.orders[0].number, .failed(refusal, retryAfter: nil))))
        #expect(rig.results(first).map(\.kind) == [.failed] && rig.results(third).map(\.kind) == [.failed])
        #expect(rig.podcasts.values.map(\.errorMessage) == [""])
        #expect(credentials(rig).values.map(\.password) == [Self.planted] && !leaks(rig))
    }

    @Test func `a password for an http address is used for https too, with a warning`() throws {
        let rig = FeedsRig()
        func subscribe(_ rig: FeedsRig, _ password: String) -> RequestID {
            rig.send {
                $0.subscribe.urls = ["http://host.example/feed"]
                $0.subscribe.user = "u"
                $0.subscribe.password = password
            }
        }
        let origins = ["http://host.example", "https://host.example"]
        let first = subscribe(rig, "old")
        #expect(rig.orders.last?.request.credentials.keys.map(\.text).sorted() == origins)
        try rig.deliver(rss([("1", "1.mp3", "One")]), at: "https://host.example/feed")
        #expect(rig.results(first).first?.warnings.contains { $0.contains("unencrypted") } == true)
        #expect(rig.podcasts.values.map(\.url) == ["https://host.example/feed"])
        #expect(credentials(rig).keys.map(\.text).sorted() == origins)
        let second = subscribe(rig, Self.planted)
        #expect(rig.orders.last?.request.address.text == "https://host.example/feed")
        try rig.deliver(rss([("1", "1.mp3", "One")]))
        #expect(rig.results(second).first?.passwordChanged == true && rig.results(second)[0].warnings.isEmpty)
        let origin = try #require(WebOrigin("https://host.example"))
        #expect(credentials(rig)[origin]?.password == Self.planted && !leaks(rig))
    }

    @Test func `a password for an http address with its own port isn’t used for https`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("http://u:\(Self.planted)@host.example:8080/feed")
        #expect(rig.orders.last?.request.credentials.keys.map(\.text) == ["http://host.example:8080"])
    }

    @Test func `forgetting a podcast deletes its password`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://u:\(Self.planted)@host.example/feed")
        try rig.deliver(rss([("1", "1.mp3", "One")]))
        let id = try #require(rig.podcasts.keys.first)
        rig.send {
            $0.unsubscribe.podcasts = [id]
            $0.unsubscribe.forget = true
        }
        #expect(rig.saves.last?.isEmpty == true)
    }

    @Test func `the user in a permanent redirect is stored for that server`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://host.example/feed")
        try rig.deliver(
            rss([("1", "1.mp3", "One")]), at: "https://u:\(Self.planted)@other.example/feed")
        #expect(rig.podcasts.values.map(\.url) == ["https://other.example/feed"])
        // The address in the command also identifies the podcast.
        #expect(rig.podcasts.values.map(\.previousUrls) == [["https://host.example/feed"]])
        #expect(credentials(rig).keys.map(\.text) == ["https://other.example"])
        #expect(!leaks(rig))
    }

    @Test func `the file of passwords from an older database is deleted after they are saved`() throws {
        var moved = FeedSecrets()
        moved.set(
            WebCredentials(user: "u", password: Self.planted), for: "p1",
            at: try #require(WebOrigin("https://host.example")), isGiven: true)
        let rig = FeedsRig()
        rig.handle(.input(.secretsMoved(moved)))
        #expect(rig.saves == [moved] && rig.dropsMovedSecrets)
    }

    private func moved() throws -> FeedSecrets {
        var moved = FeedSecrets()
        moved.set(
            WebCredentials(user: "u", password: Self.planted), for: "p1",
            at: try #require(WebOrigin("https://host.example")), isGiven: true)
        return moved
    }

    @Test func `passwords from an older database stay in their file until a save with them succeeds`() throws {
        let rig = FeedsRig()
        rig.holdsSecrets = true
        _ = rig.subscribe("https://u:\(Self.planted)@host.example/feed")
        try rig.deliver(rss([("1", "1.mp3", "One")]))
        rig.handle(.input(.secretsMoved(try moved())))
        #expect(rig.saves.count == 2)
        rig.handle(.input(.secretsSaved(1, nil)))
        #expect(!rig.dropsMovedSecrets, "the first save lacks them")
        rig.handle(.input(.secretsSaved(2, Failure(.diskFull, "The disk is full."))))
        #expect(!rig.dropsMovedSecrets)
        rig.advance(.seconds(61))
        #expect(rig.saves.count == 3 && rig.saves.last?.credentials(of: "p1").count == 1)
        rig.handle(.input(.secretsSaved(3, nil)))
        #expect(rig.dropsMovedSecrets)
    }

    @Test func `a failed save after a successful one is retried`() throws {
        let rig = FeedsRig()
        rig.holdsSecrets = true
        rig.handle(.input(.secretsMoved(try moved())))
        rig.handle(.input(.secretsMoved(try moved())))
        rig.handle(.input(.secretsSaved(2, Failure(.diskFull, "The disk is full."))))
        rig.handle(.input(.secretsSaved(1, nil)))
        #expect(rig.machine.secretsAreUnsaved)
        rig.advance(.seconds(61))
        #expect(rig.saves.count == 3)
    }

    @Test func `a damaged file of passwords from an older database raises an alert`() throws {
        let rig = FeedsRig()
        rig.handle(.input(.secretsDamaged("The file of passwords is damaged.")))
        let alert = try #require(rig.published.first.flatMap { try? WireAlert(wireBytes: $0.payload) })
        #expect(alert.code == "secretsDamaged")
    }

    @Test func `a fetch that ends after its podcast was forgotten stores no password`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://u:\(Self.planted)@host.example/feed")
        try rig.deliver(rss([("1", "1.mp3", "One")]))
        let id = try #require(rig.podcasts.keys.first)
        rig.send {
            $0.subscribe.urls = ["https://host.example/feed"]
            $0.subscribe.user = "u"
            $0.subscribe.password = "other"
        }
        rig.send {
            $0.unsubscribe.podcasts = [id]
            $0.unsubscribe.forget = true
        }
        try rig.deliver(rss([("1", "https://x:\(Self.planted)@host.example/1.mp3", "One")]))
        #expect(rig.saves.last?.isEmpty == true && rig.machine.secrets.isEmpty)
    }

    @Test func `a password of a missing podcast is deleted at the next start`() throws {
        let rig = FeedsRig()
        _ = rig.subscribe("https://u:\(Self.planted)@host.example/feed")
        try rig.deliver(rss([("1", "1.mp3", "One")]))
        let own = try #require(rig.saves.last)
        var more = own
        more.merge(try moved())
        rig.saves.append(more)
        #expect(rig.restarted().saves.last == own)
        rig.owner.records = [:]
        #expect(rig.restarted().saves.last == more, "a database that was lost takes no passwords along")
    }

    @Test func `a damaged file of passwords raises an alert until it is answered`() throws {
        let rig = FeedsRig(machine: FeedsMachine(damage: "The file of passwords is damaged."))
        rig.restart(rig.machine)
        let alert = try #require(rig.published.first.flatMap { try? WireAlert(wireBytes: $0.payload) })
        #expect(alert.code == "secretsDamaged" && alert.message.contains("damaged"))
        let request = rig.send {
            $0.answerAlert.alert = alert.id
            $0.answerAlert.action = "dismiss"
        }
        #expect(try rig.replies[request]?.get() != nil)
        #expect(rig.machine.retained(now: rig.now).isEmpty)
        #expect(rig.restarted().machine.library.current.alerts.active.isEmpty)
    }

    @Test func `an alert whose answer can’t be saved waits for another answer`() throws {
        let rig = FeedsRig(machine: FeedsMachine(damage: "The file of passwords is damaged."))
        rig.restart(rig.machine)
        let alert = try #require(rig.machine.library.current.alerts.active.keys.first)
        func answer() -> RequestID {
            rig.send {
                $0.answerAlert.alert = alert
                $0.answerAlert.action = "dismiss"
            }
        }
        rig.holdsCommits = true
        let refused = answer()
        rig.refuse()
        #expect(throws: Failure.self) { try rig.replies[refused]?.get() }
        #expect(rig.machine.retained(now: rig.now).count == 1)
        rig.holdsCommits = false
        #expect(try rig.reply(to: answer())?.get() != nil)
        #expect(rig.machine.retained(now: rig.now).isEmpty)
    }

    @Test func `the message about an invalid address doesn’t contain its password`() throws {
        let rig = FeedsRig()
        let addresses = [
            "https://u:\(Self.planted)@ho st/feed", "ftp://u:\(Self.planted)@host/feed",
            "https://u:a/\(Self.planted)@host/feed", "https://u:a#\(Self.planted)@host/feed",
            "https://u:a\"\(Self.planted)@ho st/feed",
        ]
        let request = rig.send { $0.subscribe.urls = addresses }
        #expect(rig.results(request).map(\.kind) == addresses.map { _ in .failed })
        #expect(rig.results(request)[2].failure.message.contains("%2F"))
        let check = rig.send { $0.check.urls = addresses }
        #expect(rig.results(check).count == addresses.count)
        _ = rig.subscribe("https://u:a\"\(Self.planted)@host.example/feed")
        rig.fail()
        #expect(!leaks(rig))
    }
}
