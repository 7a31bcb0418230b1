import Foundation
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import PersistenceService

/// Tests searches that rank episodes, cut snippets and find podcasts.
@Suite struct LibrarySearchTests {
    let fixture: StoreFixture
    let store: Store

    init() throws {
        fixture = try StoreFixture()
        store = try fixture.open()
        try store.apply(
            "feeds",
            [
                .podcast("p1", title: "Café Technik"), .podcast("p2", title: "日本のニュース"),
                .podcast("p3", title: "รายการข่าว"), .podcast("p4", title: "Tech News", subscribed: false),
                .episode("e1", title: "Old swift", notes: "Nothing else.", published: 10),
                .episode("e2", title: "Birds", notes: "A swift and another swift in the air.", published: 20),
                .episode("e3", title: "Gardens", notes: "<p>One swift</p> <p>among</p> many words", published: 30),
                .episode("e4", of: "p2", title: "日本語の学習", notes: "東京から、毎日日本語を話す。🎧 を聞く", published: 40),
                .episode("e5", of: "p3", title: "ข่าวเศรษฐกิจวันนี้", notes: "สรุป", published: 50),
                .episode(
                    "e6", title: "Müller über Brücken", notes: "A “state of the art” <b>bridge</b>, (new)",
                    published: 60),
            ])
    }

    private func search(
        _ text: String, in scope: WireSearchScope = .titlesAndNotes, order: WireEpisodeOrder = .relevance,
        _ change: (inout WireEpisodesQuery) -> Void = { _ in }
    ) throws -> WireEpisodesPage {
        try store.episodes {
            ($0.search, $0.order, $0.limit) = (text, order, 200)
            ($0.searchOptions.scope, $0.searchOptions.snippets, $0.searchOptions.podcasts) = (scope, true, 5)
            change(&$0)
        }
    }

    private func ids(
        _ text: String, in scope: WireSearchScope = .titlesAndNotes, order: WireEpisodeOrder = .relevance
    ) throws -> [String] {
        let page = try search(text, in: scope, order: order)
        #expect(page.total == UInt32(page.episodes.count) && page.next.isEmpty)
        #expect(page.searchDetails.snippets.count == page.episodes.count)
        return page.episodes.map(\.id)
    }

    @Test func `words in titles rank before words in notes, and more words before fewer`() throws {
        #expect(try ids("swift") == ["e1", "e2", "e3"])
        #expect(try ids("swift", order: .newest) == ["e3", "e2", "e1"])
        #expect(try ids("swift", in: .titles) == ["e1"])
        #expect(try ids("swift", in: .notes, order: .newest) == ["e3", "e2"])
    }

    @Test(arguments: [
        ("muller", ["e6"]), ("BRÜCK", ["e6"]), ("\"of the art\"", ["e6"]), ("\"the of art\"", []),
        ("\"state of", ["e6"]), ("brü* uber", ["e6"]), ("bri* sta* art", ["e6"]), ("brü uber", []), ("日本", ["e4"]),
        ("日本*", ["e4"]), ("日*", ["e4"]), ("毎日 東京", ["e4"]), ("🎧", ["e4"]), ("เศรษฐกิจ", ["e5"]),
        ("วันนี้ ข่าว", ["e5"]), ("สรุป", ["e5"]), ("เศรษฐกิจ swift", []), ("s++", []), ("s+ air", []), ("OR", []),
        ("a:b", []),
    ])
    func `words, phrases, prefixes and scripts without spaces are found`(text: String, expected: [String]) throws {
        #expect(try ids(text).sorted() == expected)
    }

    @Test(arguments: [
        ("", "has no word"), ("  ", "has no word"), ("!!! … \"\"", "has no word"), ("*", "has no word"),
        ("ab* word", "“ab*” is too short"), (String(repeating: "word ", count: 17), "has 17 words; at most 16"),
        (String(repeating: "w", count: 501), "has 501 characters; at most 500"),
    ])
    func `an unusable text is refused with its reason`(text: String, reason: String) throws {
        let failure = #expect(throws: Failure.self) { try search(text) }
        #expect(failure?.known == .invalidArgument && failure?.message.contains(reason) == true, "\(failure as Any)")
    }

