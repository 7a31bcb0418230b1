import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import FeedsService

@Suite struct EpisodeOwnershipTests {
    /// Creates a library in which another podcast has an episode with the ID of the first item of `feed`.
    private func library(_ address: String, _ feed: String) throws -> (rig: FeedsRig, stolen: WireEpisode) {
        let attacker = FeedsRig()
        _ = attacker.subscribe(address)
        try attacker.deliver(feed)
        let rig = FeedsRig()
        _ = rig.subscribe("https://victim.example/feed")
        try rig.deliver(rss([("v", "v.mp3", "Victim")]))
        var stolen = try #require(attacker.episodes.values.first { $0.title == "One" })
        stolen.podcastID = try #require(rig.podcasts.keys.first)
        stolen.title = "Victim"
        rig.episodes[stolen.id] = stolen
        return (rig, stolen)
    }

    @Test func `a feed can’t take over the episode of another podcast`() throws {
        let feed = rss([("1", "1.mp3", "One"), ("2", "2.mp3", "Two")])
        let (rig, stolen) = try library("https://attacker.example/feed", feed)
        let request = rig.subscribe("https://attacker.example/feed")
        try rig.deliver(feed)
        let result = try #require(rig.results(request).first)
        #expect(result.kind == .added && result.newEpisodes == 1)
        #expect(result.podcast.episodeCount == 1)
        #expect(result.warnings == ["An episode was left out: another podcast has one with its ID"])
        #expect(rig.episodes[stolen.id] == stolen)
        #expect(rig.episodes.values.contains { $0.title == "Two" })
        #expect(rig.owner.logged.contains { $0.level == .warning && $0.text.contains(stolen.id) })
        let events = rig.published.filter { $0.kind == .event }.compactMap {
            try? WireEpisodesChanged(wireBytes: $0.payload)
        }
        #expect(!events.contains { $0.added.contains(stolen.id) || $0.updated.contains(stolen.id) })
    }

    @Test func `forgetting a podcast doesn’t announce the removal of another podcast’s episode`() throws {
        let feed = rss([("1", "1.mp3", "One"), ("2", "2.mp3", "Two")])
        let (rig, stolen) = try library("https://attacker.example/feed", feed)
        let request = rig.subscribe("https://attacker.example/feed")
        try rig.deliver(feed)
        let id = try #require(rig.results(request).first?.podcast.id)
        rig.published = []
        _ = rig.send {
            $0.unsubscribe.podcasts = [id]
            $0.unsubscribe.forget = true
        }
        let removed = rig.published.compactMap { try? WireEpisodesChanged(wireBytes: $0.payload).removed }
        #expect(removed.flatMap { $0 }.count == 1)
        #expect(!removed.contains { $0.contains(stolen.id) })
    }
}
