import ArgumentParser
import BusKit
import PodcastModel
import WireMessages

struct QueueCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue", abstract: "Show and change Up Next.",
        subcommands: [
            QueueList.self, QueueAdd.self, QueueRemove.self, QueueMove.self, QueueClear.self, QueueUndo.self,
            QueueRedo.self, QueueHistory.self,
        ],
        defaultSubcommand: QueueList.self)
}

struct QueueList: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Show Up Next.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            var queue = try await session.view(of: [.queue]).mainQueue ?? WireQueueState()
            if queue.name.isEmpty { queue.name = "main" }
            try context.output.value(queue.json, lines: Self.lines(queue))
        }
    }

    static func lines(_ queue: WireQueueState) -> [String] {
        guard !queue.entries.isEmpty else {
            return ["Up Next is empty. Add something with `lockstep queue add EPISODE`."]
        }
        var table = TextTable([
            .init(heading: "", right: true), .init(heading: ""), .init(heading: "episode", flexible: true),
            .init(heading: "podcast", flexible: true), .init(heading: "length", right: true),
            .init(heading: "at", right: true), .init(heading: "id"),
        ])
        for (index, entry) in queue.entries.enumerated() {
            let episode = entry.episode
            table.add([
                "\(index + 1)", entry.id == queue.current ? "*" : "", episode.title, episode.podcastTitle,
                TimeText.clock(episode.duration > 0 ? episode.duration : nil),
                episode.position >= 1 ? TimeText.clock(episode.position) : "", entry.id,
            ])
        }
        return table.lines(width: Output.terminalWidth)
    }
}

struct QueueAdd: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Add episodes at the end, or behind what plays.")
    @Flag(help: "Behind the current entry instead of at the end.") var next = false
    @Argument(help: "Ids, beginnings of ids, or parts of titles.", completion: .episodes) var episodes: [String]
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            var found: [WireEpisode] = []
            for text in episodes { found.append(try await session.persistence.findEpisode(text)) }
            let reply = try await session.queue {
                $0.add.episodes = found.map(\.id)
                $0.add.next = next
            }
            let titles = Dictionary(found.map { ($0.id, $0.title) }) { first, _ in first }
            var parts: [String] = []
            if !reply.entries.isEmpty { parts.append("Added \(Self.names(reply.entries.map(\.episode.title)))") }
            if !reply.alreadyThere.isEmpty {
                let names = Self.names(reply.alreadyThere.map { titles[$0] ?? $0 })
                parts.append("\(parts.isEmpty ? "No change: a" : "a")lready in Up Next: \(names)")
            }
            try context.output.change(reply.json, Sentence.stopped(parts.joined(separator: "; ")))
        }
    }

    static func names(_ titles: [String]) -> String {
        titles.count > 3
            ? "\(titles.count) episodes" : titles.map { "“\(DisplayText.sanitised($0))”" }.joined(separator: ", ")
    }
}

struct QueueRemove: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove entries; undo brings them back.")
    @Argument(help: "Numbers, ids, beginnings of ids, or parts of titles.", completion: .entries) var entries: [String]
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let queue = try await session.view(of: [.queue]).mainQueue ?? WireQueueState()
            let ids = try entries.map { try EntryReference.resolve($0, in: queue).id }
            let reply = try await session.queue { $0.remove.entries = ids }
            let names = QueueAdd.names(reply.entries.map(\.episode.title))
            try context.output.change(
                reply.json, "Removed \(names). `lockstep queue undo` brings \(reply.pronoun) back.")
        }
    }
}

