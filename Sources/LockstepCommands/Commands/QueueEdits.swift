public import ArgumentParser
public import LockstepClient
import PodcastModel

struct QueueAdd: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Add episodes to the end of a queue, or after its current entry.",
        usage: """
            lockstep queue add <episodes> ... [--next] [--fit <fit>] [--queue <queue>]
            lockstep queue add --podcast <podcast> [--where <rule>] [--sort <sort>] [--unplayed] [--fit <fit>] [--next] [--queue <queue>]
            lockstep queue add --where <rule> [--sort <sort>] [--fit <fit>] [--next] [--queue <queue>]
            """)
    @Flag(help: "Add them after the current entry.") var next = false
    @OptionGroup var added: AddedEpisodes
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let found = try await added.find(in: fleet.library)
        let answer =
            found.episodes.isEmpty
            ? try await fleet.queue.history(of: queue.name, limit: 1)
            : try await fleet.queue.add(found.episodes.map(\.id), next: next, to: queue.name)
        try output.added(answer, found.episodes, else: found.reasonIfEmpty)
    }
}

struct QueueRemove: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove entries; `queue undo` restores them.")
    @Argument(help: "Numbers, IDs, beginnings of IDs, or parts of titles.", completion: .entries)
    var entries: [String] = []
    @Option(name: .customLong("where"), help: "Remove the entries whose episodes meet this rule, such as “played”.")
    var rule: String?
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions
    var observation: Observation { rule == nil ? .nothing : .parts([.queues]) }

    func validate() throws {
        try EpisodeArguments.require("entries to remove", entries, orRule: rule)
    }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let answer =
            if let rule {
                try await remove(meeting: rule, fleet)
            } else {
                try await remove(CommandLineWords.distinct(entries), fleet.queue)
            }
        try output.change(
            answer, answer.removed, else: rule == nil ? "there was nothing to remove" : "no entry’s episode matches")
    }

    private func remove(meeting rule: String, _ fleet: Fleet) async throws(Failure) -> QueueAnswer {
        let condition = EpisodeRule.Condition.all([.mark(.queued), try await fleet.library.rule(rule).condition])
        let list = EpisodeList(matching: EpisodeRule(condition))
        let found = Set(try await fleet.library.episodes(in: list, limit: nil).episodes.map(\.id))
        let entries = try await fleet.current([.queues]).existingQueue(queue.name).entries
        let ids = entries.filter { found.contains($0.episode.id) }.map(\.id)
        guard !ids.isEmpty else { return try await fleet.queue.history(of: queue.name, limit: 1) }
        return try await fleet.queue.remove(ids, from: queue.name)
    }

    private func remove(_ texts: [String], _ queues: QueueClient) async throws(Failure) -> QueueAnswer {
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
}

struct QueueMove: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Move an entry to another position, or before or after another entry.")
    @Argument(help: "A number, an ID, the beginning of one, or a part of a title.", completion: .entries)
    var entry: String
    @Argument(help: "Its new number.") var position: Int?
    @Option(help: "The entry to put it before.", completion: .entries) var before: String?
    @Option(help: "The entry to put it after.", completion: .entries) var after: String?
    @Option(help: "Its new number.") var to: Int?
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        let given = [position != nil, to != nil, before != nil, after != nil].count { $0 }
        guard given == 1 else {
            throw ValidationError("Give the new position: a number, or one of --before, --after and --to.")
        }
        if let number = position ?? to, number < 1 { throw ValidationError("Positions count from 1.") }
    }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let target =
            before.map { QueueClient.MoveTarget.before(CommandLineWords.typed($0)) }
            ?? after.map { .after(CommandLineWords.typed($0)) } ?? .index((position ?? to ?? 1) - 1)
        try output.moved(
            try await fleet.queue.move(named: CommandLineWords.typed(entry), to: target, in: queue.name))
    }
}

struct QueueClear: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Remove all entries except the loaded one; `queue undo` restores them.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let answer = try await fleet.queue.clear(queue.name)
        try output.change(
            answer, "Cleared \(answer.summary) from \(answer.title). \(answer.undoAdvice)",
            else: "there was nothing to clear")
    }
}

