import BusKit
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import FeedsService

@Suite struct EpisodeOwnershipTests {
    /// Creates a library in which another podcast has an episode with the ID of the first item of `feed`.
    private func library(_ address: String, _ feed: String) throws -> (driver: MachineDriver, stolen: WireEpisode) {
        var attacker = MachineDriver()
        _ = attacker.subscribe(address)
        try attacker.deliver(feed)
        var driver = MachineDriver()
        _ = driver.subscribe("https://victim.example/feed")
        try driver.deliver(rss([("v", "v.mp3", "Victim")]))
        var stolen = try #require(attacker.episodes.values.first { $0.title == "One" })
        stolen.podcastID = try #require(driver.podcasts.keys.first)
        stolen.title = "Victim"
        driver.episodes[stolen.id] = stolen
        return (driver, stolen)
    }

    @Test func `a feed can’t take over the episode of another podcast`() throws {
        let feed = rss([("1", "1.mp3", "One"), ("2", "2.mp3", "Two")])
        var (driver, stolen) = try library("https://attacker.example/feed", feed)
        let request = driver.subscribe("https://attacker.example/feed")
        try driver.deliver(feed)
        let result = try #require(driver.results(request).first)
        #expect(result.kind == .added && result.newEpisodes == 1)
        #expect(result.podcast.episodeCount == 1)
        #expect(result.warnings == ["An episode was left out: another podcast has one with its ID"])
        #expect(driver.episodes[stolen.id] == stolen)
        #expect(driver.episodes.values.contains { $0.title == "Two" })
        #expect(driver.logged.contains { $0.level == .warning && $0.text.contains(stolen.id) })
        let events = driver.published.filter { $0.kind == .event }.compactMap {
            try? WireEpisodesChanged(wireBytes: $0.payload)
        }
        #expect(!events.contains { $0.added.contains(stolen.id) || $0.updated.contains(stolen.id) })
    }

    @Test func `forgetting a podcast doesn’t announce the removal of another podcast’s episode`() throws {
        let feed = rss([("1", "1.mp3", "One"), ("2", "2.mp3", "Two")])
        var (driver, stolen) = try library("https://attacker.example/feed", feed)
        let request = driver.subscribe("https://attacker.example/feed")
        try driver.deliver(feed)
        let id = try #require(driver.results(request).first?.podcast.id)
        driver.published = []
        _ = driver.send {
            $0.unsubscribe.podcasts = [id]
            $0.unsubscribe.forget = true
        }
        let removed = driver.published.compactMap { try? WireEpisodesChanged(wireBytes: $0.payload).removed }
        #expect(removed.flatMap { $0 }.count == 1)
        #expect(!removed.contains { $0.contains(stolen.id) })
    }
}
