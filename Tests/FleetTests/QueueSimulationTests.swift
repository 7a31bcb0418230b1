import EngineDouble
import Foundation
import Testing

/// Simulates the queue and the player together through thousands of random commands, episode ends, failures, delays and
/// restarts, with a disk that fills up and a sound device that is lost and returns.
///
/// `LOCKSTEP_SIMULATION_SEEDS=7,8,9` chooses the seeds; a failing run names its own.
@Suite(.timeLimit(.minutes(5)))
struct QueueSimulationTests {
    static let seeds: [UInt64] = {
        let chosen = ProcessInfo.processInfo.environment["LOCKSTEP_SIMULATION_SEEDS"]
        return chosen.map { $0.split(separator: ",").compactMap { UInt64($0) } } ?? Array(1...40)
    }()

    @Test(arguments: seeds)
    func `screens agree, nothing is lost, and no old episode is shown after a new one`(seed: UInt64) throws {
        let checks = try Self.simulate(seed).checks
        #expect(checks.violations.isEmpty, "seed \(seed): \(checks.violations.first ?? "")")
        #expect(checks.advances + checks.failures > 0, "seed \(seed)")
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

    @Test func `the simulations produce every kind of fault`() throws {
        let kinds: [(name: String, minimum: Int, count: (QueueSimulation) -> Int)] = [
            ("advances", 11, \.checks.advances), ("failures", 11, \.checks.failures), ("retries", 6, \.checks.retries),
            ("skips", 1, \.checks.skips), ("automatic skips", 1, \.checks.automaticSkips),
            ("refusals", 11, \.checks.refusals), ("fallbacks", 6, \.checks.fallbacks), ("losses", 6, \.checks.losses),
            ("resumptions", 3, \.device.resumptions), ("abandoned retries", 1, \.device.abandonedRetries),
            ("restarts", 11, \.listening.checkedRestarts), ("guarantees", 51, \.guarantees.acknowledged),
        ]
        var met: [String: Int] = [:]
        // Rare kinds need several seeds; the first ones are enough.
        for seed in 1...40 as ClosedRange<UInt64> {
            let run = try Self.simulate(seed)
            for kind in kinds { met[kind.name, default: 0] += kind.count(run) }
            if kinds.allSatisfy({ met[$0.name, default: 0] >= $0.minimum }) { return }
        }
        for kind in kinds { #expect(met[kind.name, default: 0] >= kind.minimum, "\(kind.name)") }
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
