import BusKit
import Foundation
import LockstepClient
import Testing

/// Tests a damaged database and the restoration of backups.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct DatabaseRescueTests {
    private func podcasts(_ fleet: ProcessFleet) async throws -> Int {
        try await fleet.succeed("podcasts", "--json").ranges(of: #""episodeCount""#).count
    }

    @Test func `a damaged database is reported by doctor, and by up and status once a backup is restored`() async throws
    {
        try await ProcessFleet.with(podcast: 2) { fleet in
            try await fleet.succeed("backup")
            try await fleet.succeed("down")
            #expect(try await fleet.succeed("backup", "--list").contains("lockstep up --detach"))
            try Data("nonsense".utf8).write(to: URL(fileURLWithPath: fleet.home.database))
            let doctor = try await fleet.lockstep(["doctor"])
            #expect(doctor.status == 69)
            #expect(
                doctor.output.contains("\(fleet.home.database) is damaged: it doesn’t begin like a SQLite database."))
            #expect(doctor.output.contains("replaced by the newest good backup"))
            let up = try await fleet.succeed("up", "--detach")
            #expect(up.hasPrefix("The fleet is up. The database was restored as of "), "\(up)")
            #expect(try await fleet.succeed("status").contains("1 alert: The database was restored as of "))
            #expect(try await podcasts(fleet) == 1)
        }
    }

    @Test func `the commands in the list of backups restore one`() async throws {
        try await ProcessFleet.with(podcast: 2) { fleet in
            try await fleet.succeed("queue", "add", "Part 1 of many")
            try await fleet.succeed("backup")
            try await fleet.succeed("queue", "clear")
            try await fleet.succeed("queue", "add", "Part 2 of many")
            let lines = try await fleet.succeed("backup", "--list").split(separator: "\n")
            let commands = lines.filter { $0.hasPrefix("  ") }
            #expect(commands.count == 8)
            let program = ProcessFleet.binaries + "/lockstep"
            let script = commands.map { $0.replacing("  lockstep ", with: "'\(program)' ") }.joined(separator: "\n")
            let done = try await fleet.run("/bin/sh", ["-c", script])
            #expect(done.status == 0, "\(done.errors)")
            let queue = try await fleet.succeed("queue")
            #expect(queue.contains("Part 1 of many") && !queue.contains("Part 2 of many"), "\(queue)")
            #expect(try await podcasts(fleet) == 1)
            // Changes after the restoration persist.
            try await fleet.succeed("queue", "add", "Part 2 of many")
            try await fleet.succeed("down")
            try await fleet.up()
            #expect(try await fleet.succeed("queue").contains("Part 2 of many"))
            #expect(try await fleet.succeed("doctor", "--json").contains(#""level":"fault""#) == false)
        }
    }
}
