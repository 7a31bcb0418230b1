import Foundation
import NIOConcurrencyHelpers

/// A program that follows a fleet and prints lines, such as `watch --json`: a real process, which can be stopped.
final class FleetProgram: Sendable {
    /// One line of `watch --json`, as far as comparisons need it.
    struct Event: Sendable, Hashable {
        struct Place: Sendable, Hashable, Comparable {
            var epoch: UInt64
            var sequence: UInt64
            static func < (a: Place, b: Place) -> Bool { (a.epoch, a.sequence) < (b.epoch, b.sequence) }
        }
        var place: Place
        var topic: String
        var kind: String
        /// As it was printed.
        var payload: String
    }

    private struct State {
        var rest = Data()
        var lines: [String] = []
        var hasEnded = false
        var waiters: [Int: Waiter] = [:]
        var nextWaiter = 0
    }
    private struct Waiter: Sendable {
        var condition: @Sendable ([String]) -> Bool
        var met: AsyncStream<Bool>.Continuation
    }

    let pid: Int32
    private let name: String
    private let state: NIOLockedValueBox<State>

    private init(name: String, pid: Int32, state: NIOLockedValueBox<State>) {
        self.name = name
        self.pid = pid
        self.state = state
    }

    /// Runs `body` with a program for each of the command lines, and ends them behind it.
    static func with<Result: Sendable>(
        _ commands: [[String]], of fleet: ProcessFleet, _ body: @Sendable ([FleetProgram]) async throws -> Result
    ) async throws -> Result {
        var programs: [FleetProgram] = []
        defer {
            for program in programs where !program.state.withLockedValue({ $0.hasEnded }) { kill(program.pid, SIGKILL) }
        }
        for command in commands { programs.append(try start(command, of: fleet)) }
        return try await body(programs)
    }

    private static func start(_ arguments: [String], of fleet: ProcessFleet) throws -> FleetProgram {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: ProcessFleet.binaries + "/lockstep")
        process.arguments = arguments
        process.environment = fleet.environment
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        let state = NIOLockedValueBox(State())
        output.fileHandleForReading.readabilityHandler = { handle in
            let data = handle.availableData
            if data.isEmpty { handle.readabilityHandler = nil }
            Self.take(data, state)
        }
        process.terminationHandler = { _ in state.withLockedValue { $0.hasEnded = true } }
        try process.run()
        return FleetProgram(
            name: arguments.joined(separator: " "), pid: process.processIdentifier, state: state)
    }

    private static func take(_ data: Data, _ state: NIOLockedValueBox<State>) {
        let resumed = state.withLockedValue { state -> [Waiter] in
            state.rest.append(data)
            var parts = state.rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            state.rest = Data(parts.removeLast())
            state.lines += parts.map { String(decoding: $0, as: UTF8.self) }
            let lines = state.lines
            let met = state.waiters.filter { $0.value.condition(lines) }
            for key in met.keys { state.waiters[key] = nil }
            return Array(met.values)
        }
        for waiter in resumed { waiter.met.yield(true) }
    }

    /// Everything that it has printed.
    var lines: [String] { state.withLockedValue { $0.lines } }

    /// What `watch --json` has printed.
    var events: [Event] { lines.compactMap(Self.event) }

    /// What is retained after what was printed: each topic's put and deltas.
    var retained: [String: [String]] {
        var retained: [String: [String]] = [:]
        for event in events {
            switch event.kind {
            case "event", "live": continue
            case _ where event.payload == "null": retained[event.topic] = nil
            case _ where event.payload.contains(#""steps":"#): retained[event.topic, default: []].append(event.payload)
            default: retained[event.topic] = [event.payload]
            }
        }
        return retained
    }

    private static func event(_ line: String) -> Event? {
        guard let start = line.range(of: #","payload":"#),
            let object = try? JSONDecoder().decode(Line.self, from: Data(line.utf8))
        else { return nil }
        return Event(
            place: .init(epoch: object.epoch, sequence: object.sequence), topic: object.topic, kind: object.kind,
            payload: String(line[start.upperBound...].dropLast()))
    }

    private struct Line: Decodable {
        var epoch: UInt64
        var sequence: UInt64
        var topic: String
        var kind: String
    }

    @discardableResult
    func signal(_ signal: Int32) -> Bool { kill(pid, signal) == 0 }

    /// Waits until what was printed fulfils a condition.
    /// - Throws: the last lines, after the limit.
    func until(
        _ what: String, within limit: Duration = .seconds(60), _ condition: @escaping @Sendable ([String]) -> Bool
    ) async throws {
        let met = AsyncStream<Bool>.makeStream()
        let key = state.withLockedValue { state -> Int in
            if condition(state.lines) { met.continuation.yield(true) }
            state.nextWaiter += 1
            state.waiters[state.nextWaiter] = Waiter(condition: condition, met: met.continuation)
            return state.nextWaiter
        }
        let timer = Task {
            try await ContinuousClock().sleep(for: limit)
            met.continuation.yield(false)
        }
        defer {
            timer.cancel()
            state.withLockedValue { _ = $0.waiters.removeValue(forKey: key) }
        }
        for await success in met.stream {
            if success { return }
            break
        }
        throw ProcessFleet.Unexpected(
            description: "\(name) should print \(what); it has printed \(lines.count) lines, last: \(lines.suffix(5))")
    }
}
