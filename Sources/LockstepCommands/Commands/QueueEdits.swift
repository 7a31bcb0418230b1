public import ArgumentParser
public import LockstepClient
import PodcastModel

struct QueueAdd: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Add episodes at the end, or after the one that is playing.",
        usage: """
            lockstep queue add <episodes> ... [--next] [--queue <queue>]
            lockstep queue add --podcast <podcast> [--unplayed] [--next] [--queue <queue>]
            """)
    @Flag(help: "After the current entry instead of at the end.") var next = false
    @Option(help: "All episodes of this podcast, the oldest first.", completion: .podcasts) var podcast: String?
    @Flag(help: "With --podcast: only unplayed episodes.") var unplayed = false
    @Argument(help: "IDs, beginnings of IDs, or parts of titles.", completion: .episodes) var episodes: [String] = []
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard episodes.isEmpty != (podcast == nil) else {
            throw ValidationError("Name episodes, or a podcast with --podcast.")
        }
        guard !unplayed || podcast != nil else { throw ValidationError("--unplayed needs --podcast.") }
    }

    func perform(_ context: CommandContext) async throws {
        try await context.withFleet { fleet in
            let found = try await wanted(fleet.library)
            guard !found.isEmpty else {
                let none = try await fleet.queue.history(of: queue.name, limit: 1)
                return try context.output.change(
                    none.json, "No change: this podcast has no \(unplayed ? "unplayed episode" : "episode").")
            }
            let answer = try await fleet.queue.add(found.map(\.id), next: next, to: queue.name)
            try context.output.change(answer.json, Self.sentence(answer, found))
        }
    }

    private func wanted(_ library: LibraryClient) async throws(Failure) -> [Episode] {
        guard let podcast else { return try await library.find(episodes) }
        let found = try await library.findPodcast(CommandLineWords.typed(podcast))
        return try await library.episodes(of: found.id, isUnplayed: unplayed, limit: nil).episodes.reversed()
    }

    static func sentence(_ answer: QueueAnswer, _ found: [Episode]) -> String {
        var parts: [String] = []
        if !answer.entries.isEmpty {
            parts.append(
                "Added \(Titles.shown(answer.entries.map(\.episode.title), count: answer.count))\(answer.suffix("to"))")
        }
        if !answer.alreadyThere.isEmpty {
            let titles = Dictionary(found.map { ($0.id, $0.title) }) { first, _ in first }
            let names = Titles.shown(answer.alreadyThere.map { titles[$0] ?? $0.text })
            let already = "already in \(answer.title): \(names)"
            parts.append(parts.isEmpty ? "No change: \(already)" : already)
        }
        return Sentence.stopped(parts.joined(separator: "; "))
    }
}

struct QueueRemove: QueueEdit {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove entries; undo brings them back.")
    @Argument(help: "Numbers, IDs, beginnings of IDs, or parts of titles.", completion: .entries) var entries: [String]
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func ask(_ queues: QueueClient) async throws(Failure) -> QueueAnswer {
        let texts = Array(Set(entries.map(CommandLineWords.typed))).sorted()
        guard texts.count > QueueClient.textLimit else {
            return try await queues.remove(named: texts, from: queue.name)
        }
        let ids = texts.compactMap(QueueEntryID.init)
        guard ids.count == texts.count else {
            throw Failure(
                .invalidArgument,
                "\(texts.count) entries are too many at once; the limit is \(QueueClient.textLimit), unless all are named by their whole IDs."
            )
        }
        return try await queues.remove(ids, from: queue.name)
    }

    func sentence(_ answer: QueueAnswer) -> String {
        "Removed \(answer.names)\(answer.suffix("from")). \(answer.undoAdvice)"
    }

    func unchanged(_ answer: QueueAnswer) -> String { "there was nothing to remove" }
}

