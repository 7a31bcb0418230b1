import BusKit
import LockstepClient
import Testing
import WireMessages

/// Tests the commands for several queues, their order, modes and history.
@Suite(.serialized, .timeLimit(.minutes(5))) struct QueueCommandTests {
    @Test func `a sorted queue is restored by undo`() async throws {
        try await ProcessFleet.with(podcast: 4) { fleet in
            try await fleet.run([
                CommandStep("queue add Part_3 Part_1 Part_2", 0, "Added "),
                CommandStep("queue sort title", 0, "Sorted Up Next by title."),
                CommandStep("queue sort title", 0, "No change: Up Next is already sorted by title."),
                CommandStep("queue sort title --descending", 0, "Sorted Up Next by title, descending."),
                CommandStep("queue undo", 0, "Undone: "),
                // All parts have the same file of silence.
                CommandStep("queue dedupe", 0, "Removed “Part 2 of many” and “Part 3 of many”."),
                CommandStep("queue dedupe", 0, "No change: Up Next has no duplicates."),
                CommandStep("queue restore 1", 0, "Up Next is as it was at revision 1: 3 entries."),
                CommandStep("queue restore 1", 0, "No change: "),
                CommandStep("queue restore 99", 65, "lockstep: "),
            ])
            #expect(try await Self.titles(fleet) == ["Part 3 of many", "Part 1 of many", "Part 2 of many"])
            #expect(try await fleet.succeed("queue", "history", "--json").contains(#""origin":"cli""#))
        }
    }

    @Test func `a play command that another one supersedes ends at once`() async throws {
        try await ProcessFleet.with(podcast: 4) { fleet in
            _ = try await fleet.succeed("queue", "add", "Part 1", "Part 2", "Part 3", "Part 4")
            for round in 0..<8 {
                let outcomes = try await withThrowingTaskGroup(of: ProcessFleet.Outcome.self) { group in
                    for number in [round % 4 + 1, (round + 1) % 4 + 1, (round + 2) % 4 + 1] {
                        group.addTask { try await fleet.lockstep(["play", "\(number)"]) }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(outcomes.contains { $0.status == 0 })
                for outcome in outcomes where outcome.status != 0 {
                    #expect(outcome.status == 75, "\(outcome.errors)")
                    #expect(outcome.errors.hasPrefix("lockstep: Another request has replaced this one. "))
                }
            }
        }
    }

    @Test func `several simultaneous next commands run one after the other`() async throws {
        try await ProcessFleet.with(podcast: 8) { fleet in
            try await fleet.succeed("queue", "add", "--podcast", "Many")
            try await fleet.succeed("play", "1")
            for first in [4, 7] {
                let outcomes = try await withThrowingTaskGroup(of: ProcessFleet.Outcome.self) { group in
                    for _ in 1...3 { group.addTask { try await fleet.lockstep(["next"]) } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(outcomes.allSatisfy { $0.status == 0 }, "\(outcomes)")
                try await FleetObserver.with(1, of: fleet) { observers in
                    try await observers[0].until("part \(first) is loaded") { view in
                        view.player?.episode.title == "Part \(first) of many"
                    }
                }
            }
        }
    }

    @Test func `a whole podcast is added with the oldest episode first`() async throws {
        try await ProcessFleet.with(podcast: 5) { fleet in
            try await fleet.run([
                CommandStep("mark played Part_2", 0, "Marked “Part 2 of many” as played."),
                CommandStep("queue add --podcast Many --unplayed", 0, "Added 4 episodes."),
                CommandStep("queue add --podcast Many --unplayed", 0, "No change: already in Up Next: 4 episodes."),
                CommandStep("queue add --podcast Many", 0, "Added “Part 2 of many”; already in Up Next: 4 episodes."),
                CommandStep("queue add --podcast Nothing", 65, "lockstep: No podcast "),
            ])
            let newestFirst = try await fleet.decode([Queue.Entry.Episode].self, from: "episodes").map(\.title)
            #expect(
                try await Self.titles(fleet)
                    == newestFirst.reversed().filter { $0 != "Part 2 of many" } + ["Part 2 of many"])
        }
    }

    @Test func `a queue’s modes persist, and a full queue refuses entries`() async throws {
        try await ProcessFleet.with(podcast: 4) { fleet in
            try await fleet.run([
                CommandStep("queue repeat all", 0, "Up Next starts over after its last entry."),
                CommandStep("queue repeat all", 0, "No change: "),
                CommandStep("queue consume off", 0, "Up Next keeps entries that have ended."),
                CommandStep("queue consume off", 0, "No change: "),
                CommandStep("queue limit 2", 0, "Up Next accepts no more than 2 entries."),
                CommandStep("queue limit 2", 0, "No change: "),
                CommandStep("queue add Part_1 Part_2", 0, "Added "),
                CommandStep("queue add Part_3", 65, "lockstep: "),
                CommandStep("queue limit 0", 0, "Up Next accepts no more than 10000 entries."),
                CommandStep("queue add Part_3", 0, "Added "),
            ])
            #expect(
                try await fleet.succeed("queue", "--json").contains(
                    #""modes":{"repeat":"all","consume":false,"limit":10000}"#))
        }
    }

    @Test func `another queue is filled, played and deleted`() async throws {
        try await ProcessFleet.with(podcast: 4) { fleet in
            try await fleet.run([
                CommandStep("queue add Part_1", 0, "Added “Part 1 of many”."),
                CommandStep("queue create evening", 0, "Created queue “evening”."),
                CommandStep("queue create evening", 0, "No change: queue “evening” already exists."),
                CommandStep("queue --queue evening", 0, "“evening” is empty."),
                CommandStep("play --queue evening", 69, "lockstep: “evening” is empty."),
                CommandStep("queue add --queue evening Part_2 Part_3", 0, "Added "),
                CommandStep(
                    "queue --queue evenning", 65, "lockstep: There is no queue “evenning”. Did you mean evening?"),
                CommandStep("play --queue evening", 0, "Playing at 0:0"),
                CommandStep("play --queue evening", 0, "No change: playing at "),
                CommandStep("pause", 0, "Paused at "),
                // Playback continues in the queue of the playing entry.
                CommandStep("next", 0, "Paused at 0:00 of 10:00: Part 3 of many"),
                CommandStep("next", 69, "lockstep: "),
                // Its numbers aren’t confused with those of Up Next.
                CommandStep(
                    "play 1", 65,
                    "lockstep: Number 1 could be an entry of “evening” (--queue evening) or Up Next (--queue main)."),
                CommandStep("next --queue main", 0, "Paused at 0:00 of 10:00: Part 1 of many"),
            ])
            #expect(try await fleet.succeed("show", "Part 2").contains("in “evening”"))
            // An episode that is in neither queue is added to Up Next.
            try await fleet.run([
                CommandStep("play --queue evening 1", 0, "Playing at "), CommandStep("pause", 0, "Paused at "),
                CommandStep("play Part_4", 0, "Playing at 0:00"), CommandStep("pause", 0, "Paused at "),
            ])
            #expect(try await fleet.succeed("queue").contains("Part 4"))
            #expect(try await fleet.succeed("queue", "--queue", "evening").contains("Part 4") == false)
            try await fleet.run([
                CommandStep("queue delete main", 65, "lockstep: "),
                CommandStep("queue clear --queue evening", 0, "Cleared "),
                CommandStep("queue delete evening", 0, "Deleted the queue “evening” and its history."),
                CommandStep("queue delete evening", 65, "lockstep: There is no queue “evening”."),
            ])
            #expect(try await fleet.succeed("queues").split(separator: "\n").count == 2)
        }
    }

    private struct Queue: Decodable {
        struct Entry: Decodable {
            struct Episode: Decodable { var title: String }
            var episode: Episode
        }
        var entries: [Entry]
    }

    private static func titles(_ fleet: ProcessFleet) async throws -> [String] {
        try await fleet.decode(Queue.self, from: "queue").entries.map(\.episode.title)
    }

    @Test func `entries are removed by a rule, and why names playlists`() async throws {
        try await ProcessFleet.with(podcast: 3) { fleet in
            try await fleet.run([
                CommandStep("queue add --podcast Many_parts", 0, "Added"),
                CommandStep("queue create evening", 0, "Created"),
                CommandStep("queue add Part_1 --queue evening", 0, "Added"),
                CommandStep("queue remove", 64, "lockstep: Name the entries to remove"),
                CommandStep("queue remove 1 --where played", 64, "lockstep: "),
                CommandStep("queue remove --where plaid", 64, "lockstep: "),
                CommandStep("queue remove --where played", 0, "No change: no entry’s episode matches."),
                CommandStep("mark played Part_1", 0, "Marked"),
                CommandStep(
                    "queue remove --where played", 0, "Removed “Part 1 of many”. `lockstep queue undo` restores it."),
                CommandStep("queue --queue evening", 0, "\t\tepisode"),
                CommandStep("queue undo", 0, "Undone: "),
                CommandStep("favourite add Part_1", 0, "Added"),
            ])
            #expect(try await fleet.succeed("queue", "--queue", "evening").contains("Part 1 of many"))
            #expect(try await fleet.succeed("queue").hasSuffix("3 entries.\n"))
            let why = try await fleet.succeed("why", "Part 1 of many")
            #expect(why.contains("Number 1 in the playlist “Favourites”.\n"), "\(why)")
            #expect(try await fleet.succeed("why", "Part 1 of many", "--json").contains("\"playlist\":\"favourites\""))
        }
    }
}
