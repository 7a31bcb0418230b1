import ArgumentParser
import LockstepClient
import PodcastModel

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

/// The queue that a command is about.
struct QueueOption: ParsableArguments {
    @Option(name: .customLong("queue"), help: "A queue other than Up Next.", completion: .queues)
    var name: String?
}

/// A command that changes a queue: it asks for the change, and reports the answer.
protocol QueueEdit: LockstepCommand {
    /// Asks for the change.
    func ask(_ queues: QueueClient) async throws(Failure) -> QueueAnswer
    /// The sentence about the change.
    func sentence(_ answer: QueueAnswer) -> String
    /// Why nothing was changed, as the end of a sentence.
    func unchanged(_ answer: QueueAnswer) -> String
}

extension QueueEdit {
    func perform(_ context: CommandContext) async throws {
        try await context.withFleet { fleet in
            let answer = try await ask(fleet.queue)
            try context.output.change(
                answer.json, answer.changed ? sentence(answer) : "No change: \(unchanged(answer)).")
        }
    }
}

extension QueueAnswer {
    /// ` to “evening”`; empty for Up Next.
    func suffix(_ word: String) -> String { queue == QueueName.default ? "" : " \(word) \(title)" }

    /// How to undo it: `` `lockstep queue undo` brings it back. ``
    var undoAdvice: String {
        "`lockstep queue undo\(QueueName.option(queue))` brings \(entries.count == 1 ? "it" : "them") back."
    }

    /// The entries that the command was about: up to three titles, else their number.
    var names: String { Titles.shown(entries.map(\.episode.title), count: max(count, entries.count), "entries") }
}

/// Shows titles in sentences.
enum Titles {
    /// Up to three titles, else their number.
    static func shown(_ titles: [String], count: Int? = nil, _ what: String = "episodes") -> String {
        let count = count ?? titles.count
        return count > 3 ? "\(count) \(what)" : titles.map { "“\($0)”" }.joined(separator: ", ")
    }
}

// MARK: - The list

struct QueueList: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Show Up Next.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withFleet(observing: .parts([.queues, .next, .player])) { fleet in
            let state = try await fleet.current([.queues, .next, .player])
            let shown = try state.existingQueue(queue.name).withPosition(of: state.player)
            // Nothing is loaded: the mark is where it would go on.
            let playing = state.player.episode == nil ? shown.name : state.upNext.name
            try context.output.value(shown.json, lines: Self.lines(shown, playing: playing))
        }
    }

    /// The table; the current entry is marked in the queue of the name `playing` alone, and said of another.
    static func lines(_ queue: QueueState, playing: String) -> [String] {
        let isPlaying = queue.name == playing
        guard !queue.entries.isEmpty else {
            return [
                "\(queue.title) is empty. Add something with `lockstep queue add\(QueueName.option(queue.name)) EPISODE`."
            ]
        }
        var table = TextTable([
            .init(heading: "", right: true), .init(heading: ""), .init(heading: "episode", flexible: true),
            .init(heading: "podcast", flexible: true), .init(heading: "length", right: true),
            .init(heading: "at", right: true), .init(heading: "id"),
        ])
        for (index, entry) in queue.entries.enumerated() {
            let episode = entry.episode
            table.add([
                "\(index + 1)", isPlaying && entry.id == queue.current ? "*" : "", episode.title, episode.podcast,
                ClockText.format(episode.duration), episode.position >= 1 ? ClockText.format(episode.position) : "",
                entry.id.text,
            ])
        }
        let modes = queue.modes.words
        let current = queue.entries.firstIndex { $0.id == queue.current }
        let place = current.map { "; this one would go on with number \($0 + 1)" } ?? ""
        let other = "\(QueueName.shown(playing)) is playing (`lockstep queue\(QueueName.option(playing))`)\(place)."
        return table.lines(width: Output.terminalWidth)
            + (isPlaying ? [] : [other])
            + (modes.isEmpty ? [] : [Sentence.capitalised(modes.joined(separator: ", ") + ".")])
    }
}

struct Queues: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "queues", abstract: "List the queues.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withFleet(observing: .parts([.queues, .next])) { fleet in
            let state = try await fleet.current([.queues, .next])
            let playing = state.upNext.name
            var table = TextTable([
                .init(heading: ""), .init(heading: "queue"), .init(heading: "entries", right: true),
                .init(heading: "current", flexible: true), .init(heading: "modes", flexible: true),
            ])
            for queue in state.queues {
                table.add([
                    queue.name == playing ? "*" : "", queue.name, "\(queue.entries.count)",
                    queue.entry(queue.current)?.episode.title ?? "", queue.modes.words.joined(separator: ", "),
                ])
            }
            let values = state.queues.map { queue in
                JSONValue.object([
                    "name": .string(queue.name), "entries": .integer(Int64(queue.entries.count)),
                    "current": .text(queue.current?.text ?? ""), "playing": .bool(queue.name == playing),
                    "revision": .unsigned(queue.revision), "modes": queue.modes.json,
                ])
            }
            try context.output.value(.array(values), lines: table.lines(width: Output.terminalWidth))
        }
    }
}

extension FleetState {
    /// A queue by its name. Up Next is there even if nothing has been heard of it.
    ///
    /// - Throws: `notFound`, which names the nearest one.
    fileprivate func existingQueue(_ name: String?) throws(Failure) -> QueueState {
        let name = name ?? QueueName.default
        if let queue = queue(name) { return queue }
        guard name != QueueName.default else { return upNext }
        let advice = NearestWord.among(queues.map(\.name), to: name).map { "Did you mean \($0)? " } ?? ""
        throw Failure(.notFound, "There is no queue “\(name)”. \(advice)`lockstep queues` lists them.")
    }
}
