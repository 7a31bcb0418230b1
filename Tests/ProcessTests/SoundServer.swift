import CProcess
import Foundation
import NIOConcurrencyHelpers
import TestSupport
import Testing

/// The test’s own sound server, whose devices are null sinks that can be recorded.
final class SoundServer: Sendable {
    /// The sound systems of desktops.
    enum Kind: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case pulseAudio, pipeWire

        var testDescription: String { rawValue }
        fileprivate var programs: [String] {
            switch self {
            case .pulseAudio: ["pulseaudio"]
            case .pipeWire: ["pipewire", "pw-cli", "wireplumber", "pipewire-pulse", "dbus-run-session"]
            }
        }
        /// The engine’s name for a sink.
        func device(_ sink: String) -> String { (self == .pulseAudio ? "pulse/" : "pipewire/") + sink }
    }

    /// Whether the programs of both kinds, and those to control and record them, are installed.
    static let isAvailable = (Kind.allCases.flatMap(\.programs) + ["pactl", "parec"]).allSatisfy {
        access(path($0), X_OK) == 0
    }
    static let isMissing: Comment = "PulseAudio, PipeWire and WirePlumber aren’t all installed"

    /// The number of servers that may still start: sound is real-time, and too many servers at once would be late.
    private static let permits = Awaited(4)

    let kind: Kind
    private let folder: TemporaryFolder
    private let processes = NIOLockedValueBox<[pid_t]>([])
    /// Describes the player that uses this server.
    private let player = NIOLockedValueBox<@Sendable () -> String>({ "no player" })
    /// The modules of the sinks, by the sink’s name.
    private let modules = NIOLockedValueBox<[String: String]>([:])

    /// Creates a server that isn’t running yet.
    init(_ kind: Kind) throws {
        self.kind = kind
        folder = try TemporaryFolder()
        for name in ["home", "run"] {
            try FileManager.default.createDirectory(
                atPath: "\(folder.path)/\(name)", withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        }
    }

    /// Runs `body` with a server, and removes it afterwards.
    static func with<Result: Sendable>(
        _ kind: Kind, _ body: @Sendable (SoundServer) async throws -> Result
    ) async throws -> Result {
        while !permits.change({ permits in
            defer { permits = max(0, permits - 1) }
            return permits > 0
        }) {
            _ = await permits.first(within: .seconds(600)) { $0 > 0 }
        }
        defer { permits.change { $0 += 1 } }
        let server = try SoundServer(kind)
        defer { server.kill() }
        return try await body(server)
    }

    private var run: String { folder.path + "/run" }
    private var socket: String { kind == .pulseAudio ? run + "/pulse.sock" : run + "/pulse/native" }

    /// The environment in which a program uses this server and no other sound device.
    var environment: [String: String] {
        [
            "PULSE_SERVER": "unix:\(socket)", "PULSE_COOKIE": folder.path + "/cookie", "PIPEWIRE_RUNTIME_DIR": run,
            "LOCKSTEP_AO": "pipewire,pulse",
        ]
    }

    private var ownEnvironment: [String: String] {
        var environment = ProcessInfo.processInfo.environment
        for name in ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"] { environment[name] = nil }
        for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
            environment[name] = folder.path + "/home"
        }
        environment["XDG_RUNTIME_DIR"] = run
        environment["PULSE_RUNTIME_PATH"] = run + "/pulse"
        return environment.merging(self.environment) { $1 }
    }

    // MARK: Start and end

    /// Starts the server with these sinks, the first of which is the default; returns once it is ready.
    func start(sinks: [String] = ["one"]) throws {
        switch kind {
        case .pulseAudio:
            try spawn(
                "pulseaudio", "-n", "--daemonize=no", "--use-pid-file=no", "--exit-idle-time=-1", "--disable-shm=yes",
                "--realtime=no", "--high-priority=no", "-L",
                "module-native-protocol-unix auth-anonymous=1 socket=\(socket)", "-L", "module-always-sink")
        case .pipeWire:
            try spawn("pipewire")
            try until("pipewire is ready") { (try? self.tool("pw-cli", "info", "0"))?.status == 0 }
            try spawn("dbus-run-session", "--", "wireplumber")
            try spawn("pipewire-pulse")
        }
        // Without a real device the server creates a dummy.
        try until("there is a sink") { try self.sinks().contains("auto_null") }
        for sink in sinks { try addSink(sink) }
    }

    /// Kills the server and its helpers.
    func kill() {
        let pids = processes.withLockedValue { pids in
            defer { pids = [] }
            return pids
        }
        modules.withLockedValue { $0 = [:] }
        // The server is killed first, as in a crash: the others follow it.
        for pid in pids { _ = Glibc.kill(-pid, SIGKILL) }
        for pid in pids { _ = ChildProgram.reap(pid) }
    }

    /// Stops the server and its helpers until `thaw()`; the sockets remain.
    func freeze() { signal(SIGSTOP) }

    /// Continues the stopped processes.
    func thaw() { signal(SIGCONT) }

    private func signal(_ signal: Int32) {
        for pid in processes.withLockedValue({ $0 }) { _ = Glibc.kill(-pid, signal) }
    }

    private func spawn(_ words: String...) throws {
        let pid = try ChildProgram.withNullDevice { nothing in
            try ChildProgram.start(
                [Self.path(words[0])] + words.dropFirst(), environment: ownEnvironment, input: nothing, output: nothing,
                in: folder.path)
        }
        processes.withLockedValue { $0.append(pid) }
    }

    // MARK: Sinks

    /// Adds a device, which is the default if it is the only one.
    func addSink(_ name: String) throws {
        let isFirst = modules.withLockedValue(\.isEmpty)
        let loaded = try control(
            "load-module", "module-null-sink", "sink_name=\(name)", "format=float32le", "rate=48000")
        modules.withLockedValue { $0[name] = loaded.split(separator: "\n").last.map(String.init) }
        try until("the sink \(name) exists") { try self.sinks().contains(name) }
        if isFirst { try setDefault(name) }
    }

    /// Removes a device.
    func removeSink(_ name: String) throws {
        guard let module = modules.withLockedValue({ $0.removeValue(forKey: name) }) else { return }
        try control("unload-module", module)
        try until("the sink \(name) is removed") { try !self.sinks().contains(name) }
    }

    /// Makes a device the default.
    private func setDefault(_ name: String) throws {
        // WirePlumber accepts this slightly later than the server is ready.
        try until("\(name) is the default") { try self.tool("pactl", "set-default-sink", name).status == 0 }
    }

    private func sinks() throws -> [String] {
        let listed = try tool("pactl", "list", "short", "sinks")
        guard listed.status == 0 else { return [] }
        return listed.output.split(separator: "\n").compactMap { line in
            line.split(separator: "\t").dropFirst().first.map(String.init)
        }
    }

    // MARK: Tools

    @discardableResult
    private func control(_ words: String...) throws -> String {
        let (status, output) = try tool("pactl", words)
        guard status == 0 else { throw ProcessFleet.Unexpected(description: "pactl \(words) failed: \(output)") }
        return output
    }

    private func tool(_ name: String, _ words: String...) throws -> (status: Int32, output: String) {
        try tool(name, words)
    }

    private func tool(_ name: String, _ words: [String]) throws -> (status: Int32, output: String) {
        let (pid, output) = try launch(name, words)
        defer { close(output) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while case let count = read(output, &chunk, chunk.count), count > 0 { bytes += chunk[..<count] }
        return (ChildProgram.reap(pid), String(decoding: bytes, as: UTF8.self))
    }

    /// Starts a program that uses this server; the descriptor has its output.
    func launch(_ name: String, _ words: [String]) throws -> (pid: pid_t, output: Int32) {
        var ends: [Int32] = [-1, -1]
        guard lockstep_pipe(&ends, 0) == 0 else { throw ProcessFleet.Unexpected(description: "no pipe") }
        defer { close(ends[1]) }
        let pid = try ChildProgram.withNullDevice { nothing in
            try ChildProgram.start(
                [Self.path(name)] + words, environment: ownEnvironment, input: nothing, output: ends[1],
                in: folder.path)
        }
        return (pid, ends[0])
    }

    /// Sets the description of the player for timeouts.
    func setPlayer(_ description: @escaping @Sendable () -> String) {
        player.withLockedValue { $0 = description }
    }

    /// The streams of the server and its own state.
    var stateDescription: String {
        let state = [["info"], ["list", "short", "sinks"], ["list", "short", "sink-inputs"]].map { words in
            (try? tool("timeout", ["5", Self.path("pactl")] + words))?.output ?? "no pactl"
        }
        return "\(player.withLockedValue { $0 }()); \(state.joined(separator: "; "))"
    }

    private static func path(_ program: String) -> String { "/usr/bin/" + program }

    /// Queries the server until the condition holds; each query takes some milliseconds.
    private func until(_ what: String, _ condition: () throws -> Bool) throws {
        let clock = ContinuousClock()
        let limit = clock.now + .seconds(60)
        while try !condition() {
            guard clock.now < limit else {
                throw ProcessFleet.Unexpected(description: "waited for: \(what); sinks: \(try sinks())")
            }
        }
    }
}
