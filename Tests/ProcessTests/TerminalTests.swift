import BusKit
import Foundation
import LockstepClient
import PodcastModel
import Testing
import WireMessages

/// Tests both players on a real terminal, under a shell with job control, with a real fleet.
@Suite(.serialized)
struct TerminalTests {
    static let players = ["mini", "expanded"]

    /// Runs a player until it ends or is stopped, and prints its status; continues it after a line of input.
    private static func script(_ player: String) -> String {
        """
        "$LOCKSTEP" \(player)
        echo "left with $?."
        read line
        fg >/dev/null
        echo "left again with $?."
        read line
        """
    }

    /// Runs a fleet with a long silent episode, paused after half a second, and another entry after the episode.
    private static func withPaused(_ body: @Sendable (ProcessFleet) async throws -> Void) async throws {
        try await ProcessFleet.with(podcast: 2) { fleet in
            try await fleet.succeed("play", "Part 1 of many")
            try await fleet.succeed("pause")
            try await fleet.succeed("seek", "0.5")
            try await fleet.succeed("queue", "add", "Part 2 of many")
            try await body(fleet)
        }
    }

    /// Runs a player on a terminal that shows the episode of such a fleet.
    private static func withPlayer(
        _ player: String, _ body: @escaping @Sendable (ProcessFleet, TerminalShell) async throws -> Void
    ) async throws {
        try await withPaused { fleet in
            try await TerminalShell.with(fleet, script(player)) { shell in
                try await shell.until("the episode") { shows("0:00", $0) }
                try await body(fleet, shell)
            }
        }
    }

    private static func shows(_ place: String, _ screen: TerminalScreen) -> Bool {
        screen.text.contains("Part 1 of many") && screen.text.contains(place)
    }

    /// Checks that modes, cursor and screen are the same as before the player’s start.
    private static func expectRestored(_ shell: TerminalShell) {
        #expect(shell.modesNow == shell.modes)
        #expect(shell.screen.isCursorVisible)
        #expect(!shell.screen.isAlternate)
    }

    enum Ending: String, CaseIterable, Sendable {
        case key, interrupt, terminate, hangUp

        var status: Int { [.key: 0, .interrupt: 130, .terminate: 143, .hangUp: 129][self] ?? 0 }
    }

