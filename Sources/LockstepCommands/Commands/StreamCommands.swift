import ArgumentParser
import FleetHome
import LockstepClient
import PodcastModel

struct Watch: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Print the stream, a line for each event.",
        discussion: "Begins with the current state (kind snapshot). Ends with Ctrl-C, --count or --for.")
    @Argument(help: "Only topics with one of these prefixes, such as `playback` or `queue/queue`.") var prefixes:
        [String] =
            []
    @Flag(help: "Omit the current state at the beginning.") var changes = false
    @Option(parsing: .unconditional, help: "End after this many lines.") var count: Int?
    @Option(name: .customLong("for"), parsing: .unconditional, help: "End after this many seconds.") var seconds:
        Double?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count must be a number above 0.") }
        if let seconds, !(seconds > 0 && seconds < 1e9) {
            throw ValidationError("--for must be a number of seconds above 0.")
        }
    }

    func perform(_ context: CommandContext) async throws {
        for prefix in prefixes { try Self.requireTopic(prefix) }
        try await context.withFleet(origin: "watch", observing: .everything) { fleet in
            try await context.output.whileRead {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await print(fleet, context.output) }
                    if let seconds { group.addTask { try await Task.sleep(for: .seconds(seconds)) } }
                    try await group.next()
                    group.cancelAll()
                }
            }
        }
    }

    /// - Throws: `notFound` for a prefix that no topic can have, with the owners of topics.
    static func requireTopic(_ prefix: String) throws(Failure) {
        let topic = prefix.hasPrefix("stream/") ? prefix.dropFirst("stream/".count) : prefix[...]
        let owners = Fleet.serviceNames
        let isKnown =
            "stream/".hasPrefix(prefix) || "live/".hasPrefix(prefix) || prefix.hasPrefix("live/")
            || owners.contains { ($0 + "/").hasPrefix(topic) || topic.hasPrefix($0 + "/") }
        guard !isKnown else { return }
        let shown = DisplayText.cut(DisplayText.sanitised(prefix), to: 100)
        throw Failure(
            .notFound, "No topic begins with “\(shown)”. Prefixes begin with \(WordList.and(owners)), or with live.")
    }

    private func print(_ fleet: Fleet, _ output: Output) async throws {
        var left = count ?? .max
        for await event in fleet.events(prefixes: prefixes, changesOnly: changes) {
            try output.line(
                output.json
                    ? event.json.line
                    : "\(event.epoch) \(event.sequence) \(event.kind) \(DisplayText.sanitised(event.topic)) \(event.payload.line)"
            )
            left -= 1
            if left == 0 { return }
        }
    }
}

struct Alerts: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "alerts",
        abstract: "Show and answer alerts.", subcommands: [AlertList.self, AlertAnswer.self],
        defaultSubcommand: AlertList.self)
}

struct AlertList: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Show the alerts.")
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .parts([.alerts]) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let alerts = try await fleet.current([.alerts]).alerts
        let lines = alerts.flatMap { alert -> [String] in
            let actions = alert.actions.isEmpty ? "" : "  (\(alert.actions.joined(separator: ", ")))"
            return ["\(alert.id)  \(alert.severity): \(alert.title)\(actions)", "  " + alert.message]
        }
        try output.value(.array(alerts.map(\.json)), lines: lines.isEmpty ? ["No alerts."] : lines)
    }
}

