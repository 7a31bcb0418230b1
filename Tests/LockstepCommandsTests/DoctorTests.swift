import BusKit
import Foundation
import PodcastModel
import SupervisorControl
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

@testable import LockstepClient
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

    @Test func `a fresh home has no findings`() throws {
        try Self.withHome { check in
            #expect(check.folders().map(\.level) == [.ok])
            #expect(check.sockets().level == .ok)
            #expect(check.backups().level == .ok)
            #expect(check.clock().level == .ok)
            #expect(check.settings(Settings()).map(\.level) == [.ok])
        }
    }

    @Test func `a missing home is neither reported as a fault nor created`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/absent"
        let home = try Self.home(in: path)
        #expect(HomeCheck(home: home).findings().allSatisfy { $0.level != .fault })
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `a run folder that is open to others is reported with advice`() throws {
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

    @Test func `a home that can’t be created is one fault, which names the folder above it`() throws {
        let folder = try TemporaryFolder()
        var check = HomeCheck(home: try Self.home(in: folder.path + "/absent/home"))
        check.canAccess = { _, _ in false }
        let findings = check.folders()
        #expect(findings.map(\.level) == [.fault])
        #expect(findings.first?.message.contains("can’t be created: \(folder.path) isn’t writable") == true)
    }

    @Test func `a virtual file system is not reported as a full disk`() throws {
        let finding = HomeCheck(home: try Self.home(in: "/proc/absent")).disk()
        #expect(finding.level == .warning && finding.subject != Finding.fullDisk)
        #expect(finding.message.contains("virtual file system"))
    }

    @Test func `a home of another user is a warning and a fault if it is usable, otherwise one fault`() throws {
        try Self.withHome { check in
            var check = check
            check.userID += 1
            #expect(check.folders().map(\.level) == [.warning, .fault])
            #expect(check.folders().allSatisfy { $0.message.contains("belongs to another user") })
            #expect(check.folders().last?.message.contains(check.home.runDirectory) == true)
            check.canAccess = { _, _ in false }
            #expect(check.folders().map(\.level) == [.fault])
            #expect(check.folders().first?.message.contains("belongs to another user") == true)
        }
    }

    @Test(arguments: ["/proc", "/proc/below", "/dev/null", "FILE", "FILE/below", "LINK", "LINK/below"])
    func `up and doctor report the same about a home that can’t be used`(path: String) throws {
        let folder = try TemporaryFolder()
        try "x".write(toFile: folder.path + "/FILE", atomically: true, encoding: .utf8)
        try FileManager.default.createSymbolicLink(
            atPath: folder.path + "/LINK", withDestinationPath: folder.path + "/absent")
        let home = try Self.home(in: path.hasPrefix("/") ? path : folder.path + "/" + path)
        let fault = try #require(HomeCheck(home: home).folders().first)
        #expect(fault.level == .fault)
        let failure = #expect(throws: Failure.self) { try home.prepare() }
        #expect(failure?.message == "\(fault.message) \(fault.advice ?? "")")
        #expect(failure?.known == .badConfiguration)
        withExtendedLifetime(folder) {}
    }

    @Test func `a run folder that is a symbolic link is refused by up and doctor`() throws {
        try Self.withHome { check in
            let run = check.home.runDirectory
            try FileManager.default.moveItem(atPath: run, toPath: run + "-elsewhere")
            try FileManager.default.createSymbolicLink(atPath: run, withDestinationPath: run + "-elsewhere")
            #expect(check.folders().map(\.level) == [.fault])
            #expect(throws: Failure.self) { try check.home.prepare() }
        }
    }

    @Test(arguments: ["", "/below"]) func `a file instead of the home is one fault`(below: String) throws {
        let folder = try TemporaryFolder()
        let file = folder.path + "/file"
        try "x".write(toFile: file, atomically: true, encoding: .utf8)
        let findings = HomeCheck(home: try Self.home(in: file + below)).folders()
        #expect(findings.map(\.level) == [.fault])
        #expect(findings.first?.message.contains("\(file) is a file, not a folder.") == true)
    }

    @Test func `a fault that two checks find is reported once`() {
        func alerts(of owner: ServiceName) -> [Finding] {
            FleetCheck.alerts(
                [
                    AlertState(
                        .with {
                            ($0.id, $0.owner, $0.code) = ("a1", owner.text, "diskFull")
                            ($0.title, $0.severity) = ("The disk is full", .error)
                        })
                ].compactMap(\.self))
        }
        let disk = HomeCheck.disk(free: 0, at: "/x")
        let same = Finding.fault("fleet", "The path is too long.", do: "a")
        let findings = [disk, same, .ok("a", "b"), .ok("a", "b")] + alerts(of: .downloads) + [same]
        #expect(findings.withoutRepetitions == [disk, same, .ok("a", "b"), .ok("a", "b")])
        // A nearly full disk is a different finding than a full one.
        let scarce = [HomeCheck.disk(free: 200_000_000, at: "/x")] + alerts(of: .downloads)
        #expect(scarce.withoutRepetitions.count == 2)
        // If the folder can’t be opened, its socket can’t either.
        let folder = Finding.fault("folders", "/x isn’t writable", do: "a")
        #expect([folder, .fault("fleet", "/x/run can’t be opened", do: "b")].withoutRepetitions == [folder])
        // The supervisor’s alerts concern processes, which have findings of their own.
        #expect(alerts(of: .supervisor).isEmpty)
    }

    private static func service(_ name: ServiceName, _ state: String) throws -> ServiceReport {
        let text = #"{"name": "\#(name.text)", "state": "\#(state)", "restarts": 0}"#
        return try JSONDecoder().decode(ServiceReport.self, from: Data(text.utf8))
    }

    @Test func `services in the same state and alerts with the same title are all reported`() throws {
        let services = try [ServiceName.queue, .feeds].map { FleetCheck.finding(try Self.service($0, "failed")) }
        let alerts = FleetCheck.alerts(
            ["a1", "a2"].compactMap { id in
                AlertState(
                    .with {
                        ($0.id, $0.owner) = (id, "feeds")
                        $0.title = "A feed can’t be read"
                        $0.severity = .error
                    })
            })
        #expect((services + alerts).withoutRepetitions == services + alerts)
    }

    @Test(arguments: [("ready", true), ("late", true), ("hung", false), ("starting", false), ("failed", false)])
    func `doctor queries a service whose heartbeat is late`(state: String, serves: Bool) throws {
        #expect(try FleetCheck.serves(.bus, [Self.service(.queue, "ready"), Self.service(.bus, state)]) == serves)
    }

    @Test func `a warning about the home doesn’t suppress later faults`() throws {
        try Self.withHome { check in
            let manager = FileManager.default
            #expect(chmod(check.home.configurationDirectory, 0o777) == 0)
            try manager.removeItem(atPath: check.home.dataDirectory)
            try "x".write(toFile: check.home.dataDirectory, atomically: true, encoding: .utf8)
            #expect(check.folders().map(\.level) == [.warning, .fault])
        }
    }

    @Test(
        arguments: [
            ([], "The fleet is up."),
            (["One thing"], "The fleet is up. One thing. See `lockstep alerts`."),
            (["One thing", "Another"], "The fleet is up. One thing. Another. See `lockstep alerts`."),
        ] as [([String], String)])
    func `up mentions the alerts command once for several alerts`(alerts: [String], sentence: String) {
        #expect(Up.sentence(true, alerts) == sentence)
    }

    private static func header(pageSize: Int = 4_096, pages: Int = 10, countIsValid: Bool = true) -> [UInt8] {
        var header = Array("SQLite format 3".utf8) + [UInt8](repeating: 0, count: 85)
        header[16] = UInt8(pageSize >> 8 & 0xff)
        header[17] = UInt8(pageSize & 0xff)
        header[31] = UInt8(pages)
        header[27] = 7
        header[95] = countIsValid ? 7 : 6
        return header
    }

    @Test(
        arguments: [
            (header(), 40_960, false, nil),
            (header(), 40_959, false, "it has 40959 of 40960 bytes"),
            (header(), 4_096, true, nil),
            (header(countIsValid: false), 4_096, false, nil),
            (header(pageSize: 1, pages: 1), 65_536, false, nil),
            (header(pageSize: 1_000), 40_960, false, "its page size is 1000"),
            (Array(header().dropLast()), 99, false, "it doesn’t begin like a SQLite database"),
            ([UInt8](repeating: 1, count: 100), 40_960, false, "it doesn’t begin like a SQLite database"),
            ([], 0, false, "it is empty"),
        ] as [([UInt8], Int, Bool, String?)])
    func `a damaged database is recognised by its first bytes`(
        header: [UInt8], size: Int, hasLog: Bool, damage: String?
    ) {
        #expect(DatabaseFileCheck.damage(header: header, size: size, hasLog: hasLog) == damage)
    }

    @Test func `doctor gives advice for a damaged database, with the newest backup`() throws {
        try Self.withHome { check in
            let file = DatabaseFileCheck(home: check.home)
            #expect(file.finding().level == .ok)
            let local = TimeText.minute(milliseconds: 1_767_323_045_678)
            try "nonsense".write(toFile: check.home.database, atomically: true, encoding: .utf8)
            #expect(file.finding().level == .fault)
            #expect(file.finding().advice?.hasPrefix("There is no backup.") == true)
            let backup = check.home.backupDirectory + "/backup-20260102T030405678Z.db"
            #expect(FileManager.default.createFile(atPath: backup, contents: Data()))
            #expect(file.finding().advice?.contains("(\(local))") == true)
            try FileManager.default.removeItem(atPath: check.home.database)
            #expect(file.finding().level == .warning)
            let whole = Data(Self.header()) + Data(count: 40_860)
            #expect(FileManager.default.createFile(atPath: check.home.database, contents: whole))
            #expect(file.finding().level == .ok)
            #expect(FileManager.default.createFile(atPath: check.home.database + ".suspect", contents: Data()))
            #expect(file.finding().level == .warning)
        }
    }

    @Test func `each setting that can’t be used is a fault`() throws {
        var settings = Settings()
        settings.problems = ["a", "b"]
        let home = try Self.home(in: "/nowhere")
        #expect(HomeCheck(home: home).settings(settings).map(\.level) == [.fault, .fault])
    }

    @Test(
        arguments: [(10_000_000, .fault), (200_000_000, .warning), (5_000_000_000, .ok)] as [(UInt64, Finding.Level)])
    func `the severity of the disk finding increases as free space decreases`(free: UInt64, level: Finding.Level) {
        #expect(HomeCheck.disk(free: free, at: "/x").level == level)
    }

    @Test func `an old backup is a warning only if the database has changed since`() throws {
        try Self.withHome { check in
            let manager = FileManager.default
            let backup = check.home.backupDirectory + "/backup-20260101T000000000Z.db"
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
    func `a clock in the past or set back is reported`(
        now: Double, newest: Double?, level: Finding.Level
    ) {
        #expect(HomeCheck.clock(now: now, newestFile: newest).level == level)
    }

    @Test(
        arguments: [
            ((4, 2, 5), .warning), ((4, 3, 2), .warning), ((4, 3, 3), .ok), ((4, 3, 5), .ok),
            ((5, 0, 0), .ok),
        ] as [((Int, Int, Int), Finding.Level)])
    func `an old libzmq is reported as a warning`(version: (Int, Int, Int), level: Finding.Level) {
        #expect(LibraryCheck.messaging(version).level == level)
    }

    @Test func `the bytes that services write are reported by day once the fleet has run for an hour`() {
        func service(_ name: String, written: Int?, uptime: Double) -> ServiceReport {
            var report = ServiceReport(name: name, state: "ready", pid: 1)
            (report.written, report.uptime) = (written, uptime)
            return report
        }
        #expect(FleetCheck.written([service("bus", written: nil, uptime: 9)]) == nil)
        let young = [service("bus", written: 1_000_000, uptime: 600), service("downloads", written: 0, uptime: 600)]
        #expect(FleetCheck.written(young)?.message == "1.0 MB written in 10 min.")
        let old = [
            service("persistence", written: 2_000_000, uptime: 7_200),
            service("downloads", written: 5_000_000, uptime: 7_200),
        ]
        #expect(FleetCheck.written(old)?.message == "2.0 MB written in 2 h, 24.0 MB a day; 5.0 MB by downloads.")
    }

    @Test func `the libraries of this machine are found`() {
        #expect(Fleet.messagingVersion.major >= 4)
        #expect(LibraryCheck(environment: ["LOCKSTEP_AO": "null"]).sound().level == .ok)
        #expect(LibraryCheck(environment: [:]).player().level == .ok)
    }

    @Test func `alerts are findings of their severity`() throws {
        let alert = try #require(
            AlertState(
                .with {
                    ($0.id, $0.owner) = ("a1", "downloads")
                    ($0.title, $0.severity) = ("The disk is full", .error)
                }))
        #expect(FleetCheck.alerts([]).map(\.level) == [.ok])
        #expect(FleetCheck.alerts([alert]).map(\.level) == [.fault])
        #expect(FleetCheck.alerts([alert]).first?.advice?.contains("lockstep alerts answer a1") == true)
    }

    @Test(
        arguments: [
            ("episodeUnavailable", .warning), ("decoderFailed", .warning), ("downloadFailed", .warning),
            ("insufficientStorage", .fault), ("diskFull", .fault),
        ] as [(String, Finding.Level)])
    func `an alert about an unplayable episode is a warning, not a fault`(code: String, level: Finding.Level) throws {
        let alert = try #require(
            AlertState(
                .with {
                    ($0.id, $0.owner, $0.code) = ("a1", "playback", code)
                    ($0.title, $0.severity) = ("Something about an episode", .error)
                    $0.episode = "e1"
                }))
        #expect(FleetCheck.alerts([alert]).map(\.level) == [level])
    }
}
