import Foundation
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import PersistenceService

@Suite struct StoreCommitTests {
    let fixture: StoreFixture
    let store: Store

    init() throws {
        fixture = try StoreFixture()
        store = try fixture.open()
    }

    @Test func `commits advance the revision and persist when the store is reopened`() throws {
        let outcomes = try store.commit(
            WireCommitBatch(
                "queue",
                [
                    WireCommit("c1", at: 0, [.put("entry", "q1", "one"), .put("entry", "q2", "two")]),
                    WireCommit("c2", at: 1, [.put("entry", "q1", "uno")]),
                ]))
        #expect(outcomes.outcomes.map(\.kind) == [.committed, .committed])
        #expect(outcomes.outcomes.map(\.revision) == [1, 2])
        #expect(outcomes.incarnation == store.incarnation)
        store.close()
        let again = try fixture.open()
        #expect(again.incarnation == store.incarnation)
        #expect(try again.texts("queue") == ["entry/q1=uno", "entry/q2=two"])
        #expect(try again.load("queue", generation: 2).revision == 2)
    }

    @Test func `a repeated commit is answered as repeated and has no effect`() throws {
        let batch = WireCommitBatch("queue", [WireCommit("c1", at: 0, [.put("entry", "q1", "one")])])
        _ = try store.commit(batch)
        try store.apply("queue", [.put("entry", "q1", "later")])
        let outcome = try store.commit(batch).outcomes[0]
        #expect(outcome.kind == .repeated)
        #expect(outcome.revision == 2)
        #expect(try store.texts("queue") == ["entry/q1=later"])
    }

    @Test func `commits in flight when the service crashed can be repeated, and later ones follow`() throws {
        let first = WireCommit("c1", at: 0, [.put("entry", "q1", "one")])
        _ = try store.commit(WireCommitBatch("queue", [first]))
        store.close()
        let next = try fixture.open()
        let second = WireCommit("c2", at: 1, [.put("entry", "q2", "two")])
        let outcomes = try next.commit(WireCommitBatch("queue", [first, second]))
        #expect(outcomes.outcomes.map(\.kind) == [.repeated, .committed])
        #expect(outcomes.outcomes.last?.revision == 2)
    }

