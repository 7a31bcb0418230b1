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
            let script = "\"$LOCKSTEP\" unsubscribe --forget --now many; echo \"status $?\"; read line"
            for (answer, words) in [("\n", "No change: nothing was forgotten."), ("y\n", "Forgot Many parts.")] {
                try await TerminalShell.with(fleet, script, columns: 200, wraps: true) { shell in
                    try await shell.until(sees: "Forget it? [y/N]")
                    let text = shell.screen.text
                    #expect(
                        text.contains(
                            "Forgetting “Many parts” deletes 3 episodes, 1 position or played mark, 1 favourite and 2 queue entries now."
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
                CommandStep("unsubscribe --now many", 64, "lockstep: --now belongs to --forget."),
                CommandStep("unsubscribe", 64, "lockstep: Name the podcasts."),
                CommandStep("unsubscribe --forget many --yes --now", 0, "Forgot Many parts."),
            ])
        }
    }

    @Test func `forgetting can be undone, and by subscribing again`() async throws {
        try await ProcessFleet.with(podcast: 3) { fleet in
            let undo = "`lockstep unsubscribe --undo` undoes this until then."
            try await fleet.run([
                CommandStep("mark played Part_1_of_many", 0, "Marked"),
                CommandStep("queue add Part_2_of_many", 0, "Added"),
                CommandStep("unsubscribe --undo", 0, "No change: no podcast waits for its deletion."),
                CommandStep("unsubscribe --undo many", 0, "No change: Many parts wasn’t forgotten."),
                CommandStep("unsubscribe --forget Many_parts", 0, "Forgot Many parts. Everything about it will be"),
                CommandStep("unsubscribe --forget Many_parts", 0, "No change: Many parts was forgotten before."),
                CommandStep("podcasts", 0, "You have no subscriptions."),
                CommandStep("unsubscribe --undo", 0, "Restored Many parts; you are subscribed to it again."),
                CommandStep("unsubscribe --forget Many_parts --quiet", 0, ""),
            ])
            #expect(try await fleet.succeed("podcasts", "--all").contains("to be deleted on"))
            #expect(!(try await fleet.succeed("podcasts", "--all", "--json").contains("\"deletion\":null")))
            // A crash keeps the deletion’s time.
            try await fleet.killEverything()
            try await fleet.up()
            #expect(try await fleet.succeed("podcasts", "--all").contains("to be deleted on"))
            try await fleet.succeed("subscribe", fleet.root + "/feed.xml")
            #expect(!(try await fleet.succeed("podcasts").contains("to be deleted on")))
            #expect(try await fleet.succeed("episodes", "--where", "played").contains("Part 1 of many"))
            #expect(try await fleet.succeed("queue").contains("Part 2 of many"))
            let again = try await fleet.succeed("unsubscribe", "--forget", "Many parts")
            #expect(again.hasSuffix(undo + "\n"), "\(again)")
        }
    }
}
