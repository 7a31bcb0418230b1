import CNcurses
import LibC
import PodcastModel

/// Computes the text to write so that some lines of a terminal change.
///
/// The cursor rests at the beginning of the first line. It stays there when the terminal is resized, whether that wraps
/// lines that no longer fit or truncates them.
struct LiveBlock: Sendable {
    /// The terminal’s control sequences.
    struct Capabilities: Sendable, Hashable {
        var clearToEnd = "\u{1b}[K"
        var clearBelow = "\u{1b}[J"
        var up = "\u{1b}[A"
        var wrapOff = "\u{1b}[?7l"
        var wrapOn = "\u{1b}[?7h"
    }

    private let capabilities: Capabilities
    private var shown: [String] = []
    private var columns = 80

    init(_ capabilities: Capabilities) { self.capabilities = capabilities }

    /// Returns the text that shows `lines` in `columns`, below new permanent lines; empty if nothing changes.
    mutating func show(_ lines: [String], above: [String] = [], columns: Int) -> String {
        let isResized = columns != self.columns
        guard isResized || lines != shown || !above.isEmpty else { return "" }
        shown = lines
        self.columns = columns
        let text = (above + lines).joined(separator: capabilities.clearToEnd + "\n")
        let back = String(repeating: capabilities.up, count: max(0, lines.count - 1))
        // The terminal may have become narrower than the known width.
        return capabilities.wrapOff + "\r" + (isResized ? capabilities.clearBelow : "") + text
            + capabilities.clearBelow + back + "\r" + capabilities.wrapOn
    }

    /// Discards the shown lines, so that they are drawn again: other text was written.
    mutating func forget() { shown = [] }

    /// Returns the text that keeps the lines and moves the cursor below them.
    mutating func leave() -> String {
        defer { shown = [] }
        return String(repeating: "\n", count: shown.count)
    }
}

extension LiveBlock.Capabilities {
    /// The sequences of standard output’s terminal; common ones if it is unknown.
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
