import BusKit
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// What is kept for a podcast goes when it is forgotten, and not before.
struct PlaybackForgettingTests {
    private let rig = PlayerRig()

    /// A podcast with a setting of its own and a bookmark in the episode.
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

    /// The podcasts that something is kept for, on the stream and in the database.
    private func kept() throws -> [String] {
        let topics = Set(rig.retained.keys)
        var kept: [String] = []
        for (podcast, episode) in [("p1", "e1"), ("p2", "e2")] {
            let isPublished = topics.contains(.settings(.playback, podcast: podcast))
            #expect(isPublished == topics.contains(.bookmarks(of: episode)))
            #expect(isPublished == (rig.records["setting/\(podcast)/speed"] != nil))
            if isPublished { kept.append(podcast) }
        }
        let bookmarks = rig.records.values.filter { $0.collection == "bookmark" }
        #expect(try bookmarks.map { try WireBookmark(wireBytes: $0.value).podcast }.sorted() == kept)
        return kept
    }

    @Test func `a forgotten podcast takes its settings and bookmarks along, one that is unsubscribed keeps them`()
        throws
    {
        try rig.start()
        try keep("p1", "e1")
        try keep("p2", "e2")
        try rig.load(rig.episode("e1"))
        #expect(rig.state.speed == 2)
        var podcast = WirePodcast()
        podcast.id = "p1"
        try rig.observe(.put, .podcast("p1"), podcast.wireBytes)
        #expect(try kept() == ["p1", "p2"])
        // What is only not shown any more is there still.
        rig.podcasts = ["p1", "p2"]
        try rig.observe(.delete, .podcast("p1"))
        #expect(try kept() == ["p1", "p2"])
        rig.podcasts = ["p2"]
        try rig.observe(.delete, .podcast("p1"))
        #expect(try kept() == ["p2"] && rig.state.speed == 1)
        try rig.observe(.delete, .podcast("p1"))
        try rig.start()
        #expect(try kept() == ["p2"])
    }

    @Test func `what could not be deleted at once is deleted later`() throws {
        try rig.start()
        try keep("p1", "e1")
        rig.podcasts = []
        rig.refusal = Failure(.diskFull, "full")
        try rig.observe(.delete, .podcast("p1"))
        rig.refusal = nil
        try rig.advance(31)
        #expect(try kept() == [])
    }

    @Test(
        arguments: [(["p1", "p2"], ["p1", "p2"]), (["p2"], ["p2"]), ([], []), (nil, ["p1", "p2"])]
            as [([String]?, [String])])
    func `what was forgotten while the player was not there is found out, if the library can say`(
        there: [String]?, expected: [String]
    ) throws {
        try rig.start()
        try keep("p1", "e1")
        try keep("p2", "e2")
        rig.podcasts = there
        try rig.start()
        #expect(try kept() == expected)
    }
}
