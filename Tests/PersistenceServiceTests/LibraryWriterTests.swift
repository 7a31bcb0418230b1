import GRDB
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

@testable import PersistenceService

/// Tests the texts and counts that a transaction collects until its end.
@Suite struct LibraryWriterTests {
    let fixture: StoreFixture
    let store: Store

    init() throws {
        fixture = try StoreFixture()
        store = try fixture.open()
    }

    private func counts(of podcast: String) throws -> [UInt32] {
        let podcasts = try store.podcasts(WirePodcastsQuery.with { $0.includeUnsubscribed = true }).podcasts
        return podcasts.first { $0.id == podcast }.map { [$0.episodeCount, $0.unplayedCount] } ?? []
    }

    private func found(_ text: String) throws -> [String] { try store.episodes { $0.search = text }.episodes.map(\.id) }

    private func deleting(podcast: String) -> WireChange {
        var change = WireChange()
        change.deletePodcast = podcast
        return change
    }

    /// Compares the FTS5 index with the stored texts, and the counts with recomputed ones.
    private func expectConsistency() throws {
        try store.pool.writeWithoutTransaction { db in
            try db.execute(sql: "INSERT INTO episode_search (episode_search, rank) VALUES ('integrity-check', 1)")
        }
        let wrong = try store.pool.read { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT podcast FROM podcast_count WHERE (episodes, played, seconds, played_seconds) IS NOT (
                        SELECT count(*), coalesce(sum(played), 0), coalesce(sum(seconds), 0),
                            coalesce(sum(seconds * played), 0) FROM episode
                        WHERE episode.podcast = podcast_count.podcast)
                    """)
        }
        #expect(wrong == [])
    }

    @Test func `an episode that is put and deleted in one transaction leaves neither texts nor counts`() throws {
        try store.apply("feeds", [.podcast("p1"), .episode("e1", title: "Gone"), .deleting(episode: "e1")])
        #expect(try found("gone") == [])
        #expect(try counts(of: "p1") == [0, 0])
        try expectConsistency()
    }

    @Test func `an episode that changes twice in one transaction is found by its last words`() throws {
        try store.apply("feeds", [.podcast("p1"), .episode("e1", title: "First")])
        try store.apply("feeds", [.episode("e1", title: "Second"), .episode("e1", title: "Third", published: 5)])
        #expect(try ["first", "second", "third"].map { try found($0) } == [[], [], ["e1"]])
        #expect(try counts(of: "p1") == [1, 1])
        try expectConsistency()
    }

    @Test func `a podcast that is deleted and put again in one transaction has only its new episodes`() throws {
        try store.apply("feeds", [.podcast("p1"), .episode("e1", title: "Old"), .episode("e2", title: "Old")])
        try store.apply(
            "feeds",
            [.episode("e3", title: "Old"), deleting(podcast: "p1"), .podcast("p1"), .episode("e1", title: "New")])
        #expect(try found("old") == [])
        #expect(try found("new") == ["e1"])
        #expect(try counts(of: "p1") == [1, 1])
        try expectConsistency()
    }

    @Test func `a refused commit leaves the texts and counts of earlier commits`() throws {
        let commits = [
            WireCommit("a", at: 0, [.podcast("p1"), .episode("e1", title: "Kept")]),
            WireCommit("b", at: 1, [.episode("e2", title: "Refused"), deleting(podcast: "p1"), .put("", "", "")]),
        ]
        let outcomes = try store.commit(WireCommitBatch("feeds", commits)).outcomes
        #expect(outcomes.map(\.kind) == [.committed, .refused])
        #expect(try found("kept") == ["e1"])
        #expect(try found("refused") == [])
        #expect(try counts(of: "p1") == [1, 1])
        try expectConsistency()
    }

    @Test func `played episodes are counted as played when they are added`() throws {
        try store.apply("playback", [.state("e1", played: true)])
        try store.apply("feeds", [.podcast("p1"), .episode("e1"), .episode("e2"), .deleting(episode: "e2")])
        #expect(try counts(of: "p1") == [1, 0])
        try expectConsistency()
    }

    @Test(arguments: 0..<8) func `texts and counts stay correct after random transactions`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        func number(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }
        func change() -> WireChange {
            let podcast = number(3)
            let id = "e\(podcast)\(number(6))"
            switch number(12) {
            case 0: return number(3) == 0 ? deleting(podcast: "p\(podcast)") : .podcast("p\(podcast)")
            case 1, 2: return .podcast("p\(podcast)")
            case 3: return .deleting(episode: id)
            default:
                let notes = "word\(number(4)) <b>bold</b>"
                return .episode(
                    id, of: "p\(podcast)", title: "Title \(number(4))", notes: notes, published: Int64(number(3)))
            }
        }
        try store.apply("feeds", (0..<3).map { .podcast("p\($0)") })
        for round in 0..<40 {
            let revision = try store.revision("feeds")
            let commits = (0..<3).map { index -> WireCommit in
                var changes = (0...number(8)).map { _ in change() }
                // This change makes the store refuse its commit, as an episode of a missing podcast does.
                if number(6) == 0 { changes.append(.put("", "", "")) }
                return WireCommit("r\(round).\(index)", at: revision + UInt64(index), changes)
            }
            _ = store.write(
                commits.map { .commit(WireCommitBatch("feeds", [$0])) }
                    + [.commit(WireCommitBatch("playback", []))], now: StoreFixture.moment(Int64(round)))
            let played = WireChange.state("e\(number(3))\(number(6))", played: number(2) == 0)
            try store.apply("playback", [played])
            try expectConsistency()
        }
        #expect(try store.revision("feeds") > 3)
    }
}
