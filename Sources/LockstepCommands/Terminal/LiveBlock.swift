import CNcurses
import LibC
import PodcastModel

/// What has to be written so that some lines of a terminal show other text. Pure.
///
/// The cursor rests at the beginning of the first line: there it stays when the terminal gets another size, whether that
/// wraps lines that no longer fit or cuts them, and what is below can be cleared.
struct LiveBlock: Sendable {
    /// The terminal's own sequences.
    struct Capabilities: Sendable, Hashable {
        /// Clears from the cursor to the end of the line.
        var clearToEnd = "\u{1b}[K"
        /// Clears from the cursor to the end of the screen.
        var clearBelow = "\u{1b}[J"
        /// Moves the cursor up by one row.
        var up = "\u{1b}[A"
        /// Has what is longer than a line stay in it.
        var wrapOff = "\u{1b}[?7l"
        /// Has it go on in the next line again.
        var wrapOn = "\u{1b}[?7h"
    }

    private let capabilities: Capabilities
    private var shown: [String] = []
    private var columns = 80

    /// Lines that show nothing yet.
    init(_ capabilities: Capabilities) {
        self.capabilities = capabilities
    }

    /// What to write so that `lines` are shown in a terminal of `columns`, with new lines that stay above them; empty when
    /// they are shown already.
    mutating func show(_ lines: [String], above: [String] = [], columns: Int) -> String {
        let isResized = columns != self.columns
        guard isResized || lines != shown || !above.isEmpty else { return "" }
        shown = lines
        self.columns = columns
        let text = (above + lines).joined(separator: capabilities.clearToEnd + "\n")
        let back = String(repeating: capabilities.up, count: max(0, lines.count - 1))
        // The terminal may have become narrower than is known yet.
        return capabilities.wrapOff + "\r" + (isResized ? capabilities.clearBelow : "") + text
            + capabilities.clearBelow + back + "\r" + capabilities.wrapOn
    }

    /// Something else has been written: the lines must be shown anew.
    mutating func forget() { shown = [] }

    /// What to write so that the lines stay and the cursor is below them. What is shown then is shown anew.
    mutating func leave() -> String {
        defer { shown = [] }
        return String(repeating: "\n", count: shown.count)
    }
}

extension LiveBlock.Capabilities {
    /// Those of the terminal of standard output; the usual ones where it is not known.
    static var ofTerminal: LiveBlock.Capabilities {
        var capabilities = LiveBlock.Capabilities()
        var outcome: Int32 = 0
        guard setupterm(nil, STDOUT_FILENO, &outcome) == 0 else { return capabilities }
        func text(_ name: String) -> String {
            guard let text = tigetstr(name), Int(bitPattern: text) != -1 else { return "" }
            return String(cString: text)
        }
        capabilities.clearToEnd = text("el")
        capabilities.clearBelow = text("ed")
        capabilities.up = text("cuu1")
        capabilities.wrapOff = text("rmam")
        capabilities.wrapOn = text("smam")
        return capabilities
    }
}
