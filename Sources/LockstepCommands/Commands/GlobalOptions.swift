import ArgumentParser
import LockstepClient
import PodcastModel

/// The options that every command takes.
struct GlobalOptions: ParsableArguments {
    @Flag(name: .long, help: "Print JSON (protocols/cli.md).")
    var json = false

    @Flag(name: .shortAndLong, help: "Print nothing on success.")
    var quiet = false

    @Flag(name: .long, help: "Plain lines: no bars, no colour, no moving positions. Also LOCKSTEP_PLAIN=1.")
    var plain = false

    @Option(name: .long, help: "The folder that holds everything. Also LOCKSTEP_HOME.", completion: .directory)
    var home: String?
}

/// A command of `lockstep`: it parses its arguments, asks a service and prints the answer.
protocol LockstepCommand: AsyncParsableCommand, Sendable {
    /// The options that every command takes.
    var options: GlobalOptions { get }
    /// Whether the command reports problems of the settings itself; else they are printed as warnings, and the defaults hold.
    static var judgesSettings: Bool { get }
    func perform(_ context: CommandContext) async throws
}

extension LockstepCommand {
    static var judgesSettings: Bool { false }

    /// Finds the home, reads the settings, and performs the command.
    func run() async throws {
        let context = try CommandContext(options)
        if !Self.judgesSettings { context.warnOfSettings() }
        try await perform(context)
    }
}

extension CompletionKind {
    /// The IDs of the newest episodes, asked of the fleet when the shell wants them.
    static var episodes: CompletionKind { .shellCommand("lockstep candidates episodes 2>/dev/null") }
    /// The IDs of the podcasts.
    static var podcasts: CompletionKind { .shellCommand("lockstep candidates podcasts 2>/dev/null") }
    /// The IDs of Up Next’s entries.
    static var entries: CompletionKind { .shellCommand("lockstep candidates entries 2>/dev/null") }
    /// The names of the queues.
    static var queues: CompletionKind { .shellCommand("lockstep candidates queues 2>/dev/null") }
    /// The IDs of the bookmarks.
    static var bookmarks: CompletionKind { .shellCommand("lockstep candidates bookmarks 2>/dev/null") }
}
