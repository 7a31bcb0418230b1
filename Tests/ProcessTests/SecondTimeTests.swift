import Foundation
import Testing

/// Every command given a second time says that nothing changed, or why it cannot, and ends with the right status.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SecondTimeTests {
    /// A command line, the status that it ends with, and how what it prints begins.
    private struct Step {
        var command: String
        var status: Int32
        var words: String

        init(_ command: String, _ status: Int32, _ words: String) {
            self.command = command
            self.status = status
            self.words = words
        }
    }

    private func run(_ steps: [Step], _ fleet: ProcessFleet) async throws {
        for step in steps {
            let outcome = try await fleet.lockstep(step.command.split(separator: " ").map(String.init))
            let said = outcome.status == 0 ? outcome.output : outcome.errors
            #expect(outcome.status == step.status, "\(step.command): \(outcome.output)\(outcome.errors)")
            #expect(said.hasPrefix(step.words), "\(step.command): \(outcome.output)\(outcome.errors)")
        }
    }

    @Test func aCommandThatChangesNothingSaysSo() async throws {
        try await ProcessFleet.with(podcast: 3) { fleet in
            let page = try JSONDecoder().decode(
                [Named].self, from: Data(try await fleet.succeed("episodes", "--json").utf8))
            let ids = page.map(\.id)
            try #require(ids.count == 3)
            try await run(
                [
                    Step("up --detach", 0, "No change: the fleet is up already."),
                    Step("pause", 69, "lockstep: Nothing is loaded. Start something with"),
                    Step("stop", 0, "No change: nothing is loaded."),
                    Step("next", 69, "lockstep: The queue is empty."),
                    Step("queue undo", 0, "No change: there is nothing to undo."),
                    Step("queue clear", 0, "No change: there was nothing to clear."),
                    Step("queue add \(ids[0]) \(ids[1])", 0, "Added "),
                    Step("queue add \(ids[0]) \(ids[1])", 0, "No change: already in Up Next:"),
                    Step("play", 0, "Playing at "), Step("play", 0, "No change: playing at "),
                    Step("pause", 0, "Paused at "), Step("pause", 0, "No change: paused at "),
                    Step("resume", 0, "Playing at "), Step("resume", 0, "No change: playing at "),
                    Step("stop", 0, "Stopped at "), Step("stop", 0, "No change: it is stopped, at "),
                    Step("pause", 0, "No change: paused at "),
                    Step("seek 2", 0, "Paused at 0:02"), Step("seek 2", 0, "No change: paused at 0:02"),
                    Step("speed 1.5", 0, "Speed 1.5."), Step("speed 1.5", 0, "No change: the speed is 1.5 already."),
                    Step("volume 50", 0, "Volume 50 %."),
                    Step("volume 50", 0, "No change: the volume is 50 % already."),
                    Step("next", 0, "Paused at 0:00"), Step("next", 69, "lockstep: This is the last entry"),
                    Step("previous", 0, "Paused at "), Step("previous", 69, "lockstep: This is the first entry"),
                    Step("queue move 1 1", 0, "No change: "),
                    Step("output default", 0, "No change: the output is the system’s default already."),
                    Step("reset-failed queue", 0, "No change: queue has not failed."),
                    Step("restart supervisor", 64, "lockstep: The supervisor cannot restart itself"),
                    Step("restart nonsense", 65, "lockstep: There is no service nonsense."),
                ], fleet)
            let podcasts = try JSONDecoder().decode(
                [Named].self, from: Data(try await fleet.succeed("podcasts", "--json").utf8))
            let podcast = try #require(podcasts.first).id
            try await run(
                [
                    Step("unsubscribe \(podcast)", 0, "Unsubscribed from "),
                    Step("unsubscribe \(podcast)", 0, "No change: "),
                    Step("down", 0, "The fleet is down."), Step("down", 0, "No change: no fleet is running."),
                    Step("pause", 69, "lockstep: No fleet is running"),
                ], fleet)
        }
    }

    /// Settings keep a fleet from being started, but never keep anybody from one that runs.
    @Test func settingsThatCannotBeUsedStopTheStartAndNothingElse() async throws {
        try await ProcessFleet.with(isUp: false) { fleet in
            let file = fleet.root + "/config.yaml"
            try "skip:\n  foward: 30\n".write(toFile: file, atomically: true, encoding: .utf8)
            let words = "skip.foward in \(file), line 2, is no setting. Did you mean skip.forward?"
            for command in [["up", "--detach"], ["up"]] {
                let refused = try await fleet.lockstep(command)
                #expect(refused.status == 78 && refused.errors == "lockstep: \(words)\n")
            }
            #expect(try await fleet.lockstep(["doctor"]).status == 78)
            try FileManager.default.removeItem(atPath: file)
            try await fleet.up()
            try "skip:\n  foward: 30\n".write(toFile: file, atomically: true, encoding: .utf8)
            let status = try await fleet.lockstep(["status"])
            #expect(status.status == 0 && status.output.hasPrefix("Nothing is loaded."))
            #expect(status.errors == "lockstep: warning: \(words)\n")
            let again = try await fleet.lockstep(["up", "--detach"])
            #expect(again.status == 0 && again.output.hasPrefix("No change"))
            #expect(try await fleet.lockstep(["down"]).status == 0)
        }
    }

    private struct Named: Decodable {
        var id: String
    }
}
