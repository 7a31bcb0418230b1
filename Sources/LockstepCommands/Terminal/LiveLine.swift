import CNcurses
import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What has to be written so that one line of a terminal shows another text. Pure.
struct LiveLine: Sendable {
    /// The terminal's own sequences.
    struct Capabilities: Sendable, Hashable {
        /// Clears from the cursor to the end of the line.
        var clearToEnd = "\u{1b}[K"
        /// Clears from the cursor to the end of the screen.
        var clearBelow = "\u{1b}[J"
        /// Moves the cursor up by one row.
        var up = "\u{1b}[A"
    }

    private let capabilities: Capabilities
    private var shown: String?
    private var columns = 80

    /// A line that shows nothing yet.
    init(_ capabilities: Capabilities) {
        self.capabilities = capabilities
    }

    /// What to write so that `text` is shown in a terminal of `columns`, with new lines that stay above it; empty when it
    /// is shown already.
    mutating func show(_ text: String, above: [String] = [], columns: Int) -> String {
        defer {
            shown = text
            self.columns = columns
        }
        let above = above.map { $0 + capabilities.clearToEnd + "\n" }.joined()
        guard let shown else { return "\r" + above + text + capabilities.clearToEnd }
        guard columns == self.columns else {
            // The terminal has wrapped the old line when it became narrower.
            let rows = columns > 0 ? max(0, DisplayText.width(shown) - 1) / columns : 0
            return "\r" + String(repeating: capabilities.up, count: rows) + capabilities.clearBelow + above + text
        }
        guard text != shown || !above.isEmpty else { return "" }
        return "\r" + above + text + capabilities.clearToEnd
    }

    /// Something else has been written: the line must be shown anew.
    mutating func forget() { shown = nil }
}

/// One live line at the bottom of what is in the terminal already.
final class SingleLine: PlayerTerminal {
    private var line: LiveLine
    private var saved = termios()
    private var isClosed = false
    private var sequence = KeySequence()
    /// The notice that was told last.
    private var told = 0

    /// Takes the terminal of standard input and output.
    init() {
        TerminalLocale.set()
        tcgetattr(STDIN_FILENO, &saved)
        line = LiveLine(.ofTerminal)
        enterMode()
    }

    private func enterMode() {
        var mode = saved
        mode.c_lflag &= ~tcflag_t(ICANON | ECHO)
        withUnsafeMutableBytes(of: &mode.c_cc) { characters in
            characters[Int(VMIN)] = 0
            characters[Int(VTIME)] = 0
        }
        tcsetattr(STDIN_FILENO, TCSADRAIN, &mode)
    }

    var size: (columns: Int, rows: Int) { TerminalLocale.size ?? (80, 24) }

    func draw(_ content: PlayerContent) {
        let columns = size.columns
        // The last column stays empty: writing there wraps on some terminals.
        let room = max(1, columns - 1)
        let screen = content.screen
        let text = MiniLine.text(screen.snapshot, columns: room, notice: screen.notice)
        // What is longer than the line is said above it, where it stays.
        let isNew = screen.noticeNumber != told && DisplayText.width(screen.notice ?? "") > room
        let above = isNew ? DisplayText.wrapped(screen.notice ?? "", to: room) : []
        told = screen.noticeNumber
        try? Output.write(line.show(text, above: above, columns: columns), to: STDOUT_FILENO)
    }

    func nextKey() -> PlayerKey? {
        var byte: UInt8 = 0
        while read(STDIN_FILENO, &byte, 1) == 1 {
            if let key = sequence.take(byte) { return key }
        }
        sequence.end()
        return nil
    }

    func suspend() {
        try? Output.write("\n", to: STDOUT_FILENO)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &saved)
    }

    func resume() {
        enterMode()
        line.forget()
    }

    func resized() {}

    func close() {
        guard !isClosed else { return }
        isClosed = true
        try? Output.write("\n", to: STDOUT_FILENO)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &saved)
    }
}
