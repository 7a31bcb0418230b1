import LockstepClient
import PodcastModel

/// Decides the rows, prompts and tasks of the library’s pages from keys, changes and results, without I/O.
struct LibraryPages: Sendable {
    /// An open page.
    struct View: Sendable {
        var page: LibraryPage
        var list = PagedList<LibraryRow>()
        /// The rows that were chosen with the space bar; commands apply to them instead of the selected one.
        var chosen: [LibraryRow] = []
    }

    /// The part of the screen that handles the next keys, instead of the list.
    enum Prompt: Sendable, Hashable {
        /// The words of the search are typed.
        case search
        case newPlaylist(String, adding: [EpisodeID])
        case playlist([LibraryRow], selected: Int, adding: [EpisodeID])
        case confirm(String, LibraryCommand)
        /// A text to read, from a line on.
        case text(title: String, [String], top: Int)
    }

    enum Outcome: Sendable, Hashable {
        /// The key isn’t one of the pages.
        case ignored
        case handled
        case say(String)
        case ask(LibraryTask)
    }

    /// The open page is the last; the others are those to return to. Empty while the player’s own page is shown.
    private(set) var views: [View] = []
    private(set) var prompt: Prompt?
    private(set) var playlists: [LibraryRow] = []
    /// The number of requests to list the whole page again.
    private(set) var listings = 0
    private var undos: [LibraryUndo] = []
    private var command: LibraryCommand?
    private var waiting: [LibraryCommand] = []

    static let undoLimit = 50
    static let waitingLimit = 9

    var view: View? { views.last }
    var isOpen: Bool { !views.isEmpty || prompt != nil }

    // MARK: - Events

    mutating func apply(_ state: FleetState, _ changes: Set<FleetChange>, now: MonotonicTime) {
        playlists = state.playlists.map(LibraryRow.init)
        for index in views.indices where changes.contains(where: views[index].page.isAffected) {
            views[index].list.invalidate(now: now)
        }
    }

    /// Returns the next rows to read; nil if none are needed now.
    mutating func nextLoad(now: MonotonicTime) -> LibraryTask? {
        guard let index = views.indices.last, let request = views[index].list.nextRequest(now: now) else { return nil }
        return .load(views[index].page, request)
    }

    /// Handles the result of a task.
    ///
    /// - Returns: the sentence to show, and the next task.
    mutating func finished(
        _ task: LibraryTask, _ result: Result<LibraryResult, Failure>
    ) -> (sentence: String?, next: LibraryTask?) {
        switch (task, result) {
        case (.load(let page, let request), _):
            for index in views.indices where views[index].page == page {
                switch result {
                case .success(.pages(let pages, let total)):
                    views[index].list.apply(pages, total: total, to: request)
                case .failure(let failure): views[index].list.fail(failure.message, request)
                default: break
                }
            }
            return (nil, nil)
        case (.notes, .success(.notes(let title, let lines))):
            prompt = .text(title: title, lines, top: 0)
            return (nil, nil)
        case (.notes, .failure(let failure)): return (failure.message, nil)
        case (.command(let done), .success(.effect(let sentence, let undo))):
            if let undo { undos = undos.suffix(Self.undoLimit - 1) + [undo] }
            if case .undo = done { _ = undos.popLast() }
            return (sentence, nextCommand())
        case (.command(.undo(let undo)), .success(.undone(let sentence, let revision))):
            _ = undos.popLast()
            if let revision { undos = undos.map { $0.following(undo, at: revision) } }
            return (sentence, nextCommand())
        case (.command(let failed), .failure(let failure)):
            // What can’t be undone must not prevent the undo of earlier commands.
            if case .undo = failed, !failure.retry || failure.known == .revisionMismatch { _ = undos.popLast() }
            // The others may depend on it.
            waiting = []
            return (failure.message, nextCommand())
        default: return (nil, nil)
        }
    }

