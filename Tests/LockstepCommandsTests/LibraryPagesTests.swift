import LockstepClient
import PodcastModel
import Testing

@testable import LockstepCommands

@Suite struct LibraryPagesTests {
    private static let now = MonotonicTime(nanoseconds: 1_000_000_000)

    private static func row(_ number: Int, isPlayed: Bool = false) throws -> LibraryRow {
        let id = try #require(EpisodeID("e\(number)"))
        return LibraryRow(
            id: id.text, subject: .episode(id), title: "Part \(number)", detail: "Show", note: "10:00",
            isPlayed: isPlayed)
    }

    private static func episode(_ number: Int) throws -> LibraryEpisode {
        LibraryEpisode(id: try #require(EpisodeID("e\(number)")), title: "Part \(number)")
    }

    /// Answers the open page’s request with these rows.
    private static func load(_ pages: inout LibraryPages, _ rows: [LibraryRow], at now: MonotonicTime = now) throws {
        let next = pages.nextLoad(now: now)
        let task = try #require(next)
        let result = LibraryResult.pages([.init(cursor: "", rows: rows, next: "")], total: rows.count)
        #expect(pages.finished(task, .success(result), now: now).sentence == nil)
    }

    private static func inbox(_ count: Int = 3) throws -> LibraryPages {
        var pages = LibraryPages()
        #expect(pages.press(.character("I")) == .handled)
        try load(&pages, try (1...count).map { try row($0) })
        return pages
    }

    @Test func `keys of the player are left to it`() throws {
        var pages = LibraryPages()
        for key in [.left, .character(" "), .character("n"), .up, .enter, .character("u")] as [PlayerKey] {
            #expect(pages.press(key) == .ignored)
        }
        pages = try Self.inbox()
        for key in [.left, .character("["), .character("n"), .character("q"), .character("1")] as [PlayerKey] {
            #expect(pages.press(key) == .ignored)
        }
    }

    @Test func `letters act on the selected episode, or on the chosen ones`() throws {
        var pages = try Self.inbox()
        _ = pages.press(.down)
        let second = try Self.episode(2)
        #expect(pages.press(.enter) == .ask(.command(.play(second.id))))
        // The next command waits for the one in flight.
        #expect(pages.press(.character("a")) == .handled)
        let end = pages.finished(
            .command(.play(second.id)), .success(.effect("Playing.", undo: .queue("main", change: 1))), now: Self.now)
        #expect(end.sentence == "Playing." && end.next == .command(.add([second.id], next: false)))
        _ = pages.finished(
            .command(.add([second.id], next: false)), .success(.effect("Added.", undo: .queue("main", change: 1))),
            now: Self.now)
        _ = pages.press(.home)
        for _ in 1...2 { #expect(pages.press(.character(" ")) == .handled) }
        #expect(pages.view?.chosen.count == 2)
        let marked = LibraryCommand.mark([try Self.episode(1), second], played: true)
        #expect(pages.press(.character("m")) == .ask(.command(marked)))
        #expect(pages.view?.chosen.isEmpty == true)
    }

    @Test func `undo reverses the last command, and only that`() throws {
        var pages = try Self.inbox()
        #expect(pages.press(.character("u")) == .say("There is nothing to undo."))
        let command = LibraryCommand.mark([try Self.episode(1)], played: true)
        #expect(pages.press(.character("m")) == .ask(.command(command)))
        let undo = LibraryUndo.marks(group: "g")
        _ = pages.finished(.command(command), .success(.effect("Marked.", undo: undo)), now: Self.now)
        #expect(pages.press(.character("u")) == .ask(.command(.undo(undo))))
        _ = pages.finished(.command(.undo(undo)), .success(.effect("Undone.", undo: nil)), now: Self.now)
        #expect(pages.press(.character("u")) == .say("There is nothing to undo."))
    }

    @Test func `several changes of a list are undone, unless others have changed it in between`() throws {
        var pages = try Self.inbox()
        let command = LibraryCommand.add([try Self.episode(1).id], next: false)
        let undos = [4, 7, 8].map { LibraryUndo.queue("main", change: $0) }
        for undo in undos {
            _ = pages.finished(.command(command), .success(.effect("Added.", undo: undo)), now: Self.now)
        }
        for undo in undos.dropFirst().reversed() {
            #expect(pages.press(.character("u")) == .ask(.command(.undo(undo))))
            _ = pages.finished(.command(.undo(undo)), .success(.effect("Undone.", undo: nil)), now: Self.now)
        }
        let first = undos[0]
        #expect(pages.press(.character("u")) == .ask(.command(.undo(first))))
        _ = pages.finished(.command(.undo(first)), .failure(Failure(.revisionMismatch, "Changed.")), now: Self.now)
        #expect(pages.press(.character("u")) == .say("There is nothing to undo."))
    }

    @Test func `a search reads again after each letter, and Enter returns to the results`() throws {
        var pages = LibraryPages()
        _ = pages.press(.character("/"))
        #expect(pages.prompt == .search)
        for character in "quiet" { #expect(pages.press(.character(character)) == .handled) }
        #expect(pages.view?.page == .search("quiet"))
        _ = pages.press(.delete)
        #expect(pages.view?.page == .search("quie"))
        try Self.load(&pages, [try Self.row(1), try Self.row(2)])
        _ = pages.press(.enter)
        #expect(pages.prompt == nil)
        _ = pages.press(.character("j"))
        #expect(pages.view?.list.selected?.title == "Part 2")
    }

    @Test func `marking a whole podcast needs a confirmation`() throws {
        let podcast: PodcastID = "p1"
        var pages = LibraryPages()
        pages.open(.episodes(podcast, title: "Show"))
        try Self.load(&pages, [try Self.row(1)])
        _ = pages.press(.character("M"))
        #expect(pages.press(.character("n")) == .say("Nothing was changed."))
        _ = pages.press(.character("M"))
        #expect(pages.press(.character("y")) == .ask(.command(.markAll(podcast, title: "Show"))))
    }

    @Test func `only changes that concern a page read it again`() {
        let (one, two): (PodcastID, PodcastID) = ("p1", "p2")
        let page = LibraryPage.items("drive", title: "Drive")
        #expect(page.isAffected(by: .playlist("drive")) && !page.isAffected(by: .playlist("other")))
        #expect(LibraryPage.inbox.isAffected(by: .inbox) && !LibraryPage.history.isAffected(by: .inbox))
        #expect(LibraryPage.playlists.isAffected(by: .playlist("other")))
        #expect(!LibraryPage.playlists.isAffected(by: .episode("e1")))
        #expect(LibraryPage.episodes(one, title: "") != .episodes(two, title: ""))
    }

    @Test(arguments: [(80, 24), (40, 10), (20, 4), (8, 2), (1, 1)])
    func `no line is wider and no screen higher than the terminal`(columns: Int, rows: Int) throws {
        var pages = LibraryPages()
        _ = pages.press(.character("I"))
        let wide = try (1...50).map { number in
            var row = try Self.row(number)
            row.title = String(repeating: "章", count: 60)
            return row
        }
        try Self.load(&pages, wide)
        for key in [.end, .character("?"), .escape, .character("l"), .escape, .character("N")] as [PlayerKey] {
            _ = pages.press(key)
            let image = pages.image(
                PlayerSnapshot(), notice: String(repeating: "word ", count: 50), columns: columns, rows: rows)
            #expect(image.lines.count <= rows)
            for line in image.text { #expect(DisplayText.width(line) <= columns) }
            if let cursor = image.cursor { #expect(cursor.row < rows && cursor.column < columns) }
        }
    }

    @Test func `a page is a list of marked rows under the player’s line`() throws {
        var pages = LibraryPages()
        _ = pages.press(.character("I"))
        var rows = try (1...3).map { try Self.row($0, isPlayed: $0 == 2) }
        rows[2].isNew = true
        try Self.load(&pages, rows)
        _ = pages.press(.character(" "))
        let image = pages.image(PlayerSnapshot(), notice: "Added.", columns: 40, rows: 8)
        #expect(image.text[1] == "Inbox (3), 1 chosen")
        #expect(image.text[2] == " + Part 1 — Show                   10:00")
        #expect(image.text[3] == "> ✓Part 2 — Show                   10:00")
        #expect(image.text[4] == "  *Part 3 — Show                   10:00")
        #expect(image.text[7] == "Added.")
        #expect(image.listRows == [2: 0, 3: 1, 4: 2])
    }

    @Test func `without a screen pages and changes are sentences, and words are commands`() throws {
        var pages = LibraryPages()
        var narrator = LibraryNarrator()
        #expect(pages.type("inbox") == .handled)
        try Self.load(&pages, try [1, 2].map { try Self.row($0) })
        #expect(
            narrator.lines(for: &pages) == [
                "Inbox (2):", "1. Part 1, Show, 10:00.", "2. Part 2, Show, 10:00.",
            ])
        #expect(narrator.lines(for: &pages).isEmpty)
        #expect(pages.type("select 2") == .handled)
        #expect(narrator.lines(for: &pages) == ["2. Part 2, Show, 10:00."])
        #expect(pages.type("add 3") == .say("There is no row 3; “list” lists the rows."))
        #expect(pages.type("addnext 1") == .ask(.command(.add([try Self.episode(1).id], next: true))))
        #expect(pages.type("whatever") == nil)
        _ = narrator.lines(for: &pages)
        pages.listAgain()
        #expect(narrator.lines(for: &pages).first == "Inbox (2):")
    }

    @Test func `a number means the row that was listed with it, although the list has changed`() throws {
        var pages = LibraryPages()
        var narrator = LibraryNarrator()
        #expect(pages.type("inbox") == .handled)
        try Self.load(&pages, try (1...4).map { try Self.row($0) })
        #expect(narrator.lines(for: &pages).count == 5)
        pages.apply(FleetState(FleetView()), [.inbox], now: Self.now)
        try Self.load(&pages, try [9, 1, 3, 4].map { try Self.row($0) }, at: Self.now.advanced(by: .seconds(1)))
        #expect(pages.type("add 3") == .ask(.command(.add([try Self.episode(3).id], next: false))))
        #expect(narrator.lines(for: &pages).last == "3. Part 3, Show, 10:00.")
        #expect(pages.type("add 2") == .say("Row 2 is no longer there; “list” lists the rows."))
        // A new listing has new numbers.
        _ = pages.type("select 1")
        pages.listAgain()
        #expect(narrator.lines(for: &pages).contains("3. Part 3, Show, 10:00."))
    }

    @Test func `an unreachable service is reported once, and the rows are requested again`() throws {
        var pages = LibraryPages()
        var narrator = LibraryNarrator()
        #expect(pages.press(.character("I")) == .handled)
        var time = Self.now
        for round in 0..<2 {
            let next = pages.nextLoad(now: time)
            let task = try #require(next)
            _ = pages.finished(task, .failure(Failure(.unavailable, "The database isn’t ready.")), now: time)
            #expect(narrator.lines(for: &pages) == (round == 0 ? ["The database isn’t ready."] : []))
            #expect(pages.nextLoad(now: time) == nil)
            time = time.advanced(by: .seconds(3))
        }
        let next = pages.nextLoad(now: time)
        let task = try #require(next)
        let rows = try [1].map { try Self.row($0) }
        _ = pages.finished(task, .success(.pages([.init(cursor: "", rows: rows, next: "")], total: 1)), now: time)
        #expect(narrator.lines(for: &pages).first == "Inbox (1):")
    }

    @Test func `in the history, the library decides whether m marks or unmarks`() throws {
        var pages = LibraryPages()
        #expect(pages.press(.character("H")) == .handled)
        try Self.load(&pages, try [1].map { try Self.row($0) })
        #expect(pages.press(.character("m")) == .ask(.command(.mark([try Self.episode(1)], played: nil))))
    }
}
