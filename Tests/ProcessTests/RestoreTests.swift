import BusKit
import Foundation
import LockstepClient
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

/// Tests that playback is restored after processes are killed.
@Suite(.serialized)
struct RestoreTests {
    @Test(.timeLimit(.minutes(5)))
    func `a crashed player resumes by itself, and a second crash within a minute leaves it paused with an alert`()
        async throws
    {
        try await whilePlaying { fleet, observer, before in
            try await killPlayer(fleet, observer)
            try await observer.until("playback continues") { $0.player?.status == .playing }
            let after = try await fleet.status()
            expect(after, restores: before)
            #expect(observer.view.alerts.isEmpty)
            try await killPlayer(fleet, observer)
            try await observer.until("playback is paused, with an alert") { view in
                view.player?.status == .paused && view.alerts.values.contains { $0.code == "playbackCrashed" }
            }
            let end = try await fleet.status()
            #expect(end.state == "paused")
            expect(end, restores: after)
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `a crash of all services during playback loses at most ten seconds`() async throws {
        try await whilePlaying { fleet, observer, before in
            let epoch = observer.view.replica.position.epoch
            for service in ProcessFleet.all { fleet.signal(service, SIGKILL) }
            try await observer.untilReady(after: epoch)
            try await observer.until("playback continues") {
                $0.player?.status == .playing && !$0.isStale(.playback) && $0.connection == .live
            }
            expect(try await fleet.status(), restores: before)
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `after a crash of every process the fleet restarts paused and has lost at most ten seconds`() async throws {
        try await whilePlaying { fleet, observer, before in
            let epoch = observer.view.replica.position.epoch
            try await fleet.killEverything()
            try await fleet.up()
            try await observer.untilReady(after: epoch)
            let after = try await fleet.status()
            #expect(after.state == "paused")
            expect(after, restores: before)
            #expect(after.position < before.position + 10)
        }
    }

    /// Runs `body` in a fleet that plays an episode, and passes its status.
    private func whilePlaying(
        _ body: @Sendable (ProcessFleet, FleetObserver, ProcessFleet.StatusLine) async throws -> Void
    ) async throws {
        try await ProcessFleet.with(podcast: 2) { fleet in
            try await FleetObserver.with(1, of: fleet) { observers in
                try await observers[0].untilReady()
                try await fleet.succeed("play", "Part 2 of many")
                try await fleet.succeed("seek", "100")
                // The position is beyond the interval between two saves, so a lost position would be detected.
                try await observers[0].until("the position is beyond 100 s") { view in
                    view.player?.status == .playing && view.player?.anchor.position ?? 0 >= 99
                }
                try await body(fleet, observers[0], try await fleet.status())
            }
        }
    }

    /// Checks that the same episode is loaded and its position is at most ten seconds earlier.
    private func expect(_ after: ProcessFleet.StatusLine, restores before: ProcessFleet.StatusLine) {
        #expect(after.episode?.id == before.episode?.id)
        #expect(after.position >= before.position - 10)
    }

    private func killPlayer(_ fleet: ProcessFleet, _ observer: FleetObserver) async throws {
        let generation = observer.view.replica.ready[.playback] ?? 0
        #expect(fleet.signal("playback", SIGKILL) != nil)
        try await observer.until("the player is ready again") { $0.replica.ready[.playback] ?? 0 > generation }
    }
}
