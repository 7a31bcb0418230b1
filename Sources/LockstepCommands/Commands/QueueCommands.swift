import ArgumentParser
import LockstepClient
import PodcastModel

struct QueueCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue", abstract: "Show and change Up Next.",
        subcommands: [
            QueueList.self, QueueAdd.self, QueueRemove.self, QueueMove.self, QueueClear.self, QueueSort.self,
            QueueShuffle.self, QueueRename.self,
            QueueDedupe.self, QueueUndo.self, QueueRedo.self, QueueHistory.self, QueueRestore.self, QueueRepeat.self,
            QueueConsume.self, QueueLimit.self, QueueCreate.self, QueueDelete.self,
        ],
        defaultSubcommand: QueueList.self)
}

struct QueueOption: ParsableArguments {
    @Option(name: .customLong("queue"), help: "A queue other than Up Next.", completion: .queues)
    var name: String?
}

struct QueueList: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Show Up Next.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .parts([.queues, .next, .player]) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let state = try await fleet.current([.queues, .next, .player])
        let shown = try state.existingQueue(queue.name).withPosition(of: state.player)
        // If no episode is loaded, the mark is in the queue that would continue.
        let playing = state.player.episode == nil ? shown.name : state.upNext.name
        try output.list(shown.entries.map(\.episode.id), shown.json, lines: Self.lines(shown, playing: playing))
    }

    /// The table. The current entry is marked only in the queue that plays; for others, its number is printed below.
    static func lines(_ queue: QueueState, playing: String) -> [String] {
        let isPlaying = queue.name == playing
        guard !queue.entries.isEmpty else {
            return [
                "\(queue.title) is empty. Add an episode with `lockstep queue add\(QueueName.option(queue.name)) EPISODE`."
            ]
        }
        let rows = queue.entries.enumerated().map { index, entry in
            let episode = entry.episode
            return [
                "\(index + 1)", isPlaying && entry.id == queue.current ? "*" : "", episode.title, episode.podcast,
                ClockText.format(episode.duration), episode.position >= 1 ? ClockText.format(episode.position) : "",
                entry.id.text,
            ]
        }
        let table = TextTable(
            [.right(""), "", .flexible("episode"), .flexible("podcast"), .right("length"), .right("at"), .id("id")],
            rows)
        let modes = queue.modes.words
        let current = queue.entries.firstIndex { $0.id == queue.current }
        let continuation = current.map { "; this queue would continue with number \($0 + 1)" } ?? ""
        let other =
            "\(QueueName.shown(playing)) is playing (`lockstep queue\(QueueName.option(playing))`)\(continuation)."
        let episodes = queue.entries.map(\.episode)
        let totals = Episodes.totals(
            NumberText.counted(rows.count, "entry", "entries"), length: episodes.reduce(0) { $0 + ($1.duration ?? 0) },
            left: episodes.reduce(0) { $0 + max(0, $1.isPlayed ? 0 : ($1.duration ?? 0) - $1.position) })
        return table.printed() + [totals + "."] + (isPlaying ? [] : [other])
            + (modes.isEmpty ? [] : [Sentence.capitalised(modes.joined(separator: ", ") + ".")])
    }
}

struct Queues: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "queues", abstract: "List the queues.")
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .parts([.queues, .next]) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let state = try await fleet.current([.queues, .next])
        let playing = state.upNext.name
        let rows = state.queues.map { queue in
            [
                queue.name == playing ? "*" : "", queue.name, "\(queue.entries.count)",
                queue.entry(queue.current)?.episode.title ?? "", queue.modes.words.joined(separator: ", "),
            ]
        }
        let values = state.queues.map { queue in
            JSONValue.object([
                "name": .string(queue.name), "entries": .integer(Int64(queue.entries.count)),
                "current": .text(queue.current?.text ?? ""), "playing": .bool(queue.name == playing),
                "revision": .unsigned(queue.revision), "modes": queue.modes.json,
            ])
        }
        let table = TextTable(["", "queue", .right("entries"), .flexible("current"), .flexible("modes")], rows)
        try output.value(.array(values), lines: table.printed())
    }
}

extension FleetState {
    /// Returns a queue by its name. Up Next exists even before its state is known.
    ///
    /// - Throws: `notFound`, with the nearest name.
    func existingQueue(_ name: String?) throws(Failure) -> QueueState {
        let name = name ?? QueueName.default
        if let queue = queue(name) { return queue }
        guard name != QueueName.default else { return upNext }
        let advice = NearestWord.among(queues.map(\.name), to: name).map { "Did you mean \($0)? " } ?? ""
        throw Failure(.notFound, "There is no queue “\(name)”. \(advice)`lockstep queues` lists them.")
    }
}
