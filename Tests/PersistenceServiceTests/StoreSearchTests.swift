import Foundation
import GRDB
import PodcastModel
import Testing
import WireMessages

@testable import PersistenceService

@Suite struct StoreSearchTests {
    let fixture: StoreFixture
    let store: Store

    init() throws {
        fixture = try StoreFixture()
        store = try fixture.open()
        try store.apply(
            "feeds",
            [
                .podcast("p1", title: "Tech Talk"), .podcast("p2", title: "Sprachen"),
                .episode("e1", title: "Rust & Swift", notes: "<p>Memory <b>safety</b> &amp; speed</p>", published: 1),
                .episode("e2", title: "Über Brücken", notes: "don't panic: 100% \"true\" stories", published: 2),
                .episode("e3", of: "p2", title: "🎧 Sound of 🥳 joy", notes: "café naïve", published: 3),
                .episode("e4", of: "p2", title: "日本語の学習", notes: "東京から", published: 4),
                .episode("e5", of: "p2", title: "Safety first", notes: "NOT AND OR NEAR(a b) title:x *", published: 5),
            ])
    }

    private func found(_ text: String, podcast: String = "", unplayed: Bool = false) throws -> [String] {
        let page = try store.episodes {
            $0.search = text
            $0.podcast = podcast
            $0.unplayedOnly = unplayed
        }
        #expect(page.total == UInt32(page.episodes.count))
        return page.episodes.map(\.id)
    }

    @Test(arguments: [
        ("safety", ["e5", "e1"]), ("SAFETY memory", ["e1"]), ("saf", ["e5", "e1"]), ("sa", []),
        ("\"memory safety\"", ["e1"]), ("\"safety memory\"", []), ("\"saf\"", []), ("uber brucken", ["e2"]),
        ("Über", ["e2"]), ("cafe", ["e3"]), ("🎧", ["e3"]), ("🥳", ["e3"]), ("🚀", []), ("🎧 joy", ["e3"]),
        ("日本", ["e4"]), ("学習", ["e4"]), ("習学", []), ("東京", ["e4"]), ("b", ["e5"]), ("strong", []), ("amp", []),
    ])
    func `search finds words in titles and notes`(text: String, expected: [String]) throws {
        #expect(try found(text) == expected)
    }

    @Test(arguments: [
        "\"", "\"\"", "\"unclosed safety", "'", "*", "***", "AND", "OR", "NOT", "safety AND", "NEAR(a b)", "title:x",
        "title : x", "{title}", "^safety", "-safety", "+", "a\"b\"c", "(", ")", "((", "safety)", ":", ";", "--",
        "%", "100%", "don't", "\\", "\u{0}", "safety\u{0}x", "?", "?1", "$a", "🎧\"", "\u{FEFF}", "e\u{301}",
        String(repeating: "word ", count: 400), String(repeating: "\"", count: 501), "…", "“quoted”",
    ])
    func `unusual input to a search is not an error`(text: String) throws {
        _ = try found(text)
    }

    @Test func `operators in a search are treated as words`() throws {
        #expect(try found("not") == ["e5"])
        #expect(try found("near(a b)") == ["e5"])
        #expect(try found("title:x") == ["e5"])
        #expect(try found("don't") == ["e2"])
        #expect(try found("100%") == ["e2"])
    }

    @Test func `a search can be limited to a podcast and to unplayed episodes`() throws {
        #expect(try found("safety", podcast: "p1") == ["e1"])
        #expect(try found("safety", podcast: "p2") == ["e5"])
        #expect(try found("safety", podcast: "p3") == [])
        try store.apply("playback", [.state("e5", played: true)])
        #expect(try found("safety", unplayed: true) == ["e1"])
        #expect(try found("safety", podcast: "p2", unplayed: true) == [])
        #expect(try found("p2") == [])  // the podcast’s ID isn’t indexed
    }

    @Test(arguments: ["", "   ", "\n\t"])
    func `a blank search finds all episodes`(text: String) throws {
        #expect(try found(text).count == 5)
    }

    @Test(arguments: ["!!!", "\"", "…", "* *"])
    func `a search without a word finds nothing`(text: String) throws {
        #expect(try found(text) == [])
    }

    @Test func `a search continues after a cursor`() throws {
        try store.apply("feeds", (10..<60).map { .episode("e\($0)", title: "common \($0)", published: Int64($0)) })
        var seen: [String] = []
        var after = ""
        repeat {
            let page = try store.episodes {
                $0.search = "common"
                $0.limit = 9
                $0.after = after
            }
            if after.isEmpty { #expect(page.total == 50) }
            seen += page.episodes.map(\.id)
            after = page.next
        } while !after.isEmpty
        #expect(seen == (10..<60).reversed().map { "e\($0)" })
    }

    @Test func `a damaged index is distinguished from a damaged database and rebuilt`() throws {
        try store.pool.write { db in try db.execute(sql: "DELETE FROM episode_search_data WHERE id > 1") }
        let fresh = try {
            store.close(); return try fixture.open()
        }()
        let failure = #expect(throws: Failure.self) { try fresh.episodes { $0.search = "safety" } }
        #expect(failure?.code == StorageFailure.searchDamaged)
        #expect(failure?.retry == true)
        try fresh.rebuildSearch()
        #expect(try fresh.episodes { $0.search = "safety" }.episodes.count == 2)
    }
}

@Suite struct SearchTextTests {
    @Test(arguments: [
        ("plain", "plain"), ("<p>a</p><br/>b", " a  b"),
        ("a &lt;b&gt; &amp; &#39;c&#x27; &unknown; &", "a <b> & 'c' &unknown; &"),
        ("x < y > z", "x < y > z"), ("<!-- hidden <b> -->seen", " seen"),
        ("<a title=\"1 > 0\" href='x'>link</a>", " link "),
        ("cut <a href=\"", "cut  "), ("&#0;&#xD800;", "&#0;&#xD800;"), ("Tom&nbsp;&uuml;ber", "Tom über"), ("", ""),
    ])
    func `the words of HTML are indexed without tags`(html: String, text: String) {
        #expect(SearchText.plain(html: html).replacing("\u{A0}", with: " ") == text)
    }

    @Test func `very long notes are indexed up to the limit`() {
        #expect(SearchText.indexed(String(repeating: "é", count: 100_000)).utf8.count <= SearchText.limit + 3)
        #expect(SearchText.indexed(String(repeating: "a", count: 100_000)).utf8.count <= SearchText.limit + 3)
    }
}