struct QueueMove: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Move an entry to a place, or before or behind another.")
    @Argument(help: "A number, an id, the beginning of one, or a part of a title.", completion: .entries)
    var entry: String
    @Argument(help: "The number that it will have.") var place: Int?
    @Option(help: "The entry that it will stand before.", completion: .entries) var before: String?
    @Option(help: "The entry that it will stand behind.", completion: .entries) var after: String?
    @Option(help: "The number that it will have.") var to: Int?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        let given = [place != nil, to != nil, before != nil, after != nil].filter { $0 }.count
        guard given == 1 else { throw ValidationError("Say where to: a number, or one of --before, --after and --to.") }
        if let number = place ?? to, number < 1 { throw ValidationError("Places count from 1.") }
    }

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let queue = try await session.view(of: [.queue]).mainQueue ?? WireQueueState()
            let moved = try EntryReference.resolve(entry, in: queue)
            var move = WireMoveEntry()
            move.entry = moved.id
            if let before {
                move.before = try EntryReference.resolve(before, in: queue).id
            } else if let after {
                move.after = try EntryReference.resolve(after, in: queue).id
            } else {
                move.index = UInt32(clamping: (place ?? to ?? 1) - 1)
            }
            let reply = try await session.queue { $0.move = move }
            let name = "“\(DisplayText.sanitised(moved.episode.title))”"
            let now = try await session.view(of: [.queue]).mainQueue?.entries.firstIndex { $0.id == moved.id }
            let place = now.map { "place \($0 + 1)" } ?? "its place"
            try context.output.change(
                reply.json, reply.changed ? "Moved \(name) to \(place)." : "No change: \(name) is at \(place) already.")
        }
    }
}

struct QueueClear: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Remove all entries but the one that plays; undo brings them back.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let reply = try await session.queue { $0.clear = WireClearQueue() }
            let count = reply.description_p.isEmpty ? "\(reply.entries.count) entries" : reply.description_p
            try context.output.change(
                reply.json,
                reply.changed
                    ? "Cleared \(count) from Up Next. `lockstep queue undo` brings \(reply.pronoun) back."
                    : "No change: there was nothing to clear.")
        }
    }
}

struct QueueUndo: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "undo", abstract: "Take the last change back.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.stepThroughHistory("Undone", else: "there is nothing to undo") {
            $0.undo.fromRevision = $1
        }
    }
}

struct QueueRedo: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "redo", abstract: "Do again what was undone last.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.stepThroughHistory("Done again", else: "there is nothing to redo") {
            $0.redo.fromRevision = $1
        }
    }
}

extension CommandContext {
    /// Undoes or redoes one change from the revision that is shown now, and says which.
    fileprivate func stepThroughHistory(
        _ done: String, else nothing: String, _ build: @Sendable (inout WireQueueRequest, UInt64) -> Void
    ) async throws {
        try await withSession { session in
            let revision = try await session.view(of: [.queue]).mainQueue?.revision ?? 0
            let reply = try await session.queue { build(&$0, revision) }
            try output.change(
                reply.json,
                reply.changed ? "\(done): \(Sentence.stopped(reply.description_p))" : "No change: \(nothing).")
        }
    }
}

struct QueueHistory: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Show the last changes, the newest first.")
    @Option(help: "How many.") var limit: UInt32 = 20
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let reply = try await session.queue { $0.history.limit = limit }
            var table = TextTable([
                .init(heading: "revision", right: true), .init(heading: "when (UTC)"),
                .init(heading: "what", flexible: true),
            ])
            for item in reply.history {
                table.add([
                    "\(item.revision)", TimeText.minute(milliseconds: item.at),
                    item.description_p + (item.undone ? " (undone)" : ""),
                ])
            }
            try context.output.value(
                .array(reply.history.map(\.json)),
                lines: table.isEmpty ? ["Nothing has changed yet."] : table.lines(width: Output.terminalWidth))
        }
    }
}

extension WireQueueReply {
    /// For what it was about.
    fileprivate var pronoun: String { entries.count == 1 ? "it" : "them" }

    /// What a command that changes the queue prints with `--json`.
    var json: JSONValue {
        .object([
            "changed": .bool(changed), "revision": .unsigned(revision),
            "entries": .array(entries.map { .object(["id": .string($0.id), "episode": $0.episode.json]) }),
            "alreadyThere": .array(alreadyThere.map { .string($0) }), "description": .text(description_p),
        ])
    }
}
