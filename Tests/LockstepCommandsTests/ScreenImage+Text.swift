@testable import LockstepCommands

extension ScreenImage {
    /// The lines without their styles.
    var text: [String] {
        lines.map { spans in
            var line = spans.map(\.text).joined()
            while line.hasSuffix(" ") { line.removeLast() }
            return line
        }
    }
}
