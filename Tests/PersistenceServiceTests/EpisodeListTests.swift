import BusKit
import Foundation
import GRDB
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

@testable import PersistenceService

/// A random library: the stored messages, and the facts that rules compare.
private struct RandomLibrary {
    var facts: [String: EpisodeFacts] = [:]

    init(_ store: Store, episodes: Int, _ generator: inout SeededGenerator) throws {
        func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &generator) == 0 }
        func moment() -> Int64 {
            StoreFixture.moment().milliseconds - Int64.random(in: 0..<12 * 86_400_000, using: &generator)
        }
        func words(_ count: Int) -> String {
            (0..<count).map { _ in EpisodeRule.Condition.words.randomElement(using: &generator) ?? "" }.joined(
                separator: " ")
        }
        let podcasts = ["p1", "p2", "p3"]
        var (feeds, playback, queue, downloads): ([WireChange], [WireChange], [WireChange], [WireChange])
        (feeds, playback, queue, downloads) = (podcasts.map { .podcast($0, title: "Show \($0)") }, [], [], [])
        for number in 0..<episodes {
            var fact = EpisodeFacts()
            let id = "e\(number)"
            fact.podcast = podcasts.randomElement(using: &generator) ?? "p1"
            fact.podcastTitle = "Show \(fact.podcast)"
            fact.tags = fact.podcast == "p3" ? [] : [fact.podcast == "p1" ? "news" : "talk"]
            let episode = WireEpisode.with {
                $0.id = id
                $0.podcastID = fact.podcast
                $0.title = words(2).capitalized
                $0.description_p = words(3)
                $0.published = chance(6) ? 0 : moment()
                $0.firstSeen = chance(6) ? 0 : moment()
                $0.duration = chance(5) ? 0 : Double(Int.random(in: 1..<5_000, using: &generator))
                $0.season = UInt32.random(in: 0..<4, using: &generator)
                $0.explicit = chance(4)
                $0.enclosureType = chance(4) ? "video/mp4" : "audio/mpeg"
                $0.chaptersURL = chance(4) ? "https://example.org/c.json" : ""
                $0.transcriptURL = chance(4) ? "https://example.org/t.vtt" : ""
            }
            (fact.title, fact.notes, fact.season) = (episode.title, episode.description_p, Int(episode.season))
            fact.published = episode.published > 0 ? Timestamp(milliseconds: episode.published) : nil
            fact.added = episode.firstSeen > 0 ? Timestamp(milliseconds: episode.firstSeen) : nil
            fact.length = episode.duration > 0 ? episode.duration : nil
            if episode.explicit { fact.marks.insert(.explicit) }
            if episode.enclosureType == "video/mp4" { fact.marks.insert(.video) }
            if !episode.chaptersURL.isEmpty { fact.marks.insert(.chapters) }
            if !episode.transcriptURL.isEmpty { fact.marks.insert(.transcript) }
            feeds.append(.with { $0.putEpisode = episode })
            if chance(2) {
                let state = WireEpisodeState.with {
                    $0.episode = id
                    $0.played = chance(2)
                    $0.position = chance(3) ? 0 : Double(Int.random(in: 1..<3_000, using: &generator))
                    $0.updatedAt = moment()
                    $0.completedAt = $0.played && chance(2) ? $0.updatedAt : 0
                    $0.duration = chance(3) ? Double(Int.random(in: 3_000..<6_000, using: &generator)) : 0
                }
                playback.append(.with { $0.putEpisodeState = state })
                fact.position = state.position
                if state.played { fact.marks.insert(.played) }
                if state.position > 0, !state.played { fact.marks.insert(.started) }
                if state.heardAt > 0 { fact.heard = Timestamp(milliseconds: state.heardAt) }
                if state.duration > 0 { fact.length = state.duration }
            }
            for list in ["main", "commute"] where chance(5) {
                let record = WireQueueEntryRecord.with { $0.entry.episode.id = id }
                queue.append(.putting("entry/\(list)", "q\(number)", record, about: (id, 0)))
                fact.lists.insert(list)
                fact.marks.insert(.queued)
            }
            if chance(4) {
                let state: WireDownload.State = chance(3) ? .failed : .downloaded
                let record = WireDownload.with { ($0.episode, $0.state) = (id, state) }
                downloads.append(.putting("download", id, record, about: record.subject))
                if state == .downloaded { fact.marks.insert(.downloaded) }
            }
            if chance(6) {
                playback.append(
                    .putting("bookmark", "b\(number)", WireBookmark.with { $0.episode = id }, about: (id, 0)))
                fact.marks.insert(.bookmarked)
            }
            facts[id] = fact
        }
        for (owner, changes) in [("feeds", feeds), ("playback", playback), ("queue", queue), ("downloads", downloads)] {
            let outcomes = try store.commit(WireCommitBatch(owner, [WireCommit(owner, at: 0, changes)]))
            #expect(outcomes.outcomes.map(\.kind) == [.committed], "\(outcomes)")
        }
        try store.pool.write { db in
            try db.execute(
                sql: "INSERT INTO podcast_tag (tag, podcast) VALUES ('news', 'p1'), ('talk', 'p2')")
            for (flag, mark) in [(EpisodeFlags.new, EpisodeRule.Mark.new), (.gone, .gone), (.transcript, .transcript)] {
                for id in facts.keys.sorted() where chance(3) {
                    try db.execute(
                        sql: "UPDATE episode SET flags = flags | ? WHERE id = ?", arguments: [flag.rawValue, id])
                    let isHidden =
                        mark == .new && facts[id]?.marks.isDisjoint(with: [.played, .started, .queued]) == false
                    if !isHidden { facts[id]?.marks.insert(mark) }
                }
            }
        }
    }
}

