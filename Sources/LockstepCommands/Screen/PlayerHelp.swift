import LockstepClient

enum PlayerHelp {
    /// Describes all keys in a sentence; `hasList`: whether the screen has a list to select from.
    static func sentence(hasList: Bool) -> String {
        let list =
            "↑ ↓ select, Enter plays, x removes, c shows the chapters or Up Next, I P L H show the inbox, "
            + "podcasts, playlists and history, / searches, Tab shows the next page, "
        return "Keys: space pauses and resumes, ← → seek, < > chapter, [ ] speed, + - volume, n p next and previous, "
            + (hasList ? list : "")
            + "u undoes the last change of the queue, z sleep timer, b bookmark, digits answer alerts, "
            + "i describes the state in a sentence, ? shows the keys, q quits."
    }

    static let plain =
        "With --plain, each line of the input is a key, and the end of the input ends the command. With /dev/null as the "
        + "input, and with --json, there are no keys: the command runs until a signal ends it or its output is closed."

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
        "space pause", "←→ seek", "n p next/prev", "↑↓ ⏎ play", "Tab pages", "/ search", "x remove", "u undo",
        "[] speed", "+- volume",
        "< > c chapters", "z sleep", "b bookmark", "i describe",
    ]

    static func unknown(_ text: String) -> String {
        let shown = DisplayText.cut(DisplayText.sanitised(text), to: 40)
        return "\(shown.isEmpty ? "That" : "“\(shown)”") isn’t a key. ? shows the keys."
    }
}
