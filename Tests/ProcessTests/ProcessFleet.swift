import BusKit
import CProcess
import Foundation
import LockstepClient
import Logging
import NIOConcurrencyHelpers
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// A real fleet in its own folder, with the executables that were built with the tests.
final class ProcessFleet: Sendable {
    private let folder: TemporaryFolder
    /// The fleet’s `LOCKSTEP_HOME`, removed with the fleet.
    var root: String { folder.path }
    let home: LockstepHome

    /// The folder of the executables, which is that of the tests.
    static let binaries: String = {
        let executable = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return (executable as NSString).deletingLastPathComponent
    }()

    init() throws {
        folder = try TemporaryFolder()
        home = try LockstepHome(
            environment: ["LOCKSTEP_HOME": folder.path], userID: 0, workingDirectory: "/",
            directoryExists: { _ in true })
    }

    /// Runs `body` with a fleet that is up, and removes it afterwards.
    static func with<Result: Sendable>(
        podcast episodes: Int = 0, isUp: Bool = true, _ body: @Sendable (ProcessFleet) async throws -> Result
    ) async throws -> Result {
        let fleet = try ProcessFleet()
        do {
            if isUp { try await fleet.up() }
            if episodes > 0 {
                let feed = try fleet.writeFeed(episodes: episodes)
                try await fleet.succeed("subscribe", feed)
            }
            let result = try await body(fleet)
            await fleet.end()
            return result
        } catch {
            await fleet.reportAndEnd()
            throw error
        }
    }

    // MARK: Commands

    struct Outcome: Sendable {
        var status: Int32
        var output: String
        var errors: String
    }

    /// The reason why a fleet isn’t in the state that a test needs.
    struct Unexpected: Error, CustomStringConvertible {
        var description: String
    }

    /// Runs `lockstep` with the arguments in this fleet’s home, and kills it after a minute.
    func lockstep(_ arguments: [String], environment extra: [String: String] = [:]) async throws -> Outcome {
        try await run(Self.binaries + "/lockstep", arguments, environment: extra)
    }

    /// Runs a program with this fleet’s environment, changed by `extra`, whose empty values remove variables. It is
    /// killed after a minute.
    func run(
        _ program: String, _ arguments: [String], environment extra: [String: String] = [:]
    ) async throws -> Outcome {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = environment.merging(extra) { _, new in new }.filter { !$0.value.isEmpty }
        let files = [root + "/out-\(UUID().uuidString)", root + "/err-\(UUID().uuidString)"]
        for file in files { _ = FileManager.default.createFile(atPath: file, contents: nil) }
        defer { for file in files { try? FileManager.default.removeItem(atPath: file) } }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle(forWritingAtPath: files[0])
        process.standardError = FileHandle(forWritingAtPath: files[1])
        let ended = AsyncStream<Void>.makeStream()
        process.terminationHandler = { _ in ended.continuation.finish() }
        try process.run()
        let pid = process.processIdentifier
        let limit = Task {
            try await ContinuousClock().sleep(for: .seconds(60))
            kill(pid, SIGKILL)
        }
        for await _ in ended.stream {}
        limit.cancel()
        return Outcome(
            status: process.terminationStatus, output: (try? String(contentsOfFile: files[0], encoding: .utf8)) ?? "",
            errors: (try? String(contentsOfFile: files[1], encoding: .utf8)) ?? "")
    }

    /// Runs `lockstep`, expects that it succeeds, and returns its output.
    @discardableResult
    func succeed(_ arguments: String...) async throws -> String { try await succeed(arguments) }

    /// Runs `lockstep --json`, expects that it succeeds, and decodes its output.
    func decode<Value: Decodable>(_ type: Value.Type, from arguments: String...) async throws -> Value {
        try JSONDecoder().decode(type, from: Data(try await succeed(arguments + ["--json"]).utf8))
    }

    @discardableResult func succeed(_ arguments: [String]) async throws -> String {
        let outcome = try await lockstep(arguments)
        guard outcome.status == 0 else {
            throw Unexpected(
                description:
                    "lockstep \(arguments.joined(separator: " ")) ended with \(outcome.status): \(outcome.errors)")
        }
        return outcome.output
    }

    var environment: [String: String] {
        var environment = ProcessInfo.processInfo.environment
        environment["LOCKSTEP_HOME"] = root
        environment["LOCKSTEP_AO"] = "null"
        environment["LOCKSTEP_HANG_INJECTION"] = "1"
        for name in ["XDG_RUNTIME_DIR", "NOTIFY_SOCKET", "LOCKSTEP_SUPERVISOR_PID"] { environment[name] = nil }
        return environment
    }

    func up() async throws {
        try await succeed("up", "--detach")
    }

    /// The services in the output of `ps`, by name.
    func services() async throws -> [String: ServiceLine] {
        let lines = try await decode([ServiceLine].self, from: "ps")
        return Dictionary(lines.map { ($0.name, $0) }) { first, _ in first }
    }

    /// The output of `status`.
    func status() async throws -> StatusLine { try await decode(StatusLine.self, from: "status") }

    struct StatusLine: Decodable, Sendable {
        struct Episode: Decodable, Sendable { var id: String }
        var state: String
        var position: Double
        var episode: Episode?
    }

    struct ServiceLine: Decodable, Sendable {
        var name: String
        var state: String
        var pid: Int32?
        var restarts: Int
    }

