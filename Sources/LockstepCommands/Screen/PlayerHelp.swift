import LockstepClient

enum PlayerHelp {
    /// All keys in a sentence; `hasList` is whether there is a list to select in.
    static func sentence(hasList: Bool) -> String {
        let list = "↑ ↓ select, Enter plays, x removes, c shows the chapters in place of Up Next, "
        return "Keys: space pauses and resumes, ← → seek, < > chapter, [ ] speed, + - volume, n p next and previous, "
            + (hasList ? list : "")
            + "u undoes the last change of the queue, z sleep timer, b bookmark, digits answer alerts, "
            + "i says everything in a sentence, ? shows the keys, q quits."
    }

    /// The help about keys without a screen.
    static let plain =
        "With --plain each line of the input is a key, typed with Enter or written by another program, whose end ends the "
        + "player; without any input it goes on until it is interrupted."

    /// The most important keys that fit into `columns`, always with help and quit at the end.
    static func line(columns: Int) -> String {
        let last = ["? keys", "q quit"]
        var shown: [String] = []
        for key in keys {
            guard DisplayText.width((shown + [key] + last).joined(separator: gap)) <= columns else { break }
            shown.append(key)
        }
        return (shown + last).joined(separator: gap)
    }

    private static let gap = "  "
    private static let keys = [
        "space pause", "←→ seek", "n p next/prev", "↑↓ ⏎ play", "x remove", "u undo", "[] speed", "+- volume",
        "< > c chapters", "z sleep", "b bookmark", "i describe",
    ]

    /// The answer to a text that isn’t a key.
    static func unknown(_ text: String) -> String {
        let shown = DisplayText.cut(DisplayText.sanitised(text), to: 40)
        return "\(shown.isEmpty ? "That" : "“\(shown)”") isn’t a key. ? shows the keys."
    }
}
