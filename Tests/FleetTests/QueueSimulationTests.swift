import Testing

/// The queue and the player together, for thousands of random commands, ends, failures, delays and deaths.
@Suite(.timeLimit(.minutes(5)))
struct QueueSimulationTests {
    @Test(arguments: 1...60)
    func screensAgreeNothingIsLostAndNoOldEpisodeIsShownAfterTheNew(seed: UInt64) throws {
        let simulation = try QueueSimulation(seed: seed)
        for number in 1...4_000 {
            try simulation.step()
            if number % 1_000 == 0 { try simulation.settle() }
            if !simulation.checks.complaints.isEmpty { break }
        }
        let checks = simulation.checks
        #expect(checks.complaints.isEmpty, "seed \(seed): \(checks.complaints.first ?? "")")
        #expect(checks.advances + checks.failures > 0, "seed \(seed)")
    }

    @Test("An engine that begins by itself what was prepared is found out")
    func findsOutWhatSoundsUnbidden() throws {
        let found = try (1...20 as ClosedRange<UInt64>).contains { seed in
            let simulation = try QueueSimulation(seed: seed, breaksPromise: true)
            for _ in 0..<4_000 where simulation.checks.complaints.isEmpty { try simulation.step() }
            return simulation.checks.complaints.contains { $0.contains(" sounds while ") }
        }
        #expect(found)
    }
}
