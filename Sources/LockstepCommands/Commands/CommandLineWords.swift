import ArgumentParser
import LockstepClient
import PodcastModel

/// Prepares a command line for the parser: moves global options behind the command, makes negative numbers arguments,
/// and refuses an unknown command with the nearest name.
struct CommandLineWords: Sendable, Hashable {
    /// The words for the parser.
    let words: [String]

    /// - Parameter listed: returns the episodes in rows of the last printed list.
    /// - Throws: `usage` if the command is missing or unknown, or an argument is empty; `notFound` for a row that doesn’t
    ///   exist.
    init(
        _ arguments: [String], listed: (ClosedRange<Int>) throws(Failure) -> [EpisodeID] = { _ in [] }
    ) throws(Failure) {
        let words = Self.signed(try Self.ordered(arguments))
        try Self.requireValues(words)
        try Self.requireQueueName(words)
        try Self.requireCommand(words)
        self.words = Self.gathered(try ListedEpisodes.resolved(words, listed))
    }

    private static let flags: Set<String> = ["--json", "--plain", "-q", "--quiet"]

    /// Moves the global options behind the command, where the parser expects them.
    private static func ordered(_ arguments: [String]) throws(Failure) -> [String] {
        var options: [String] = []
        var rest = arguments[...]
        while let word = rest.first, flags.contains(word) || word == "--home" || word.hasPrefix("--home=") {
            let count = word == "--home" ? 2 : 1
            guard rest.count >= count else {
                throw Failure(code: "usage", message: "--home expects a folder: `lockstep --home FOLDER status`.")
            }
            options += rest.prefix(count)
            rest = rest.dropFirst(count)
        }
        guard !options.isEmpty else { return arguments }
        guard let command = rest.first else {
            throw Failure(
                code: "usage",
                message: "Name a command, as in `lockstep \(options[0]) status`. `lockstep --help` lists them.")
        }
        if command.hasPrefix("-") || command == "help" { return Array(rest) }
        let end = rest.firstIndex(of: "--") ?? rest.endIndex
        return Array(rest[..<end]) + options + rest[end...]
    }

    /// The commands that accept negative numbers, or refuse them with a reason.
    private static let signed: Set<String> = ["seek", "volume", "speed", "sleep", "set"]

    /// Makes `seek -15`, `--at -15` and `show -5` arguments instead of options, by a typographic minus sign.
    /// A word after an option is that option’s value.
    private static func signed(_ arguments: [String]) -> [String] {
        let isSigned = arguments.first.map(signed.contains) ?? false
        let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
        let words = zip([""] + arguments, arguments[..<end]).map { before, argument in
            let isWord = !before.hasPrefix("-") || isNumber(before) || flags.contains(before)
            guard isNumber(argument), isSigned || isWord || before == "--at" else { return argument }
            return "−" + argument.dropFirst()
        }
        return words + arguments[end...]
    }

    private static func isNumber(_ word: String) -> Bool {
        guard word.hasPrefix("-"), let second = word.dropFirst().first else { return false }
        return second.isNumber || second == "."
    }

    /// An argument as the user typed it, with a hyphen instead of the minus sign.
    static func typed(_ argument: String) -> String {
        argument.hasPrefix("−") ? "-" + argument.dropFirst() : argument
    }

    /// The commands that accept thousands of episodes.
    private static let bulk: [[String]] = [["mark"], ["queue", "add"]]
    /// The minimum number of consecutive IDs that are joined into one word: the parser takes a second for 5,000 words.
    private static let gatheredIDs = 50

    private static func gathered(_ words: [String]) -> [String] {
        guard words.count > gatheredIDs, bulk.contains(where: { words.starts(with: $0) }) else { return words }
        var result: [String] = []
        var ids: [String] = []
        func close() {
            result += ids.count < gatheredIDs ? ids : [ids.joined(separator: " ")]
            ids = []
        }
        for (before, word) in zip([""] + words, words) {
            // A word after an option may be its value.
            if EpisodeID(word) != nil, !before.hasPrefix("-") {
                ids.append(word)
            } else {
                close()
                result.append(word)
            }
        }
        close()
        return result
    }

    /// The different arguments as the user typed them, in order.
    static func distinct(_ arguments: [String]) -> [String] { Array(Set(arguments.map(typed))).sorted() }

