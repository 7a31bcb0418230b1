import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import FeedsService

@Suite struct GoneEpisodesTests {
    private let one = (guid: "1", audio: "1.mp3", title: "One")
    private let two = (guid: "2", audio: "2.mp3", title: "Two")

    /// The changes of flags in the last commit, by flag: set and cleared.
    private func flags(_ rig: FeedsRig) -> [[Int]] {
        rig.owner.committed.last?.changes.compactMap { change in
            guard case .setFlags(let flags) = change.change else { return nil }
            return [flags.episodes.count, Int(flags.set), Int(flags.clear)]
        } ?? []
    }

    private func subscribed() throws -> FeedsRig {
        let rig = FeedsRig()
        _ = rig.subscribe("https://h.example/feed")
        try rig.deliver(rss([one, two]))
        return rig
    }

    private func refresh(_ rig: FeedsRig, _ text: String) throws -> [WireFeedResult] {
        rig.owner.committed = []
        rig.published = []
        let request = rig.send { $0.refresh.podcasts = [] }
        try rig.deliver(text)
        return rig.results(request)
    }

    @Test func `an episode that vanishes from the feed is marked, and unmarked when it returns`() throws {
        let rig = try subscribed()
        #expect(flags(rig) == [])
        let results = try refresh(rig, rss([two]))
        #expect(flags(rig) == [[1, 2, 0]] && results.map(\.newEpisodes) == [0])
        #expect(rig.published.contains { $0.topic.text.hasPrefix("stream/feeds/episodes/") })
        _ = try refresh(rig, rss([two]))
        #expect(flags(rig) == [])
        let restarted = rig.restarted()
        let returned = try refresh(restarted, rss([one, two]))
        #expect(flags(restarted) == [[1, 0, 2]] && returned.map(\.newEpisodes) == [0])
        #expect(restarted.podcasts.values.map(\.episodeCount) == [2])
    }

    @Test func `a feed that is cut off or empty marks nothing`() throws {
        let rig = try subscribed()
        for text in [String(rss([two]).dropLast(20)), rss([])] {
            _ = try refresh(rig, text)
            #expect(flags(rig) == [])
        }
    }

    @Test func `an episode whose GUID changes isn’t gone`() throws {
        let rig = try subscribed()
        for _ in 1...2 {
            _ = try refresh(rig, rss([(guid: "new", audio: "1.mp3", title: "One"), two]))
            #expect(flags(rig) == [])
        }
    }
}
