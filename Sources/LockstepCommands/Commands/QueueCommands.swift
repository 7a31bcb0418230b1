import ArgumentParser
import BusKit
import LockstepClient
import PodcastModel
import WireMessages

struct QueueCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue", abstract: "Show and change Up Next.",
        subcommands: [
            QueueList.self, QueueAdd.self, QueueRemove.self, QueueMove.self, QueueClear.self, QueueSort.self,
            QueueDedupe.self, QueueUndo.self, QueueRedo.self, QueueHistory.self, QueueRestore.self, QueueRepeat.self,
            QueueConsume.self, QueueLimit.self, QueueCreate.self, QueueDelete.self,
        ],
        defaultSubcommand: QueueList.self)
}

/// Which queue a command is about.
struct QueueOption: ParsableArguments {
    @Option(name: .customLong("queue"), help: "A queue other than Up Next.", completion: .queues)
    var name: String?

    /// The queue's name.
    var known: String { name ?? FleetView.usualQueue }
}

struct QueueList: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Show Up Next.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let view = try await session.view(of: [.queue, .playback])
            let shown = try view.queue(queue.known).withPosition(of: view.player)
            // Nothing is loaded: the mark is where it would go on.
            let playing = view.isIdle ? shown.name : view.playingQueue.name
            try context.output.value(shown.json, lines: Self.lines(shown, playing: playing))
        }
    }

    /// The table; what is current is marked in the queue of the name `playing` alone, and said of another.
    static func lines(_ queue: WireQueueState, playing: String) -> [String] {
        let isPlaying = queue.name == playing
        guard !queue.entries.isEmpty else {
            let option = queue.name == FleetView.usualQueue ? "" : "--queue \(queue.name) "
            return ["\(queue.shownName) is empty. Add something with `lockstep queue add \(option)EPISODE`."]
        }
        var table = TextTable([
            .init(heading: "", right: true), .init(heading: ""), .init(heading: "episode", flexible: true),
            .init(heading: "podcast", flexible: true), .init(heading: "length", right: true),
            .init(heading: "at", right: true), .init(heading: "id"),
        ])
        for (index, entry) in queue.entries.enumerated() {
            let episode = entry.episode
            table.add([
                "\(index + 1)", isPlaying && entry.id == queue.current ? "*" : "", episode.title, episode.podcastTitle,
                ClockText.format(episode.duration > 0 ? episode.duration : nil),
                episode.position >= 1 ? ClockText.format(episode.position) : "", entry.id,
            ])
        }
        let modes = queue.hasModes ? queue.modes.words : []
        let current = queue.entries.firstIndex { $0.id == queue.current }
        let place = current.map { "; this one would go on with number \($0 + 1)" } ?? ""
        let other =
            "\(WireQueueState.shownName(playing)) is playing (`lockstep queue\(QueueName.option(playing))`)\(place)."
        return table.lines(width: Output.terminalWidth)
            + (isPlaying ? [] : [other])
            + (modes.isEmpty ? [] : [Sentence.capitalised(modes.joined(separator: ", ") + ".")])
    }
}

struct QueueRemove: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove entries; undo brings them back.")
    @Argument(help: "Numbers, IDs, beginnings of IDs, or parts of titles.", completion: .entries) var entries: [String]
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let present = try await session.view(of: [.queue]).queue(queue.known)
            let ids = Set(try entries.map { try EntryReference.resolve($0, in: present).id }).sorted()
            let reply = try await session.queue(named: queue.known) { $0.remove.entries = ids }
            // Long lists are not sent back whole.
            let names =
                ids.count > 3 ? "\(ids.count) entries" : QueueAdd.names(reply.entries.map(\.episode.title), "entries")
            try context.output.change(
                reply.json,
                "Removed \(names)\(queue.suffix("from")). `lockstep queue undo\(queue.argument)` brings \(reply.pronoun) back."
            )
        }
    }
}

struct QueueMove: LockstepCommand {
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

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let present = try await session.view(of: [.queue]).queue(queue.known)
            let moved = try EntryReference.resolve(entry, in: present)
            var move = WireMoveEntry()
            move.entry = moved.id
            if let before {
                move.before = try EntryReference.resolve(before, in: present).id
            } else if let after {
                move.after = try EntryReference.resolve(after, in: present).id
            } else {
                move.index = UInt32(clamping: (place ?? to ?? 1) - 1)
            }
            let wanted = move
            let reply = try await session.queue(named: queue.known) { $0.move = wanted }
            let name = "“\(DisplayText.sanitised(moved.episode.title))”"
            let now = try await session.view(of: [.queue]).queue(queue.known).entries.firstIndex { $0.id == moved.id }
            let place = now.map { "position \($0 + 1)" } ?? "its position"
            try context.output.change(
                reply.json, reply.changed ? "Moved \(name) to \(place)." : "No change: \(name) is at \(place) already.")
        }
    }
}

struct QueueClear: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Remove all entries except the one that is playing; undo restores them.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let reply = try await session.queue(named: queue.known) { $0.clear = WireClearQueue() }
            let count = reply.description_p.isEmpty ? "\(reply.entries.count) entries" : reply.description_p
            try context.output.change(
                reply.json,
                reply.changed
                    ? "Cleared \(count) from \(queue.shownName). `lockstep queue undo\(queue.argument)` brings \(reply.pronoun) back."
                    : "No change: there was nothing to clear.")
        }
    }
}

extension QueueOption {
    /// As sentences name it.
    var shownName: String { WireQueueState.shownName(known) }

    /// ` to “evening”`; empty for the usual queue.
    func suffix(_ word: String) -> String { known == FleetView.usualQueue ? "" : " \(word) \(shownName)" }

    /// ` --queue evening`; empty for the usual queue.
    var argument: String { known == FleetView.usualQueue ? "" : " --queue \(known)" }
}

extension WireQueueReply {
    /// For what it was about.
    var pronoun: String { entries.count == 1 ? "it" : "them" }

    /// What a command that changes the queue prints with `--json`.
    var json: JSONValue {
        .object([
            "changed": .bool(changed), "revision": .unsigned(revision),
            "entries": .array(entries.map { .object(["id": .string($0.id), "episode": $0.episode.json]) }),
            "count": .unsigned(UInt64(count)), "alreadyThere": .array(alreadyThere.map { .string($0) }),
            "description": .text(description_p),
        ])
    }
}
