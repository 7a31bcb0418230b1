import ArgumentParser
import LockstepClient
import PodcastModel

/// What every command takes.
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

/// A command: parse, ask, print.
protocol LockstepCommand: AsyncParsableCommand {
    /// What every command takes.
    var options: GlobalOptions { get }
    /// Whether it says itself what is wrong with the settings; else that is a warning, and the defaults hold.
    static var judgesSettings: Bool { get }
    func perform(_ context: CommandContext) async throws
}

extension LockstepCommand {
    static var judgesSettings: Bool { false }

    /// Finds the home, reads the settings, and does it.
    func run() async throws {
        let context = try CommandContext(options)
        if !Self.judgesSettings { context.warnOfSettings() }
        try await perform(context)
    }
}

extension CompletionKind {
    /// The ids of the newest episodes, asked of the fleet when the shell wants them.
    static var episodes: CompletionKind { .shellCommand("lockstep candidates episodes 2>/dev/null") }
    /// The ids of the podcasts.
    static var podcasts: CompletionKind { .shellCommand("lockstep candidates podcasts 2>/dev/null") }
    /// The ids of Up Next's entries.
    static var entries: CompletionKind { .shellCommand("lockstep candidates entries 2>/dev/null") }
    /// The names of the queues.
    static var queues: CompletionKind { .shellCommand("lockstep candidates queues 2>/dev/null") }
    /// The ids of the bookmarks.
    static var bookmarks: CompletionKind { .shellCommand("lockstep candidates bookmarks 2>/dev/null") }
}