@Suite struct EpisodeListTests {
    private static let orders: [WireEpisodeOrder] = [.newest, .oldest, .shortest, .longest, .title, .heard, .added]

    @Test(arguments: 1...6) func `a rule selects the same episodes as its evaluation in memory`(seed: UInt64) throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        var generator = SeededGenerator(seed: seed)
        let library = try RandomLibrary(store, episodes: 120, &generator)
        let context = EpisodeRule.Context(now: StoreFixture.moment())
        for _ in 0..<150 {
            let rule = EpisodeRule(.random(using: &generator))
            let order = Self.orders.randomElement(using: &generator) ?? .newest
            let expected = library.facts.filter {
                rule.matches($0.value, in: context) && (order != .heard || $0.value.heard != nil)
            }.keys.sorted()
            let found = try store.ids(pageLength: UInt32.random(in: 1...50, using: &generator)) {
                $0.rule = rule.description
                $0.order = order
            }
            #expect(found.sorted() == expected, "\(rule), \(order)")
            let page = try store.episodes {
                $0.rule = rule.description
                $0.order = order
                $0.withTotals = true
            }
            #expect(page.total == expected.count, "\(rule)")
            let seconds = expected.reduce(0) { $0 + (library.facts[$1]?.length ?? 0) }
            #expect(page.seconds == seconds, "\(rule)")
        }
        store.close()
    }

    @Test(arguments: orders) func `pages of every order continue where the last one ended`(order: WireEpisodeOrder)
        throws
    {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        var generator = SeededGenerator(seed: 7)
        let library = try RandomLibrary(store, episodes: 90, &generator)
        let whole = try store.ids(pageLength: 500) { $0.order = order }
        #expect(Set(whole).count == whole.count)
        for length: UInt32 in [1, 2, 7, 30] {
            #expect(try store.ids(pageLength: length) { $0.order = order } == whole)
            let podcast = try store.ids(pageLength: length) {
                $0.order = order
                $0.podcast = "p2"
            }
            #expect(podcast == whole.filter { library.facts[$0]?.podcast == "p2" })
        }
        func value(_ id: String) -> Double? {
            guard let facts = library.facts[id] else { return nil }
            return switch order {
            case .shortest, .longest: facts.length
            case .heard: facts.heard.map { Double($0.milliseconds) }
            case .added: facts.added.map { Double($0.milliseconds) }
            default: facts.published.map { Double($0.milliseconds) }
            }
        }
        if order == .title {
            #expect(
                whole.map { (library.facts[$0]?.title ?? "").lowercased() }
                    == library.facts.values.map { $0.title.lowercased() }.sorted())
            return
        }
        let known = whole.compactMap(value)
        #expect(known == known.sorted(by: [.oldest, .shortest].contains(order) ? { $0 < $1 } : { $0 > $1 }))
        let unknown = whole.filter { value($0) == nil }
        #expect(Array(order == .oldest ? whole.prefix(unknown.count) : whole.suffix(unknown.count)) == unknown)
    }

    @Test func `a page examines a limited number of rows and continues`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        let count = EpisodeSelection.examinedLimit + 500
        let changes = (0..<count).map {
            WireChange.episode("e\($0)", title: $0 == 3 ? "Needle" : "Hay", published: Int64($0 + 1))
        }
        _ = try store.commit(WireCommitBatch("feeds", [WireCommit("c", at: 0, [.podcast("p1")] + changes)]))
        let first = try store.episodes { $0.rule = "title ~ needle" }
        #expect(first.episodes.isEmpty && !first.next.isEmpty)
        let second = try store.episodes {
            $0.rule = "title ~ needle"
            $0.after = first.next
        }
        #expect(second.episodes.map(\.id) == ["e3"] && second.next.isEmpty)
        store.close()
    }

    @Test func `a page by length examines fewer rows and continues`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        let count = EpisodeSelection.scatteredLimit + 1
        let changes = (0..<count).map { number in
            WireChange.with { change in
                change.putEpisode = .with {
                    ($0.id, $0.podcastID, $0.duration) = ("e\(number)", "p1", Double(number + 1))
                    ($0.title, $0.published) = (number == 0 ? "Needle" : "Hay", Int64(number + 1))
                }
            }
        }
        _ = try store.commit(WireCommitBatch("feeds", [WireCommit("c", at: 0, [.podcast("p1")] + changes)]))
        let first = try store.episodes { ($0.rule, $0.order) = ("title ~ needle", .longest) }
        #expect(first.episodes.isEmpty && !first.next.isEmpty)
        #expect(try store.ids { ($0.rule, $0.order) = ("title ~ needle", .longest) } == ["e0"])
        store.close()
    }

    /// The plan of SQLite for the statements that read the first page of a list.
    private static func plan(of rule: String, _ order: WireEpisodeOrder, _ store: Store) throws -> [String] {
        let query = WireEpisodesQuery.with { ($0.rule, $0.order) = (rule, order) }
        let list = try #require(try EpisodeSelection(query, now: StoreFixture.moment()))
        return try store.pool.read { db in
            var statements: [String] = []
            db.trace { event in
                if case .statement(let statement) = event { statements.append(statement.expandedSQL) }
            }
            _ = try list.rows(db, after: nil, limit: 20)
            db.trace(nil)
            return try statements.filter { $0.hasPrefix("SELECT") }.flatMap { sql in
                try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN \(sql)").map { $0["detail"] as String }
            }
        }
    }

    /// The conditions of other columns would otherwise be found by their own index, and tens of thousands of rows sorted.
    @Test(arguments: ["length < 20m", "text ~ word", "title ~ word", "played", "published < 7d", "not queued"])
    func `a list without candidates follows the index of its order`(rule: String) throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        for order in Self.orders {
            let plan = try Self.plan(of: rule, order, store)
            #expect(!plan.contains { $0.contains("B-TREE") || $0.contains("(rowid=?)") }, "\(order), \(plan)")
        }
        store.close()
    }

    @Test func `a choice of sets starts from their indexes`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        try store.apply(
            "feeds", [.podcast("p1")] + (0..<20).map { .episode("e\($0)", published: Int64($0)) })
        try store.apply("playback", [.state("e3"), .state("e7"), .state("e9", played: true)])
        try store.apply("queue", [.putting("entry/main", "q1", WireQueueEntryRecord(), about: ("e11", 0))])
        for order in Self.orders where order != .heard {
            let rule = "(started or queued or new) and not title ~ other"
            #expect(try store.ids { ($0.rule, $0.order) = (rule, order) }.sorted() == ["e11", "e3", "e7"])
        }
        let plan = try Self.plan(of: "started or queued or new", .title, store)
        #expect(!plan.contains { "\($0) ".hasPrefix("SCAN episode ") && !$0.contains("episode_new") }, "\(plan)")
        store.close()
    }

    @Test func `totals count the time left after positions`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        let episodes = (1...4).map { number in
            WireChange.with { change in
                change.putEpisode = .with {
                    ($0.id, $0.podcastID, $0.duration, $0.published) = ("e\(number)", "p1", 100, Int64(number))
                }
            }
        }
        _ = try store.commit(WireCommitBatch("feeds", [WireCommit("c", at: 0, [.podcast("p1")] + episodes)]))
        _ = try store.commit(
            WireCommitBatch(
                "playback",
                [WireCommit("c", at: 0, [.state("e1", position: 30), .state("e2", position: 0, played: true)])]))
        for rule in ["", "length > 0s"] {
            let page = try store.episodes { ($0.rule, $0.withTotals) = (rule, true) }
            #expect(page.total == 4 && page.seconds == 400 && page.secondsLeft == 270, "\(rule)")
        }
        let unplayed = try store.episodes { ($0.unplayedOnly, $0.withTotals) = (true, true) }
        #expect(unplayed.total == 3 && unplayed.seconds == 300 && unplayed.secondsLeft == 270)
        store.close()
    }

    @Test func `flags of episodes are set and cleared, and survive a change of the episode`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        var revision: UInt64 = 0
        func commit(_ changes: WireChange..., by owner: String = "feeds") throws -> WireCommitOutcome.Kind? {
            let outcome = try store.commit(WireCommitBatch(owner, [WireCommit("c\(revision)", at: revision, changes)]))
            revision += 1
            return outcome.outcomes.first?.kind
        }
        func flags(_ episodes: [String], set: UInt32 = 0, clear: UInt32 = 0) -> WireChange {
            .with { $0.setFlags = .with { ($0.episodes, $0.set, $0.clear) = (episodes, set, clear) } }
        }
        func new() throws -> [String] { try store.ids { $0.rule = "new" }.sorted() }
        _ = try commit(.podcast("p1"), .episode("e1"), .episode("e2", published: 5), .episode("e3"))
        _ = try commit(flags(["e1", "e2", "missing"], set: 1 | 16))
        #expect(try new() == ["e1", "e2"])
        #expect(try store.ids { $0.rule = "explicit" } == [], "the message of the episode determines this flag")
        _ = try commit(.episode("e1", title: "Renamed"), .episode("e2", published: 9))
        #expect(try new() == ["e1", "e2"])
        #expect(try store.episodes { $0.rule = "new" }.episodes.map(\.flags) == [1, 1])
        _ = try commit(flags(["e2"], clear: 1))
        #expect(try new() == ["e1"])
        _ = try commit(.with { $0.setFlags = .with { ($0.all, $0.clear) = (true, 1) } })
        #expect(try new() == [])
        _ = try commit(flags(["e1", "e2"], set: 1))
        try store.apply("playback", [.state("e2", played: true)])
        _ = try commit(.with { $0.setFlags = .with { ($0.unlisted, $0.clear) = (true, 1) } })
        try store.apply("playback", [.state("e2", played: false)])
        #expect(try new() == ["e1"], "an episode that wasn’t listed isn’t listed later")
        revision = 0
        #expect(try commit(flags(["e1"], set: 1), by: "queue") == .refused)
        store.close()
    }

    @Test(arguments: ["new and", "zzz"]) func `an invalid rule is refused`(rule: String) throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        #expect(throws: Failure.self) { try store.episodes { $0.rule = rule } }
        #expect(throws: Failure.self) { try store.episodes { $0.after = "!" } }
        store.close()
    }
}
