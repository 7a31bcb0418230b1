import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Tests that the data of a podcast is removed when it is forgotten, not before.
struct PlaybackForgettingTests {
    private let rig = PlayerRig()

    /// Stores a setting of the podcast and a bookmark in its episode.
    private func keep(_ podcast: String, _ episode: String) throws {
        try rig.send {
            $0.setSetting.podcast = podcast
            $0.setSetting.key = "speed"
            $0.setSetting.value = "2"
        }
        _ = rig.episode(episode)
        rig.library[episode]?.podcastID = podcast
        try rig.send {
            $0.setBookmark.episode = episode
            $0.setBookmark.position = 10
        }
    }

    /// The podcasts with stored data, on the stream and in the database.
    private func kept() throws -> [String] {
        let topics = Set(rig.retained.keys)
        var kept: [String] = []
        for (podcast, episode) in [("p1", "e1"), ("p2", "e2")] {
            let isPublished = topics.contains(.settings(.playback, podcast: podcast))
            #expect(isPublished == topics.contains(.bookmarks(of: episode)))
            #expect(isPublished == (rig.records["setting/\(podcast)"]?["speed"] != nil))
            if isPublished { kept.append(podcast) }
        }
        let bookmarks = (rig.records["bookmark"] ?? [:]).values
        #expect(try bookmarks.map { try WireBookmark(wireBytes: $0).podcast }.sorted() == kept)
        return kept
    }

    @Test func `forgetting a podcast removes its settings and bookmarks, once`() throws {
        try rig.start()
        try keep("p1", "e1")
        try keep("p2", "e2")
        try rig.load(rig.episode("e1"))
        #expect(rig.state.speed == 2)
        try rig.forget("p1")
        #expect(try kept() == ["p2"] && rig.state.speed == 1)
        let commits = rig.owner.committed.count
        try rig.forget("p1")
        #expect(rig.owner.committed.count == commits)
        try rig.start()
        #expect(try kept() == ["p2"])
    }

    @Test func `a failed deletion is retried later`() throws {
        try rig.start()
        try keep("p1", "e1")
        rig.refusal = Failure(.diskFull, "full")
        try rig.forget("p1")
        rig.refusal = nil
        try rig.advance(31)
        #expect(try kept() == [])
    }

    @Test func `the podcasts of stored settings, bookmarks and chapters are reported at the start`() throws {
        try rig.start()
        try keep("p1", "e1")
        try keep("p2", "e2")
        try rig.start()
        #expect(rig.machine.knownPodcasts.map(\.text).sorted() == ["p1", "p2"])
    }
}