    private mutating func nextCommand() -> LibraryTask? {
        command = waiting.isEmpty ? nil : waiting.removeFirst()
        return command.map(LibraryTask.command)
    }

    // MARK: - Keys

    mutating func press(_ key: PlayerKey) -> Outcome {
        if let prompt { return press(key, in: prompt) }
        if let page = Self.page(key) {
            open(page, isNew: true)
            if key == .character("/") { prompt = .search }
            return .handled
        }
        guard let view else { return key == .tab ? cycle(by: 1) : key == .backTab ? cycle(by: -1) : .ignored }
        switch key {
        case .character("U"): views = []
        case .tab: return cycle(by: 1)
        case .backTab: return cycle(by: -1)
        case .escape, .delete: views.removeLast()
        case .up, .character("k"): change { $0.move(by: -1) }
        case .down, .character("j"): change { $0.move(by: 1) }
        case .pageUp: change { $0.move(by: -10) }
        case .pageDown: change { $0.move(by: 10) }
        case .home: change { $0.selectFirst() }
        case .end: change { $0.move(by: $0.rows.count) }
        case .row(let index):
            // A second click on the selected row activates it.
            if view.list.selectedIndex == index { return enter(view) }
            change { $0.select(index: index) }
        case .character("?"): prompt = .text(title: "Keys", LibraryHelp.lines, top: 0)
        case .enter: return enter(view)
        case .character("u"):
            guard let undo = undos.last else { return .say("There is nothing to undo.") }
            return begin(.undo(undo))
        case .character("N"): prompt = .newPlaylist("", adding: [])
        case .character(let character): return pressLetter(character, view)
        default: return .ignored
        }
        return .handled
    }

    private static func page(_ key: PlayerKey) -> LibraryPage? {
        switch key {
        case .character("I"): .inbox
        case .character("P"): .podcasts
        case .character("L"): .playlists
        case .character("H"): .history
        case .character("/"): .search("")
        default: nil
        }
    }

    static let pages: [LibraryPage] = [.inbox, .podcasts, .playlists, .search(""), .history]

    private mutating func cycle(by step: Int) -> Outcome {
        let names = Self.pages.map(\.title)
        // The player’s page is between the last and the first one.
        let current = (views.first.flatMap { names.firstIndex(of: $0.page.title) } ?? -1) + 1
        let next = (current + step + names.count + 1) % (names.count + 1)
        if next == 0 {
            views = []
        } else {
            open(Self.pages[next - 1], isNew: true)
        }
        return .handled
    }

    /// Opens a page, above the open ones or instead of them.
    mutating func open(_ page: LibraryPage, isNew: Bool = false) {
        // A search that is opened again keeps its words.
        if isNew, case .search = page, let open = views.first, case .search = open.page {
            views = [open]
            return
        }
        views = (isNew ? [] : views) + [View(page: page)]
    }

    /// Replaces the words of the search.
    mutating func search(_ text: String) {
        guard let index = views.indices.last else { return }
        views[index].page = .search(text)
        views[index].chosen = []
        views[index].list.clear()
    }

    mutating func closePrompt() { prompt = nil }

    mutating func ask(_ question: Prompt) { prompt = question }

    mutating func listAgain() { listings += 1 }

    mutating func scroll(by count: Int) { change { $0.move(by: count) } }

    /// Selects a loaded row by its number from 1.
    ///
    /// - Returns: whether it is loaded.
    mutating func select(number: Int) -> Bool {
        guard let list = view?.list, list.rows.indices.contains(number - 1 - list.firstIndex) else { return false }
        change { $0.select(index: number - 1 - list.firstIndex) }
        return true
    }

    private mutating func change(_ move: (inout PagedList<LibraryRow>) -> Void) {
        if let index = views.indices.last { move(&views[index].list) }
    }

