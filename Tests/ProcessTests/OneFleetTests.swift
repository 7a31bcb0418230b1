import Foundation
import LockstepClient
import Testing

/// Tests that one set of data has one fleet, which every command finds.
@Suite(.serialized, .timeLimit(.minutes(5))) struct OneFleetTests {
    /// Creates the folders of the XDG variables, below the fleet’s own.
    private func variables(_ fleet: ProcessFleet, runtime: String?) throws -> [String: String] {
        if let runtime {
            try FileManager.default.createDirectory(
                atPath: fleet.root + "/" + runtime, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        }
        return [
            "LOCKSTEP_HOME": "", "HOME": fleet.root, "XDG_CONFIG_HOME": fleet.root, "XDG_DATA_HOME": fleet.root,
            "XDG_STATE_HOME": fleet.root + "/s", "XDG_RUNTIME_DIR": runtime.map { fleet.root + "/" + $0 } ?? "",
        ]
    }

    @Test func `every command finds the one fleet whatever XDG_RUNTIME_DIR is`() async throws {
        try await ProcessFleet.with(isUp: false) { fleet in
            let login = try variables(fleet, runtime: "r1")
            let others = [try variables(fleet, runtime: "r2"), try variables(fleet, runtime: nil)]
            #expect(try await fleet.lockstep(["up", "--detach"], environment: login).output == "The fleet is up.\n")
            let supervisor = try await fleet.supervisor(login)
            for other in others {
                let again = try await fleet.lockstep(["up", "--detach"], environment: other)
                #expect(again.output == "No change: the fleet is already up.\n", "\(again)")
                let foreground = try await fleet.lockstep(["up"], environment: other)
                #expect(foreground.output == "No change: the fleet is already up.\n", "\(foreground)")
                let status = try await fleet.lockstep(["status"], environment: other)
                #expect(status.status == 0 && status.output.hasPrefix("Nothing is loaded."), "\(status)")
                let doctor = try await fleet.lockstep(["doctor"], environment: other)
                #expect(doctor.output.contains("database: No damage found"), "\(doctor)")
                #expect(try await fleet.supervisor(other) == supervisor)
            }
            let down = try await fleet.lockstep(["down"], environment: others[0])
            #expect(down.output == "The fleet is down.\n", "\(down)")
            for environment in others + [login] {
                #expect(try await fleet.lockstep(["status"], environment: environment).status == 69)
            }
            // The next fleet may have its sockets elsewhere.
            #expect(try await fleet.lockstep(["up", "--detach"], environment: others[1]).status == 0)
            #expect(try await fleet.lockstep(["status"], environment: login).status == 0)
            #expect(try await fleet.lockstep(["down"], environment: login).output == "The fleet is down.\n")
        }
    }

    @Test func `a fleet whose folder was deleted prevents another’s start until down stops it`() async throws {
        try await ProcessFleet.with { fleet in
            let pids = fleet.processes
            #expect(pids.count == ProcessFleet.all.count + 1)
            for folder in ["data", "run", "state"] {
                try FileManager.default.removeItem(atPath: fleet.root + "/" + folder)
            }
            let up = try await fleet.lockstep(["up", "--detach"])
            #expect(up.status == 75 && up.errors.contains("whose folder was deleted is still running"), "\(up)")
            let down = try await fleet.lockstep(["down"])
            #expect(down.status == 0 && down.output == "The fleet is down.\n", "\(down)")
            #expect(fleet.processes.isEmpty)
            #expect(try await fleet.lockstep(["down"]).output == "No change: no fleet is running.\n")
            try await fleet.up()
        }
    }
}

extension ProcessFleet {
    /// The supervisor’s process ID, requested in an environment.
    fileprivate func supervisor(_ variables: [String: String]) async throws -> Int32? {
        let listing = try await lockstep(["ps", "--json"], environment: variables)
        return try JSONDecoder().decode([ServiceLine].self, from: Data(listing.output.utf8)).last?.pid
    }
}
