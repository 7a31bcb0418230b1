import BusKit
import CLogindDouble
import CProcess
import Foundation
import LockstepClient
import TestSupport
import Testing
import WireMessages

/// Tests the suspension of the machine, as its login manager reports it.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct SuspendTests {
    @Test func `the machine sleeps only after the position is saved`()
        async throws
    {
        try await whilePlaying { fleet, observer, manager in
            // The position is also saved every 10 s and at each seek.
            try await fleet.succeed("seek", "100")
            try await observer.until("it has played on for seconds") { view in
                guard let player = view.player, player.status == .playing, player.anchor.running else { return false }
                // The engine’s position may be slightly before the target.
                return player.anchor.position >= 99
            }
            let begun = try await fleet.status().position
            while try await fleet.status().position < begun + 4 {}
            let before = try await fleet.status().position
            try await manager.sleep()
            try await fleet.killEverything()
            try await fleet.up()
            let after = try await fleet.status()
            #expect(after.state == "paused")
            #expect(after.position >= before)
        }
    }

    @Test func `a machine that wakes resumes at the engine’s position, and its next sleep is delayed again`()
        async throws
    {
        try await whilePlaying { fleet, observer, manager in
            for _ in 1...3 {
                try await manager.sleep()
                let anchor = try #require(observer.view.player?.anchor)
                try await manager.wake()
                try await observer.until("there is a new anchor") { view in
                    guard let player = view.player else { return false }
                    return player.status == .playing && player.anchor.running && player.anchor.at > anchor.at
                }
            }
        }
    }

    private func whilePlaying(
        _ body: @Sendable (ProcessFleet, FleetObserver, LoginManager) async throws -> Void
    ) async throws {
        let bus = try MessageBus()
        defer { bus.end() }
        let manager = try LoginManager(on: bus.address)
        try await ProcessFleet.with(isUp: false) { fleet in
            let up = try await fleet.lockstep(
                ["up", "--detach"], environment: ["DBUS_SYSTEM_BUS_ADDRESS": bus.address])
            #expect(up.status == 0, "\(up)")
            try await fleet.succeed("subscribe", try fleet.writeFeed(episodes: 2))
            try await FleetObserver.with(1, of: fleet) { observers in
                try await observers[0].untilReady()
                try await fleet.succeed("play", "Part 1 of many")
                try await manager.grant()
                try await body(fleet, observers[0], manager)
            }
        }
        await manager.leave()
    }
}

/// The test’s own message bus.
private final class MessageBus: Sendable {
    let address: String
    private let pid: pid_t
    private let folder: TemporaryFolder
    /// The bus’s output, which must have a reader.
    private let reader: Int32

    init() throws {
        let folder = try TemporaryFolder()
        self.folder = folder
        let file = folder.path + "/bus.conf"
        let configuration = """
            <busconfig><type>session</type><listen>unix:path=\(folder.path)/bus</listen><auth>EXTERNAL</auth>
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
            <allow own="*"/></policy></busconfig>
            """
        try configuration.write(toFile: file, atomically: true, encoding: .utf8)
        var ends: [Int32] = [-1, -1]
        guard lockstep_pipe(&ends, 0) == 0 else { throw ProcessFleet.Unexpected(description: "no pipe") }
        let output = ends[1]
        reader = ends[0]
        let programs = ["/usr/bin/dbus-daemon", "/bin/dbus-daemon"]
        guard let program = programs.first(where: { access($0, X_OK) == 0 }) else {
            throw ProcessFleet.Unexpected(description: "dbus-daemon is not installed")
        }
        pid = try ChildProgram.withNullDevice { nothing in
            try ChildProgram.start(
                [program, "--config-file=\(file)", "--nofork", "--nopidfile", "--print-address=1"],
                environment: ProcessInfo.processInfo.environment, input: nothing, output: output, in: folder.path)
        }
        close(output)
        // The bus prints its address, possibly after warnings, once it listens.
        var (lines, byte): ([[UInt8]], UInt8) = ([[]], 0)
        while read(reader, &byte, 1) == 1 {
            if byte != UInt8(ascii: "\n") {
                lines[lines.count - 1].append(byte)
            } else if lines.last?.starts(with: Array("unix:".utf8)) == true {
                break
            } else {
                lines.append([])
            }
        }
        address = String(decoding: lines.last ?? [], as: UTF8.self)
        guard address.hasPrefix("unix:") else {
            throw ProcessFleet.Unexpected(
                description: "the message bus says \(lines.map { String(decoding: $0, as: UTF8.self) })")
        }
    }

    func end() {
        close(reader)
        kill(pid, SIGKILL)
        _ = ChildProgram.reap(pid)
    }
}

/// The login manager on a message bus, and the inhibitor lock that it grants.
private actor LoginManager {
    private let manager: OpaquePointer
    private var inhibitor: Int32 = -1

    init(on address: String) throws {
        manager = try #require(logind_double_open(address), "the login manager’s name can’t be owned")
    }

    /// Waits until the player requests an inhibitor lock.
    func grant() throws {
        inhibitor = logind_double_grant(manager)
        try #require(inhibitor >= 0, "no inhibitor lock was requested")
    }

    /// Announces that the machine is about to sleep, and waits until the player releases its lock.
    func sleep() throws {
        try #require(logind_double_tell(manager, 1) >= 0)
        var waiting = pollfd(fd: inhibitor, events: 0, revents: 0)
        #expect(poll(&waiting, 1, 30_000) == 1, "the sleep is held up for ever")
        close(inhibitor)
        inhibitor = -1
    }

    /// Announces that the machine is awake, and waits until the player requests a new lock.
    func wake() throws {
        try #require(logind_double_tell(manager, 0) >= 0)
        try grant()
    }

    func leave() {
        if inhibitor >= 0 { close(inhibitor) }
        logind_double_close(manager)
    }
}
