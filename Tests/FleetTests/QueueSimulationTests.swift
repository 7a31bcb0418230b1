import EngineDouble
import Foundation
import NIOConcurrencyHelpers
import Testing

/// Simulates the queue and the player together through thousands of random commands, episode ends, failures, delays and
/// restarts, with a disk that fills up and a sound device that is lost and returns.
///
/// `LOCKSTEP_SIMULATION_SEEDS=7,8,9` chooses the seeds; a failing run names its own.
@Suite(.timeLimit(.minutes(5)))
struct QueueSimulationTests {
    static let seeds: [UInt64] = {
        let chosen = ProcessInfo.processInfo.environment["LOCKSTEP_SIMULATION_SEEDS"]
        return chosen.map { $0.split(separator: ",").compactMap { UInt64($0) } } ?? Array(1...20)
    }()

    @Test(arguments: seeds)
    func `screens agree, nothing is lost, and no old episode is shown after a new one`(seed: UInt64) async throws {
        let run = try await Self.run(seed)
        #expect(run.violation == nil, "seed \(seed)")
        #expect(run.count(.advance) + run.count(.failure) > 0, "seed \(seed)")
    }

    /// The counted events of a simulation.
    private enum Kind: CaseIterable {
        case advance, failure, retry, skip, automaticSkip, refusal, fallback, loss, resumption, abandonedRetry
        case checkedRestart, acknowledgement
    }

    /// The result of a simulation.
    private struct Run: Sendable {
        var violation: String?
        var counts: [Kind: Int]

        func count(_ kind: Kind) -> Int { counts[kind] ?? 0 }
    }

    /// The simulations of this process: each seed is simulated once for all tests.
    private static let runs = NIOLockedValueBox<[UInt64: Task<Run, any Error>]>([:])

    private static func run(_ seed: UInt64) async throws -> Run {
        let task = runs.withLockedValue { runs in
            let task = runs[seed] ?? Task { try run(simulating: seed) }
            runs[seed] = task
            return task
        }
        return try await task.value
    }

    private static func run(simulating seed: UInt64) throws -> Run {
        let simulation = try simulate(seed)
        let (checks, device) = (simulation.checks, simulation.device)
        return Run(
            violation: checks.violations.first,
            counts: [
                .advance: checks.advances, .failure: checks.failures, .retry: checks.retries, .skip: checks.skips,
                .automaticSkip: checks.automaticSkips, .refusal: checks.refusals, .fallback: checks.fallbacks,
                .loss: checks.losses, .resumption: device.resumptions, .abandonedRetry: device.abandonedRetries,
                .checkedRestart: simulation.listening.checkedRestarts,
                .acknowledgement: simulation.guarantees.acknowledged,
            ])
    }

    private static func simulate(_ seed: UInt64) throws -> QueueSimulation {
        let simulation = try QueueSimulation(seed: seed)
        for number in 1...4_000 where simulation.checks.violations.isEmpty {
            try simulation.step()
            if number % 1_000 == 0 { try simulation.settle() }
            if number % 400 == 0 { try simulation.loseDeviceWhilePlaying() }
        }
        return simulation
    }

    @Test func `the simulations produce every kind of fault`() async throws {
        var met: [Kind: Int] = [:]
        for seed in 1...15 as ClosedRange<UInt64> {
            met.merge(try await Self.run(seed).counts, uniquingKeysWith: +)
        }
        let minimum: [Kind: Int] = [
            .advance: 11, .failure: 11, .retry: 6, .refusal: 11, .fallback: 6, .loss: 6, .resumption: 3,
            .checkedRestart: 11, .acknowledgement: 51,
        ]
        for kind in Kind.allCases {
            #expect(met[kind] ?? 0 >= minimum[kind] ?? 1, "\(kind)")
        }
    }

    @Test func `an engine that starts a prepared episode without a request is detected`() throws {
        let found = try (1...20 as ClosedRange<UInt64>).contains { seed in
            let simulation = try QueueSimulation(seed: seed, breaksGuarantee: true)
            for _ in 0..<4_000 where simulation.checks.violations.isEmpty { try simulation.step() }
            return simulation.checks.violations.contains { $0.contains(" sounds while ") }
        }
        #expect(found)
    }
}
