import Foundation
import TestSupport
import Testing

/// Tests the question of `unsubscribe --forget` on a terminal.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ForgetCommandTests {
    @Test func `forgetting says what it deletes, and asks on a terminal`() async throws {
        try await ProcessFleet.with(podcast: 3) { fleet in
            try await fleet.succeed("mark", "played", "Part 1 of many")
            try await fleet.succeed("queue", "add", "Part 2 of many", "Part 3 of many")
            try await fleet.succeed("favourite", "add", "Part 2 of many")
            let script = "\"$LOCKSTEP\" unsubscribe --forget many; echo \"status $?\"; read line"
            for (answer, words) in [("\n", "No change: nothing was forgotten."), ("y\n", "Forgot Many parts.")] {
                try await TerminalShell.with(fleet, script, columns: 200, wraps: true) { shell in
                    try await shell.until(sees: "Forget it? [y/N]")
                    let text = shell.screen.text
                    #expect(
                        text.contains(
                            "Forgetting “Many parts” deletes 3 episodes, 1 position or played mark, 1 favourite and 2 queue entries."
                        ), "\(text)")
                    shell.type(answer)
                    try await shell.until(sees: words)
                    try await shell.until(sees: "status 0")
                }
            }
            #expect(try await fleet.succeed("podcasts", "--all").hasPrefix("You have no subscriptions."))
        }
    }

    @Test func `without a terminal, whole names or --yes are required`() async throws {
        try await ProcessFleet.with(podcast: 1) { fleet in
            try await fleet.run([
                CommandStep("unsubscribe --forget many", 64, "lockstep: “many” matches “Many parts”"),
                CommandStep("unsubscribe --forget many --yes", 0, "Forgot Many parts."),
            ])
        }
    }
}
