import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import PersistenceService

/// Tests that play sessions are stored, listed and added up.
@Suite struct PlaySessionTableTests {
    let store: Store
    private let fixture: StoreFixture

    init() throws {
        fixture = try StoreFixture()
        store = try fixture.open()
        try store.apply(
            "feeds",
            [
                .podcast("p1", title: "One"), .podcast("p2", title: "Two"), .episode("e1", title: "First"),
                .episode("e2", title: "Second"), .episode("e3", of: "p2", title: "Third"),
            ])
    }

    private func ids(_ change: (inout WirePlayHistoryQuery) -> Void = { _ in }) throws -> [String] {
        var query = WirePlayHistoryQuery.with { $0.limit = 2 }
        change(&query)
        var ids: [String] = []
        repeat {
            let page = try store.history(query)
            ids += page.sessions.map(\.id)
            query.after = page.next
        } while !query.after.isEmpty
        return ids
    }

    @Test func `a session is stored once and grows`() throws {
        try store.apply("playback", [.session("s1", at: 1_000, heard: 10)])
        try store.apply("playback", [.session("s1", at: 1_000, heard: 20) { $0.leftAt = 80 }])
        let session = try #require(try store.history(WirePlayHistoryQuery()).sessions.first)
        #expect(session.heard == 20 && session.leftAt == 80 && session.began == 5 && session.ended == 41_000)
        #expect(session.title == "First" && session.podcastTitle == "One" && session.device == "laptop")
        #expect(try ids() == ["s1"])
    }

    @Test func `only playback stores play sessions`() throws {
        #expect(throws: Failure.self) { try store.apply("queue", [.session("s1", at: 1)]) }
        #expect(try ids().isEmpty)
    }

    @Test(
        arguments: [
            { $0.id = "1" }, { $0.id = "s" + String(repeating: "a", count: 64) }, { $0.episode = "" },
            { $0.podcast = "x" }, { $0.started = -1 }, { $0.ended = $0.started - 1 }, { $0.heard = -1 },
            { $0.heard = .nan }, { $0.wall = .infinity }, { $0.silence = -0.1 }, { $0.leftAt = -.infinity },
            { $0.device = String(repeating: "a", count: 513) },
        ] as [@Sendable (inout WirePlaySession) -> Void])
    func `an invalid session is refused`(change: @Sendable (inout WirePlaySession) -> Void) throws {
        #expect(throws: Failure.self) { try store.apply("playback", [.session("s1", at: 1, change)]) }
        #expect(try ids().isEmpty)
    }

    @Test func `sessions are listed newest first, in pages, also of one episode`() throws {
        let changes = (1...7).map { WireChange.session("s\($0)", $0 % 2 == 0 ? "e2" : "e1", at: Int64($0 / 2) * 1_000) }
        try store.apply("playback", changes)
        #expect(try ids() == ["s7", "s6", "s5", "s4", "s3", "s2", "s1"])
        #expect(try ids { $0.episode = "e2" } == ["s6", "s4", "s2"])
        #expect(throws: Failure.self) { try store.history(.with { $0.episode = "2" }) }
        #expect(throws: Failure.self) { try store.history(.with { $0.after = "x" }) }
    }

    @Test func `the sessions of a forgotten podcast stay, without titles`() throws {
        try store.apply("playback", [.session("s1", at: 1_000)])
        try store.apply("feeds", [.with { $0.deletePodcast = "p1" }])
        let session = try #require(try store.history(WirePlayHistoryQuery()).sessions.first)
        #expect(session.title.isEmpty && session.podcastTitle.isEmpty && session.podcast == "p1")
        let rows = try store.statistics(.with { $0.by = .podcast }).rows
        #expect(rows.map(\.key) == ["p1"] && rows[0].title.isEmpty)
    }

    @Test func `statistics add up periods by podcast, episode and day`() throws {
        try store.apply(
            "playback",
            [
                .session("s1", at: 1_000, heard: 10), .session("s2", "e2", at: 2_000, heard: 20),
                .session("s3", "e3", of: "p2", at: 3_000, heard: 100), .session("s4", at: 9_000, heard: 5),
            ])
        let all = try store.statistics(WireStatisticsQuery())
        #expect(all.total.heard == 135 && all.total.sessions == 4 && all.rows.isEmpty)
        #expect(all.total.wall == 160 && all.total.silence == 8)
        let podcasts = try store.statistics(.with { ($0.by, $0.from, $0.to) = (.podcast, 2_000, 9_000) })
        #expect(podcasts.total.heard == 120 && podcasts.groups == 2)
        #expect(podcasts.rows.map(\.title) == ["Two", "One"] && podcasts.rows.map(\.heard) == [100, 20])
        let episodes = try store.statistics(.with { ($0.by, $0.limit) = (.episode, 2) })
        #expect(episodes.rows.map(\.key) == ["e3", "e2"] && episodes.groups == 3)
        #expect(episodes.rows.map(\.podcastTitle) == ["Two", "One"])
        let days = try store.statistics(.with { ($0.by, $0.days) = (.day, [0, 2_000, 4_000, 8_000, 10_000]) })
        #expect(days.rows.map(\.heard) == [10, 120, 0, 5] && days.rows.map(\.day) == [0, 2_000, 4_000, 8_000])
        #expect(days.total.heard == 135)
    }

    @Test(arguments: [[], [5], [5, 4], (0...401).map(Int64.init)] as [[Int64]])
    func `days out of order, and more than 400, are refused`(days: [Int64]) throws {
        #expect(throws: Failure.self) { try store.statistics(.with { ($0.by, $0.days) = (.day, days) }) }
    }

    @Test func `a period without sessions has sums of 0`() throws {
        let empty = try store.statistics(.with { $0.by = .podcast })
        #expect(empty.total.sessions == 0 && empty.total.heard == 0 && empty.rows.isEmpty)
    }
}
