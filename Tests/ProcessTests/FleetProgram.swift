import CProcess
import Foundation
import TestSupport

/// A program that follows a fleet and prints lines, such as `watch --json`: a real process, which can be stopped.
final class FleetProgram: Sendable {
    /// The compared fields of a line of `watch --json`.
    struct Event: Sendable, Hashable {
        struct Position: Sendable, Hashable, Comparable {
            var epoch: UInt64
            var sequence: UInt64
            static func < (a: Position, b: Position) -> Bool { (a.epoch, a.sequence) < (b.epoch, b.sequence) }
        }
        var position: Position
        var topic: String
        var kind: String
        /// The payload as printed.
        var payload: String
    }

    private struct Output {
        var rest: [UInt8] = []
        var lines: [String] = []
        /// The exit status, or 128 plus the signal that ended it; nil while it runs.
        var status: Int32?

        mutating func handle(_ bytes: ArraySlice<UInt8>) {
            rest += bytes
            var parts = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            rest = Array(parts.removeLast())
            lines += parts.map { String(decoding: $0, as: UTF8.self) }
        }
    }

    let pid: Int32
    private let name: String
    private let output: Awaited<Output>
    private let reader: DescriptorReader

    private init(_ arguments: [String], of fleet: ProcessFleet) throws {
        var ends: [Int32] = [-1, -1]
        guard lockstep_pipe(&ends, 0) == 0 else { throw ProcessFleet.Unexpected(description: "no pipe") }
        defer { close(ends[1]) }
        let words = [ProcessFleet.binaries + "/lockstep"] + arguments
        do {
            pid = try ChildProgram.withNullDevice { nothing in
                try ChildProgram.start(
                    words, environment: fleet.environment, input: nothing, output: ends[1], in: fleet.root)
            }
        } catch {
            close(ends[0])
            throw error
        }
        name = arguments.joined(separator: " ")
        let (output, pid) = (Awaited(Output()), pid)
        self.output = output
        reader = DescriptorReader(ends[0]) { bytes in
            output.change { $0.handle(bytes) }
        } ended: {
            let status = ChildProgram.reap(pid)
            output.change { $0.status = status }
        }
    }

    /// Runs `body` with a program for each of the command lines, and ends the programs afterwards.
    static func with<Result: Sendable>(
        _ commands: [[String]], of fleet: ProcessFleet, _ body: @Sendable ([FleetProgram]) async throws -> Result
    ) async throws -> Result {
        var programs: [FleetProgram] = []
        do {
            for command in commands { programs.append(try FleetProgram(command, of: fleet)) }
            let result = try await body(programs)
            for program in programs { try await program.end() }
            return result
        } catch {
            for program in programs { try? await program.end() }
            throw error
        }
    }

    private func end() async throws {
        if output.now.status == nil { signal(SIGKILL) }
        _ = try await untilEnded()
    }

    /// All lines printed so far.
    var lines: [String] { output.now.lines }

    /// The output of `watch --json`.
    var events: [Event] { lines.compactMap(Self.event) }

    /// The retained state after the printed events: each topic’s put and deltas.
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
            position: .init(epoch: object.epoch, sequence: object.sequence), topic: object.topic, kind: object.kind,
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

    /// Waits until the printed lines meet a condition.
    /// - Throws: the last lines, after the limit.
    func until(
        _ what: String, within limit: Duration = .seconds(60), _ condition: @escaping @Sendable ([String]) -> Bool
    ) async throws {
        guard await output.first(within: limit, where: { condition($0.lines) }) == nil else { return }
        throw ProcessFleet.Unexpected(
            description: "\(name) should print \(what); it has printed \(lines.count) lines, last: \(lines.suffix(5))")
    }
    /// Stops reading the output.
    func stopReading() { reader.close() }

    /// Waits until the program has ended. Returns its exit status, or 128 plus the signal that ended it.
    func untilEnded(within limit: Duration = .seconds(60)) async throws -> Int32 {
        guard let status = await output.first(within: limit, where: { $0.status != nil })?.status else {
            throw ProcessFleet.Unexpected(description: "\(name) should end; last: \(lines.suffix(5))")
        }
        return status
    }
}