struct AlertAnswer: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "answer", abstract: "Answer an alert.", usage: "lockstep alerts answer [<id>] <action>")
    @Argument(help: "The alert’s ID, or the beginning of it; not needed if only one alert offers the action.")
    var id: String?
    @Argument(help: "One of the alert’s answers, as `lockstep alerts` lists them.") var action: String?
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .parts([.alerts, .next]) }

    func validate() throws {
        guard id != nil else { throw ValidationError("Give an action, or an alert’s ID and an action.") }
    }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let alerts = try await fleet.current([.alerts]).alerts
        // A single word is the action.
        let action = self.action ?? id ?? ""
        let alert = try Self.resolve(self.action == nil ? nil : id, action: action, in: alerts)
        let end = await fleet.endOfSkipping(of: alert.owner, action: action)
        let answered = try await fleet.alerts.answer(alert.id, of: alert.owner, action)
        try output.change(
            .object(["alert": .string(alert.id.text), "action": .string(answered)]),
            "Answered with \(answered): \(Sentence.stopped(alert.title))\(end.map { " \($0)" } ?? "")")
    }

    /// The alert with an ID or the beginning of one; without, the only alert that accepts the action.
    static func resolve(_ id: String?, action: String, in alerts: [AlertState]) throws(Failure) -> AlertState {
        let found = alerts.filter { id.map($0.id.text.hasPrefix) ?? $0.actions.contains(action) }
        guard let first = found.first else {
            if id == nil, let named = alerts.first(where: { $0.id.text.hasPrefix(action) }) {
                throw Failure(
                    .invalidArgument,
                    "Name an answer to this alert: \(WordList.or(named.actions)).")
            }
            throw Failure(
                .notFound,
                id.map { "There is no alert “\($0)”. `lockstep alerts` lists them." }
                    ?? "No alert can be answered with “\(action)”. `lockstep alerts` lists them.")
        }
        guard found.count == 1 else {
            throw .ambiguous("\(found.count) alerts match.", found.map { ($0.id.text, $0.title, $0.message) })
        }
        guard first.actions.contains(action) else {
            throw Failure(
                .notFound,
                "“\(action)” isn’t an answer to this alert; its answers are \(WordList.and(first.actions))."
            )
        }
        return first
    }
}

extension Fleet {
    /// The sentence about skipping a failed episode that no entry follows; nil for other answers. It is
    /// determined before the answer is sent, on a connection that observes the next entry.
    func endOfSkipping(of owner: ServiceName, action: String) async -> String? {
        guard owner == .playback, action == "skip",
            let next = try? await current([.next]).next, next.following == nil, next.reason != nil
        else { return nil }
        return "No entry follows in \(QueueName.shown(next.queue)). "
            + "Add an episode with `lockstep queue add\(QueueName.option(next.queue)) EPISODE`."
    }
}

/// Prints the IDs for shell completion.
struct Candidates: FleetCommand {
    enum Kind: String, ExpressibleByArgument, CaseIterable {
        case episodes, podcasts, entries, queues, playlists, bookmarks, alerts
    }

    static let configuration = CommandConfiguration(commandName: "candidates", shouldDisplay: false)
    @Argument var kind: Kind
    @OptionGroup var options: GlobalOptions

    var observation: Observation { parts.isEmpty ? .nothing : .parts(parts) }

    private var parts: Set<FleetPart> {
        switch kind {
        case .episodes, .podcasts: []
        case .entries, .queues: [.queues]
        case .playlists: [.playlists]
        case .bookmarks: [.bookmarks]
        case .alerts: [.alerts]
        }
    }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let candidates = Completion.named(try await self.candidates(fleet))
        let shell = ProcessEnvironment.current["SAP_SHELL"]
        let lines = candidates.map { $0.line(for: shell) }
        if !lines.isEmpty { try output.line(lines.joined(separator: "\n")) }
    }

    /// The maximum number of episodes and entries that are offered, the newest or the next ones.
    private static let limit = 200

    private func candidates(_ fleet: Fleet) async throws(Failure) -> [Completion] {
        switch kind {
        case .episodes:
            try await fleet.library.episodes(limit: Self.limit).episodes.map {
                Completion(id: $0.id.text, title: $0.title, about: $0.podcast)
            }
        case .podcasts:
            try await fleet.library.podcasts().map { Completion(id: $0.id.text, title: $0.title, about: $0.url) }
        case .entries:
            try await (fleet.current(parts).queue(QueueName.default)?.entries ?? []).prefix(Self.limit).map {
                Completion(id: $0.id.text, title: $0.episode.title, about: $0.episode.podcast)
            }
        case .queues: try await fleet.current(parts).queues.map(\.name).sorted().map { Completion(id: $0) }
        case .playlists: try await fleet.current(parts).playlists.map { Completion(id: $0.id, about: $0.title) }
        case .bookmarks: try await fleet.current(parts).bookmarks.map { Completion(id: $0.id.text, about: $0.title) }
        case .alerts: try await fleet.current(parts).alerts.map { Completion(id: $0.id.text, about: $0.title) }
        }
    }
}
