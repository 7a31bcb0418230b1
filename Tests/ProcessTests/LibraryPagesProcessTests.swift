import Foundation
import TestSupport
import Testing

/// Tests the library’s pages of the full-screen player on a terminal, with a real fleet.
@Suite(.serialized, .timeLimit(.minutes(5))) struct LibraryPagesProcessTests {
    private static let script = """
        "$LOCKSTEP" expanded
        echo "left with $?."
        read line
        """

    /// The screen’s text as one line, because narrow screens wrap sentences.
    private static func words(_ screen: TerminalScreen) -> String {
        screen.text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    private static func until(_ shell: TerminalShell, says text: String) async throws {
        try await shell.until("“\(text)”") { words($0).contains(text) }
    }

    private static func until(_ shell: TerminalShell, selects text: String) async throws {
        try await shell.until("the selected row “\(text)”") { screen in
            screen.lines.contains { $0.hasPrefix(">") && $0.contains(text) }
        }
    }

    @Test(arguments: [(80, 24), (40, 10)])
    func `an episode is found, a playlist of five is built and played, and a podcast is marked`(
        columns: Int, rows: Int
    ) async throws {
        try await ProcessFleet.with(podcast: 6) { fleet in
            try await TerminalShell.with(fleet, Self.script, columns: columns, rows: rows) { shell in
                try await Self.until(shell, says: "Nothing is loaded.")
                shell.type("/")
                try await Self.until(shell, says: "Search:")
                shell.type("part 4")
                try await Self.until(shell, says: "Search “part 4” (1)")
                try await Self.until(shell, selects: "Part 4 of many")
                shell.type("\r")
                shell.type("l")
                try await Self.until(shell, selects: "Favourites")
                shell.type("j")
                try await Self.until(shell, selects: "New playlist")
                shell.type("\r")
                try await Self.until(shell, says: "Title of the new playlist:")
                shell.type("Drive\r")
                try await Self.until(shell, says: "Created the playlist “Drive” (drive).")
                shell.type("P")
                try await Self.until(shell, says: "Podcasts (1)")
                shell.type("\r")
                try await Self.until(shell, selects: "Part 6 of many")
                shell.type("  j  ")
                try await Self.until(shell, says: "4 chosen")
                shell.type("l")
                try await Self.until(shell, says: "Add 4 episodes to a playlist")
                shell.type("j")
                try await Self.until(shell, selects: "Drive")
                shell.type("\r")
                try await Self.until(shell, says: "Added 4 episodes to “Drive”.")
                shell.type("L")
                try await Self.until(shell, selects: "Favourites")
                try await Self.until(shell, says: "5 episodes")
                shell.type("j")
                try await Self.until(shell, selects: "Drive")
                shell.type("s")
                try await Self.until(shell, says: "Playing “Part ")
                try await shell.until("the player’s line") { $0.lines[0].contains("Part ") }
                shell.type("P")
                try await Self.until(shell, says: "Podcasts (1)")
                shell.type("M")
                try await Self.until(shell, says: "any other key cancels.")
                shell.type("y")
                try await Self.until(shell, says: "Marked 6 episodes as played.")
                shell.type("\r")
                try await Self.until(shell, selects: "✓Part 6 of many")
                shell.type("u")
                try await Self.until(shell, says: "Undone: Marked 6 episodes as played.")
                try await shell.until("the unplayed rows") { screen in
                    screen.lines.contains { $0.contains("Part 6 of many") } && !screen.text.contains("✓")
                }
                shell.type("q")
                try await shell.until(sees: "left with 0.")
            }
        }
    }

    @Test func `a new episode appears in the inbox by itself, and the selection stays on its row`() async throws {
        try await ProcessFleet.with(podcast: 2) { fleet in
            try await TerminalShell.with(fleet, Self.script) { shell in
                try await Self.until(shell, says: "Nothing is loaded.")
                shell.type("I")
                try await Self.until(shell, says: "The inbox is empty.")
                for (count, selected) in [(3, 3), (4, 3), (5, 3)] {
                    _ = try fleet.writeFeed(episodes: count)
                    try await fleet.succeed("refresh")
                    try await Self.until(shell, says: "Inbox (\(count - 2))")
                    try await Self.until(shell, selects: "Part \(selected) of many")
                }
                // Another client’s mark removes the selected row.
                try await fleet.succeed("mark", "played", "Part 3 of many")
                try await Self.until(shell, says: "Inbox (2)")
                try await Self.until(shell, selects: "Part 4 of many")
                // On the podcast’s page the mark is shown.
                shell.type("P")
                try await Self.until(shell, says: "Podcasts (1)")
                shell.type("\r")
                try await Self.until(shell, says: "✓Part 3 of many")
                try await fleet.succeed("mark", "played", "Part 1 of many")
                try await Self.until(shell, says: "✓Part 1 of many")
                shell.resize(columns: 40, rows: 10)
                try await shell.until("the narrow screen") { screen in
                    screen.lines.count == 10 && screen.lines.contains { $0.hasPrefix(">") && $0.contains("Part 5") }
                }
                shell.type("q")
                try await shell.until(sees: "left with 0.")
            }
        }
    }

    @Test func `the mouse selects and plays rows`() async throws {
        try await ProcessFleet.with(podcast: 4) { fleet in
            try await TerminalShell.with(fleet, Self.script) { shell in
                try await Self.until(shell, says: "Nothing is loaded.")
                shell.type("P")
                try await Self.until(shell, says: "Podcasts (1)")
                shell.type("\r")
                try await Self.until(shell, selects: "Part 4 of many")
                Self.click(shell, row: 5)
                try await Self.until(shell, selects: "Part 2 of many")
                Self.click(shell, row: 5)
                try await Self.until(shell, says: "Playing “Part 2 of many”.")
                shell.type("q")
                try await shell.until(sees: "left with 0.")
            }
            try await TerminalShell.with(fleet, Self.script.replacing("expanded", with: "expanded --no-mouse")) {
                shell in
                try await Self.until(shell, says: "Part 2 of many")
                #expect(!shell.written.contains("?1000h"))
                shell.type("q")
                try await shell.until(sees: "left with 0.")
            }
        }
    }

    /// Presses and releases the left button in column 5 of a row, both counted from 1.
    private static func click(_ shell: TerminalShell, row: Int) {
        if shell.written.contains("?1006;1000h") || shell.written.contains("?1006h") {
            shell.type("\u{1b}[<0;5;\(row)M\u{1b}[<0;5;\(row)m")
        } else {
            let place = "%" + String(decoding: [UInt8(32 + row)], as: UTF8.self)
            shell.type("\u{1b}[M \(place)\u{1b}[M#\(place)")
        }
    }

    @Test func `the same by sentences`() async throws {
        try await ProcessFleet.with(podcast: 6) { fleet in
            let script = Self.script.replacing("expanded", with: "expanded --plain")
            try await TerminalShell.with(fleet, script, columns: 120, rows: 200) { shell in
                try await shell.until(sees: "Up Next is empty.")
                for (line, sentence) in [
                    ("search part 4", "1. Part 4 of many, Many parts"),
                    ("create Drive", "Created the playlist “Drive” (drive)."),
                    ("to Drive", "Added “Part 4 of many” to “Drive”."),
                    ("podcasts", "1. Many parts, "), ("open 1", "6. Part 1 of many"),
                    ("choose 1", "2. Part 5 of many"), ("choose 2", "3. Part 4 of many"),
                    ("choose 4", "5. Part 2 of many"), ("choose 5", "6. Part 1 of many"),
                    ("to Drive", "Added 4 episodes to “Drive”."),
                    ("playlists", "2. Drive, 5 episodes"), ("shuffle 2", "Playing “Part "),
                    ("search part 5", "1. Part 5 of many"), ("addnext 1", "“Part 5 of many”"),
                    ("podcasts", "1. Many parts, "), ("markall 1", "any other key cancels."),
                    ("yes", "Marked 6 episodes as played."), ("undo", "Undone: Marked 6 episodes as played."),
                    ("nonsense", "“nonsense” isn’t a key."),
                ] {
                    shell.type(line + "\n")
                    try await shell.until("“\(sentence)” after “\(line)”") { screen in
                        let lines = screen.text.split(separator: "\n")
                        guard let echo = lines.lastIndex(of: line[...]) else { return false }
                        return lines[(echo + 1)...].contains { $0.contains(sentence) }
                    }
                }
                shell.type("inbox\n")
                try await shell.until(sees: "The inbox is empty.")
                _ = try fleet.writeFeed(episodes: 7)
                try await fleet.succeed("refresh")
                try await shell.until(sees: "New: Part 7 of many, Many parts")
                shell.type("podcasts\n")
                try await shell.until(sees: "1. Many parts, 7")
                try await fleet.succeed("podcast", "rename", "Many parts", "Some parts")
                try await shell.until(sees: "Changed: Some parts, 7")
                shell.type("q\n")
                try await shell.until(sees: "left with 0.")
            }
        }
    }
}
