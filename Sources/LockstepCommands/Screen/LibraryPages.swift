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
        /// The rows as they were last listed in sentences: a number means that row, although the list has changed.
        fileprivate(set) var listed: [Int: LibraryRow.ID] = [:]

        /// The number of a loaded row: the one with which it was listed, or its position.
        func number(at index: Int) -> Int {
            let id = list.rows[index].id
            return listed.first { $0.value == id }?.key ?? list.firstIndex + index + 1
        }
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
    var prompt: Prompt?
    private(set) var playlists: [LibraryRow] = []
    /// The number of requests to list the whole page again.
    private(set) var listings = 0
    private var commands = LibraryCommandQueue()

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
        _ task: LibraryTask, _ result: Result<LibraryResult, Failure>, now: MonotonicTime
    ) -> (sentence: String?, next: LibraryTask?) {
        switch (task, result) {
        case (.load(let page, let request), _):
            for index in views.indices where views[index].page == page {
                switch result {
                case .success(.pages(let pages, let total)):
                    views[index].list.apply(pages, total: total, to: request)
                case .failure(let failure): views[index].list.fail(failure.message, request, now: now)
                default: break
                }
            }
            return (nil, nil)
        case (.notes, .success(.notes(let title, let lines))):
            prompt = .text(title: title, lines, top: 0)
            return (nil, nil)
        case (.notes, .failure(let failure)): return (failure.message, nil)
        case (.command(.undo), .success(.effect(let sentence, _))):
            return (sentence, commands.undone().map(LibraryTask.command))
        case (.command, .success(.effect(let sentence, let undo))):
            return (sentence, commands.succeeded(undo: undo).map(LibraryTask.command))
        case (.command(let failed), .failure(let failure)):
            commands.failed(failed, failure)
            return (failure.message, nil)
        default: return (nil, nil)
        }
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
            guard let undo = commands.undo else { return .say("There is nothing to undo.") }
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

    /// Remembers the numbers of rows that are listed in sentences.
    ///
    /// - Parameter isMore: whether earlier ones remain valid.
    mutating func setListed(_ numbers: [Int: LibraryRow.ID], isMore: Bool) {
        guard let index = views.indices.last else { return }
        let again = Set(numbers.values)
        let earlier = isMore ? views[index].listed.filter { !again.contains($0.value) } : [:]
        views[index].listed = earlier.merging(numbers) { $1 }
    }

    /// Selects a loaded row by its number.
    ///
    /// - Returns: whether it is loaded.
    mutating func select(number: Int) -> Bool {
        guard let view else { return false }
        let index: Int?
        if let id = view.listed[number] {
            index = view.list.rows.firstIndex { $0.id == id }
        } else {
            index = number - 1 - view.list.firstIndex
        }
        guard let index, view.list.rows.indices.contains(index) else { return false }
        change { $0.select(index: index) }
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
        // Play sessions don’t have their episodes’ marks.
        case "m": return begin(.mark(episodes, played: view.page == .history ? nil : !rows.allSatisfy(\.isPlayed)))
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
    mutating func begin(_ next: LibraryCommand) -> Outcome {
        if let index = views.indices.last { views[index].chosen = [] }
        switch commands.begin(next) {
        case .begins: return .ask(.command(next))
        case .waits: return .handled
        case .refused(let reason): return .say(reason)
        }
    }
}
