public import ArgumentParser
import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The program `lockstep`: the root of its commands, and how it ends.
public struct Lockstep: AsyncParsableCommand {
    /// The commands.
    public static let configuration = CommandConfiguration(
        commandName: "lockstep",
        abstract: "A podcast player whose every screen shows the same.",
        discussion: "Start with `lockstep up --detach`, then `lockstep subscribe URL` and `lockstep play`.",
        version: "0.1.0",
        groupedSubcommands: [
            CommandGroup(
                name: "The fleet",
                subcommands: [
                    Up.self, Down.self, Processes.self, Logs.self, Restart.self, ResetFailed.self, Doctor.self,
                    BackUp.self,
                ]),
            CommandGroup(
                name: "The library",
                subcommands: [
                    Subscribe.self, Unsubscribe.self, Podcasts.self, Episodes.self, ShowEpisode.self, Why.self,
                    Mark.self, Refresh.self, FeedCommands.self, DownloadCommands.self, Downloads.self,
                ]),
            CommandGroup(
                name: "The player",
                subcommands: [
                    Play.self, Pause.self, Resume.self, Toggle.self, Stop.self, Next.self, Previous.self, Seek.self,
                    Skip.self, ChapterCommand.self, BookmarkCommands.self, SleepTimer.self, SetSpeed.self,
                    SetVolume.self, SetOutput.self, SetCommand.self, Status.self,
                ]),
            CommandGroup(name: "Up Next", subcommands: [QueueCommands.self, Queues.self]),
            CommandGroup(
                name: "Screens", subcommands: [Mini.self, Expanded.self, Watch.self, Alerts.self, Candidates.self]),
        ])

    /// For the parser.
    public init() {}

    /// Runs the command that the process was started with, and ends the process with its status.
    public static func runAndExit() async -> Never {
        signal(SIGPIPE, SIG_IGN)
        let status = await run(Array(CommandLine.arguments.dropFirst()))
        endProcess(status)
    }

    /// Runs a command line.
    ///
    /// - Returns: the status that the process ends with.
    static func run(_ arguments: [String]) async -> Int32 {
        let json = arguments.contains("--json")
        do {
            try requireCommand(arguments.first == "help" ? arguments.dropFirst().first : arguments.first)
            var command = try parseAsRoot(prepared(arguments))
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            return ExitStatus.success.rawValue
        } catch {
            return end(error, json: json)
        }
    }

    /// Names a command that there is not, rather than what follows it.
    private static func requireCommand(_ name: String?) throws {
        guard let name, !name.hasPrefix("-"), name != "help" else { return }
        let commands = configuration.groupedSubcommands.flatMap(\.subcommands) + configuration.subcommands
        guard !commands.contains(where: { $0._commandName == name || $0.configuration.aliases.contains(name) }) else {
            return
        }
        let names = commands.flatMap { command in
            command.configuration.shouldDisplay ? [command._commandName] + command.configuration.aliases : []
        }
        let advice = NearestWord.among(names, to: name).map { "Did you mean `lockstep \($0)`? " } ?? ""
        throw Failure(code: "usage", message: "There is no command “\(name)”. \(advice)`lockstep --help` lists them.")
    }

    /// Says what went wrong, and gives the status for it.
    private static func end(_ error: any Error, json: Bool) -> Int32 {
        switch error {
        case is Output.Closed: return ExitStatus.success.rawValue
        case var failure as Failure:
            // What was typed, not what `prepared` made of it.
            failure.message = failure.message.replacing("“−", with: "“-")
            Output.report(failure, json: json)
            return failure.code == "usage" ? ExitStatus.usage.rawValue : ExitStatus(failure).rawValue
        case let code as ExitCode: return code.rawValue
        default:
            let code = exitCode(for: error).rawValue
            let text = fullMessage(for: error)
            if code == 0 {
                try? Output.write(text + "\n", to: STDOUT_FILENO)
            } else if json {
                Output.report(Failure(code: "usage", message: message(for: error)), json: true)
            } else {
                try? Output.write(text + "\n", to: STDERR_FILENO)
            }
            return code
        }
    }

    /// The commands that take numbers below 0, or say why not.
    private static let signed: Set<String> = ["seek", "volume", "speed", "sleep", "set"]

    /// Makes `seek -15`, `volume -5` and `--at -15` arguments rather than options: their minus becomes the typographic one.
    static func prepared(_ arguments: [String]) -> [String] {
        let isSigned = arguments.first { !$0.hasPrefix("-") }.map(signed.contains) ?? false
        return zip([""] + arguments, arguments).map { before, argument in
            guard argument.hasPrefix("-"), isSigned || before == "--at", SeekExpression(argument) != nil else {
                return argument
            }
            return "−" + argument.dropFirst()
        }
    }
}

/// `exit` by another name: within a command it is the parser's.
private func endProcess(_ status: Int32) -> Never { exit(status) }
