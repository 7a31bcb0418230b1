import BusKit
import EngineDouble
import FoundationEssentials
import LockstepClient
import NIOConcurrencyHelpers
import PlaybackService
import PodcastModel
import TestSupport
import Testing
import WireMessages

/// Tests services whose database is full or replaced.
@Suite(.timeLimit(.minutes(3)))
struct DatabaseTroubleTests {
    @Test func `running services rewrite their newer state into a restored backup`() async throws {
        try await WholeFleet.with(files: WholeFleet.files(4)) { fleet in
            try await fleet.fillLibrary(episodes: 4)
            try await fleet.queue { $0.add.episodes = ["e1", "e2"] }
            let backup = try await fleet.database.backup()
            #expect(FileManager.default.fileExists(atPath: backup.path))
            let before = try #require(fleet.watcher.view.database).incarnation
            // These changes are missing from the copy.
            let added = try await fleet.queue { $0.add.episodes = ["e3"] }
            try await fleet.player { $0.setVolume.volume = 55 }

            fleet.kill(.persistence)
            let path = fleet.bus.home.database
            try await fleet.damageWhileDown(path)
            let view = try await fleet.watcher.until("the database was replaced") {
                $0.database.map { $0.incarnation != before } ?? false
            }
            #expect(view.mainQueue?.revision == added.revision)
            try await fleet.watcher.until("the alert is shown") { view in
                view.alerts.values.contains { $0.code == "databaseRestored" }
            }
            // A running service keeps its state and accepts an edit of the revision that it published.
            let next = try await fleet.queue {
                $0.ifRevision = added.revision
                $0.add.episodes = ["e4"]
            }
            #expect(next.revision == added.revision + 1)
            try await fleet.player { $0.setSpeed.speed = 1.5 }

            // The restarted services read everything from the restored database.
            for service in [ServiceName.queue, .playback] { try await fleet.restart(service) }
            try await fleet.untilReady([.queue, .playback])
            let after = try await fleet.watcher.until("the queue") { $0.mainQueue?.revision == next.revision }
            #expect(after.mainQueue?.entries.map(\.episode.id) == ["e1", "e2", "e3", "e4"])
            #expect(after.player?.volume == 55 && after.player?.speed == 1.5)
        }
    }

    @Test func `a full disk doesn’t prevent a pause, which is saved later`() async throws {
        try await WholeFleet.with(files: WholeFleet.files(2)) { fleet in
            let isFull = NIOLockedValueBox(false)
            let watch = WatchedFiles(fleet.bus.home.database) { event in
                isFull.withLockedValue { $0 } && event.operation == .write
                    ? WatchedFiles.diskFull : WatchedFiles.proceed
            }
            defer { withExtendedLifetime(watch) {} }
            // Only files that are opened from now on are watched.
            try await fleet.restart(.persistence)
            try await fleet.untilReady([.persistence])
            try await fleet.fillLibrary(episodes: 2)
            try await fleet.queue { $0.play.episode = "e1" }
            try await fleet.watcher.until("the episode plays") { $0.player?.status == .playing }
            try await fleet.player { $0.seek.position = 40 }
            #expect(try await fleet.database.episodes(ids: ["e1"]).first?.state.position == 40)

            try fleet.engine().advance(seconds: 5)
            isFull.withLockedValue { $0 = true }
            let failure = await #expect(throws: Failure.self) { try await fleet.player { $0.setPaused.paused = true } }
            #expect(failure?.known == .notSaved && failure?.retry == true)
            #expect(failure?.message.hasPrefix("Paused") == true)
            let paused = try await fleet.watcher.until("playback is paused, and the full disk is reported") {
                $0.player?.status == .paused && $0.player?.anchor.position ?? 0 > 44
                    && $0.database?.diskFull == true && !$0.alerts.isEmpty
            }
            #expect(paused.alerts.values.contains { $0.code == FailureCode.diskFull.rawValue })
            let position = try #require(paused.player).anchor.position
            // An edit takes effect only when saved, so it’s refused. Stored data can be read.
            let refused = await #expect(throws: Failure.self) { try await fleet.queue { $0.add.episodes = ["e2"] } }
            #expect(refused?.known == .diskFull)
            #expect(try await fleet.database.episodes(ids: ["e1"]).first?.state.position == 40)

            isFull.withLockedValue { $0 = false }
            try await fleet.player { $0.setPaused.paused = true }
            let saved = try await fleet.database.episodes(ids: ["e1"]).first?.state.position ?? 0
            #expect(abs(saved - position) < 0.001)
            try await fleet.watcher.until("there is space again") {
                $0.database?.diskFull == false && $0.alerts.isEmpty
            }
            try await fleet.queue { $0.add.episodes = ["e2"] }
        }
    }
}

extension WholeFleet {
    /// Restarts the database service with a file that isn’t a database any more.
    func damageWhileDown(_ path: String) async throws {
        await untilStopped(.persistence)
        for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
        try Data(repeating: 0x5a, count: 8_192).write(to: URL(filePath: path))
        try start(.persistence)
    }
}
