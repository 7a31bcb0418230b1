package import ArgumentParser
import LibC
import LockstepClient
import PodcastModel

/// The program `lockstep`: its root command and its exit.
package struct Lockstep: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "lockstep",
        abstract: "A podcast player whose screens always agree.",
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
                    Subscribe.self, Unsubscribe.self, ImportPodcasts.self, ExportPodcasts.self, Podcasts.self,
                    PodcastCommands.self, TagCommands.self,
                    Episodes.self, Search.self, InboxCommands.self,
                    ShowEpisode.self, Why.self, HistoryCommand.self, StatsCommand.self, Mark.self, Refresh.self,
                    FeedCommands.self, DownloadCommands.self, Downloads.self,
                ]),
            CommandGroup(
                name: "The player",
                subcommands: [
                    Play.self, Pause.self, Resume.self, Toggle.self, Stop.self, Next.self, Previous.self, Seek.self,
                    Skip.self, ChapterCommand.self, BookmarkCommands.self, SleepTimer.self, SetSpeed.self,
                    SetVolume.self, SetOutput.self, SetCommand.self, Status.self,
                ]),
            CommandGroup(
                name: "Up Next and playlists",
                subcommands: [QueueCommands.self, Queues.self, PlaylistCommands.self, FavouriteCommands.self]),
            CommandGroup(
                name: "Screens", subcommands: [Mini.self, Expanded.self, Watch.self, Alerts.self, Candidates.self]),
        ])

    package init() {}

    /// Runs the command of the process’s arguments, and exits with its status.
    package static func runAndExit() async -> Never {
        signal(SIGPIPE, SIG_IGN)
        let status = await run(Array(CommandLine.arguments.dropFirst()))
        endProcess(status)
    }

    /// Runs a command line, and returns its exit status.
    static func run(_ arguments: [String]) async -> Int32 {
        let json = arguments.contains("--json")
        let advice = AdvisedCommands(arguments: arguments)
        do {
            var command = try command(arguments) { rows throws(Failure) in
                try ListedEpisodes(try advice.findHome()).episodes(rows: rows)
            }
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            return ExitStatus.success.rawValue
        } catch {
            return end(error, arguments, json: json, advice)
        }
    }

    /// The command in a command line, with its arguments.
    ///
    /// - Parameter listed: returns the episodes in rows of the last printed list.
    static func command(
        _ arguments: [String],
        listed: (ClosedRange<Int>) throws(Failure) -> [EpisodeID] = { rows throws(Failure) in
            throw Failure(.notFound, "There is no list with a row \(rows.lowerBound).")
        }
    ) throws -> any ParsableCommand {
        let words = try CommandLineWords(arguments, listed: listed).words
        let command = try parseAsRoot(words)
        if type(of: command).configuration.commandName == "help", let word = CommandLineWords.mistakenHelp(words) {
            throw Failure(code: "usage", message: "“\(word)” isn’t an option. \(CommandLineWords.dashAdvice)")
        }
        return command
    }

    /// Reports an error, and returns the exit status for it.
    private static func end(
        _ error: any Error, _ arguments: [String], json: Bool, _ advice: AdvisedCommands
    ) -> Int32 {
        switch error {
        case is Output.Closed: return ExitStatus.success.rawValue
        case var failure as Failure:
            // The user typed a hyphen that `CommandLineWords` has replaced by a minus sign.
            failure.message = advice.completed(cut(arguments, in: failure.message.replacing("“−", with: "“-")))
            Output.report(failure, json: json)
            return failure.code == "usage" ? ExitStatus.usage.rawValue : ExitStatus(failure).rawValue
        case let code as ExitCode: return code.rawValue
        default:
            // The error is help, the version, or the parser’s own.
            let code = exitCode(for: error).rawValue
            guard code != 0 else {
                let isScript = arguments.contains { $0.hasPrefix("--generate-completion-script") }
                let text = fullMessage(for: error)
                try? Output.write((isScript ? Completion.quotedOnce(text) : text) + "\n", to: STDOUT_FILENO)
                return code
            }
            if json {
                let text = cut(arguments, in: ParserWords.reworded(message(for: error)))
                Output.report(Failure(code: "usage", message: text), json: true)
            } else {
                let text = cut(arguments, in: ParserWords.reworded(fullMessage(for: error)))
                let isError = text.hasPrefix("Error: ")
                try? Output.write((isError ? "lockstep: \(text.dropFirst(7))" : text) + "\n", to: STDERR_FILENO)
            }
            return code
        }
    }

    /// The number of characters of an argument that messages repeat.
    private static let argumentLimit = 100

    /// Truncates long arguments in a message.
    static func cut(_ arguments: [String], in message: String) -> String {
        arguments.filter { $0.count > argumentLimit }.reduce(message) { text, argument in
            text.replacing(argument, with: argument.prefix(argumentLimit - 1) + "…")
        }
    }
}

/// Exits the process; within a command, `exit` is the parser’s.
private func endProcess(_ status: Int32) -> Never { exit(status) }