    private mutating func enter(_ view: View) -> Outcome {
        guard let row = view.list.selected else { return .say("This page is empty.") }
        switch row.subject {
        case .podcast(let id): open(.episodes(id, title: row.title))
        case .playlist(let id): open(.items(id, title: row.title))
        case .episode(let id):
            guard case .items(let playlist, _) = view.page else { return begin(.play(id)) }
            return begin(.playPlaylist(playlist, from: row.id, isShuffled: false))
        }
        return .handled
    }

    /// Handles the keys that act on rows.
    private mutating func pressLetter(_ key: Character, _ view: View) -> Outcome {
        let rows = view.chosen.isEmpty ? view.list.selected.map { [$0] } ?? [] : view.chosen
        let episodes = rows.compactMap { row in row.episode.map { LibraryEpisode(id: $0, title: row.title) } }
        let ids = episodes.map(\.id)
        switch key {
        case "a", "A", "d", "m", "f", "o", "l":
            guard !ids.isEmpty else { return .say("No episode is selected.") }
        case "p", "s":
            guard let playlist = Self.playlist(view) else {
                return key == "p" ? .ignored : .say("No playlist is selected.")
            }
            return begin(.playPlaylist(playlist, from: nil, isShuffled: key == "s" ? true : nil))
        default: break
        }
        switch key {
        case " ": return choose()
        case "a": return begin(.add(ids, next: false))
        case "A": return begin(.add(ids, next: true))
        case "d": return begin(.download(episodes))
        case "m": return begin(.mark(episodes, played: !rows.allSatisfy(\.isPlayed)))
        case "M": return markAll(view)
        case "f": return begin(.favourite(ids))
        case "o": return .ask(.notes(ids[0]))
        case "l":
            prompt = .playlist(playlists, selected: 0, adding: ids)
            return .handled
        case "x", "J", "K":
            guard case .items(let id, _) = view.page, let index = view.list.selectedIndex, !ids.isEmpty else {
                return .say("Only the episodes of a playlist can be removed and moved; L shows the playlists.")
            }
            if key == "x" { return begin(.removeFromPlaylist(id, ids)) }
            let target = view.list.firstIndex + index + (key == "J" ? 1 : -1)
            guard target >= 0, target < view.list.total ?? .max else { return .say("It is already at the end.") }
            return begin(.move(playlist: id, entry: view.list.rows[index].id, to: target))
        default: return .ignored
        }
    }

    private static func playlist(_ view: View) -> String? {
        if case .items(let id, _) = view.page { return id }
        if case .playlist(let id)? = view.list.selected?.subject { return id }
        return nil
    }

    private mutating func choose() -> Outcome {
        guard let index = views.indices.last, let row = views[index].list.selected, row.episode != nil else {
            return .say("No episode is selected.")
        }
        if let there = views[index].chosen.firstIndex(where: { $0.id == row.id }) {
            views[index].chosen.remove(at: there)
        } else {
            views[index].chosen.append(row)
        }
        views[index].list.move(by: 1)
        return .handled
    }

    private mutating func markAll(_ view: View) -> Outcome {
        let podcast: (id: PodcastID, title: String)
        switch (view.page, view.list.selected?.subject) {
        case (.episodes(let id, let title), _): podcast = (id, title)
        case (_, .podcast(let id)?): podcast = (id, view.list.selected?.title ?? "")
        default: return .say("No podcast is selected; P shows the podcasts.")
        }
        prompt = .confirm(
            "Mark all episodes of \(DisplayText.quoted(podcast.title)) as played? y marks them, any other key cancels.",
            .markAll(podcast.id, title: podcast.title))
        return .handled
    }

    /// Begins a command, or queues it after the one in flight.
    private mutating func begin(_ next: LibraryCommand) -> Outcome {
        if let index = views.indices.last { views[index].chosen = [] }
        guard command != nil else {
            command = next
            return .ask(.command(next))
        }
        if case .undo = next { return .say("The last command is still running; this key was ignored.") }
        guard waiting.count < Self.waitingLimit else {
            return .say("\(Self.waitingLimit) commands are waiting; this key was ignored.")
        }
        waiting.append(next)
        return .handled
    }

