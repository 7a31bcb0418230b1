import BusKit
import Foundation
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import LockstepCommands

@Suite struct DoctorTests {
    private static func withHome(_ body: (HomeCheck) throws -> Void) throws {
        let folder = try TemporaryFolder()
        let home = try home(in: folder.path)
        try home.prepare()
        try body(HomeCheck(home: home))
        withExtendedLifetime(folder) {}
    }

    private static func home(in path: String) throws -> LockstepHome {
        try LockstepHome(
            environment: ["LOCKSTEP_HOME": path], userID: geteuid(), workingDirectory: "/",
            directoryExists: { _ in true })
    }

    @Test func `a fresh home is in order`() throws {
        try Self.withHome { check in
            #expect(check.folders().map(\.level) == [.ok])
            #expect(check.sockets().level == .ok)
            #expect(check.backups().level == .ok)
            #expect(check.clock().level == .ok)
            #expect(check.settings(Settings()).map(\.level) == [.ok])
        }
    }

    @Test func `a home that is not there yet is no fault, and is not made`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/absent"
        let home = try Self.home(in: path)
        #expect(HomeCheck(home: home).findings().allSatisfy { $0.level != .fault })
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `a run folder that is open to others is named with what to do`() throws {
        try Self.withHome { check in
            #expect(chmod(check.home.runDirectory, 0o755) == 0)
            let findings = check.folders()
            #expect(findings.map(\.level) == [.warning])
            #expect(findings.first?.advice == "chmod 700 \(check.home.runDirectory)")
        }
    }

    @Test func `a file where a folder should be is a fault`() throws {
        try Self.withHome { check in
            try FileManager.default.removeItem(atPath: check.home.dataDirectory)
            try "x".write(toFile: check.home.dataDirectory, atomically: true, encoding: .utf8)
            #expect(check.folders().map(\.level) == [.fault])
        }
    }

    @Test func `settings that cannot be used are faults, each by itself`() throws {
        var settings = Settings()
        settings.problems = ["a", "b"]
        let home = try Self.home(in: "/nowhere")
        #expect(HomeCheck(home: home).settings(settings).map(\.level) == [.fault, .fault])
    }

    @Test(
        arguments: [(10_000_000, .fault), (200_000_000, .warning), (5_000_000_000, .ok)] as [(UInt64, Finding.Level)])
    func `the less is free the worse it is`(free: UInt64, level: Finding.Level) {
        #expect(HomeCheck.disk(free: free, at: "/x").level == level)
    }

    @Test func `an old backup is worth a warning only if the database has changed since`() throws {
        try Self.withHome { check in
            let manager = FileManager.default
            let backup = check.home.backupDirectory + "/backup-20260101T000000Z.db"
            for path in [check.home.database, backup] { #expect(manager.createFile(atPath: path, contents: Data())) }
            var later = check
            later.now += 5 * 86_400
            #expect(later.backups().level == .ok)
            let changed = Date(timeIntervalSince1970: later.now)
            try manager.setAttributes([.modificationDate: changed], ofItemAtPath: check.home.database)
            #expect(later.backups().level == .warning)
        }
    }

    @Test(
        arguments: [
            (0, nil, .fault), (1_800_000_000, nil, .ok), (1_800_000_000, 1_799_999_999, .ok),
            (1_800_000_000, 1_800_003_600, .warning),
        ] as [(Double, Double?, Finding.Level)])
    func `a clock that stands in the past or was set back is noticed`(
        now: Double, newest: Double?, level: Finding.Level
    ) {
        #expect(HomeCheck.clock(now: now, newestFile: newest).level == level)
    }

    @Test(
        arguments: [
            (.init(4, 2, 5), .warning), (.init(4, 3, 2), .warning), (.init(4, 3, 3), .ok), (.init(4, 3, 5), .ok),
            (.init(5, 0, 0), .ok),
        ] as [(BusLibrary.Version, Finding.Level)])
    func `an old libzmq is worth a warning`(version: BusLibrary.Version, level: Finding.Level) {
        #expect(LibraryCheck.messaging(version).level == level)
    }

    @Test func `this machine's libraries can be asked`() {
        #expect(BusLibrary.version.major >= 4)
        #expect(LibraryCheck(environment: ["LOCKSTEP_AO": "null"]).sound().level == .ok)
        #expect(LibraryCheck(environment: [:]).player().level == .ok)
    }

    @Test func `alerts are findings of their severity`() {
        var alert = WireAlert()
        alert.id = "a1"
        alert.title = "The disk is full"
        alert.severity = .error
        #expect(FleetCheck.alerts([]).map(\.level) == [.ok])
        #expect(FleetCheck.alerts([alert]).map(\.level) == [.fault])
        #expect(FleetCheck.alerts([alert]).first?.advice?.contains("lockstep alerts answer a1") == true)
    }
}
