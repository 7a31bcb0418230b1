import BusKit
import CProcess
import Foundation
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests that any process, or all at once, can be killed at any moment.
@Suite(.serialized)
struct KillTests {
    @Test(.timeLimit(.minutes(5)), arguments: ProcessFleet.all)
    func `every acknowledged edit survives the crash of a service`(service: String) async throws {
        try await editDuring { fleet, observer in
            let generation = ServiceName(service).flatMap { observer.view.replica.ready[$0] } ?? 0
            let epoch = observer.view.replica.position.epoch
            #expect(fleet.signal(service, SIGKILL) != nil)
            try await observer.until("\(service) is ready again") { view in
                guard service != "bus" else { return view.replica.position.epoch > epoch }
                return ServiceName(service).flatMap { view.replica.ready[$0] } ?? 0 > generation
            }
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `every acknowledged edit survives the crash of all services at once`() async throws {
        try await editDuring { fleet, observer in
            try await fleet.killEverything()
            try await fleet.up()
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `of twenty simultaneous starts one starts the fleet and the others report that it is running`() async throws {
        try await ProcessFleet.with(isUp: false) { fleet in
            let outcomes = try await withThrowingTaskGroup(of: ProcessFleet.Outcome.self) { group in
                for _ in 0..<20 { group.addTask { try await fleet.lockstep(["up", "--detach"]) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(outcomes.count == 20)
            #expect(outcomes.allSatisfy { $0.status == 0 && $0.errors.isEmpty }, "\(outcomes)")
            #expect(outcomes.count { $0.output == "The fleet is up.\n" } == 1)
            #expect(outcomes.count { $0.output == "No change: the fleet is already up.\n" } == 19, "\(outcomes)")
            let services = try await fleet.services()
            #expect(services.values.allSatisfy { $0.state == "ready" && $0.restarts == 0 }, "\(services)")
            #expect(fleet.processes.count == ProcessFleet.all.count + 1)
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `a crash of the supervisor leaves no process, and the fleet can be started again`() async throws {
        try await ProcessFleet.with { fleet in
            let pids = ProcessFleet.all.compactMap { fleet.pid($0) }
            #expect(pids.count == ProcessFleet.all.count)
            let ends = try ProcessEnds(pids)
            let start = ContinuousClock.now
            #expect(fleet.signal("supervisor", SIGKILL) != nil)
            let times = ends.wait(within: .seconds(20)).map { $0.map { $0 - start } }
            print("the supervisor's death: the services ended after \(times)")
            // The limit is far below the heartbeat timeout.
            #expect(times.allSatisfy { $0.map { $0 < .seconds(5) } ?? false }, "\(times)")
            #expect(fleet.processes.isEmpty)
            try await fleet.up()
            #expect(try await fleet.services().values.allSatisfy { $0.state == "ready" })
        }
    }

    /// Edits the queue while `kill` kills processes, and checks that no acknowledged edit is lost.
    private func editDuring(_ kill: @escaping @Sendable (ProcessFleet, FleetObserver) async throws -> Void) async throws
    {
        try await ProcessFleet.with(podcast: 20) { fleet in
            try await FleetObserver.with(2, of: fleet) { observers in
                try await observers[0].untilReady()
                let page = try await PersistenceClient(observers[0].client).episodes(.with { $0.limit = 20 })
                let editor = QueueEditor(observers[1].client, episodes: page.episodes.map(\.id))
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { await editor.edit(seed: 4) }
                    try await observers[0].until("edits are acknowledged") { $0.mainQueue?.revision ?? 0 > 20 }
                    let revision = observers[0].view.mainQueue?.revision ?? 0
                    try await kill(fleet, observers[0])
                    try await observers[0].until("further edits are acknowledged") {
                        $0.connection == .live && $0.mainQueue?.revision ?? 0 > revision + 20
                    }
                    group.cancelAll()
                    try await group.waitForAll()
                }
                try await observers[0].untilReady()
                let queue = try await observers[0].client.ask(
                    .queue, WireQueueRequest.with { $0.history.limit = 1 }, reply: WireQueueReply.self)
                try await observers[0].until("the last revision is published") {
                    $0.mainQueue?.revision ?? 0 >= queue.reply.revision
                }
                let outcomes = editor.outcomes
                outcomes.check(try #require(observers[0].view.mainQueue).entries.map(\.episode.id))
                #expect(Int(queue.reply.revision) >= outcomes.changes)
                #expect(Int(queue.reply.revision) <= outcomes.changes + outcomes.unknown)
            }
        }
    }
}

/// The ends of processes, as the kernel reports them.
final class ProcessEnds {
    private var descriptors: [pollfd] = []

    init(_ pids: [pid_t]) throws {
        for pid in pids {
            let descriptor = lockstep_pidfd_open(pid)
            guard descriptor >= 0 else { throw ProcessFleet.Unexpected(description: "process \(pid) is gone already") }
            descriptors.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
        }
    }

    deinit {
        for entry in descriptors { close(abs(entry.fd)) }
    }

    /// The time at which each process ended; nil for those that still run after the limit.
    func wait(within limit: Duration) -> [ContinuousClock.Instant?] {
        let deadline = ContinuousClock.now.advanced(by: limit)
        var ends = [ContinuousClock.Instant?](repeating: nil, count: descriptors.count)
        while ends.contains(nil), ContinuousClock.now < deadline {
            _ = poll(&descriptors, nfds_t(descriptors.count), 1_000)
            let now = ContinuousClock.now
            for index in descriptors.indices where ends[index] == nil && descriptors[index].revents != 0 {
                ends[index] = now
                // A negative descriptor is ignored.
                descriptors[index].fd = -descriptors[index].fd
            }
        }
        return ends
    }
}
