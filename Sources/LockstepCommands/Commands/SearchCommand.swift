public import ArgumentParser
import LibC
public import LockstepClient
import PodcastModel

struct Search: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "search",
        abstract: "Find episodes by words in their titles and show notes, and podcasts by title.",
        discussion: """
            All words must occur, regardless of case and accents. Words in double quotation marks must occur together \
            (lockstep search '"two words"'). The last word, and a word with an asterisk (lockstep search 'tech* news'), \
            may be the beginning of a longer one. The best matches are first.
            """)
    @Argument(help: "The words.") var terms: [String]
    @Option(name: .customLong("in"), help: "Where to search.") var scope: LibrarySearch.Scope = .all
    @Option(help: "The order.") var sort: LibrarySearch.Order = .relevance
    @Option(
        parsing: .unconditional,
        help: "The maximum number of episodes, up to \(RequestSizes.searchResults).")
    var limit: Int = ListLength.defaultLimit
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard (1...RequestSizes.searchResults).contains(limit) else {
            throw ValidationError("--limit must be a number from 1 to \(RequestSizes.searchResults).")
        }
    }

    func perform(_ context: CommandContext) async throws {
        let search = LibrarySearch(terms.joined(separator: " "), in: scope, order: sort, limit: limit)
        let results = try await context.withFleet { try await $0.library.search(search) }
        let isBold = !context.plain && isatty(STDOUT_FILENO) == 1
        try context.output.list(
            results.hits.map(\.episode.id), results.json,
            lines: Self.lines(results, of: search, width: Output.terminalWidth, isBold: isBold))
    }

    /// - Parameters:
    ///   - width: the width of the terminal; nil for no limit.
    ///   - isBold: whether the matches in snippets are bold.
    static func lines(_ results: SearchResults, of search: LibrarySearch, width: Int?, isBold: Bool) -> [String] {
        guard !results.hits.isEmpty || !results.podcasts.isEmpty else {
            return ["Nothing matches \(DisplayText.quoted(DisplayText.sanitised(search.text))).\(advice(search.text))"]
        }
        var lines: [String] = []
        if !results.podcasts.isEmpty {
            let rows = results.podcasts.map { podcast in
                [
                    podcast.title.isEmpty ? podcast.url : podcast.title,
                    NumberText.counted(podcast.episodeCount, "episode"), podcast.id.text,
                ]
            }
            let table = TextTable([.flexible(""), .right(""), ""], rows).lines(width: width.map { max(0, $0 - 2) })
            lines = ["Podcasts:"] + table.dropFirst().map { "  " + $0 } + [""]
        }
        guard !results.hits.isEmpty else { return lines + ["No episode matches."] }
        let table = Episodes.table(results.hits.map(\.episode)).printed(width: width)
        lines.append(table[0])
        for (row, hit) in zip(table.dropFirst(), results.hits) {
            lines.append(row)
            guard let snippet = hit.snippet else { continue }
            lines += Self.lines(of: snippet, width: width.map { max(0, $0 - 4) }, isBold: isBold).map { "    " + $0 }
        }
        return lines + [Self.totals(results, of: search)]
    }

    /// The rule by which words were combined, for a search without a result.
    private static func advice(_ text: String) -> String {
        if text.contains("\"") {
            return " Words in quotation marks must occur together; without them, they may occur anywhere."
        }
        return text.split(whereSeparator: \.isWhitespace).count > 1 ? " All words must occur." : ""
    }

    /// The lines of a snippet, wrapped to `width`.
    private static func lines(of snippet: SearchResults.Snippet, width: Int?, isBold: Bool) -> [String] {
        let lines = width.map { DisplayText.wrapped(snippet.text, to: $0) } ?? [snippet.text]
        guard isBold else { return lines }
        var start = 0
        return lines.map { line in
            let scalars = Array(line.unicodeScalars)
            var result = String.UnicodeScalarView()
            for (index, scalar) in scalars.enumerated() {
                if snippet.marks.contains(where: { $0.lowerBound == start + index || index == 0 && $0.contains(start) })
                {
                    result.append(contentsOf: "\u{1B}[1m".unicodeScalars)
                }
                result.append(scalar)
                let isLast = index == scalars.count - 1
                if snippet.marks.contains(where: {
                    $0.upperBound == start + index + 1 || isLast && $0.contains(start + index)
                }) {
                    result.append(contentsOf: "\u{1B}[22m".unicodeScalars)
                }
            }
            // Wrapping replaces a space by the end of the line.
            start += scalars.count + 1
            return String(result)
        }
    }

    /// `12 episodes.`, `The best 20 of 3412 episodes; `--limit` shows up to 200.`
    private static func totals(_ results: SearchResults, of search: LibrarySearch) -> String {
        let (shown, total) = (results.hits.count, results.total)
        guard shown < total else { return NumberText.counted(total, "episode") + "." }
        let which = search.order == .relevance ? "The best" : "The newest"
        let more = shown < RequestSizes.searchResults ? "; `--limit` shows up to \(RequestSizes.searchResults)." : "."
        return "\(which) \(shown) of \(NumberText.counted(total, "episode"))\(more)"
    }
}

extension LibrarySearch.Scope: ExpressibleByArgument {}
extension LibrarySearch.Order: ExpressibleByArgument {}
