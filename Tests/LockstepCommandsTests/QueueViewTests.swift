import BusKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import LockstepClient
@testable import LockstepCommands

/// Tests the output of commands for queues other than the loaded entry’s.
@Suite struct QueueViewTests {
    private static func queue(
        _ name: String, _ entries: [String], current: String
    ) -> QueueState {
        QueueState(
            .with { queue in
                queue.name = name
                queue.current = current
                queue.entries = entries.map { id in
                    .with {
                        $0.id = id
                        $0.episode.id = "e\(id)"
                        $0.episode.title = "Title \(id)"
                    }
                }
            })
    }

    @Test func `a list marks the current entry only in the playing queue`() {
        let queue = Self.queue("main", ["q1", "q2"], current: "q2")
        let playing = QueueList.lines(queue, playing: "main")
        #expect(playing.count { $0.contains("*") } == 1)
        #expect(!playing.contains { $0.contains("playing") })
        let waiting = QueueList.lines(queue, playing: "evening")
        #expect(!waiting.contains { $0.contains("*") })
        #expect(
            waiting.last
                == "“evening” is playing (`lockstep queue --queue evening`); this queue would continue with number 2.")
        #expect(
            QueueList.lines(Self.queue("main", ["q1"], current: ""), playing: "evening").last
                == "“evening” is playing (`lockstep queue --queue evening`).")
    }

    @Test func `below a list is its length, and how much of it is left`() {
        func totals(_ episodes: [(duration: Double, position: Double, isPlayed: Bool)]) -> String? {
            let queue = QueueState(
                .with { queue in
                    queue.name = "main"
                    queue.entries = episodes.enumerated().map { index, episode in
                        .with {
                            ($0.id, $0.episode.id) = ("q\(index)", "e\(index)")
                            ($0.episode.duration, $0.episode.position) = (episode.duration, episode.position)
                            $0.episode.played = episode.isPlayed
                        }
                    }
                })
            return QueueList.lines(queue, playing: "main").last
        }
        #expect(totals([(600, 0, false), (0, 0, false)]) == "2 entries, 10 min.")
        #expect(totals([(3_600, 600, false), (600, 0, true)]) == "2 entries, 1 h 10 min, 50 min left.")
        #expect(totals([(0, 0, false)]) == "1 entry.")
    }

    @Test func `a player names the services that aren’t ready`() {
        var narrator = PlainSentences()
        var snapshot = PlayerSnapshot()
        snapshot.connection = .live
        let now = MonotonicTime(nanoseconds: 1)
        _ = narrator.lines(for: snapshot, now: now)
        snapshot.isStale = true
        #expect(narrator.lines(for: snapshot, now: now) == ["Connected; waiting for the services."])
        snapshot.connection = .reconnecting
        _ = narrator.lines(for: snapshot, now: now)
        snapshot.connection = .live
        snapshot.services = [
            ("playback", .starting), ("queue", .down), ("feeds", .ready),
        ].map { name, state in ServiceState(.with { ($0.name, $0.state) = (name, state) }) }
        #expect(
            narrator.lines(for: snapshot, now: now) == ["Connected; waiting for playback (starting) and queue (down)."])
    }

    @Test func `the status names the source queue`() {
        var state = WirePlaybackState.with {
            $0.status = .playing
            $0.queue = "evening"
            $0.episode.id = "e1"
        }
        let now = Moment(monotonic: MonotonicTime(nanoseconds: 1), wall: Timestamp(milliseconds: 1))
        #expect(PlayerState(state).json(at: now)["queue"] == "evening")
        state.queue = ""
        #expect(PlayerState(state).json(at: now)["queue"] == .null)
    }
}
