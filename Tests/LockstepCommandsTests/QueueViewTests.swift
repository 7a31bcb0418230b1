import BusKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import LockstepClient
@testable import LockstepCommands

/// What is seen of queues besides what the player has loaded.
@Suite struct QueueViewTests {
    private static func queue(
        _ name: String, _ entries: [String], current: String, modes: WireQueueModes = WireQueueModes()
    ) -> WireQueueState {
        .with { queue in
            queue.name = name
            queue.current = current
            queue.modes = modes
            queue.entries = entries.map { id in
                .with {
                    $0.id = id
                    $0.episode.id = "e-\(id)"
                    $0.episode.title = "Title \(id)"
                }
            }
        }
    }

    private static func view(_ queue: WireQueueState, loaded entry: String) -> FleetView {
        let player = WirePlaybackState.with {
            $0.status = .failed
            $0.loadID = "l1"
            $0.queue = queue.name
            $0.queueEntry = entry
        }
        return FleetView(puts: [(.playbackState, player), (.queue(queue.name), queue)])
    }

    @Test(
        arguments: [
            (["q1", "q2"], "q1", "q1", .off, true),
            (["q1", "q2"], "q2", "q2", .off, false),
            (["q1", "q2"], "q2", "q2", .all, true),
            (["q1"], "q1", "q1", .all, false),
            (["q1"], "q1", "q1", .off, false),
            // Somebody has gone elsewhere since.
            (["q1", "q2"], "q1", "q2", .off, true),
            // Its entry was taken away.
            (["q1"], "", "q9", .off, true),
            ([], "", "q9", .off, false),
        ] as [([String], String, String, WireRepeat, Bool)])
    func `it is known whether something follows what is passed over`(
        entries: [String], current: String, loaded: String, repeats: WireRepeat, follows: Bool
    ) {
        let queue = Self.queue("evening", entries, current: current, modes: .with { $0.repeat = repeats })
        #expect(Self.view(queue, loaded: loaded).hasFollower == follows)
    }

    @Test func `a list marks what is current only where the player is`() {
        let queue = Self.queue("main", ["q1", "q2"], current: "q2")
        let playing = QueueList.lines(queue, playing: "main")
        #expect(playing.count { $0.contains("*") } == 1)
        #expect(!playing.contains { $0.contains("playing") })
        let waiting = QueueList.lines(queue, playing: "evening")
        #expect(!waiting.contains { $0.contains("*") })
        #expect(
            waiting.last
                == "“evening” is playing (`lockstep queue --queue evening`); this one would go on with number 2.")
        #expect(
            QueueList.lines(Self.queue("main", ["q1"], current: ""), playing: "evening").last
                == "“evening” is playing (`lockstep queue --queue evening`).")
    }

    @Test func `a number that could mean an entry of two queues is refused`() throws {
        let evening = Self.queue("evening", ["q1", "q2", "q3"], current: "q1")
        let main = Self.queue("main", ["q8", "q9"], current: "q8")
        var player = WirePlaybackState.with {
            $0.status = .playing
            $0.episode.id = "e-q1"
            $0.queue = "evening"
            $0.queueEntry = "q1"
        }
        func queues() -> [WireQueueState] {
            FleetView(puts: [(.playbackState, player), (.queue("main"), main), (.queue("evening"), evening)])
                .queuesToPlayFrom
        }
        func entry(_ text: String) throws(Failure) -> String? {
            try EntryReference.numberOrEntry(text, in: queues())?.entry.id
        }
        #expect(queues().map(\.name) == ["evening", "main"])
        let refusal = #expect(throws: Failure.self) { try entry("2") }
        #expect(refusal?.known == .ambiguous)
        #expect(
            refusal?.message
                == "Number 2 could be an entry of “evening” (--queue evening) or Up Next (--queue main). Say which by its ID:"
        )
        #expect(try entry("3") == "q3")
        #expect(try entry("q9") == "q9")
        #expect(try entry("Title") == nil)
        #expect(throws: Failure.self) { try entry("4") }
        player.status = .idle
        #expect(try entry("2") == "q9")
    }

    @Test func `a player names the services that it waits for`() {
        var narrator = PlainNarrator()
        var snapshot = PlayerSnapshot()
        snapshot.link = .live
        let now = MonotonicTime(nanoseconds: 1)
        _ = narrator.lines(for: snapshot, now: now)
        snapshot.isStale = true
        #expect(narrator.lines(for: snapshot, now: now) == ["Connected; waiting for the services."])
        snapshot.link = .reconnecting
        _ = narrator.lines(for: snapshot, now: now)
        snapshot.link = .live
        snapshot.services = [
            .init(name: "playback", state: "starting"), .init(name: "queue", state: "down"),
            .init(name: "feeds", state: "ready"),
        ]
        #expect(
            narrator.lines(for: snapshot, now: now) == ["Connected; waiting for playback (starting) and queue (down)."])
    }

    @Test func `the status names the queue that plays`() {
        var state = WirePlaybackState.with {
            $0.status = .playing
            $0.queue = "evening"
            $0.episode.id = "e1"
        }
        let now = Moment(monotonic: MonotonicTime(nanoseconds: 1), wall: Timestamp(milliseconds: 1))
        #expect(state.statusJSON(at: now, bootID: "b")["queue"] == "evening")
        state.queue = ""
        #expect(state.statusJSON(at: now, bootID: "b")["queue"] == .null)
    }
}
