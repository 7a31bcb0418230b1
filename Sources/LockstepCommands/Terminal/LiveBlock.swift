import CNcurses
import LibC
import PodcastModel

/// The text to write so that some lines of a terminal show something else. Pure.
///
/// The cursor rests at the beginning of the first line. There it stays when the terminal gets another size, whether that wraps
/// lines that no longer fit or cuts them.
struct LiveBlock: Sendable {
    /// The terminal’s own sequences.
    struct Capabilities: Sendable, Hashable {
        /// Clears to the end of the line.
        var clearToEnd = "\u{1b}[K"
        /// Clears to the end of the screen.
        var clearBelow = "\u{1b}[J"
        var up = "\u{1b}[A"
        var wrapOff = "\u{1b}[?7l"
        var wrapOn = "\u{1b}[?7h"
    }

    private let capabilities: Capabilities
    private var shown: [String] = []
    private var columns = 80

    init(_ capabilities: Capabilities) { self.capabilities = capabilities }

    /// The text that shows `lines` in a terminal of `columns`, and new lines that stay above them; empty: they are shown already.
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

    /// Something else has been written: the lines must be drawn again.
    mutating func forget() { shown = [] }

    /// The text that leaves the lines where they are and moves the cursor below them.
    mutating func leave() -> String {
        defer { shown = [] }
        return String(repeating: "\n", count: shown.count)
    }
}

extension LiveBlock.Capabilities {
    /// Those of the terminal of standard output; the usual ones where it is unknown.
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
