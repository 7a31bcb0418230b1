import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import LockstepClient
@testable import LockstepCommands

/// Tests the lines and the JSON of search results.
@Suite struct SearchCommandTests {
    private static func results(parts: [String], podcasts: Int = 0, total: Int = 1) throws -> SearchResults {
        let episode = try #require(
            Episode(
                .with {
                    ($0.id, $0.title, $0.podcastTitle) = ("e0123", "Birds", "Show")
                    $0.published = 1_790_000_000_000
                }))
        let podcast = try #require(Podcast(.with { ($0.id, $0.title, $0.episodeCount) = ("p0123", "Swifts", 3) }))
        return SearchResults(
            podcasts: Array(repeating: podcast, count: podcasts),
            hits: [.init(episode: episode, snippet: SearchResults.Snippet(.with { $0.parts = parts }))], total: total)
    }

    @Test func `matches are bold on a terminal, also where a line ends`() throws {
        let results = try Self.results(parts: ["A ", "swift", " and ", "some more", " in the air"])
        func lines(width: Int?, isBold: Bool) -> [String] {
            Search.lines(results, of: LibrarySearch("swift"), width: width, isBold: isBold)
                .filter { $0.hasPrefix("    ") }
        }
        #expect(lines(width: nil, isBold: false) == ["    A swift and some more in the air"])
        #expect(
            lines(width: nil, isBold: true)
                == ["    A \u{1B}[1mswift\u{1B}[22m and \u{1B}[1msome more\u{1B}[22m in the air"])
        #expect(
            lines(width: 20, isBold: true)
                == [
                    "    A \u{1B}[1mswift\u{1B}[22m and \u{1B}[1msome\u{1B}[22m",
                    "    \u{1B}[1mmore\u{1B}[22m in the air",
                ])
    }

    @Test func `podcasts come first, and the last line counts`() throws {
        let results = try Self.results(parts: [], podcasts: 1, total: 3_412)
        let lines = Search.lines(results, of: LibrarySearch("swift"), width: nil, isBold: false)
        #expect(lines.prefix(3) == ["Podcasts:", "  Swifts  3 episodes  p0123", ""])
        #expect(lines.last == "The best 1 of 3412 episodes; `--limit` shows up to 200.")
        let newest = Search.lines(results, of: LibrarySearch("swift", order: .newest), width: nil, isBold: false)
        #expect(newest.last?.hasPrefix("The newest 1 of 3412 episodes") == true)
        let one = Search.lines(try Self.results(parts: []), of: LibrarySearch("x"), width: nil, isBold: false)
        #expect(one.last == "1 episode." && one.count == 3)
        let none = SearchResults(podcasts: [], hits: [], total: 0)
        #expect(
            Search.lines(none, of: LibrarySearch("a “b”\u{1B}"), width: 80, isBold: true)
                == ["Nothing matches “a ‘b’”. All words must occur."])
        #expect(Search.lines(none, of: LibrarySearch("a"), width: 80, isBold: true) == ["Nothing matches “a”."])
        let phrase = Search.lines(none, of: LibrarySearch("\"tech news\""), width: 80, isBold: true)
        #expect(
            phrase.first?.hasSuffix(
                "Words in quotation marks must occur together; without them, they may occur anywhere.") == true)
    }

    @Test func `marks are ranges of the sanitised text`() throws {
        let results = try Self.results(parts: ["日\u{1B}\u{202E} ", "é\n🎧", "", "x", " "])
        let snippet = try #require(results.hits[0].snippet)
        #expect(snippet.text == "日 é 🎧x")
        #expect(snippet.marks == [2..<5, 5..<6])
        let json = results.json.line
        #expect(json.contains(#""snippet":"日 é 🎧x","marks":[[2,3],[5,1]]"#), "\(json)")
        #expect(try Self.results(parts: []).json.line.contains(#""snippet":null,"marks":[]"#))
        #expect(try Self.results(parts: ["only"]).hits[0].snippet == nil)
    }
}
