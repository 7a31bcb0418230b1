import LockstepClient

/// A name that a shell offers as an argument: a title, or the ID if the title doesn’t identify its object.
struct Completion: Sendable, Hashable {
    var id: String
    var title = ""
    /// What the shell shows beside the name, such as the podcast of an episode.
    var about = ""

    /// The completions, with titles only where they name their object: no other one has the same title, and it can’t be
    /// confused with an ID, a number, an option or a word of a command.
    static func named(_ completions: [Completion]) -> [Completion] {
        let titles = Dictionary(grouping: completions) { $0.title.lowercased() }
        return completions.map { completion in
            let title = completion.title
            let first = title.unicodeScalars.first
            let isName =
                titles[title.lowercased()]?.count == 1 && title.count >= 3
                && first.map { $0.properties.isAlphabetic } ?? false
                && (title.contains(" ")
                    || title.utf8.contains { !(0x61...0x7a).contains($0) && !(0x30...0x39).contains($0) })
            guard !isName else { return completion }
            let about = [title, completion.about].filter { !$0.isEmpty }.joined(separator: ", ")
            return Completion(id: completion.id, about: about)
        }
    }

    /// The completion script for bash with names quoted once: with the option `filenames`, bash would quote them again,
    /// so it is set for files only.
    static func quotedOnce(_ script: String) -> String {
        script.replacing("complete -o filenames -F", with: "complete -F").replacing(
            "_add_completions() {\n    local completion\n",
            with: "_add_completions() {\n    local completion\n    [[ \"${1}\" == -W ]] || compopt -o filenames\n")
    }

    private var name: String { title.isEmpty ? id : title }

    /// The line for a shell’s completion script. The titles come from feeds: no shell may expand anything in them.
    func line(for shell: String?) -> String {
        switch shell {
        // `compgen -W` removes one level of quoting, the command line another one.
        case "bash": return Self.escaped(name, with: #"\\\"#)
        case "zsh":
            let shown = about.isEmpty ? "" : ":" + about
            return name.replacing("\\", with: #"\\"#).replacing(":", with: #"\:"#) + shown
        case "fish": return about.isEmpty ? name : "\(name)\t\(about)"
        default: return name
        }
    }

    private static func escaped(_ text: String, with escape: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            let isPlain =
                scalar.properties.isAlphabetic || scalar.properties.numericType != nil
                || "_.-".unicodeScalars.contains(scalar)
            if !isPlain { result += escape }
            result.unicodeScalars.append(scalar)
        }
        return result
    }
}
