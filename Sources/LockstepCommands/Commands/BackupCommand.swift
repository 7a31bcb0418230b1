import ArgumentParser
import BusKit
import PodcastModel
import WireMessages

struct BackUp: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Back up the database now, or list the backups.",
        discussion: """
            A damaged database is replaced by the newest good backup when the fleet starts. To go back to a backup yourself, \
            stop the fleet, copy the backup over the database, remove the database’s log, and start the fleet again; \
            `lockstep backup --list` prints these commands with the paths. It works while the fleet is down too.
            """)
    @Flag(help: "List the backups, the newest first, and how to restore one.") var list = false
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        guard !list else { return try Self.list(context) }
        try await context.withSession(observing: nil) { session in
            let done = try await session.persistence.backup()
            try context.output.change(
                .object(["path": .string(done.path), "bytes": .unsigned(done.bytes)]),
                "Backed up to \(done.path), \(NumberText.bytes(done.bytes)).")
        }
    }

    private static func list(_ context: CommandContext) throws {
        let files = BackupFolder(context.home).files
        let json = files.map { file in
            JSONValue.object([
                "path": .string(file.path), "at": .moment(milliseconds: file.at), "bytes": .unsigned(file.bytes),
                "sideSnapshot": .bool(file.isSideSnapshot),
            ])
        }
        try context.output.value(
            .array(json), lines: lines(files, in: context.home.backupDirectory, database: context.home.database))
    }

    static func lines(_ files: [BackupFolder.File], in folder: String, database: String) -> [String] {
        guard !files.isEmpty else { return ["There is no backup yet."] }
        var table = TextTable([
            .init(heading: "when (UTC)"), .init(heading: "size", right: true), .init(heading: "file"),
        ])
        for file in files {
            table.add([TimeText.minute(milliseconds: file.at), NumberText.bytes(file.bytes), file.name])
        }
        var lines = table.lines(width: Output.terminalWidth) + ["The files are in \(folder)."]
        if files.contains(where: \.isSideSnapshot) {
            lines.append("A snapshot has subscriptions, queues and positions only, and can’t be restored by hand.")
        }
        guard let newest = files.first(where: { !$0.isSideSnapshot }) else { return lines }
        return lines + [
            "To go back to a backup, for example the newest:", "  lockstep down",
            "  cp \(ShellText.quoted(newest.path)) \(ShellText.quoted(database))",
            "  rm -f \(ShellText.quoted(database + "-wal")) \(ShellText.quoted(database + "-shm"))",
            "  lockstep up --detach",
        ]
    }
}

/// Words for a shell.
enum ShellText {
    /// A word that a shell reads as it is.
    static func quoted(_ word: String) -> String {
        let plain = word.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "/._-+,:@%".utf8.contains(byte)
            }
        }
        guard !plain || word.isEmpty else { return word }
        return "'" + word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
