import BusKit
import FeedFetching
import OwnerHarness
import OwnerKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import FeedsService

/// Tests the tags and titles that users give to podcasts.
@Suite struct PodcastSettingsTests {
    private let rig = FeedsRig()
    private let id: String

    init() throws {
        _ = rig.subscribe("https://waves.example/feed.xml")
        try rig.deliver(rss([("1", "1.mp3", "One")]))
        id = try #require(rig.podcasts.keys.first)
    }

    private func set(_ rig: FeedsRig? = nil, _ fill: (inout WireSetPodcast) -> Void) -> WireFeedResult? {
        let rig = rig ?? self.rig
        let request = rig.send {
            $0.setPodcast.podcasts = [id]
            fill(&$0.setPodcast)
        }
        return rig.results(request).first
    }

    @Test func `tags are stored once, regardless of case, and survive refreshes and restarts`() throws {
        #expect(set { $0.addTags = [" News ", "daily"] }?.kind == .updated)
        #expect(set { $0.addTags = ["NEWS"] }?.kind == .unchanged)
        #expect(rig.podcasts[id]?.tags == ["News", "daily"])
        rig.send { $0.refresh.podcasts = [id] }
        try rig.deliver(rss([("1", "1.mp3", "One"), ("2", "2.mp3", "Two")]))
        let next = rig.restarted()
        #expect(set(next) { $0.removeTags = ["news", "absent"] }?.podcast.tags == ["daily"])
        let put = try #require(next.retained[.podcast(id)].flatMap { try? WirePodcast(wireBytes: $0) })
        #expect(put.tags == ["daily"])
    }

    @Test func `an own title stays when the feed’s changes, and can be taken back`() throws {
        #expect(set { $0.title = "My waves" }?.podcast.title == "My waves")
        #expect(rig.podcasts[id]?.feedTitle == "Waves")
        rig.send { $0.refresh.podcasts = [id] }
        try rig.deliver(
            rss([("1", "1.mp3", "One")]).replacing("<title>Waves</title>", with: "<title>New waves</title>"))
        #expect(rig.podcasts[id]?.title == "My waves" && rig.podcasts[id]?.feedTitle == "New waves")
        // The feed uses the user’s title for a time.
        for title in ["My waves", "New waves"] {
            rig.send { $0.refresh.podcasts = [id] }
            try rig.deliver(
                rss([("1", "1.mp3", "One")]).replacing("<title>Waves</title>", with: "<title>\(title)</title>"))
            #expect(rig.podcasts[id]?.title == "My waves" && rig.podcasts[id]?.feedTitle == title)
        }
        #expect(set { $0.title = "" }?.podcast.title == "New waves")
        #expect(rig.podcasts[id]?.feedTitle == "")
        #expect(set { $0.title = "New waves" }?.kind == .unchanged)
    }

    @Test func `invalid tags, titles and podcasts are refused`() throws {
        func refusal(_ fill: (inout WireSetPodcast) -> Void) -> FailureCode? {
            let request = rig.send {
                $0.setPodcast.podcasts = [id]
                fill(&$0.setPodcast)
            }
            return rig.reply(to: request)?.failure?.known
        }
        for tag in ["", "  ", "a\nb", String(repeating: "x", count: 51), "\u{7}"] {
            #expect(refusal { $0.addTags = [tag] } == .invalidArgument, "\(tag.debugDescription)")
        }
        #expect(refusal { $0.title = "a\u{2028}b" } == .invalidArgument)
        #expect(refusal { $0.podcasts = [] } == .invalidArgument)
        #expect(refusal { ($0.podcasts, $0.title) = ([id, id], "x") } == .invalidArgument)
        #expect(set { $0.podcasts = ["pmissing"] }?.failure.code == "notFound")
        #expect(refusal { $0.addTags = (0...100).map { "tag \($0)" } } == .limitReached)
        #expect(rig.podcasts[id]?.tags == [])
        #expect(set { $0.addTags = (0..<100).map { "tag \($0)" } }?.kind == .updated)
        #expect(set { $0.addTags = ["one more"] }?.failure.code == "limitReached")
        #expect(rig.podcasts[id]?.tags.count == 100)
    }

    @Test func `a reply about many podcasts can be stored`() throws {
        let results = (0..<1_000).map { number in
            WireFeedResult.with {
                ($0.kind, $0.url) = (.updated, String(repeating: "u", count: 8_000))
                ($0.podcast.id, $0.podcast.title) = ("p\(number)", String(repeating: "t", count: 1_000))
                $0.podcast.tags = [String](repeating: "tag", count: 100)
            }
        }
        let bytes = FeedsMachine.stored(.with { $0.results = results })
        let read = try WireFeedsReply(wireBytes: bytes)
        #expect(bytes.count < FeedsMachine.answerLimit)
        #expect(read.results.map(\.podcast.id) == results.map(\.podcast.id))
        #expect(read.results.allSatisfy { $0.kind == .updated && !$0.podcast.title.isEmpty })
        let few = WireFeedsReply.with { $0.results = Array(results.prefix(3)) }
        #expect(try WireFeedsReply(wireBytes: FeedsMachine.stored(few)) == few)
    }
}
