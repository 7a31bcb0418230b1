import Testing

@testable import LockstepCommands

@Suite struct BackupTests {
    @Test(
        arguments: [
            ("20260102T030405678Z", 1_767_323_045_678), ("20260102T030405678", nil), ("2026-01-02T03:04Z", nil),
            ("2026010xT030405678Z", nil), ("", nil),
        ] as [(String, Int64?)])
    func `a backup’s name says when it was made`(name: String, time: Int64?) {
        #expect(BackupFolder.time(name[...]) == time)
    }

    @Test(arguments: [("/a/b-1.db", "/a/b-1.db"), ("/a b", "'/a b'"), ("/it's", #"'/it'\''s'"#), ("", "''")])
    func `a path is written so that a shell reads it as one word`(path: String, word: String) {
        #expect(ShellText.quoted(path) == word)
    }

    @Test func `the list of backups says how to go back to one`() {
        #expect(BackUp.lines([], in: "/d", database: "/d/x.sqlite") == ["There is no backup yet."])
        let snapshot = BackupFolder.File(
            path: "/d/snapshot-20260103T030405678Z.db", at: 1_767_409_445_000, bytes: 5, isSideSnapshot: true)
        let backup = BackupFolder.File(
            path: "/d/backup-20260102T030405678Z.db", at: 1_767_323_045_000, bytes: 5, isSideSnapshot: false)
        let lines = BackUp.lines([snapshot, backup], in: "/d", database: "/d/x y.sqlite")
        #expect(
            lines.suffix(5) == [
                "To go back to a backup, for example the newest:", "  lockstep down",
                "  cp /d/backup-20260102T030405678Z.db '/d/x y.sqlite'",
                "  rm -f '/d/x y.sqlite-wal' '/d/x y.sqlite-shm'",
                "  lockstep up --detach",
            ])
        #expect(lines.contains { $0.hasPrefix("A snapshot has") } && lines.contains("The files are in /d."))
        #expect(BackUp.lines([snapshot], in: "/d", database: "/d").last?.hasPrefix("A snapshot has") == true)
    }
}
