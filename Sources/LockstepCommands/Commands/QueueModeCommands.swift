import ArgumentParser
import BusKit
import LockstepClient
import PodcastModel
import WireMessages

struct QueueSort: LockstepCommand {
    enum Key: String, ExpressibleByArgument, CaseIterable {
        case title, podcast, published, duration, added, remaining

        var wire: WireSortEntries.Key {
            switch self {
            case .title: .title
            case .podcast: .podcast
            case .published: .published
            case .duration: .duration
            case .added: .added
            case .remaining: .remaining
            }
        }

        /// As the history names it.
        var words: String {
            switch self {
            case .title, .podcast: rawValue
            case .published: "publication"
            case .duration: "length"
            case .added: "time of adding"
            case .remaining: "remaining time"
            }
        }
    }

    static let configuration = CommandConfiguration(
        commandName: "sort", abstract: "Sort the entries; undo restores the old order.")
    @Argument(help: "title, podcast, published, duration, added or remaining.") var key: Key
    @Flag(help: "In descending order.") var descending = false
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let reply = try await session.queue(named: queue.known) {
                $0.sort.by = key.wire
                $0.sort.descending = descending
            }
            let order = "by \(key.words)\(descending ? ", descending" : "")"
            try context.output.change(
                reply.json,
                reply.changed
                    ? "Sorted \(queue.shownName) \(order)."
                    : "No change: \(queue.shownName) is in order \(order) already.")
        }
    }
}

struct QueueDedupe: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "dedupe", abstract: "Remove duplicate entries; undo restores them.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let reply = try await session.queue(named: queue.known) { $0.deduplicate = WireRemoveDuplicates() }
            // Long lists are not sent back whole.
            let few = reply.entries.count < 4 || reply.description_p.isEmpty
            let names = few ? QueueAdd.names(reply.entries.map(\.episode.title), "entries") : reply.description_p
            try context.output.change(
                reply.json,
                reply.changed
                    ? "Removed \(names)\(queue.suffix("from")). `lockstep queue undo\(queue.argument)` brings \(reply.pronoun) back."
                    : "No change: nothing is in \(queue.shownName) twice.")
        }
    }
}

struct QueueRepeat: LockstepCommand {
    enum Kind: String, ExpressibleByArgument, CaseIterable {
        case off, one, all

        var wire: WireRepeat {
            switch self {
            case .off: .off
            case .one: .one
            case .all: .all
            }
        }
    }

    static let configuration = CommandConfiguration(
        commandName: "repeat", abstract: "Choose what follows the end: nothing, the entry again, or the first one.")
    @Argument(help: "off, one or all.") var kind: Kind
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let state =
            switch kind {
            case .off: "repeats nothing"
            case .one: "repeats the entry that plays"
            case .all: "begins again after its last entry"
            }
        try await context.setModes(of: queue, state) { $0.repeat = kind.wire }
    }
}

struct QueueConsume: LockstepCommand {
    enum Switch: String, ExpressibleByArgument, CaseIterable {
        case on, off
    }

    static let configuration = CommandConfiguration(
        commandName: "consume", abstract: "Choose whether entries leave the queue when they have ended.")
    @Argument(help: "on or off.") var isOn: Switch
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let state = isOn == .on ? "removes entries that have ended" : "keeps entries that have ended"
        try await context.setModes(of: queue, state) { $0.consume = isOn == .on }
    }
}

struct QueueLimit: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "limit", abstract: "Limit the number of entries; more are refused, and none is dropped.")
    @Argument(help: "The maximum; 0 means 10000, which is the most possible.") var count: UInt32
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        guard count <= WireQueueModes.standardLimit else {
            throw Failure(.invalidArgument, "A queue holds \(WireQueueModes.standardLimit) entries at most.")
        }
        let limit = count == 0 ? WireQueueModes.standardLimit : count
        try await context.setModes(of: queue, "takes \(NumberText.counted(Int(limit), "entry", "entries")) at most") {
            $0.limit = count
        }
    }
}

extension CommandContext {
    /// Sets modes of a queue, and says what it does then.
    fileprivate func setModes(
        of queue: QueueOption, _ state: String, _ build: @Sendable (inout WireSetModes) -> Void
    ) async throws {
        try await withSession { session in
            _ = try await session.view(of: [.queue]).queue(queue.known)
            let reply = try await session.queue(named: queue.known) { build(&$0.setModes) }
            try output.change(
                reply.json,
                reply.changed ? "\(queue.shownName) \(state)." : "No change: \(queue.shownName) \(state) already.")
        }
    }
}

struct QueueCreate: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "create", abstract: "Create a queue.")
    @Argument(help: "Its name: letters, digits, - and _.") var name: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        guard QueueName.isValid(name) else {
            throw Failure(.invalidArgument, "“\(name)” can’t be a queue’s name; a name has \(QueueName.rule).")
        }
        try await context.withSession { session in
            let reply = try await session.queue(named: name) { $0.create = WireCreateQueue() }
            try context.output.change(
                reply.json,
                reply.changed
                    ? "Created queue “\(name)”. `lockstep queue add --queue \(name) EPISODE` fills it."
                    : "No change: queue “\(name)” already exists.")
        }
    }
}

struct QueueDelete: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete an empty queue.")
    @Argument(help: "Its name.", completion: .queues) var name: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            _ = try await session.view(of: [.queue]).queue(name)
            let reply = try await session.queue(named: name) { $0.delete = WireDeleteQueue() }
            try context.output.change(reply.json, "Deleted the queue “\(name)” and its history.")
        }
    }
}

struct Queues: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "queues", abstract: "List the queues.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let view = try await session.view(of: [.playback, .queue])
            let queues = view.queues.values.sorted { FleetView.isQueue($0.name, before: $1.name) }
            let playing = view.playingQueue.name
            var table = TextTable([
                .init(heading: ""), .init(heading: "queue"), .init(heading: "entries", right: true),
                .init(heading: "current", flexible: true), .init(heading: "modes", flexible: true),
            ])
            for queue in queues {
                let current = queue.entries.first { $0.id == queue.current }?.episode.title ?? ""
                table.add([
                    queue.name == playing ? "*" : "", queue.name, "\(queue.entries.count)", current,
                    queue.modes.words.joined(separator: ", "),
                ])
            }
            try context.output.value(
                .array(queues.map { $0.briefJSON(isPlaying: $0.name == playing) }),
                lines: table.lines(width: Output.terminalWidth))
        }
    }
}

extension WireQueueState {
    /// As a list of queues shows it.
    fileprivate func briefJSON(isPlaying: Bool) -> JSONValue {
        .object([
            "name": .string(name), "entries": .integer(Int64(entries.count)), "current": .text(current),
            "playing": .bool(isPlaying), "revision": .unsigned(revision), "modes": modes.json,
        ])
    }
}