struct QueueSort: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "sort", abstract: "Sort the entries; `queue undo` restores the old order.")
    @Argument(help: "title, podcast, published, length, added or remaining.") var key: QueueClient.SortKey
    @Flag(help: "In descending order.") var descending = false
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let answer = try await fleet.queue.sort(queue.name, by: key, descending: descending)
        try output.sorted(answer, by: key, descending: descending)
    }
}

struct QueueShuffle: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "shuffle",
        abstract: "Shuffle the entries after the current one, once; `queue undo` restores the old order.")
    @Option(help: "The seed of the random order; equal seeds give equal orders.") var seed: UInt64 = 0
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let answer = try await fleet.queue.shuffle(queue.name, seed: seed)
        try output.change(
            answer, "Shuffled \(answer.title). \(answer.undoCommand) restores the old order.",
            else: "nothing can be shuffled in \(answer.title)")
    }
}

struct QueueRename: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "rename", abstract: "Rename a queue, with its history and the settings that name it.")
    @Argument(help: "Its name.", completion: .queues) var name: String
    @Argument(help: "The new name: letters, digits, - and _.") var new: String
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        try output.change(
            try await fleet.queue.rename(name, to: new), "Renamed the queue “\(name)” to “\(new)”.",
            else: "that is its name already")
    }
}

struct QueueDedupe: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "dedupe", abstract: "Remove duplicate entries; `queue undo` restores them.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        try output.deduplicated(try await fleet.queue.deduplicate(queue.name))
    }
}

struct QueueUndo: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "undo", abstract: "Undo the last change of the entries.",
        discussion: "Changes of repeat, consume and limit can’t be undone.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        try output.undone(try await fleet.queue.undo(in: queue.name))
    }
}

struct QueueRedo: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "redo", abstract: "Redo the last undone change.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        try output.redone(try await fleet.queue.redo(in: queue.name))
    }
}

struct QueueRestore: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Restore an earlier revision of the queue; this can be undone.")
    @Argument(help: "A revision from `lockstep queue history`.") var revision: UInt64
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        try output.restored(try await fleet.queue.restore(queue.name, revision: revision), revision: revision)
    }
}

struct QueueHistory: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Show the last changes, the newest first.",
        discussion: "After an undo, the next new change removes the undone changes from the history.")
    @Option(parsing: .unconditional, help: "The maximum number of changes.") var limit: UInt32 = 20
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        try output.history(try await fleet.queue.history(of: queue.name, limit: limit).history)
    }
}

struct QueueRepeat: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "repeat", abstract: "Repeat nothing, the current entry, or the whole queue.")
    @Argument(help: "off, one or all.") var kind: QueueModes.Repeat
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let mode =
            switch kind {
            case .off: "stops after its last entry"
            case .one: "repeats the current entry"
            case .all: "starts over after its last entry"
            }
        try output.change(try await fleet.queue.setRepeat(kind, of: queue.name), mode: mode)
    }
}

extension QueueModes.Repeat: ExpressibleByArgument {}

struct QueueConsume: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "consume", abstract: "Choose whether entries are removed when they have ended.")
    @Argument(help: ArgumentHelp("on or off.", valueName: "on|off")) var isOn: Switch
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        try output.change(
            try await fleet.queue.setConsume(isOn == .on, of: queue.name),
            mode: "\(isOn == .on ? "removes" : "keeps") entries that have ended")
    }
}

struct QueueLimit: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "limit",
        abstract: "Set the number of entries from which on further ones are refused. No entry is removed.")
    @Argument(help: "The maximum; 0 means 10000, the highest possible.") var count: UInt32
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let answer = try await fleet.queue.setLimit(count, of: queue.name)
        let limit = NumberText.counted(answer.limit, "entry", "entries")
        try output.change(
            answer, "\(answer.title) accepts no more than \(limit).",
            else: "\(answer.title) already accepts no more than \(limit)")
    }
}

struct QueueCreate: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "create", abstract: "Create a queue.")
    @Argument(help: "Its name: letters, digits, - and _.") var name: String
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        try output.change(
            try await fleet.queue.create(name),
            "Created queue “\(name)”. `lockstep queue add --queue \(name) EPISODE` adds an episode.",
            else: "queue “\(name)” already exists")
    }
}

struct QueueDelete: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "delete", abstract: "Delete an empty queue.")
    @Argument(help: "Its name.", completion: .queues) var name: String
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        try output.change(
            try await fleet.queue.delete(name), "Deleted the queue “\(name)” and its history.",
            else: "there is no such queue")
    }
}