    @Test(.timeLimit(.minutes(5)), arguments: players)
    func `every way to quit restores the terminal`(player: String) async throws {
        try await Self.withPaused { fleet in
            for ending in Ending.allCases {
                try await TerminalShell.with(fleet, Self.script(player)) { shell in
                    try await shell.until("the episode") { Self.shows("0:00", $0) }
                    #expect(shell.modesNow != shell.modes)
                    switch ending {
                    case .key: shell.type("q")
                    case .interrupt: shell.type("\u{3}")
                    case .terminate: kill(shell.foreground, SIGTERM)
                    case .hangUp: kill(shell.foreground, SIGHUP)
                    }
                    try await shell.until(sees: "left with \(ending.status).")
                    Self.expectRestored(shell)
                    if player == "mini" { #expect(shell.screen.text.contains("Part 1 of many")) }
                }
            }
        }
    }

    @Test(.timeLimit(.minutes(5)), arguments: players)
    func `a suspended player releases the terminal to the shell, and restores its screen on return`(player: String)
        async throws
    {
        try await Self.withPlayer(player) { fleet, shell in
            for round in 1...2 {
                shell.type("\u{1a}")
                let stopped = round == 1 ? "left with " : "left again with "
                try await shell.until(sees: stopped)
                Self.expectRestored(shell)
                #expect(!shell.screen.text.contains("\(stopped)0."))
                guard round == 1 else { break }
                // Changes during the suspension are shown afterwards.
                try await fleet.succeed("seek", "5:00.5")
                shell.type("\n")
                try await shell.until("the place after going on") { Self.shows("5:00", $0) }
                #expect(shell.modesNow != shell.modes)
                #expect(shell.screen.isAlternate == (player == "expanded"))
            }
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `an interrupt at the password prompt ends the command and restores the terminal`() async throws {
        try await ProcessFleet.with(podcast: 1) { fleet in
            let script = """
                "$LOCKSTEP" subscribe --user me http://127.0.0.1:1/feed
                echo "left with $?."
                read line
                """
            try await TerminalShell.with(fleet, script) { shell in
                try await shell.until(sees: "Password for me:")
                shell.type("geh\u{3}")
                try await shell.until(sees: "left with 64.")
                #expect(shell.modesNow == shell.modes)
                #expect(shell.screen.text.contains("No password was given.") && !shell.screen.text.contains("geh"))
            }
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `the screen is redrawn for the window’s new size`() async throws {
        try await Self.withPaused { fleet in
            try await TerminalShell.with(fleet, Self.script("expanded")) { shell in
                try await shell.until("the episode") { Self.shows("0:00", $0) }
                for (columns, rows) in [(40, 12), (100, 30), (20, 5), (80, 24)] {
                    shell.resize(columns: columns, rows: rows)
                    try await shell.until("a screen of \(columns) by \(rows)") { screen in
                        guard Self.shows("0:00", screen) else { return false }
                        // The most important parts remain visible.
                        if rows < 10 { return screen.lines.contains { $0.hasPrefix("‖ 0:00") && $0.count == 20 } }
                        return screen.lines[0].hasPrefix("Lockstep") && screen.lines[0].hasSuffix("ready")
                            && screen.lines[0].count == columns
                            && screen.lines.contains { $0.hasSuffix("-10:00") && $0.count == columns }
                            && screen.lines.contains { $0.hasPrefix(">") && $0.contains("Part 1 of many") }
                            && screen.lines[rows - 1].hasPrefix("space pause")
                    }
                }
                shell.type("q")
                try await shell.until(sees: "left with 0.")
                Self.expectRestored(shell)
            }
            try await TerminalShell.with(fleet, Self.script("mini")) { shell in
                let whole = "‖ 0:00/10:00 ──────────────────── Part 1 of many — Many parts"
                // Nothing is drawn any more, and the cursor is at the start of the line.
                try await shell.until("the episode") { $0.lines.contains(whole) && $0.cursor.column == 0 }
                // Whole lines are compared, because a part could be a remnant of a previous line.
                for (columns, line) in [
                    (40, "‖ 0:00/10:00 Part 1 of many — Many par…"),
                    (100, whole),
                    (24, "‖ 0:00/10:00 Part 1 of…"),
                ] {
                    shell.resize(columns: columns, rows: 24)
                    try await shell.until("a line of \(columns)") { screen in
                        screen.lines.filter { $0.contains("0:00/10:00") } == [line] && screen.cursor.column == 0
                    }
                }
                shell.type("q")
                try await shell.until(sees: "left with 0.")
                Self.expectRestored(shell)
            }
        }
    }

    @Test(.timeLimit(.minutes(5)), arguments: [false, true])
    func `mini leaves no old text on the screen when the terminal becomes narrower`(wraps: Bool) async throws {
        try await Self.withPaused { fleet in
            let script = "echo above\n" + Self.script("mini")
            try await TerminalShell.with(fleet, script, columns: 200, wraps: wraps) { shell in
                let wide = "‖ 0:00/10:00 ──────────────────── Part 1 of many — Many parts"
                try await shell.until("the line") {
                    $0.lines.prefix(3) == ["above", wide, ""] && $0.cursor.column == 0
                }
                for (columns, line) in [(20, "‖ 0:00/10:00 Part …"), (200, wide), (20, "‖ 0:00/10:00 Part …")] {
                    shell.resize(columns: columns, rows: 24)
                    try await shell.until("a line of \(columns) alone") {
                        $0.lines.prefix(3) == ["above", line, ""] && $0.cursor.column == 0
                    }
                }
                shell.type("q")
                try await shell.until(sees: "left with 0.")
            }
        }
    }

    @Test(.timeLimit(.minutes(5)), arguments: players)
    func `a key held down seeks to the right position in few requests`(player: String) async throws {
        try await Self.withPaused { fleet in
            try await FleetObserver.with(1, of: fleet) { observers in
                try await observers[0].untilReady()
                try await TerminalShell.with(fleet, Self.script(player)) { shell in
                    try await shell.until("the episode") { Self.shows("0:00", $0) }
                    let before = observers[0].events.count
                    for _ in 0..<15 { shell.arrow("C") }
                    // Each key skips half a minute, and the screen shows the target at once.
                    try await shell.until("7:30") { Self.shows("7:30", $0) }
                    for _ in 0..<6 { shell.arrow("D") }
                    try await shell.until("6:30") { Self.shows("6:30", $0) }
                    try await observers[0].until("the player at 6:30") {
                        $0.player?.anchor.position == 390.5
                    }
                    let places = observers[0].events.dropFirst(before).filter { $0.topic == .playbackState }
                        .compactMap { try? WirePlaybackState(wireBytes: $0.payload).anchor.position }
                    #expect(Set(places).count < 15, "a request for every key: \(places)")
                    shell.type("q")
                    try await shell.until(sees: "left with 0.")
                }
            }
        }
    }

    @Test(.timeLimit(.minutes(5)), arguments: players)
    func `a player shows the loss of the bus, and the current state once the bus is back`(player: String) async throws {
        try await Self.withPlayer(player) { fleet, shell in
            // The supervisor is stopped, so that the bus isn’t restarted before the player detects its loss.
            fleet.signal("supervisor", SIGSTOP)
            fleet.signal("bus", SIGKILL)
            try await shell.until("that it reconnects") { Self.shows("reconnecting", $0) }
            #expect(shell.screen.text.contains("0:00"))
            fleet.signal("supervisor", SIGCONT)
            try await shell.until("that it is connected") {
                Self.shows("0:00", $0) && !$0.text.contains("reconnecting") && !$0.text.contains("(old)")
                    && !$0.text.contains("~")
            }
            try await fleet.succeed("seek", "3:00.5")
            try await shell.until("what happens then") { Self.shows("3:00", $0) }
            shell.type("q")
            try await shell.until(sees: "left with 0.")
            Self.expectRestored(shell)
        }
    }

    @Test(.timeLimit(.minutes(5)), arguments: players)
    func `a closed window ends the player`(player: String) async throws {
        try await Self.withPlayer(player) { _, shell in
            let process = shell.foreground
            #expect(process > 1 && process != shell.pid)
            shell.hangUp()
            try await ProcessTable.untilGone([process])
        }
    }

    @Test(.timeLimit(.minutes(5)), arguments: players)
    func `the list of keys is shown completely and the player continues`(player: String) async throws {
        try await Self.withPlayer(player) { fleet, shell in
            for (key, beginning, end) in [
                ("i", "Paused at 0:00 of 10:00: Part 1 of many, Many parts; 10:00 left;", "in Up Next"),
                ("?", "Keys: space pauses and resumes,", "? shows the keys, q quits."),
            ] {
                shell.type(key)
                try await shell.until("the whole of \(key)") { screen in
                    // The text is wrapped between words at every width.
                    let text = screen.text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
                    guard let begin = text.range(of: beginning) else { return false }
                    return text[begin.upperBound...].contains(end) && !text.contains("…")
                }
                #expect(shell.screen.lines.contains { $0.hasPrefix("‖ 0:00") }, "the player itself is still there")
            }
            try await fleet.succeed("seek", "2:00.5")
            try await shell.until("what happens then") { Self.shows("2:00", $0) }
            shell.type("5")
            try await shell.until(sees: "There is no alert to answer.")
            shell.type("q")
            try await shell.until(sees: "left with 0.")
            Self.expectRestored(shell)
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `a player that shows a paused episode writes nothing`() async throws {
        try await Self.withPlayer("expanded") { fleet, shell in
            try await fleet.succeed("speed", "1.5")
            try await shell.until(sees: "1.5×")
            let before = shell.bytesWritten
            try await fleet.succeed("seek", "0:07.5")
            try await shell.until("0:07") { Self.shows("0:07", $0) }
            // Only one digit each of the position and the remaining time changes: the screen isn’t redrawn.
            #expect(shell.bytesWritten - before < 400)
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `text written to a player is handled as keys, and the end of its input ends it`() async throws {
        try await Self.withPaused { fleet in
            let script = """
                printf 'b\ni' | "$LOCKSTEP" mini --plain
                echo "left with $?."
                mkfifo "$LOCKSTEP_HOME/keys"
                exec 3<>"$LOCKSTEP_HOME/keys"
                echo q >&3
                "$LOCKSTEP" expanded --plain <&3 >/dev/null
                echo "left again with $?."
                echo n | "$LOCKSTEP" mini --plain
                echo "left at last with $?."
                """
            try await TerminalShell.with(fleet, script, columns: 120) { shell in
                try await shell.until(sees: "left with 0.")
                #expect(shell.screen.text.contains("Bookmarked at 0:00."))
                #expect(shell.screen.text.contains("10:00 left;"))
                // The key q ends the player before the input ends.
                try await shell.until(sees: "left again with 0.")
                // The outcome of the last command is printed before the end.
                try await shell.until(sees: "left at last with 0.")
                #expect(shell.screen.lines.contains { $0.hasPrefix("Paused at") && $0.contains("Part 2 of many") })
            }
        }
    }

    @Test(.timeLimit(.minutes(5)), arguments: ["mini", "expanded"])
    func `a player without input runs until a signal ends it or its output is closed`(player: String) async throws {
        try await Self.withPaused { fleet in
            let script = """
                { "$LOCKSTEP" \(player) </dev/null; echo "closed with $?." >&2; } | head -n 1 >/dev/null
                mkfifo "$LOCKSTEP_HOME/lines"
                exec 3<>"$LOCKSTEP_HOME/lines"
                "$LOCKSTEP" \(player) --plain </dev/null >&3 &
                read line <&3
                kill $!
                wait $!
                echo "ended with $?."
                """
            try await TerminalShell.with(fleet, script, columns: 120) { shell in
                try await shell.until(sees: "closed with 0.")
                try await shell.until(sees: "ended with 143.")
            }
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `without a terminal a player prints each change on a line`() async throws {
        try await Self.withPaused { fleet in
            let script = """
                "$LOCKSTEP" mini --plain </dev/null | cat &
                read line
                kill %1
                """
            try await TerminalShell.with(fleet, script, columns: 120) { shell in
                try await shell.until(sees: "Paused at 0:00 of 10:00: Part 1 of many, Many parts.")
                try await fleet.succeed("seek", "1:30.5")
                try await shell.until(sees: "Paused at 1:30 of 10:00: Part 1 of many, Many parts.")
                try await fleet.succeed("speed", "2")
                try await shell.until(sees: "Speed 2, volume 100 %")
                #expect(!shell.screen.text.contains("━"))
            }
        }
    }
}
