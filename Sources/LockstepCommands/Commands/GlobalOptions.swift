import ArgumentParser
import LockstepClient
import PodcastModel

struct GlobalOptions: ParsableArguments {
    @Flag(name: .long, help: "Print JSON (protocols/cli.md).") var json = false
    @Flag(name: .shortAndLong, help: "Print no confirmations and progress. Lists are printed.") var quiet = false
    @Flag(name: .long, help: "Print plain lines without bars, colours and moving positions. Also LOCKSTEP_PLAIN=1.")
    var plain = false

    @Option(
        name: .long, help: "The folder of the fleet’s data, settings and sockets. Also LOCKSTEP_HOME.",
        completion: .directory)
    var home: String?
}

protocol LockstepCommand: AsyncParsableCommand, Sendable {
    var options: GlobalOptions { get }
    /// Whether the command reports invalid settings itself; otherwise they are printed as warnings.
    static var reportsSettings: Bool { get }
    func perform(_ context: CommandContext) async throws
}

extension LockstepCommand {
    static var reportsSettings: Bool { false }

    func run() async throws {
        let context = try CommandContext(options)
        if !Self.reportsSettings { context.warnOfSettings() }
        try await perform(context)
    }
}

/// A command that only needs a running fleet.
protocol FleetCommand: LockstepCommand {
    /// The part of the state that the command reads; none by default.
    var observation: Observation { get }
    func perform(_ fleet: Fleet, _ output: Output) async throws
}

extension FleetCommand {
    var observation: Observation { .nothing }

    func perform(_ context: CommandContext) async throws {
        try await context.withFleet(observing: observation) { try await perform($0, context.output) }
    }
}

extension CompletionKind {
    static var episodes: CompletionKind { candidates("episodes") }
    static var podcasts: CompletionKind { candidates("podcasts") }
    static var entries: CompletionKind { candidates("entries") }
    static var queues: CompletionKind { candidates("queues") }
    static var playlists: CompletionKind { candidates("playlists") }
    static var bookmarks: CompletionKind { candidates("bookmarks") }

    /// Completes IDs or names that the fleet provides.
    private static func candidates(_ kind: String) -> CompletionKind {
        .shellCommand("lockstep candidates \(kind) 2>/dev/null")
    }
}