struct QueueMove: QueueEdit {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Move an entry to another position, or before or after another entry.")
    @Argument(help: "A number, an ID, the beginning of one, or a part of a title.", completion: .entries)
    var entry: String
    @Argument(help: "Its new number.") var place: Int?
    @Option(help: "The entry to put it before.", completion: .entries) var before: String?
    @Option(help: "The entry to put it after.", completion: .entries) var after: String?
    @Option(help: "Its new number.") var to: Int?
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        let given = [place != nil, to != nil, before != nil, after != nil].filter { $0 }.count
        guard given == 1 else { throw ValidationError("Say where to: a number, or one of --before, --after and --to.") }
        if let number = place ?? to, number < 1 { throw ValidationError("Positions count from 1.") }
    }

    func ask(_ queues: QueueClient) async throws(Failure) -> QueueAnswer {
        let target: QueueClient.Place =
            if let before {
                .before(CommandLineWords.typed(before))
            } else if let after {
                .after(CommandLineWords.typed(after))
            } else {
                .index((place ?? to ?? 1) - 1)
            }
        return try await queues.move(named: CommandLineWords.typed(entry), to: target, in: queue.name)
    }

    func sentence(_ answer: QueueAnswer) -> String { "Moved \(answer.names) to \(Self.position(answer))." }

    func unchanged(_ answer: QueueAnswer) -> String { "\(answer.names) is at \(Self.position(answer)) already" }

    private static func position(_ answer: QueueAnswer) -> String { "position \((answer.index ?? 0) + 1)" }
}

struct QueueClear: QueueEdit {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Remove all entries except the one that is playing; undo restores them.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func ask(_ queues: QueueClient) async throws(Failure) -> QueueAnswer { try await queues.clear(queue.name) }

    func sentence(_ answer: QueueAnswer) -> String {
        "Cleared \(answer.summary) from \(answer.title). \(answer.undoAdvice)"
    }

    func unchanged(_ answer: QueueAnswer) -> String { "there was nothing to clear" }
}

struct QueueSort: QueueEdit {
    static let configuration = CommandConfiguration(
        commandName: "sort", abstract: "Sort the entries; undo restores the old order.")
    @Argument(help: "title, podcast, published, duration, added or remaining.") var key: QueueClient.SortKey
    @Flag(help: "In descending order.") var descending = false
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func ask(_ queues: QueueClient) async throws(Failure) -> QueueAnswer {
        try await queues.sort(queue.name, by: key, descending: descending)
    }

    func sentence(_ answer: QueueAnswer) -> String { "Sorted \(answer.title) \(order)." }

    func unchanged(_ answer: QueueAnswer) -> String { "\(answer.title) is in order \(order) already" }

    private var order: String { "by \(key.words)\(descending ? ", descending" : "")" }
}

extension QueueClient.SortKey: ExpressibleByArgument {
    /// The key as the history names it.
    fileprivate var words: String {
        switch self {
        case .title, .podcast: rawValue
        case .published: "publication"
        case .duration: "length"
        case .added: "time of adding"
        case .remaining: "remaining time"
        }
    }
}

struct QueueDedupe: QueueEdit {
    static let configuration = CommandConfiguration(
        commandName: "dedupe", abstract: "Remove duplicate entries; undo restores them.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func ask(_ queues: QueueClient) async throws(Failure) -> QueueAnswer { try await queues.deduplicate(queue.name) }

    func sentence(_ answer: QueueAnswer) -> String {
        "Removed \(answer.names)\(answer.suffix("from")). \(answer.undoAdvice)"
    }

    func unchanged(_ answer: QueueAnswer) -> String { "nothing is in \(answer.title) twice" }
}

// MARK: - History

struct QueueUndo: QueueEdit {
    static let configuration = CommandConfiguration(commandName: "undo", abstract: "Undo the last change.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func ask(_ queues: QueueClient) async throws(Failure) -> QueueAnswer { try await queues.undo(in: queue.name) }

    func sentence(_ answer: QueueAnswer) -> String { "Undone: \(Sentence.stopped(answer.summary))" }

    func unchanged(_ answer: QueueAnswer) -> String { "there is nothing to undo" }
}

struct QueueRedo: QueueEdit {
    static let configuration = CommandConfiguration(
        commandName: "redo", abstract: "Redo the change that was undone last.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func ask(_ queues: QueueClient) async throws(Failure) -> QueueAnswer { try await queues.redo(in: queue.name) }

    func sentence(_ answer: QueueAnswer) -> String { "Redone: \(Sentence.stopped(answer.summary))" }

    func unchanged(_ answer: QueueAnswer) -> String { "there is nothing to redo" }
}

struct QueueRestore: QueueEdit {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Restore an earlier revision of the queue; this can be undone.")
    @Argument(help: "A revision from `lockstep queue history`.") var revision: UInt64
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func ask(_ queues: QueueClient) async throws(Failure) -> QueueAnswer {
        try await queues.restore(queue.name, revision: revision)
    }

    func sentence(_ answer: QueueAnswer) -> String {
        "\(answer.title) is as it was at revision \(revision): \(answer.summary). "
            + "`lockstep queue undo\(QueueName.option(answer.queue))` undoes that."
    }

