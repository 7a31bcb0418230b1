import BusKit
import Foundation
import LockstepClient
import PodcastModel
import TestSupport
import Testing

@testable import LockstepCommands

@Suite struct BackupTests {
    @Test(arguments: [("/a/b-1.db", "/a/b-1.db"), ("/a b", "'/a b'"), ("/it's", #"'/it'\''s'"#), ("", "''")])
    func `a path is quoted for a shell`(path: String, word: String) {
        #expect(ShellText.quoted(path) == word)
    }

    private static func home(_ environment: [String: String]) throws -> LockstepHome {
        try LockstepHome(environment: environment, userID: 1, workingDirectory: "/") { _ in true }
    }

    private static func copy(_ kind: DatabaseCopy.Kind, in home: LockstepHome) -> DatabaseCopy {
        let at = Timestamp(milliseconds: 1_767_323_045_678)
        return DatabaseCopy(
            kind: kind, path: DatabaseCopy.path(kind, at: at, in: home.backupDirectory), at: at, bytes: 5)
    }

    @Test func `the list of backups shows how to restore one`() throws {
        let home = try Self.home(["HOME": "/nowhere/me"])
        #expect(BackUp.lines([], in: home) == ["There is no backup yet."])
        let lines = BackUp.lines([Self.copy(.snapshot, in: home), Self.copy(.backup, in: home)], in: home)
        let database = "/nowhere/me/.local/share/lockstep/lockstep.sqlite"
        func move(_ suffix: String) -> String {
            "  { [ ! -e \(database + suffix) ] || mv \(database + suffix) \"$aside\"; } &&"
        }
        #expect(
            lines.suffix(9) == [
                "To restore a backup, for example the newest:", "  lockstep down &&",
                "  aside=$(mktemp -d \(database).before-restore-XXXXXX) &&",
                move("-wal"), move("-shm"), move("-journal"), move(""),
                "  cp \(home.backupDirectory)/backup-20260102T030405678Z.db \(database) &&", "  lockstep up --detach",
            ])
        #expect(lines.contains { $0.hasPrefix("A snapshot has") })
        #expect(lines.contains("The files are in \(home.backupDirectory)."))
        #expect(BackUp.lines([Self.copy(.snapshot, in: home)], in: home).last?.hasPrefix("A snapshot has") == true)
    }

    /// Runs the steps in a shell, with `lockstep` as `command`.
    private static func run(_ lines: [String], lockstep command: String) throws -> Int32 {
        let start = try #require(lines.firstIndex { $0.hasPrefix("To restore a backup") })
        let script = "lockstep() { \(command); }\n" + lines[(start + 1)...].joined(separator: "\n")
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/bin/sh")
        shell.arguments = ["-c", script]
        try shell.run()
        shell.waitUntilExit()
        return shell.terminationStatus
    }

    @Test func `the steps to restore a backup name the listed fleet and overwrite nothing`() throws {
        let folder = try TemporaryFolder()
        let home = try Self.home(["LOCKSTEP_HOME": folder.path + "/a home"])
        let backup = Self.copy(.backup, in: home)
        try FileManager.default.createDirectory(atPath: home.backupDirectory, withIntermediateDirectories: true)
        let record = folder.path + "/record"
        func write(_ path: String, _ text: String) throws {
            try text.write(toFile: path, atomically: true, encoding: .utf8)
        }
        func read(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }
        try write(backup.path, "backup")
        let lines = BackUp.lines([backup], in: home)
        for time in ["first", "second"] {
            try write(home.database, time)
            try write(home.database + "-wal", time + " log")
            // A fleet that doesn’t stop keeps its files.
            #expect(try Self.run(lines, lockstep: "false") != 0)
            #expect(read(home.database) == time && read(home.database + "-wal") == time + " log")
            #expect(try Self.run(lines, lockstep: "echo \"$@\" >> '\(record)'") == 0)
            #expect(read(home.database) == "backup" && read(home.database + "-wal") == nil)
        }
        // The same commands, run twice, keep both databases.
        let kept = try FileManager.default.contentsOfDirectory(atPath: home.dataDirectory)
            .filter { $0.contains(".before-restore-") }.map { "\(home.dataDirectory)/\($0)/lockstep.sqlite" }
        #expect(Set(kept.compactMap(read)) == ["first", "second"])
        #expect(Set(kept.compactMap { read($0 + "-wal") }) == ["first log", "second log"])
        let option = "--home \(folder.path)/a home\n"
        #expect(read(record) == String(repeating: "down \(option)up --detach \(option)", count: 2))
    }
}
