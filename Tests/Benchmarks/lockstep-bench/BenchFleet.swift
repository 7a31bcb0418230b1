import BusKit
import Foundation
import PodcastModel
import WireMessages
import ZeroMQ

/// A fleet in its own home, controlled by its command line and by raw sockets.
final class BenchFleet {
    let home: LockstepHome
    let feed: String
    /// The path of the home.
    let folder: String
    let context: ZeroMQContext
    private let binaries: String
    private let environment: [String: String]

    struct Failed: Error, CustomStringConvertible {
        var description: String
    }

    init(home folder: String, episodes: Int, observers: Int) throws {
        let executable = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        binaries = (executable as NSString).deletingLastPathComponent
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        home = try LockstepHome(
            environment: ["LOCKSTEP_HOME": folder], userID: 0, workingDirectory: "/", directoryExists: { _ in true })
        var environment = ProcessInfo.processInfo.environment
        environment["LOCKSTEP_HOME"] = folder
        environment["LOCKSTEP_AO"] = "null"
        self.environment = environment
        feed = folder + "/feed.xml"
        self.folder = folder
        context = try ZeroMQContext(sockets: observers + 64)
        try writeFeed(episodes: episodes, folder: folder)
    }

    /// Stops the fleet and closes its sockets.
    func end() {
        _ = try? lockstep("down")
        context.terminate()
    }

    @discardableResult
    func lockstep(_ arguments: String...) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: binaries + "/lockstep")
        process.arguments = arguments
        process.environment = environment
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        let errors = Pipe()
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            let reason = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            throw Failed(description: "lockstep \(arguments.joined(separator: " ")): \(reason)")
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the seconds from the start of a command to its end, with its output discarded.
    func time(_ arguments: String...) throws -> Double { try time(arguments) }

    /// Returns the seconds from the start of a command to its end, with its output discarded.
    func time(_ arguments: [String]) throws -> Double {
        func withPointers<R>(_ texts: [String], _ body: ([UnsafeMutablePointer<CChar>?]) throws -> R) rethrows -> R {
            let copies = texts.map { strdup($0) }
            defer { for copy in copies { free(copy) } }
            return try body(copies + [nil])
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for descriptor: Int32 in [0, 1] {
            posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
        }
        var (pid, status) = (pid_t(), Int32())
        let start = monotonicSeconds()
        let error = withPointers([binaries + "/lockstep"] + arguments) { arguments in
            withPointers(environment.map { "\($0)=\($1)" }) { environment in
                posix_spawn(&pid, binaries + "/lockstep", &actions, nil, arguments, environment)
            }
        }
        guard error == 0, waitpid(pid, &status, 0) == pid, status == 0 else {
            throw Failed(description: "lockstep \(arguments.prefix(3).joined(separator: " ")): status \(status)")
        }
        return monotonicSeconds() - start
    }

    /// Returns the services in the output of `ps --json`.
    func services() throws -> [ServiceLine] {
        try JSONDecoder().decode([ServiceLine].self, from: Data(try lockstep("ps", "--json").utf8))
    }

    struct ServiceLine: Decodable {
        var name: String
        var pid: Int32?
        var pss: Double?
    }

    /// Returns the size of the database and its log.
    func databaseMegabytes() -> Double {
        let sizes = [home.database, home.database + "-wal"].map { path in
            (try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? Int ?? 0
        }
        return Double(sizes.reduce(0, +)) / 1e6
    }

    func firstEpisode() throws -> String {
        try RawClient(self).episodes(limit: 1)[0]
    }

    func endpoint(_ socket: String) throws -> IPCEndpoint { try IPCEndpoint(path: home.runFile(socket)) }

    private func writeFeed(episodes: Int, folder: String) throws {
        let audio = folder + "/silence.wav"
        var wave = Data("RIFF".utf8)
        let count: UInt32 = 8_000 * 1_800
        func add(_ value: some FixedWidthInteger) {
            withUnsafeBytes(of: value.littleEndian) { wave.append(contentsOf: $0) }
        }
        add(36 + count)
        wave.append(contentsOf: "WAVEfmt ".utf8)
        add(UInt32(16))
        add(UInt16(1))
        add(UInt16(1))
        add(UInt32(8_000))
        add(UInt32(8_000))
        add(UInt16(1))
        add(UInt16(8))
        wave.append(contentsOf: "data".utf8)
        add(count)
        wave.append(Data(repeating: 0x80, count: Int(count)))
        try wave.write(to: URL(fileURLWithPath: audio))
        var text = "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>Bench</title>"
        for number in 1...episodes {
            text += "<item><title>Episode \(number)</title><guid>b\(number)</guid>"
            text += "<enclosure url=\"file://\(audio)\" type=\"audio/wav\" length=\"1\"/></item>\n"
        }
        try (text + "</channel></rss>").write(toFile: feed, atomically: true, encoding: .utf8)
    }

    /// Writes a feed whose episodes have titles and addresses of realistic length; none is ever played.
    func writeLongFeed(episodes: Int, as name: String = "many") throws -> String {
        let path = folder + "/\(name).xml"
        var text = "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>A podcast of \(name) years</title>"
        for number in 1...episodes {
            let address = "https://tracking.example.com/p/measured.example.net/show/4f1c9a/2026/\(name)-\(number).mp3"
            text += "<item><title>Episode \(number): what was said about it, and what was not</title>"
            text += "<guid>\(name)\(number)</guid><enclosure url=\"\(address)?id=\(number)&amp;source=feed\""
            text += " type=\"audio/mpeg\" length=\"1\"/></item>\n"
        }
        try (text + "</channel></rss>").write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }
}
