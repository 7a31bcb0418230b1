import CNcurses
import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What has to be written so that some lines of a terminal show other text. Pure.
///
/// The cursor rests at the end of the last line, so that what is left behind is whole.
struct LiveBlock: Sendable {
    private let capabilities: LiveLine.Capabilities
    private var shown: [String] = []
    private var columns = 80

    /// Lines that show nothing yet.
    init(_ capabilities: LiveLine.Capabilities) {
        self.capabilities = capabilities
    }

    /// What to write so that `lines` are shown in a terminal of `columns`; empty when they are shown already.
    mutating func show(_ lines: [String], columns: Int) -> String {
        guard lines != shown || columns != self.columns else { return "" }
        // A terminal that became narrower has wrapped what is there.
        let rows = shown.reduce(0) { $0 + max(0, DisplayText.width($1) - 1) / max(1, columns) + 1 }
        let up = String(repeating: capabilities.up, count: max(0, rows - 1))
        shown = lines
        self.columns = columns
        return "\r" + up + capabilities.clearBelow + lines.joined(separator: "\n")
    }
}

extension LiveLine.Capabilities {
    /// Those of the terminal of standard output; the usual ones where it is not known.
    static var ofTerminal: LiveLine.Capabilities {
        var capabilities = LiveLine.Capabilities()
        var outcome: Int32 = 0
        guard setupterm(nil, STDOUT_FILENO, &outcome) == 0 else { return capabilities }
        func text(_ name: String) -> String {
            guard let text = tigetstr(name), Int(bitPattern: text) != -1 else { return "" }
            return String(cString: text)
        }
        capabilities.clearToEnd = text("el")
        capabilities.clearBelow = text("ed")
        capabilities.up = text("cuu1")
        return capabilities
    }
}
