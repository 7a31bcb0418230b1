import ArgumentParser
import BusKit
import LockstepClient
import PodcastModel
import SwiftProtobuf
import WireMessages

struct Watch: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Print the stream, a line for each event.",
        discussion: "Begins with the current state (kind snapshot). Ends with Ctrl-C, --count or --for.")
    @Argument(help: "Only topics that begin like this, such as `playback` or `queue/queue`.") var prefixes: [String] =
        []
    @Flag(help: "Leave out the current state at the beginning.") var changes = false
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
        try await context.withSession(origin: "watch") { session in
            try await context.output.whileRead {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await print(session, context.output) }
                    if let seconds {
                        group.addTask { try await Task.sleep(for: .seconds(seconds)) }
                    }
                    try await group.next()
                    group.cancelAll()
                }
            }
        }
    }

    private func print(_ session: Session, _ output: Output) async throws {
        var log = WatchLog(prefixes: prefixes, changesOnly: changes)
        var left = count ?? .max
        for await update in session.fleet.client.updates() {
            for line in log.lines(for: update) {
                try output.line(output.json ? line.json.line : line.text)
                left -= 1
                if left == 0 { return }
            }
        }
    }
}

extension WatchLog.Line {
    /// For people: `1763 12 put stream/playback/state {…}`.
    var text: String { "\(epoch) \(sequence) \(kind) \(DisplayText.sanitised(topic)) \(payload.line)" }
}

struct Alerts: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "alerts",
        abstract: "Show and answer what needs attention.", subcommands: [AlertList.self, AlertAnswer.self],
        defaultSubcommand: AlertList.self)
}

struct AlertList: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Show the alerts.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let alerts = try await session.view(of: []).alertsInOrder
            let lines = alerts.flatMap { alert -> [String] in
                let actions = alert.actions.isEmpty ? "" : "  (\(alert.actions.joined(separator: ", ")))"
                return [
                    DisplayText.sanitised("\(alert.id)  \(alert.severity.word): \(alert.title)\(actions)"),
                    "  " + DisplayText.sanitised(alert.message),
                ]
            }
            try context.output.value(.array(alerts.map(\.json)), lines: lines.isEmpty ? ["No alerts."] : lines)
        }
    }
}

struct AlertAnswer: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "answer", abstract: "Answer an alert.", usage: "lockstep alerts answer [<id>] <action>")
    @Argument(help: "The alert’s ID, or the beginning of one; not needed where one alert alone takes the action.")
    var id: String?
    @Argument(help: "One of the alert’s answers, as `lockstep alerts` lists them.") var action: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard id != nil else { throw ValidationError("Give an action, or an alert’s ID and an action.") }
    }

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let alerts = try await session.view(of: []).alertsInOrder
            // A word that stands alone is the action.
            let action = self.action ?? id ?? ""
            let alert = try Self.resolve(self.action == nil ? nil : id, action: action, in: alerts)
            let end = await session.endOfSkipping(alert: alert.owner, action: action)
            let answered = try await session.fleet.alerts.answer(alert: alert.id, owner: alert.owner, action: action)
            try context.output.change(
                .object(["alert": .string(answered.alert), "action": .string(answered.action)]),
                "Answered “\(DisplayText.sanitised(alert.title))” with \(answered.action).\(end.map { " \($0)" } ?? "")"
            )
        }
    }

    /// The alert that is meant: by its id or the beginning of one; without, the only one that takes the action.
    static func resolve(_ id: String?, action: String, in alerts: [WireAlert]) throws(Failure) -> WireAlert {
        let found = alerts.filter { id.map($0.id.hasPrefix) ?? $0.actions.contains(action) }
        guard let first = found.first else {
            if id == nil, let named = alerts.first(where: { $0.id.hasPrefix(action) }) {
                throw Failure(
                    .invalidArgument,
                    "Say how to answer “\(DisplayText.sanitised(named.title))”: \(named.actions.joined(separator: ", "))."
                )
            }
            throw Failure(
                .notFound,
                id.map { "There is no alert “\($0)”. `lockstep alerts` lists them." }
                    ?? "No alert can be answered with “\(action)”. `lockstep alerts` lists them.")
        }
        guard found.count == 1 else {
            throw Failure.ambiguous("\(found.count) alerts match.", found.map { ($0.id, $0.title) })
        }
        guard first.actions.contains(action) else {
            throw Failure(
                .invalidArgument,
                "“\(first.title)” cannot be answered with “\(action)”, but with \(first.actions.joined(separator: ", "))."
            )
        }
        return first
    }
}

extension Session {
    /// What is to be said of passing over what failed, asked before it is done: that nothing follows it; nil: something
    /// does, or the answer is another one.
    func endOfSkipping(alert owner: String, action: String) async -> String? {
        guard owner == ServiceName.playback.text, action == "skip" else { return nil }
        let (view, isCurrent) = await follow(until: Self.ownerLimit) { view in
            view.connection == .live && !view.isStale(.playback) && !view.isStale(.queue)
        }
        guard isCurrent, !view.hasFollower else { return nil }
        let queue = view.playingQueue
        return "Nothing follows it in \(queue.shownName). "
            + "Add something with `lockstep queue add\(QueueName.option(queue.name)) EPISODE`."
    }
}

/// What shells complete ids from. Not for people.
struct Candidates: LockstepCommand {
    enum Kind: String, ExpressibleByArgument, CaseIterable {
        case episodes
        case podcasts
        case entries
        case queues
        case bookmarks
        case alerts
    }

    static let configuration = CommandConfiguration(commandName: "candidates", shouldDisplay: false)
    @Argument var kind: Kind
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession(observing: kind == .episodes || kind == .podcasts ? nil : .all) { session in
            let ids: [String]
            switch kind {
            case .episodes: ids = try await session.persistence.episodes(WireEpisodesQuery()).episodes.map(\.id)
            case .podcasts: ids = try await session.persistence.allPodcasts().map(\.id)
            case .entries: ids = try await session.view(of: [.queue]).mainQueue?.entries.map(\.id) ?? []
            case .queues: ids = try await session.view(of: [.queue]).queues.keys.sorted()
            case .bookmarks: ids = try await session.view(of: [.playback]).allBookmarks.map(\.id)
            case .alerts: ids = try await session.view(of: []).alertsInOrder.map(\.id)
            }
            for id in ids { try context.output.line(id) }
        }
    }
}
