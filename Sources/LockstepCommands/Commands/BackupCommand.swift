import ArgumentParser
import FleetHome
import LockstepClient
import PodcastModel

struct BackUp: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Back up the database now, or list the backups.",
        discussion: """
            When the fleet starts, a damaged database is replaced by the newest good backup. `lockstep backup --list` prints \
            the commands that restore a backup by hand: stop the fleet, move the database’s log and then the database to \
            another folder, copy the backup to the database’s path, and start the fleet. `--list` also works without a \
            running fleet.
            """)
    @Flag(help: "List the backups, the newest first, and the commands that restore one.") var list = false
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        guard !list else { return try Self.list(context) }
        try await context.withFleet { fleet in
            let done = try await fleet.library.backUp()
            try context.output.change(
                .object(["path": .string(done.path), "bytes": .unsigned(done.bytes)]),
                "Backed up to \(done.path), \(NumberText.bytes(done.bytes)).")
        }
    }

    private static func list(_ context: CommandContext) throws {
        let copies = DatabaseCopy.all(in: context.home.backupDirectory)
        let json = copies.map { copy in
            JSONValue.object([
                "path": .string(copy.path), "at": .moment(milliseconds: copy.at.milliseconds),
                "bytes": .unsigned(copy.bytes), "sideSnapshot": .bool(copy.kind == .snapshot),
            ])
        }
        try context.output.value(.array(json), lines: lines(copies, in: context.home))
    }

    static func lines(_ copies: [DatabaseCopy], in home: LockstepHome) -> [String] {
        guard !copies.isEmpty else { return ["There is no backup yet."] }
        let rows = copies.map {
            [TimeText.minute(milliseconds: $0.at.milliseconds), NumberText.bytes($0.bytes), $0.name]
        }
        var lines =
            TextTable(["when", .right("size"), "file"], rows).printed() + [
                "The files are in \(home.backupDirectory)."
            ]
        if copies.contains(where: { $0.kind == .snapshot }) {
            lines.append("A snapshot has subscriptions, queues and positions only, and can’t be restored by hand.")
        }
        guard let newest = copies.first(where: { $0.kind == .backup }) else { return lines }
        let steps = steps(restoring: newest.path, in: home).joined(separator: " &&\n  ")
        return lines + ["To restore a backup, for example the newest:"]
            + "  \(steps)".split(separator: "\n").map(String.init)
    }

    /// Commands that replace the database by a backup. Each runs only if the previous one succeeded. The old files are
    /// moved to a new folder, so that repeating the commands overwrites nothing. The log is moved first, because SQLite
    /// would apply it to the other database.
    private static func steps(restoring backup: String, in home: LockstepHome) -> [String] {
        // The user may run these commands in a shell with another home, or with none.
        let option = AdvisedCommands(home: home.environment["LOCKSTEP_HOME"]).option
        let folder = "aside=$(mktemp -d \(ShellText.quoted(home.database + ".before-restore-XXXXXX")))"
        let moves = (DatabaseCopy.companions + [""]).map { suffix in
            let old = ShellText.quoted(home.database + suffix)
            return "{ [ ! -e \(old) ] || mv \(old) \"$aside\"; }"
        }
        return ["lockstep down\(option)", folder] + moves
            + [
                "cp \(ShellText.quoted(backup)) \(ShellText.quoted(home.database))",
                "lockstep up --detach\(option)",
            ]
    }
}

enum ShellText {
    /// Quotes a word for a shell.
    static func quoted(_ word: String) -> String {
        let plain = word.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "/._-+,:@%".contains($0)) }
        guard !plain || word.isEmpty else { return word }
        return "'" + word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
