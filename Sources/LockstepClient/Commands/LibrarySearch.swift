public import PodcastModel
import SwiftProtobuf
import WireMessages

/// A search of the library by words.
public struct LibrarySearch: Sendable, Hashable {
    /// The texts in which the words occur.
    public enum Scope: String, Sendable, Hashable, CaseIterable {
        /// The titles and show notes of episodes, and the titles of podcasts.
        case all
        /// The titles of episodes and podcasts.
        case titles
        /// The show notes of episodes.
        case notes
    }

    /// The order of the episodes.
    public enum Order: String, Sendable, Hashable, CaseIterable {
        /// The best match first; words in a title count more than in show notes.
        case relevance
        /// The newest episode first.
        case newest
    }

    /// The words: all of them must occur, those in quotation marks together; `term*` is the beginning of a word.
    public var text: String
    /// The texts in which the words occur.
    public var scope: Scope
    /// The order of the episodes.
    public var order: Order
    /// The maximum number of episodes; at most `RequestSizes.searchResults`.
    public var limit: Int

    /// Creates a search.
    public init(
        _ text: String, in scope: Scope = .all, order: Order = .relevance, limit: Int = RequestSizes.searchResults
    ) {
        (self.text, self.scope, self.order, self.limit) = (text, scope, order, limit)
    }

    /// The maximum number of podcasts among the results.
    private static let podcastLimit: UInt32 = 5

    var query: WireEpisodesQuery {
        .with {
            $0.search = text
            $0.limit = UInt32(clamping: max(1, limit))
            $0.order =
                switch order {
                case .relevance: .relevance
                case .newest: .newest
                }
            $0.searchOptions.scope =
                switch scope {
                case .all: .titlesAndNotes
                case .titles: .titles
                case .notes: .notes
                }
            $0.searchOptions.snippets = scope != .titles
            $0.searchOptions.podcasts = Self.podcastLimit
        }
    }
}

/// The results of a search.
public struct SearchResults: Sendable {
    /// An episode that a search found.
    public struct Hit: Sendable {
        /// The episode that matches.
        public let episode: Episode
        /// The part of its show notes around the matches; nil if only its title matches.
        public let snippet: Snippet?

        /// The JSON object that `protocols/cli.md` documents.
        public var json: JSONValue {
            let marks = (snippet?.marks ?? []).map { mark in
                JSONValue.array([.integer(Int64(mark.lowerBound)), .integer(Int64(mark.count))])
            }
            return episode.json.adding("snippet", snippet.map { .string($0.text) } ?? .null)
                .adding("marks", .array(marks))
        }
    }

    /// A part of a text with the matches in it.
    public struct Snippet: Sendable, Hashable {
        /// The text, without control characters and line breaks.
        public let text: String
        /// The matches: ranges of Unicode scalars, in order.
        public let marks: [Range<Int>]

        /// Reads a message; nil if nothing is marked.
        init?(_ wire: WireSnippet) {
            var text = ""
            var marks: [Range<Int>] = []
            for (index, part) in wire.parts.enumerated() {
                // Sanitising a part removes the spaces at its ends.
                if part.first?.isWhitespace == true, !text.isEmpty, text.last != " " { text += " " }
                let start = text.unicodeScalars.count
                text += DisplayText.sanitised(part)
                let end = text.unicodeScalars.count
                if index % 2 == 1, start < end { marks.append(start..<end) }
                if start < end, part.last?.isWhitespace == true { text += " " }
            }
            if text.last == " " { text.removeLast() }
            guard !marks.isEmpty else { return nil }
            (self.text, self.marks) = (text, marks)
        }
    }

    /// The podcasts whose titles match, at most five, the subscribed ones first.
    public let podcasts: [Podcast]
    /// The episodes, in the order of the search.
    public let hits: [Hit]
    /// The number of all episodes that match.
    public let total: Int

    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue {
        .object([
            "podcasts": .array(podcasts.map(\.json)), "episodes": .array(hits.map(\.json)),
            "total": .integer(Int64(total)),
        ])
    }
}

extension LibraryClient {
    /// Searches the library.
    ///
    /// - Throws: `invalidArgument` for a text without words, or with too many.
    public func search(_ search: LibrarySearch) async throws(Failure) -> SearchResults {
        if let failure = RequestSizes.refusal(ofSearch: search.text) { throw failure }
        let page = try await page(search.query)
        guard page.hasSearchDetails else {
            throw Failure(
                .unknownCommand,
                "The database service is of an earlier version, without ranked searches. Restart the fleet.")
        }
        let snippets = page.searchDetails.snippets
        let hits = page.episodes.enumerated().compactMap { index, wire in
            Episode(wire).map { episode in
                SearchResults.Hit(
                    episode: episode,
                    snippet: snippets.indices.contains(index) ? SearchResults.Snippet(snippets[index]) : nil)
            }
        }
        return SearchResults(
            podcasts: page.searchDetails.podcasts.compactMap(Podcast.init), hits: hits,
            total: max(Int(page.total), hits.count))
    }
}