    @Test(arguments: [
        "\"", "'", "swift\"", "swift AND", "NEAR(swift birds)", "title:swift", "^swift", "-swift", "(swift", "swift)*",
        "swift'; --", "%", "\u{0}swift", "swift\u{FE}\u{FF}", "u1f3a7", "\"*\" swift", "swift**", "e\u{301}*",
    ])
    func `unusual input is words or refused, but no error of the database`(text: String) throws {
        do { _ = try search(text) } catch let failure as Failure { #expect(failure.known == .invalidArgument) }
    }

    @Test func `snippets are cut from the notes and mark the matches`() throws {
        func snippets(_ text: String, in scope: WireSearchScope = .titlesAndNotes) throws -> [[String]] {
            try search(text, in: scope).searchDetails.snippets.map(\.parts)
        }
        #expect(
            try snippets("swift") == [
                [], ["A ", "swift", " and another ", "swift", " in the air."], ["One ", "swift", " among many words"],
            ])
        #expect(try snippets("\"one swift\"") == [["", "One swift", " among many words"]])
        #expect(try snippets("bridge") == [["A “state of the art” ", "bridge", ", (new)"]])
        #expect(try snippets("日本語") == [["東京から、毎日", "日本語", "を話す。🎧 を聞く"]])
        #expect(try snippets("🎧") == [["東京から、毎日日本語を話す。", "🎧", " を聞く"]])
        try store.apply("feeds", [.episode("e7", notes: "오늘의 뉴스 요약, Swift 포함")])
        #expect(try snippets("뉴스") == [["오늘의 ", "뉴스", " 요약, Swift 포함"]])
        #expect(try search("swift") { $0.searchOptions.snippets = false }.searchDetails.snippets == [])
    }

    @Test func `a snippet has a limited length and contains the first match`() throws {
        let notes = String(repeating: "longish ", count: 200)
        try store.apply(
            "feeds",
            [
                .episode("e7", notes: notes + "needle " + notes),
                .episode(
                    "e8",
                    notes: String(repeating: "x", count: 900) + "\u{1}\u{2}needle" + String(repeating: "-", count: 900)),
            ])
        let snippets = try search("needle").searchDetails.snippets.map(\.parts)
        #expect(snippets.count == 2)
        for parts in snippets {
            let text = parts.joined()
            #expect(parts.count == 3 && parts[1] == "needle" && text.unicodeScalars.count <= SearchSnippet.limit + 2)
            #expect(text.hasPrefix("…") && text.hasSuffix("…"), "\(text)")
        }
    }

    @Test func `podcasts match by title, the subscribed ones first`() throws {
        func podcasts(_ text: String, in scope: WireSearchScope = .titlesAndNotes) throws -> [String] {
            try search(text, in: scope).searchDetails.podcasts.map(\.id)
        }
        #expect(try podcasts("tech") == ["p1", "p4"])
        #expect(try podcasts("cafe") == ["p1"])
        #expect(try podcasts("\"tech\"") == ["p4"])
        #expect(try podcasts("news tech") == ["p4"])
        #expect(try podcasts("日本") == ["p2"])
        #expect(try podcasts("ข่าว") == ["p3"])
        #expect(try podcasts("tech", in: .titles) == ["p1", "p4"])
        #expect(try podcasts("tech", in: .notes) == [])
        #expect(try search("cafe").searchDetails.podcasts.map(\.episodeCount) == [4])
        try store.apply("feeds", (10..<20).map { .podcast("p\($0)", title: "Many \($0)") })
        #expect(try podcasts("many").count == 5)
    }

    @Test func `a search has its limit, the total, and the conditions of the query`() throws {
        try store.apply("feeds", (0..<300).map { .episode("e\(1_000 + $0)", title: "common", published: Int64($0)) })
        let page = try search("common")
        #expect(page.episodes.count == 200 && page.total == 300 && page.next.isEmpty)
        #expect(page.episodes.first?.id == "e1299", "equal matches are ordered by date")
        #expect(try search("common") { $0.limit = 3 }.episodes.count == 3)
        #expect(try search("swift") { $0.podcast = "p2" }.episodes == [])
        #expect(try search("swift") { $0.rule = "not title ~ swift" }.episodes.map(\.id) == ["e2", "e3"])
        try store.apply("playback", [.state("e2", played: true)])
        #expect(try search("swift") { $0.unplayedOnly = true }.episodes.map(\.id) == ["e1", "e3"])
        #expect(try search("วันนี้") { $0.podcast = "p1" }.episodes == [])
        #expect(throws: Failure.self) { try search("swift", order: .title) }
    }
}