    @Test func `a refused commit refuses all later ones of its batch and keeps the earlier ones`() throws {
        let outcomes = try store.commit(
            WireCommitBatch(
                "queue",
                [
                    WireCommit("c1", at: 0, [.put("entry", "q1", "one")]),
                    WireCommit("c2", at: 1, [.put("entry", "q2", "two"), .put("", "q2", "no collection")]),
                    WireCommit("c3", at: 2, [.put("entry", "q3", "three")]),
                    WireCommit("c4", at: 1, [.put("entry", "q4", "four")]),
                ]))
        #expect(outcomes.outcomes.map(\.kind) == [.committed, .refused, .refused, .refused])
        #expect(
            outcomes.outcomes.map(\.failure.code) == ["", "invalidArgument", "revisionMismatch", "revisionMismatch"])
        #expect(outcomes.outcomes.map(\.revision) == [1, 1, 1, 1])
        #expect(try store.texts("queue") == ["entry/q1=one"])
        // A refusal is not stored: the same ID is decided again.
        let later = try store.commit(WireCommitBatch("queue", [WireCommit("c2", at: 1, [.put("entry", "q2", "two")])]))
        #expect(later.outcomes[0].kind == .committed)
    }

    @Test func `a commit that expects another revision is refused`() throws {
        try store.apply("queue", [.put("entry", "q1", "one")])
        let outcome = try store.commit(WireCommitBatch("queue", [WireCommit("x", at: 0, [.put("entry", "q1", "x")])]))
            .outcomes[0]
        #expect(outcome.kind == .refused)
        #expect(outcome.failure.code == "revisionMismatch")
        #expect(!outcome.failure.retry)
        #expect(outcome.revision == 1)
    }

    @Test func `a request that another commit has answered gets the stored reply`() throws {
        _ = try store.commit(
            WireCommitBatch(
                "queue", [WireCommit("c1", at: 0, [.put("entry", "q1", "one")], request: "r", reply: "added q1")]))
        let outcomes = try store.commit(
            WireCommitBatch(
                "queue",
                [
                    WireCommit("c2", at: 1, [.put("entry", "q2", "two")], request: "r", reply: "added q2"),
                    WireCommit("c3", at: 2, [.put("entry", "q3", "three")]),
                ]))
        #expect(outcomes.outcomes.map(\.kind) == [.duplicateRequest, .refused])
        #expect(outcomes.outcomes[0].reply == Data("added q1".utf8))
        #expect(try store.texts("queue") == ["entry/q1=one"])
        var query = WireFindReply()
        query.owner = "queue"
        query.requestID = .id("r")
        #expect(try store.foundReply(query).reply == Data("added q1".utf8))
        query.owner = "playback"
        #expect(try !store.foundReply(query).found)
    }

    @Test func `replies and commit IDs are pruned after their retention time`() throws {
        let commit = WireCommit("c1", at: 0, [.put("entry", "q1", "one")], request: "r", reply: "ok")
        let others = (1...OwnerRow.recentLimit).map { WireCommit("d\($0)", at: UInt64($0), []) }
        _ = try store.commit(WireCommitBatch("queue", [commit] + others), at: 0)
        let revision = try store.revision("queue")
        _ = try store.commit(WireCommitBatch("queue", [WireCommit("c2", at: revision, [])]), at: 100)
        // The rows are the reply and the IDs that have moved from the owner’s row.
        #expect(try store.prune(before: StoreFixture.moment(50)) == 1 + 1 + OwnerRow.recentLimit)
        var query = WireFindReply()
        query.owner = "queue"
        query.requestID = .id("r")
        #expect(try !store.foundReply(query).found)
        #expect(try store.commit(WireCommitBatch("queue", [WireCommit("c2", at: 1, [])])).outcomes[0].kind == .repeated)
    }

    @Test func `a late commit of an earlier generation is fenced`() throws {
        #expect(try store.load("queue", generation: 5).revision == 0)
        _ = try store.commit(WireCommitBatch("queue", generation: 5, [WireCommit("a", at: 0, [.put("e", "1", "old")])]))
        #expect(try store.load("queue", generation: 6).revision == 1)
        let late = try store.commit(
            WireCommitBatch(
                "queue", generation: 5,
                [
                    WireCommit("b", at: 1, [.put("e", "1", "late")]),
                    WireCommit("a", at: 0, [.put("e", "1", "old")]),
                ]))
        #expect(late.outcomes.map(\.failure.code) == ["fenced", "fenced"])
        #expect(late.outcomes.map(\.failure.failure.fencingGeneration) == [6, 6])
        #expect(try store.texts("queue") == ["e/1=old"])
        #expect(throws: Failure.self) { try store.load("queue", generation: 5) }
        store.close()
        // The fence persists when the store is reopened.
        let again = try fixture.open()
        let later = try again.commit(WireCommitBatch("queue", generation: 5, [WireCommit("b", at: 1, [])]))
        #expect(later.outcomes[0].failure.code == "fenced")
        #expect(try again.load("queue", generation: 6).revision == 1)
    }

    @Test func `an owner that continues on a restored copy commits under its own generation`() throws {
        _ = try store.load("queue", generation: 3)
        var commit = WireCommit("whole", at: 41, [.put("entry", "q9", "nine")])
        commit.replacesEverything = true
        try store.apply("queue", [.put("entry", "q1", "one"), .put("undo", "1", "x")])
        let outcomes = try store.commit(
            WireCommitBatch(
                "queue", generation: 9, [commit, WireCommit("next", at: 42, [.put("entry", "q8", "eight")])]))
        #expect(outcomes.outcomes.map(\.kind) == [.committed, .committed])
        #expect(outcomes.outcomes.map(\.revision) == [42, 43])
        #expect(try store.texts("queue") == ["entry/q8=eight", "entry/q9=nine"])
        let old = try store.commit(WireCommitBatch("queue", generation: 3, [WireCommit("z", at: 43, [])]))
        #expect(old.outcomes[0].failure.code == "fenced")
    }

    @Test func `replacing everything keeps podcasts, episodes and positions`() throws {
        try store.apply("feeds", [.podcast("p1"), .episode("e1")])
        try store.apply("playback", [.state("e1", position: 33)])
        for owner in ["feeds", "playback"] {
            var commit = WireCommit("all\(owner)", at: 0, [])
            commit.replacesEverything = true
            _ = try store.commit(WireCommitBatch(owner, [commit]))
        }
        #expect(try store.episodes().episodes.map(\.state.position) == [33])
    }

    @Test func `an empty batch returns the incarnation`() throws {
        let outcomes = try store.commit(WireCommitBatch("queue", []))
        #expect(outcomes.outcomes.isEmpty)
        #expect(outcomes.incarnation == store.incarnation)
    }

    @Test(arguments: [
        ("queue", WireChange.podcast("p9")), ("queue", .episode("e9")), ("playback", .episode("e9")),
        ("queue", .state("e1")), ("feeds", .state("e1")), ("playback", .alias("guid:1", of: "p1", is: "e1")),
    ])
    func `only the owner writes a library table`(owner: String, change: WireChange) throws {
        try store.apply("feeds", [.podcast("p1"), .episode("e1")])
        let revision = try store.revision(owner)
        let outcome = try store.commit(WireCommitBatch(owner, [WireCommit("x", at: revision, [change])])).outcomes[0]
        #expect(outcome.kind == .refused)
        #expect(outcome.failure.code == "notOwner")
    }

    @Test(arguments: ["persistence", "bus", "", "Queue", "a/b"])
    func `an invalid owner can neither commit nor load`(owner: String) throws {
        #expect(throws: Failure.self) { try store.commit(WireCommitBatch(owner, [WireCommit("x", at: 0, [])])) }
        #expect(throws: Failure.self) { try store.load(owner, generation: 1) }
    }

    @Test(arguments: [
        WireChange(), .put("", "k", "v"), .put("c\u{0}", "k", "v"), .put(String(repeating: "c", count: 600), "k", "v"),
        .put("podcast", "p1", "v"), .podcast("x1"), .episode("p1"), .episode("e1", of: "p404"),
    ])
    func `a malformed change refuses its commit`(change: WireChange) throws {
        let outcome = try store.commit(WireCommitBatch("feeds", [WireCommit("x", at: 0, [change])])).outcomes[0]
        #expect(outcome.kind == .refused)
        #expect(try store.revision("feeds") == 0)
    }

    @Test(arguments: [-1, Double.nan, .infinity])
    func `states with impossible positions are refused`(position: Double) throws {
        let commit = WireCommit("x", at: 0, [.state("e1", position: position)])
        #expect(try store.commit(WireCommitBatch("playback", [commit])).outcomes[0].failure.code == "invalidArgument")
    }

    @Test(arguments: [0, 15, 17])
    func `a commit ID must have sixteen bytes`(length: Int) throws {
        var commit = WireCommit("x", at: 0, [])
        commit.id = Data(repeating: 1, count: length)
        #expect(try store.commit(WireCommitBatch("queue", [commit])).outcomes[0].failure.code == "invalidArgument")
    }

    @Test func `writes of several owners in one transaction do not affect each other`() throws {
        let result = store.write(
            [
                .commit(WireCommitBatch("queue", [WireCommit("a", at: 0, [.put("e", "1", "q")])])),
                .commit(WireCommitBatch("playback", [WireCommit("b", at: 7, [.put("e", "1", "p")])])),
                .commit(WireCommitBatch("feeds", [WireCommit("c", at: 0, [.put("e", "1", "f")])])),
            ], now: StoreFixture.moment())
        #expect(result.failures.isEmpty)
        #expect(try store.texts("queue") == ["e/1=q"])
        #expect(try store.texts("playback") == [])
        #expect(try store.texts("feeds") == ["e/1=f"])
        #expect(result.changed.contains(.snapshot))
        #expect(!result.changed.contains(.library))
    }

    @Test func `records and collections can be deleted`() throws {
        try store.apply("queue", [.put("a", "1", "x"), .put("a", "2", "x"), .put("b", "1", "x"), .put("b", "2", "x")])
        try store.apply("queue", [.deleting("a", "1"), .deletingAll("b"), .deleting("c", "never there")])
        #expect(try store.texts("queue") == ["a/2=x"])
    }

    @Test func `records are loaded in order and in pages`() throws {
        let changes = (0..<60).map { WireChange.put($0.isMultiple(of: 2) ? "b" : "a", "k\($0)", "value") }
        try store.apply("feeds", changes + [.podcast("p1", title: "Zed"), .podcast("p2", title: "Abc")])
        var query = WireLoadRecords()
        query.owner = "feeds"
        query.maxBytes = 200
        var seen: [String] = []
        while true {
            let page = try store.records(query)
            #expect(!page.records.isEmpty)
            seen += page.records.map { "\($0.collection)/\($0.key)" }
            guard page.more, let last = page.records.last else { break }
            query.afterCollection = last.collection
            query.afterKey = last.key
        }
        #expect(seen == seen.sorted())
        #expect(Set(seen).count == 62)
        #expect(seen.suffix(2) == ["podcast/p1", "podcast/p2"])
        query = WireLoadRecords()
        query.owner = "feeds"
        query.collection = "podcast"
        let podcasts = try store.records(query).records.map { try WirePodcast(serializedBytes: $0.value).title }
        #expect(podcasts == ["Zed", "Abc"])
        query.owner = "queue"
        #expect(try store.records(query).records.isEmpty)
    }
}
