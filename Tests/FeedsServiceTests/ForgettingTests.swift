import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import FeedsService

/// Tests podcasts that are deleted after a delay.
@Suite struct ForgettingTests {
    private static let feed = """
        <rss><channel><title>Show</title><item><guid>1</guid><title>One</title><enclosure url="1.mp3"/></item></channel></rss>
        """
    private static let address = "https://a.example/feed"

    private static func subscribed() throws -> (rig: FeedsRig, id: String) {
        let rig = FeedsRig()
        _ = rig.subscribe(address)
        try rig.deliver(feed)
        return (rig, try #require(rig.podcasts.keys.first))
    }

    @discardableResult
    private static func forget(_ id: String, _ rig: FeedsRig, after seconds: UInt32 = 86_400) -> [WireFeedResult] {
        let request = rig.send {
            $0.unsubscribe.podcasts = [id]
            $0.unsubscribe.forget = true
            $0.unsubscribe.delay = seconds
        }
        return rig.results(request)
    }

    @Test func `a forgotten podcast is no longer refreshed, and deleted when its time has come`() throws {
        let (rig, id) = try Self.subscribed()
        let result = try #require(Self.forget(id, rig).first)
        #expect(result.kind == .removed && result.podcast.forgetAt == rig.now.wall.milliseconds + 86_400_000)
        #expect(rig.podcasts[id]?.subscribed == false && rig.podcasts[id]?.wasSubscribed == true)
        #expect(Self.forget(id, rig, after: 1).map(\.kind) == [.unchanged])
        rig.advance(.seconds(86_000))
        #expect(rig.podcasts[id]?.forgetAt == result.podcast.forgetAt && rig.episodes.count == 1)
        #expect(rig.orders.count == 1)
        rig.advance(.seconds(500))
        #expect(rig.podcasts.isEmpty && rig.episodes.isEmpty && rig.records.values.joined().isEmpty)
        #expect(rig.published.contains { $0.kind == .delete })
    }

    @Test(arguments: [true, false])
    func `until then, everything can be restored`(isSubscribed: Bool) throws {
        let (rig, id) = try Self.subscribed()
        if !isSubscribed { rig.send { $0.unsubscribe.podcasts = [id] } }
        Self.forget(id, rig)
        let undone = rig.send { $0.undoForget.podcasts = [id, "absent"] }
        #expect(rig.results(undone).map(\.kind) == [.updated, .failed])
        #expect(rig.podcasts[id]?.subscribed == isSubscribed && rig.podcasts[id]?.forgetAt == 0)
        let again = rig.send { $0.undoForget.podcasts = [id] }
        #expect(rig.results(again).map(\.kind) == [.unchanged])
        rig.advance(.seconds(100_000))
        #expect(rig.podcasts[id] != nil && rig.episodes.count == 1)
        // A restored subscription is refreshed.
        #expect((rig.orders.count > 1) == isSubscribed)
    }

    @Test func `subscribing again keeps a forgotten podcast`() throws {
        let (rig, id) = try Self.subscribed()
        Self.forget(id, rig)
        _ = rig.subscribe(Self.address)
        try rig.deliver(Self.feed)
        #expect(rig.podcasts[id]?.subscribed == true && rig.podcasts[id]?.forgetAt == 0)
        rig.advance(.seconds(100_000))
        #expect(rig.podcasts[id] != nil)
    }

    @Test func `a podcast whose time came while the service was down is deleted at its start`() throws {
        let (rig, id) = try Self.subscribed()
        Self.forget(id, rig, after: 60)
        rig.now.wall = Timestamp(milliseconds: rig.now.wall.milliseconds + 3_600_000)
        let next = rig.restarted()
        next.advance(.seconds(1))
        #expect(next.podcasts.isEmpty && next.episodes.isEmpty)
    }

    @Test func `a deletion that can’t be stored is tried again`() throws {
        let (rig, id) = try Self.subscribed()
        Self.forget(id, rig, after: 60)
        rig.holdsCommits = true
        rig.advance(.seconds(61))
        #expect(rig.owner.heldTransactions.count == 1)
        rig.refuse()
        rig.holdsCommits = false
        #expect(rig.podcasts[id] != nil)
        rig.advance(.seconds(61))
        #expect(rig.podcasts.isEmpty)
    }

    @Test func `a delay that is too long is refused, and one without forgetting`() throws {
        let (rig, id) = try Self.subscribed()
        let long = rig.send {
            $0.unsubscribe.podcasts = [id]
            $0.unsubscribe.forget = true
            $0.unsubscribe.delay = .max
        }
        #expect(rig.reply(to: long)?.failure?.code == "invalidArgument")
        let without = rig.send {
            $0.unsubscribe.podcasts = [id]
            $0.unsubscribe.delay = 1
        }
        #expect(rig.reply(to: without)?.failure?.code == "invalidArgument")
        #expect(rig.podcasts[id]?.subscribed == true)
    }
}
