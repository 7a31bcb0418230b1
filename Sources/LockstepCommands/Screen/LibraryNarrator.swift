import LockstepClient
import PodcastModel

/// Reports the library’s pages as sentences: a page when it is opened, then its changes and the selection.
struct LibraryNarrator: Sendable {
    private var page: LibraryPage?
    private var rows: [LibraryRow] = []
    private var selection: String?
    private var listings = 0
    private var question: String?
    private var failure: String?

    /// The number of rows that are listed together.
    static let listed = 20
    /// The maximum number of changes that are reported one by one.
    static let changeLimit = 5

    /// Returns the lines about everything that wasn’t reported yet.
    mutating func lines(for pages: inout LibraryPages) -> [String] {
        if case .text(let title, let lines, _)? = pages.prompt {
            pages.closePrompt()
            return [Sentence.stopped(title)] + lines.filter { !$0.isEmpty }
        }
        let question = pages.question
        defer { self.question = question }
        if let question { return question == self.question ? [] : [question] }
        guard let view = pages.view else {
            defer { self = Self() }
            return page == nil ? [] : ["Up Next and the player."]
        }
        guard view.list.isLoaded else {
            defer { failure = view.list.failure ?? failure }
            return view.list.failure.map { $0 == failure ? [] : [$0] } ?? []
        }
        failure = nil
        let isSame = page == view.page && listings == pages.listings
        let lines: [String]
        if isSame {
            lines = changes(view)
        } else {
            let first = view.list.firstIndex + 1
            let rows = view.list.rows.enumerated().dropFirst(view.list.selectedIndex ?? 0).prefix(Self.listed)
            let shown = rows.map { (number: first + $0, row: $1) }
            pages.setListed(
                Dictionary(uniqueKeysWithValues: shown.map { ($0.number, $0.row.id) }), isMore: page == view.page)
            lines = Self.list(view, shown, heading: pages.heading)
        }
        (page, rows, selection, listings) = (view.page, view.list.rows, view.list.selection, pages.listings)
        return lines
    }

    private static func list(
        _ view: LibraryPages.View, _ shown: [(number: Int, row: LibraryRow)], heading: String
    ) -> [String] {
        guard !shown.isEmpty else { return [LibraryPages.emptyText(view.page)] }
        let lines = shown.map { "\($0.number). \(Sentence.stopped($0.row.sentence))" }
        let isEnd = view.list.isComplete && shown.last?.row.id == view.list.rows.last?.id
        return ["\(heading):"] + lines + (isEnd ? [] : ["“more” lists the next ones."])
    }

    private func changes(_ view: LibraryPages.View) -> [String] {
        let list = view.list
        let known = Dictionary(rows.map { ($0.id, $0) }) { first, _ in first }
        // Rows after the last known one were read while scrolling.
        let end = list.rows.lastIndex { known[$0.id] != nil } ?? (rows.isEmpty ? list.rows.count : -1)
        var lines: [String] = []
        for (index, row) in list.rows.enumerated() {
            if let old = known[row.id] {
                if old.sentence != row.sentence { lines.append("Changed: \(Sentence.stopped(row.sentence))") }
            } else if index <= end {
                lines.append("New: \(Sentence.stopped(row.sentence))")
            }
        }
        if list.isComplete {
            let now = Set(list.rows.map(\.id))
            lines += rows.filter { !now.contains($0.id) }.map { "No longer listed: \(Sentence.stopped($0.title))" }
        }
        if lines.count > Self.changeLimit { lines = ["\(lines.count) rows changed; “list” lists them."] }
        if let index = list.selectedIndex, list.selection != selection, !rows.isEmpty {
            lines.append("\(view.number(at: index)). \(Sentence.stopped(list.rows[index].sentence))")
        }
        return lines
    }
}

// MARK: - Typed words

extension LibraryPages {
    /// The question that a prompt asks; nil if there is none.
    var question: String? {
        switch prompt {
        case .search?: "Type the words to search for."
        case .newPlaylist?: "Type the title of the new playlist."
        case .playlist(let rows, _, _)?:
            "Type the number of the playlist: "
                + (rows.map(\.title) + ["New playlist"]).enumerated().map { "\($0 + 1) \($1)" }.joined(separator: ", ")
                + "."
        case .confirm(let question, _)?: question
        case .text?, nil: nil
        }
    }

    /// The words that act like a key; a number after one selects a row first.
    private static let words: [String: PlayerKey] = [
        "player": .character("U"), "inbox": .character("I"), "podcasts": .character("P"),
        "playlists": .character("L"), "history": .character("H"), "open": .enter, "play": .enter,
        "add": .character("a"), "addnext": .character("A"), "download": .character("d"), "mark": .character("m"),
        "favourite": .character("f"), "notes": .character("o"), "to": .character("l"), "create": .character("N"),
        "markall": .character("M"), "undo": .character("u"), "remove": .character("x"), "movedown": .character("J"),
        "moveup": .character("K"), "shuffle": .character("s"), "playlist": .character("p"), "choose": .character(" "),
        "back": .escape, "help": .character("?"),
    ]

    static let wordHelp =
        "Words: inbox, podcasts, playlists, history, search WORDS, player, list, more, back; with the number of a row: "
        + "select, open, play, shuffle, add, addnext, download, mark, favourite, notes, choose, to PLAYLIST, remove, moveup, "
        + "movedown, markall; create TITLE, undo."

    /// Handles a typed line of words, or the answer to a question; nil if it is neither.
    mutating func type(_ line: String) -> Outcome? {
        switch prompt {
        case .search?:
            closePrompt()
            search(line)
            return .handled
        case .newPlaylist(_, let ids)?: return create(line, adding: ids)
        case .playlist(let rows, _, _)?:
            let index = Int(line).map { $0 - 1 } ?? rows.firstIndex { $0.title.lowercased() == line.lowercased() }
            guard let index, (0...rows.count).contains(index) else {
                closePrompt()
                return .say("There is no playlist \(DisplayText.quoted(line)). Nothing was added.")
            }
            return press(.row(index))
        case .confirm?: return press(.character(line.lowercased().hasPrefix("y") ? "y" : "n"))
        case .text?, nil: break
        }
        let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
        guard let word = parts.first?.lowercased() else { return nil }
        let rest = parts.dropFirst().first
        if word == "search" {
            open(.search(rest ?? ""), isNew: true)
            if let rest { search(rest) } else { ask(.search) }
            return .handled
        }
        if word == "create", let rest { return create(rest, adding: []) }
        guard let view else { return Self.words[word].flatMap { rest == nil ? press($0) : nil } }
        if word == "to", let rest, Int(rest) == nil {
            let outcome = press(.character("l"))
            return outcome == .handled ? type(rest) : outcome
        }
        if let rest {
            guard let number = Int(rest), number > 0 else { return nil }
            guard select(number: number) else {
                let reason =
                    view.listed[number] == nil ? "There is no row \(number)" : "Row \(number) is no longer there"
                return .say("\(reason); “list” lists the rows.")
            }
        }
        switch word {
        case "select": return .handled
        case "list", "more":
            if word == "more" { scroll(by: LibraryNarrator.listed) }
            listAgain()
            return .handled
        default: return Self.words[word].map { press($0) }
        }
    }
}
