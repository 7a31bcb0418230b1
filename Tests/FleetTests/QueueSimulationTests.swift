import Testing

/// The queue and the player together, for thousands of random commands, ends, delays and deaths.
@Suite(.timeLimit(.minutes(5)))
struct QueueSimulationTests {
    @Test(arguments: 1...60)
    func screensAgreeNothingIsLostAndNoOldEpisodeIsShownAfterTheNew(seed: UInt64) throws {
        let simulation = try QueueSimulation(seed: seed)
        for _ in 0..<4_000 {
            try simulation.step()
            if !simulation.complaints.isEmpty { break }
        }
        if simulation.complaints.isEmpty { try simulation.settle() }
        #expect(simulation.complaints.isEmpty, "seed \(seed)")
        #expect(simulation.advances > 0, "seed \(seed)")
    }
}
