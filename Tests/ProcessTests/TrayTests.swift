import BusKit
import Foundation
import TestSupport
import Testing

/// Tests the README’s example on a terminal, with a fleet of real processes.
@Suite(.serialized)
struct TrayTests {
    private static let tray = ProcessFleet.binaries + "/tray"

    /// The last line on the screen.
    private static func last(_ screen: TerminalScreen) -> String { screen.lines.last { !$0.isEmpty } ?? "" }

    @Test(.timeLimit(.minutes(5)))
    func `the tray shows the current episode, and Enter toggles playback even after the bus is killed`() async throws {
        try await ProcessFleet.with(podcast: 2) { fleet in
            try await fleet.succeed("play", "Part 1 of many")
            try await fleet.succeed("pause")
            try await TerminalShell.with(fleet, Self.tray) { shell in
                try await shell.until("the paused episode") { Self.last($0).hasPrefix("Paused at ") }
                #expect(Self.last(shell.screen).contains("Part 1 of many"))
                shell.type("\n")
                try await shell.until("the episode plays") { Self.last($0).hasPrefix("Playing at ") }
                #expect(fleet.signal("bus", SIGKILL) != nil)
                shell.type("\n")
                try await shell.until("the episode is paused through the new bus") {
                    Self.last($0).hasPrefix("Paused at ")
                }
                shell.type("\n")
                try await shell.until("the episode plays again") { Self.last($0).hasPrefix("Playing at ") }
                // The position advances although nothing is published.
                let shown = Self.last(shell.screen)
                try await shell.until("the next second") {
                    Self.last($0).hasPrefix("Playing at ") && Self.last($0) != shown
                }
            }
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `the tray reports a missing fleet and ends at once`() async throws {
        try await ProcessFleet.with(isUp: false) { fleet in
            let outcome = try await fleet.run(Self.tray, [])
            #expect(outcome.output == "No fleet is running. Start one with `lockstep up --detach`.\n")
            #expect(outcome.status == 0)
            #expect(outcome.errors.isEmpty)
        }
    }
}