    // MARK: - Prompts

    private mutating func press(_ key: PlayerKey, in current: Prompt) -> Outcome {
        switch current {
        case .search: return pressSearch(key)
        case .newPlaylist(let text, let ids):
            if key == .escape { return close(saying: "No playlist was created.") }
            guard key == .enter else {
                prompt = .newPlaylist(Self.edited(text, key), adding: ids)
                return .handled
            }
            return create(text, adding: ids)
        case .playlist(let rows, let selected, let ids):
            switch key {
            case .up, .character("k"), .down, .character("j"):
                let step = key == .up || key == .character("k") ? -1 : 1
                prompt = .playlist(rows, selected: max(0, min(rows.count, selected + step)), adding: ids)
            case .row(let index): return pick(rows, index, ids)
            case .enter: return pick(rows, selected, ids)
            case .escape, .character("q"): return close(saying: "Nothing was added.")
            default: break
            }
            return .handled
        case .confirm(_, let command):
            prompt = nil
            return key == .character("y") || key == .character("Y") ? begin(command) : .say("Nothing was changed.")
        case .text(let title, let lines, let top):
            let step: Int
            switch key {
            case .up, .character("k"): step = -1
            case .down, .character("j"): step = 1
            case .pageUp: step = -10
            case .pageDown, .character(" "): step = 10
            case .home: step = -lines.count
            case .end: step = lines.count
            default:
                prompt = nil
                return .handled
            }
            prompt = .text(title: title, lines, top: max(0, min(lines.count - 1, top + step)))
            return .handled
        }
    }

    private mutating func pressSearch(_ key: PlayerKey) -> Outcome {
        guard case .search(let text)? = view?.page else {
            prompt = nil
            return press(key)
        }
        switch key {
        case .escape: prompt = nil
        case .enter: prompt = nil
        case .character, .delete: search(Self.edited(text, key))
        default:
            prompt = nil
            return press(key)
        }
        return .handled
    }

    private static func edited(_ text: String, _ key: PlayerKey) -> String {
        switch key {
        case .character(let character): text.utf8.count < 200 ? text + String(character) : text
        case .delete: String(text.dropLast())
        default: text
        }
    }

    private mutating func close(saying sentence: String) -> Outcome {
        prompt = nil
        return .say(sentence)
    }

    /// Creates a playlist with these episodes.
    mutating func create(_ title: String, adding ids: [EpisodeID]) -> Outcome {
        prompt = nil
        guard !title.allSatisfy(\.isWhitespace) else { return .say("No playlist was created.") }
        return begin(.createPlaylist(title: title, adding: ids))
    }

    /// The row after the playlists creates a new one.
    private mutating func pick(_ rows: [LibraryRow], _ index: Int, _ ids: [EpisodeID]) -> Outcome {
        guard rows.indices.contains(index) else {
            prompt = .newPlaylist("", adding: ids)
            return .handled
        }
        prompt = nil
        return begin(.addToPlaylist(rows[index].id, ids))
    }
}

/// The keys of the library’s pages.
enum LibraryHelp {
    static let lines = [
        "U Up Next, I Inbox, P Podcasts, L Playlists, / Search, H History; Tab and Shift-Tab: the next and previous page.",
        "↑ ↓ or j k, Page Up, Page Down, Home, End: select. Space: choose several episodes.",
        "Enter: play the episode, or open the podcast or playlist. Backspace or Esc: back.",
        "a add to the end of Up Next, A add after the current entry, d download, m mark as played or unplayed, f favourite or not, o show notes.",
        "l add to a playlist, N create a playlist, M mark all episodes of the podcast as played, u undo.",
        "On playlists: p play, s play shuffled, x remove the episode, J K move it down or up.",
        "← → seek, [ ] speed, + - volume, n next, z sleep timer, b bookmark, digits answer alerts, i describes the state, q quits.",
    ]
}
