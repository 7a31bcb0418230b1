import LockstepClient
import PodcastModel

/// The screen of the library’s pages: the player’s line, the page’s heading, its rows, and a prompt or a notice.
extension LibraryPages {
    func image(_ snapshot: PlayerSnapshot, notice: String?, columns: Int, rows: Int) -> ScreenImage {
        guard columns > 0, rows > 0 else { return ScreenImage() }
        var image = ScreenImage()
        func line(_ text: String, _ style: ScreenImage.Style = .plain) -> [ScreenImage.Span] {
            [.init(text: DisplayText.cut(text, to: columns), style: style)]
        }
        if rows > 3 { image.lines.append(line(SingleLineText.text(snapshot, columns: columns))) }
        image.lines.append(line(heading, .bold))
        let last = footer(notice)
        let lastLines = DisplayText.wrapped(last.text, to: columns).prefix(max(1, rows / 3))
        let footerHeight = rows > 2 ? lastLines.count : 0
        let height = max(0, rows - image.lines.count - footerHeight)
        switch prompt {
        case .text(_, let lines, let top)?:
            let wrapped = lines.dropFirst(top).lazy.flatMap { DisplayText.wrapped($0, to: columns) }
            image.lines += wrapped.prefix(height).map { line($0) }
        case .playlist(let rows, let selected, _)?:
            let names = rows.map { Self.text($0, isChosen: false, columns: columns - 1) } + ["  New playlist"]
            Self.append(names, selected: selected, height: height, columns: columns, to: &image)
        default:
            guard let list = view?.list else { break }
            // Only the rows around the selection are formatted.
            let selected = list.selectedIndex ?? 0
            let start = max(0, min(selected - height / 2, list.rows.count - height))
            let chosen = Set(view?.chosen.map(\.id) ?? [])
            let names = list.rows.dropFirst(start).prefix(height).map {
                Self.text($0, isChosen: chosen.contains($0.id), columns: columns - 1)
            }
            Self.append(
                names, selected: list.selectedIndex.map { $0 - start }, height: height, columns: columns, first: start,
                to: &image)
        }
        while image.lines.count < rows - footerHeight { image.lines.append([]) }
        if footerHeight > 0 { image.lines += lastLines.map { line($0, last.style) } }
        if hasTextCursor, let text = lastLines.last {
            image.cursor = .init(
                row: min(rows, image.lines.count) - 1, column: min(columns - 1, DisplayText.width(text)))
        }
        return image
    }

    private var hasTextCursor: Bool {
        switch prompt {
        case .search, .newPlaylist: true
        default: false
        }
    }

    private static func append(
        _ names: [String], selected: Int?, height: Int, columns: Int, first: Int = 0, to image: inout ScreenImage
    ) {
        let start = max(0, min((selected ?? 0) - height / 2, names.count - height))
        for (index, name) in names.enumerated().dropFirst(start).prefix(height) {
            let isSelected = index == selected
            if isSelected { image.cursor = .init(row: image.lines.count, column: 0) }
            image.listRows[image.lines.count] = first + index
            let text = DisplayText.cut((isSelected ? ">" : " ") + name, to: columns)
            image.lines.append([.init(text: text, style: isSelected ? .selected : .plain)])
        }
    }

    /// `+*The title — The podcast      45:36`; `+` is a chosen row, `*` a new episode, `✓` a played one.
    private static func text(_ row: LibraryRow, isChosen: Bool, columns: Int) -> String {
        let head = (isChosen ? "+" : " ") + (row.isPlayed ? "✓" : row.isNew ? "*" : " ")
        let name = row.detail.isEmpty ? row.title : "\(row.title) — \(row.detail)"
        let room = columns - DisplayText.width(head) - DisplayText.width(row.note) - 1
        guard room >= 12, !row.note.isEmpty else { return DisplayText.cut(head + name, to: columns) }
        return head + DisplayText.fitted(name, to: room) + " " + row.note
    }

    /// `Inbox (12)`, `Search “climate” (3)`
    var heading: String {
        switch prompt {
        case .text(let title, _, _)?: return title
        case .playlist(_, _, let ids)?: return "Add \(NumberText.counted(ids.count, "episode")) to a playlist"
        default: break
        }
        guard let view else { return "" }
        let list = view.list
        var words = view.page.title
        if case .search(let text) = view.page, !text.isEmpty { words += " \(DisplayText.quoted(text))" }
        if let count = list.total ?? (list.isComplete ? list.rows.count : nil) { words += " (\(count))" }
        if !view.chosen.isEmpty { words += ", \(view.chosen.count) chosen" }
        if !list.isLoaded, list.failure == nil { words += " …" }
        return words
    }

    private func footer(_ notice: String?) -> (text: String, style: ScreenImage.Style) {
        switch prompt {
        case .search?:
            guard case .search(let text)? = view?.page else { break }
            return ("Search: \(text)", .bold)
        case .newPlaylist(let text, _)?: return ("Title of the new playlist: \(text)", .bold)
        case .confirm(let question, _)?: return (question, .bold)
        case .playlist?: return ("↑↓ ⏎ choose  Esc cancel", .dim)
        case .text?: return ("↑↓ scroll  any other key closes", .dim)
        case nil: break
        }
        if let notice { return (notice, .bold) }
        if let failure = view?.list.failure { return (failure, .bold) }
        if let view, view.list.isLoaded, view.list.rows.isEmpty { return (Self.emptyText(view.page), .plain) }
        return (
            "⏎ \(view?.page.opens == true ? "open" : "play")  a add  m mark  / search  Tab pages  ? keys  q quit", .dim
        )
    }

    static func emptyText(_ page: LibraryPage) -> String {
        switch page {
        case .inbox: "The inbox is empty."
        case .podcasts: "You have no podcasts yet."
        case .history: "You haven’t heard anything yet."
        case .search(let text):
            text.isEmpty ? "Type the words to search for after /." : "Nothing matches \(DisplayText.quoted(text))."
        default: "\(DisplayText.quoted(page.title)) is empty."
        }
    }
}

extension LibraryPage {
    /// Whether Enter opens the rows.
    fileprivate var opens: Bool { self == .podcasts || self == .playlists }
}