    /// The number of each service’s crashes in the supervisor’s log. Requested ends and those after missed heartbeats
    /// don’t count: on a busy machine any service may miss heartbeats.
    func crashes() async throws -> [String: Int] {
        let restarts = try await services().values.reduce(0) { $0 + $1.restarts }
        // The log is written with a delay.
        let deadline = ContinuousClock.now + .seconds(30)
        var ends = try loggedEnds()
        while ends.count < restarts, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(20))
            ends = try loggedEnds()
        }
        #expect(ends.count >= restarts, "\(restarts) restarts, and the log has \(ends)")
        let crashes = ends.filter { _, words in
            if words.contains("because it has ") { return false }
            return !["killed by SIGKILL", "killed by SIGTERM"].contains(where: words.hasPrefix)
                || words.contains("because it crashed")
        }
        return Dictionary(crashes.map { ($0.name, 1) }, uniquingKeysWith: +)
    }

    /// The ends of processes that didn’t exit normally, as the supervisor logs them.
    private func loggedEnds() throws -> [(name: String, words: Substring)] {
        let log = try String(contentsOfFile: home.logDirectory + "/supervisor.log", encoding: .utf8)
        return log.split(separator: "\n").flatMap { line in
            Self.all.compactMap { name in
                guard let start = line.firstRange(of: "\(name) (process ")?.upperBound else { return nil }
                let words = line[start...].drop { $0 != ")" }.dropFirst(2)
                return words.hasPrefix("killed by ") || words.hasPrefix("exited with ") ? (name, words) : nil
            }
        }
    }

    // MARK: Faults

    /// The process that holds the service’s lock.
    func pid(_ service: String) -> Int32? { FileLock.holder(of: lock(service)) }

    private func lock(_ name: String) -> String {
        name == "supervisor" ? home.fleetLock : home.runFile("\(name).lock")
    }

    /// Sends a signal to a service’s process and returns the process ID.
    @discardableResult
    func signal(_ service: String, _ signal: Int32) -> Int32? {
        guard let pid = pid(service), pid > 1 else { return nil }
        return kill(pid, signal) == 0 ? pid : nil
    }

    /// Stops a service’s work loop while its other threads run on.
    func hang(_ service: String) -> Int32? {
        guard let pid = pid(service), pid > 1, let loop = ProcessTable.thread("bus", of: pid) else { return nil }
        return lockstep_signal_thread(pid, loop, SIGSYS) == 0 ? pid : nil
    }

    /// The running processes of this fleet, including those of other starters.
    var processes: [Int32] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { Int32($0) }.filter { pid in
            let program = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(pid)/exe")) ?? ""
            guard program.hasPrefix(Self.binaries + "/lockstep-"),
                let data = FileManager.default.contents(atPath: "/proc/\(pid)/environ")
            else { return false }
            return String(decoding: data, as: UTF8.self).split(separator: "\0").contains("LOCKSTEP_HOME=\(root)")
        }
    }

    /// Kills every process of the fleet at once, and waits until they have ended.
    func killEverything() async throws {
        let pids = (["supervisor"] + Self.all).compactMap { pid($0) }
        #expect(pids.count == Self.all.count + 1)
        for pid in pids { kill(pid, SIGKILL) }
        try await ProcessTable.untilGone(pids)
    }

    static let all = ["bus", "persistence", "playback", "queue", "feeds", "downloads"]

    // MARK: Ending

    private func end() async {
        _ = try? await lockstep(["down"])
        // Whatever still runs would write to the folder while it is removed.
        for pid in processes { kill(pid, SIGKILL) }
        try? await ProcessTable.untilNone { processes }
    }

    /// Prints the ends of the logs.
    private func reportAndEnd() async {
        for file in (try? FileManager.default.contentsOfDirectory(atPath: home.logDirectory).sorted()) ?? [] {
            let log = (try? String(contentsOfFile: home.logDirectory + "/" + file, encoding: .utf8)) ?? ""
            print("--- \(file)\n" + log.split(separator: "\n").suffix(25).joined(separator: "\n"))
        }
        await end()
    }

    // MARK: Feed

    /// Writes a feed of `episodes` episodes, all with the same ten minutes of silence, and returns its path.
    func writeFeed(episodes: Int) throws -> String {
        let audio = root + "/silence.wav"
        if !FileManager.default.fileExists(atPath: audio) {
            try Self.silence(seconds: 600).write(to: URL(fileURLWithPath: audio))
        }
        var items = ""
        for number in 1...episodes {
            items += """
                <item><title>Part \(number) of many</title><guid>part-\(number)</guid>
                <pubDate>\(Self.date(number))</pubDate>
                <enclosure url="file://\(audio)" type="audio/wav" length="4800044"/></item>

                """
        }
        let feed = """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Many parts</title>
            <link>http://127.0.0.1/</link><description>A feed for tests</description>
            \(items)</channel></rss>
            """
        let path = root + "/feed.xml"
        try feed.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    private static func date(_ number: Int) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "UTC")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: Date(timeIntervalSince1970: 1_600_000_000 + Double(number) * 3_600))
    }

    /// Returns a WAV file of 8 bits, mono, 8 kHz.
    private static func silence(seconds: Int) -> Data {
        let count = UInt32(seconds * 8_000)
        var data = Data()
        func add(_ text: String) { data.append(contentsOf: text.utf8) }
        func add(_ value: UInt32) { withUnsafeBytes(of: value.littleEndian) { data.append(contentsOf: $0) } }
        func add(_ value: UInt16) { withUnsafeBytes(of: value.littleEndian) { data.append(contentsOf: $0) } }
        add("RIFF"); add(36 + count); add("WAVEfmt "); add(UInt32(16)); add(UInt16(1)); add(UInt16(1))
        add(UInt32(8_000)); add(UInt32(8_000)); add(UInt16(1)); add(UInt16(8)); add("data"); add(count)
        data.append(Data(repeating: 0x80, count: Int(count)))
        return data
    }
}
