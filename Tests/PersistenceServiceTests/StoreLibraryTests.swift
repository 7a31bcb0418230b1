import Foundation
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import PersistenceService

@Suite struct StoreLibraryTests {
    let fixture: StoreFixture
    let store: Store

    init() throws {
        fixture = try StoreFixture()
        store = try fixture.open()
    }

    private func ids(_ change: (inout WireEpisodesQuery) -> Void) throws -> [String] {
        try store.episodes(change).episodes.map(\.id)
    }

    @Test func `episodes are listed newest first with title and state`() throws {
        try store.apply(
            "feeds",
            [
                .podcast("p1", title: "One"), .podcast("p2", title: "Two"), .episode("e1", published: 100),
                .episode("e2", of: "p2", published: 300), .episode("e3", published: 200),
                .episode("e4", published: 0),
            ])
        try store.apply("playback", [.state("e3", position: 12, played: true)])
        let page = try store.episodes()
        #expect(page.episodes.map(\.id) == ["e2", "e3", "e1", "e4"])
        #expect(page.episodes.map(\.podcastTitle) == ["Two", "One", "One", "One"])
        #expect(page.episodes[1].state.position == 12)
        #expect(page.total == 4)
        #expect(page.next.isEmpty)
        #expect(try ids { $0.podcast = "p1" } == ["e3", "e1", "e4"])
        #expect(try ids { $0.unplayedOnly = true } == ["e2", "e1", "e4"])
        #expect(
            try ids {
                $0.podcast = "p1"
                $0.unplayedOnly = true
            } == ["e1", "e4"])
        #expect(try store.episodes { $0.unplayedOnly = true }.total == 3)
        #expect(try store.counts() == (podcasts: 2, episodes: 4))
    }

    @Test func `cursors keep their position while episodes are added and deleted`() throws {
        try store.apply(
            "feeds", [.podcast("p1")] + (1...50).map { .episode("e\($0)", published: Int64($0 / 3) * 1_000 + 1) })
        var seen: [String] = []
        var after = ""
        var round = 0
        while true {
            let page = try store.episodes {
                $0.limit = 7
                $0.after = after
            }
            #expect((page.total > 0) == after.isEmpty)
            seen += page.episodes.map(\.id)
            if page.next.isEmpty { break }
            after = page.next
            round += 1
            // Newer episodes are added in front, and an episode that was already listed is deleted.
            try store.apply(
                "feeds", [.episode("enew\(round)", published: 1_000_000 + Int64(round)), .deleting(episode: seen[0])])
        }
        #expect(seen.count == 50)
        #expect(Set(seen).count == 50)
    }

    @Test func `an episode that is put again is updated and ordered by its new date`() throws {
        try store.apply(
            "feeds",
            [.podcast("p1"), .episode("e1", title: "Old words", published: 100), .episode("e2", published: 200)])
        try store.apply("playback", [.state("e1", played: true)])
        try store.apply("feeds", [.episode("e1", title: "New phrase", notes: "<p>notes</p>", published: 300)])
        #expect(try ids { _ in } == ["e1", "e2"])
        #expect(try ids { $0.search = "old" } == [])
        #expect(try ids { $0.search = "phrase notes" } == ["e1"])
        try store.apply("feeds", [.episode("e1", title: "Newer", published: 300)])
        #expect(try ids { $0.search = "phrase" } == [])
        #expect(try ids { $0.search = "newer" } == ["e1"])
        #expect(try ids { $0.unplayedOnly = true } == ["e2"])
        #expect(try store.counts().episodes == 2)
        let podcast = try store.podcasts(WirePodcastsQuery()).podcasts[0]
        #expect(podcast.episodeCount == 2)
        #expect(podcast.unplayedCount == 1)
    }

    @Test func `a query for downloaded episodes uses the downloads’ records and accepts all other filters`() throws {
        try store.apply(
            "feeds",
            [.podcast("p1"), .podcast("p2")]
                + (1...6).map { .episode("e\($0)", title: "word \($0)", published: Int64($0) * 100) }
                + [.episode("e7", of: "p2", title: "word 7", published: 700)])
        try store.apply("playback", [.state("e3", played: true)])
        let states: [(String, WireDownload.State)] = [
            ("e1", .downloaded), ("e2", .downloading), ("e3", .downloaded), ("e5", .downloaded), ("e6", .failed),
            ("e7", .downloaded), ("gone", .downloaded),
        ]
        try store.apply(
            "downloads",
            states.map { id, state in
                let download = WireDownload.with { ($0.episode, $0.state) = (id, state) }
                return .putting("download", id, download, about: download.subject)
            })
        #expect(try ids { $0.downloadedOnly = true } == ["e7", "e5", "e3", "e1"])
        #expect(try ids { ($0.downloadedOnly, $0.podcast) = (true, "p1") } == ["e5", "e3", "e1"])
        #expect(try ids { ($0.downloadedOnly, $0.unplayedOnly) = (true, true) } == ["e7", "e5", "e1"])
        #expect(try ids { ($0.downloadedOnly, $0.search, $0.podcast) = (true, "word", "p1") } == ["e5", "e3", "e1"])
        let first = try store.episodes { ($0.downloadedOnly, $0.limit) = (true, 3) }
        #expect(first.downloadedOnly)
        #expect(first.total == 4)
        let second = try store.episodes { ($0.downloadedOnly, $0.limit, $0.after) = (true, 3, first.next) }
        #expect(second.episodes.map(\.id) == ["e1"])
        #expect(second.next.isEmpty)
        #expect(try !store.episodes().downloadedOnly)
    }

    @Test func `a query for downloaded episodes skips an unreadable record, and an empty page names the filter`() throws
    {
        try store.apply("feeds", [.podcast("p1"), .episode("e1")])
        let download = WireDownload.with { ($0.episode, $0.state) = ("e1", .downloaded) }
        try store.apply(
            "downloads",
            [
                .with { ($0.put.collection, $0.put.key, $0.put.value) = ("download", "broken", Data([0xFF])) },
                .putting("download", "e1", download, about: download.subject),
            ])
        #expect(try ids { $0.downloadedOnly = true } == ["e1"])
        let nothing = try store.episodes { ($0.downloadedOnly, $0.search) = (true, "!?") }
        #expect(nothing.downloadedOnly && nothing.episodes.isEmpty)
    }

    @Test func `an episode whose download can’t be read is listed without it`() throws {
        try store.apply("feeds", [.podcast("p1"), .episode("e1")])
        try store.apply(
            "downloads", [.with { ($0.put.collection, $0.put.key, $0.put.value) = ("download", "e1", Data([0xFF])) }])
        #expect(try ids { _ in } == ["e1"])
    }

    @Test func `a state that is stored before its episode counts once the episode is added`() throws {
        try store.apply("playback", [.state("e1", played: true)])
        try store.apply("feeds", [.podcast("p1"), .episode("e1")])
        #expect(try store.podcasts(WirePodcastsQuery()).podcasts[0].unplayedCount == 0)
        try store.apply("playback", [.state("e1", played: false)])
        #expect(try store.podcasts(WirePodcastsQuery()).podcasts[0].unplayedCount == 1)
    }

    @Test func `deleting a podcast deletes everything that belongs to it`() throws {
        try store.apply(
            "feeds",
            [
                .podcast("p1"), .podcast("p2"), .episode("e1", title: "shared word"),
                .episode("e2", of: "p2", title: "shared word"), .alias("guid:1", of: "p1", is: "e1"),
            ])
        try store.apply("playback", [.state("e1"), .state("e2")])
        var delete = WireChange()
        delete.deletePodcast = "p1"
        try store.apply("feeds", [delete])
        #expect(try ids { $0.search = "shared" } == ["e2"])
        #expect(try ids { _ in } == ["e2"])
        #expect(try store.counts() == (podcasts: 1, episodes: 1))
        #expect(try store.aliases(WireAliasQuery.with { $0.podcast = "p1" }).aliases.isEmpty)
        try store.apply("feeds", [.podcast("p1"), .episode("e1")])
        #expect(try !store.episodes { $0.podcast = "p1" }.episodes[0].hasState)
    }

    @Test func `podcasts are listed by title in pages`() throws {
        let titles = ["beta", "Alpha", "alpha", "Émile", "zeta", "Delta"]
        try store.apply(
            "feeds",
            titles.enumerated().map { .podcast("p\($0)", title: $1) }
                + [.podcast("p9", title: "Aardvark", subscribed: false)])
        var query = WirePodcastsQuery()
        query.limit = 2
        var seen: [String] = []
        while true {
            let page = try store.podcasts(query)
            #expect(page.podcasts.count <= 2)
            seen += page.podcasts.map(\.title)
            if page.next.isEmpty { break }
            query.after = page.next
        }
        #expect(seen == ["Alpha", "alpha", "beta", "Delta", "zeta", "Émile"])
        query = WirePodcastsQuery()
        query.includeUnsubscribed = true
        #expect(try store.podcasts(query).podcasts.first?.title == "Aardvark")
    }

    @Test func `long show notes end a page early, and no episode is omitted`() throws {
        let notes = String(repeating: "x<b>y</b> ", count: 10_000)
        for number in 1...12 {
            try store.apply("feeds", [.podcast("p1"), .episode("e\(number)", notes: notes, published: Int64(number))])
        }
        var seen = 0
        var after = ""
        while true {
            let page = try store.episodes {
                $0.limit = 500
                $0.withDescription = true
                $0.after = after
            }
            #expect(page.wireBytes.count < 1 << 20)
            #expect(page.episodes.allSatisfy { $0.description_p == notes })
            seen += page.episodes.count
            if page.next.isEmpty { break }
            after = page.next
        }
        #expect(seen == 12)
        let byID = try store.episodes(WireEpisodesByID.with { $0.ids = (1...12).map { "e\($0)" } + ["e404"] })
        #expect(byID.episodes.count == 12)
        #expect(byID.wireBytes.count < 1 << 20)
        #expect(byID.episodes[0].description_p == notes)
        #expect(byID.episodes.map(\.id).first == "e1")
    }

    @Test func `a lookup of large episodes is answered in pages`() throws {
        let changes = (1...300).map { number in
            var change = WireChange.episode("e\(number)")
            change.putEpisode.guid = String(repeating: "g", count: 4_096)
            change.putEpisode.link = "https://example.org/" + String(repeating: "l", count: 4_000)
            return change
        }
        try store.apply("feeds", [.podcast("p1")] + changes)
        var query = WireEpisodesByID.with {
            $0.ids = ["e404"] + (1...300).map { "e\($0)" }
            $0.brief = true
        }
        var found: [String] = []
        while !query.ids.isEmpty {
            let page = try store.episodes(query)
            #expect(page.wireBytes.count < 1 << 20)
            found += page.episodes.map(\.id)
            query.ids.removeFirst(page.answered == 0 ? query.ids.count : Int(page.answered))
        }
        #expect(found == (1...300).map { "e\($0)" })
    }

    @Test func `many episodes with many chapters fit in one answer`() throws {
        let chapters = (0..<40).map { number in
            WireChapter.with {
                $0.start = Double(number)
                $0.title = "Chapter \(number) of many"
                $0.url = "https://example.org/" + String(repeating: "u", count: 60)
            }
        }
        let changes = (1...400).map { number in
            var change = WireChange.episode("e\(number)")
            change.putEpisode.chapters = chapters
            return change
        }
        try store.apply("feeds", [.podcast("p1")] + changes)
        let byID = try store.episodes(WireEpisodesByID.with { $0.ids = (1...400).map { "e\($0)" } })
        #expect(byID.episodes.count == 400 && byID.episodes[0].chapters == chapters)
        #expect(byID.wireBytes.count < 1 << 20)
    }

    @Test func `chapters of the file are used if there are no others`() throws {
        func record(_ title: String) -> WirePlaybackChaptersRecord {
            .with { $0.chapters = [.with { $0.title = title }] }
        }
        var own = WireChange.episode("e2")
        own.putEpisode.chapters = [.with { $0.title = "Of the feed" }]
        try store.apply("feeds", [.podcast("p1"), .episode("e1"), own])
        try store.apply("playback", ["e1", "e2"].map { .putting("chapters", $0, record("Of the file")) })
        let found = try store.episodes(WireEpisodesByID.with { $0.ids = ["e1", "e2"] }).episodes
        #expect(found.map { $0.chapters.map(\.title) } == [["Of the file"], ["Of the feed"]])
        #expect(found.map(\.chaptersOfFile) == [true, false])
        let brief = try store.episodes(
            WireEpisodesByID.with {
                $0.ids = ["e1"]
                $0.brief = true
            }
        ).episodes
        #expect(brief.first?.chapters.isEmpty == true)
    }

    @Test func `aliases are found by name and listed in pages`() throws {
        let names = (0..<3_000).map { "guid:\($0)-\(String(repeating: "g", count: 300))" }
        try store.apply("feeds", [.podcast("p1")] + names.enumerated().map { .alias($1, of: "p1", is: "e\($0)") })
        var query = WireAliasQuery()
        query.podcast = "p1"
        var seen = 0
        repeat {
            let page = try store.aliases(query)
            #expect(page.wireBytes.count < 1 << 20)
            seen += page.aliases.count
            query.after = page.next
        } while !query.after.isEmpty
        #expect(seen == 3_000)
        query.aliases = [names[7], "guid:other"]
        #expect(try store.aliases(query).aliases.map(\.alias) == [names[7]])
    }

    @Test(arguments: ["xyz!", "-1 or 1", "zzzzzzzzzzzzzzzzzzzzz"])
    func `an invalid cursor is refused`(cursor: String) throws {
        #expect(throws: Failure.self) { try store.episodes { $0.after = cursor } }
    }
}

extension WireChange {
    static func deleting(episode: String) -> WireChange {
        var change = WireChange()
        change.deleteEpisode = episode
        return change
    }
}
