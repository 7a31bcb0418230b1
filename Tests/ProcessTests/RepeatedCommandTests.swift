import Foundation
import LockstepClient
import Testing

/// Tests that a repeated command reports that nothing changed, or why it fails, with the right status.
@Suite(.serialized, .timeLimit(.minutes(5))) struct RepeatedCommandTests {
    @Test func `a command that changes nothing reports that`() async throws {
        try await ProcessFleet.with(podcast: 3) { fleet in
            let ids = try await fleet.decode([Named].self, from: "episodes").map(\.id)
            try #require(ids.count == 3)
            try await fleet.run(
                [
                    CommandStep("up --detach", 0, "No change: the fleet is already up."),
                    CommandStep("pause", 69, "lockstep: Nothing is loaded. Start something with"),
                    CommandStep("stop", 0, "No change: nothing is loaded."),
                    CommandStep("next", 69, "lockstep: Up Next is empty."),
                    CommandStep("queue undo", 0, "No change: there is nothing to undo."),
                    CommandStep("queue clear", 0, "No change: there was nothing to clear."),
                    CommandStep("queue add \(ids[0]) \(ids[1])", 0, "Added "),
                    CommandStep("queue add \(ids[0]) \(ids[1])", 0, "No change: already in Up Next:"),
                    CommandStep("play", 0, "Playing at "), CommandStep("play", 0, "No change: playing at "),
                    CommandStep("pause", 0, "Paused at "), CommandStep("pause", 0, "No change: paused at "),
                    CommandStep("resume", 0, "Playing at "), CommandStep("resume", 0, "No change: playing at "),
                    CommandStep("stop", 0, "Stopped at "),
                    CommandStep("stop", 0, "No change: stopped at "),
                    CommandStep("pause", 0, "No change: stopped at "),
                    CommandStep("seek 2", 0, "Stopped at 0:02"),
                    CommandStep("seek 2", 0, "No change: stopped at 0:02"),
                    CommandStep("speed 1.5", 0, "Speed 1.5."),
                    CommandStep("speed 1.5", 0, "No change: the speed is already 1.5."),
                    CommandStep("volume 50", 0, "Volume 50 %."),
                    CommandStep("volume 50", 0, "No change: the volume is already 50 %."),
                    CommandStep("next", 0, "Paused at 0:00"),
                    CommandStep("next", 69, "lockstep: This is the last entry"),
                    CommandStep("previous", 0, "Paused at "),
                    CommandStep("previous", 69, "lockstep: This is the first entry"),
                    CommandStep("queue move 1 1", 0, "No change: "),
                    CommandStep("output default", 0, "No change: the output is already the system’s default."),
                    CommandStep("reset-failed queue", 0, "No change: queue has not failed."),
                    CommandStep("restart supervisor", 65, "lockstep: The supervisor can’t restart itself"),
                    CommandStep("restart nonsense", 65, "lockstep: There is no service “nonsense”."),
                ])
            let podcasts = try await fleet.decode([Named].self, from: "podcasts")
            let podcast = try #require(podcasts.first).id
            try await fleet.run(
                [
                    CommandStep("unsubscribe \(podcast)", 0, "Unsubscribed from "),
                    CommandStep("unsubscribe \(podcast)", 0, "No change: "),
                    CommandStep("down", 0, "The fleet is down."),
                    CommandStep("down", 0, "No change: no fleet is running."),
                    CommandStep("pause", 69, "lockstep: No fleet is running"),
                ])
        }
    }

    /// Invalid settings prevent the start of a fleet, but not the use of a running one.
    @Test func `invalid settings prevent only the start of a fleet`() async throws {
        try await ProcessFleet.with(isUp: false) { fleet in
            let file = fleet.root + "/config.yaml"
            try "skip:\n  foward: 30\n".write(toFile: file, atomically: true, encoding: .utf8)
            let words = "skip.foward in \(file), line 2, isn’t a setting. Did you mean skip.forward?"
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