    /// The arguments that name episodes, with joined IDs split again.
    static func episodes(_ arguments: [String]) -> [String] {
        arguments.flatMap { argument in
            let words = argument.split(separator: " ").map(String.init)
            return words.count >= gatheredIDs && words.allSatisfy { EpisodeID($0) != nil } ? words : [argument]
        }
    }

    /// Refuses empty arguments: a script’s unset variable would apply the command to Up Next or to everything. Only a
    /// note may be empty.
    private static func requireValues(_ words: [String]) throws(Failure) {
        guard !words.starts(with: ["bookmark", "note"]), !words.starts(with: ["bookmarks", "note"]) else { return }
        for (before, word) in zip(words, words.dropFirst()) {
            if before == "--" { return }
            let isOption = before != "--note" && word.hasPrefix("--") && word.firstIndex(of: "=") == word.indices.last
            let option = isOption ? String(word.dropLast()) : word.isEmpty ? before : nil
            guard let option, option != "--note" else { continue }
            throw Failure(code: "usage", message: "The argument after “\(option)” is empty. Give a value, or omit it.")
        }
    }

    /// Refuses a name that the parser would read as an option.
    private static func requireQueueName(_ words: [String]) throws(Failure) {
        guard words.starts(with: ["queue", "create"]), let name = words.dropFirst(2).first, name.hasPrefix("-"),
            !name.hasPrefix("--"), !["-q", "-h"].contains(name)
        else { return }
        throw Failure(.invalidArgument, "“\(name)” can’t be a queue’s name; a name has \(QueueName.rule).")
    }

    private static func requireCommand(_ words: [String]) throws(Failure) {
        let isHelp = words.first == "help"
        var path = words.dropFirst(isHelp ? 1 : 0).prefix { !$0.hasPrefix("-") }
        var known: [String] = []
        var command: any ParsableCommand.Type = Lockstep.self
        while let name = path.popFirst() {
            let all = command.configuration.allSubcommands
            guard !all.isEmpty else {
                // Words after a command without subcommands are its arguments.
                guard isHelp else { return }
                throw noCommand(name, after: known, among: [])
            }
            guard let next = all.first(where: { $0.names.contains(name) }) else {
                if name == "help", known.isEmpty { return }
                // Words after `bookmark` are arguments of its default command.
                guard isHelp || command != BookmarkCommands.self else { return }
                throw noCommand(name, after: known, among: all)
            }
            known.append(name)
            command = next
        }
    }

    /// The word that the parser took for a request for help because one of its letters is `h`, although another isn’t
    /// an option; nil if there is none.
    ///
    /// - Parameter words: the words that the parser has read.
    static func mistakenHelp(_ words: [String]) -> String? {
        let words = words.prefix { $0 != "--" }
        guard words.first != "help", !words.contains(where: { ["-h", "-help", "--help"].contains($0) }) else {
            return nil
        }
        let options = words.first == "logs" ? "hqfn" : "hq"
        return words.first { word in
            word.hasPrefix("-") && !word.hasPrefix("--") && word.contains("h")
                && word.dropFirst().contains { !options.contains($0) }
        }
    }

    /// The advice for a word that isn’t an option.
    static let dashAdvice = "After `--`, words that begin with a dash are text, as in `lockstep search -- -tech`."

    private static func noCommand(
        _ name: String, after known: [String], among commands: [any ParsableCommand.Type]
    ) -> Failure {
        let names = commands.filter { $0.configuration.shouldDisplay }.flatMap { $0.names }
        let before = known.map { $0 + " " }.joined()
        let advice = NearestWord.among(names, to: name).map { "Did you mean `lockstep \(before)\($0)`? " } ?? ""
        let list = "`lockstep \(before)--help` \(commands.isEmpty ? "describes it" : "lists them")."
        return Failure(code: "usage", message: "There is no command “\(before)\(name)”. \(advice)\(list)")
    }
}

extension CommandConfiguration {
    fileprivate var allSubcommands: [any ParsableCommand.Type] {
        groupedSubcommands.flatMap { $0.subcommands } + subcommands
    }
}

extension ParsableCommand {
    fileprivate static var names: [String] { [_commandName] + configuration.aliases }
}