    func unchanged(_ answer: QueueAnswer) -> String { "it is as it was at revision \(revision) already" }
}

struct QueueHistory: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Show the last changes, the newest first.")
    @Option(parsing: .unconditional, help: "How many.") var limit: UInt32 = 20
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withFleet { fleet in
            let changes = try await fleet.queue.history(of: queue.name, limit: limit).history
            var table = TextTable([
                .init(heading: "revision", right: true), .init(heading: "when (UTC)"),
                .init(heading: "what", flexible: true), .init(heading: "by"), .init(heading: "entries", right: true),
            ])
            for change in changes {
                table.add([
                    "\(change.revision)", TimeText.minute(milliseconds: change.at.milliseconds),
                    change.summary + (change.isUndone ? " (undone)" : ""), change.origin.name, "\(change.entryCount)",
                ])
            }
            try context.output.value(
                .array(changes.map(\.json)),
                lines: table.isEmpty ? ["Nothing has changed yet."] : table.lines(width: Output.terminalWidth))
        }
    }
}

// MARK: - Modes and queues

/// A command that sets how a queue goes on, or how much it holds.
protocol QueueModeEdit: QueueEdit {
    /// What the queue does then, as the end of a sentence.
    func state(_ answer: QueueAnswer) -> String
}

extension QueueModeEdit {
    func sentence(_ answer: QueueAnswer) -> String { "\(answer.title) \(state(answer))." }

    func unchanged(_ answer: QueueAnswer) -> String { "\(answer.title) \(state(answer)) already" }
}

struct QueueRepeat: QueueModeEdit {
    static let configuration = CommandConfiguration(
        commandName: "repeat", abstract: "Choose what follows the end: nothing, the entry again, or the first one.")
    @Argument(help: "off, one or all.") var kind: QueueModes.Repeat
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func ask(_ queues: QueueClient) async throws(Failure) -> QueueAnswer {
        try await queues.setRepeat(kind, of: queue.name)
    }

    func state(_ answer: QueueAnswer) -> String {
        switch kind {
        case .off: "repeats nothing"
        case .one: "repeats the entry that plays"
        case .all: "begins again after its last entry"
        }
    }
}

extension QueueModes.Repeat: ExpressibleByArgument {}

struct QueueConsume: QueueModeEdit {
    enum Switch: String, ExpressibleByArgument, CaseIterable {
        case on, off
    }

    static let configuration = CommandConfiguration(
        commandName: "consume", abstract: "Choose whether entries leave the queue when they have ended.")
    @Argument(help: "on or off.") var isOn: Switch
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func ask(_ queues: QueueClient) async throws(Failure) -> QueueAnswer {
        try await queues.setConsume(isOn == .on, of: queue.name)
    }

    func state(_ answer: QueueAnswer) -> String {
        isOn == .on ? "removes entries that have ended" : "keeps entries that have ended"
    }
}

struct QueueLimit: QueueModeEdit {
    static let configuration = CommandConfiguration(
        commandName: "limit", abstract: "Limit the number of entries; more are refused, and none is dropped.")
    @Argument(help: "The maximum; 0 means 10000, the highest possible.") var count: UInt32
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func ask(_ queues: QueueClient) async throws(Failure) -> QueueAnswer {
        try await queues.setLimit(count, of: queue.name)
    }

    func state(_ answer: QueueAnswer) -> String {
        "takes \(NumberText.counted(answer.limit, "entry", "entries")) at most"
    }
}

struct QueueCreate: QueueEdit {
    static let configuration = CommandConfiguration(commandName: "create", abstract: "Create a queue.")
    @Argument(help: "Its name: letters, digits, - and _.") var name: String
    @OptionGroup var options: GlobalOptions

    func ask(_ queues: QueueClient) async throws(Failure) -> QueueAnswer { try await queues.create(name) }

    func sentence(_ answer: QueueAnswer) -> String {
        "Created queue “\(name)”. `lockstep queue add --queue \(name) EPISODE` fills it."
    }

    func unchanged(_ answer: QueueAnswer) -> String { "queue “\(name)” already exists" }
}

struct QueueDelete: QueueEdit {
    static let configuration = CommandConfiguration(commandName: "delete", abstract: "Delete an empty queue.")
    @Argument(help: "Its name.", completion: .queues) var name: String
    @OptionGroup var options: GlobalOptions

    func ask(_ queues: QueueClient) async throws(Failure) -> QueueAnswer { try await queues.delete(name) }

    func sentence(_ answer: QueueAnswer) -> String { "Deleted the queue “\(name)” and its history." }

    func unchanged(_ answer: QueueAnswer) -> String { "there is no such queue" }
}
