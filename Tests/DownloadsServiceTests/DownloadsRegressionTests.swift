import BusKit
import PodcastModel
import Testing
import WireMessages

@testable import DownloadsService

/// What once went wrong, each case by itself.
struct DownloadsRegressionTests {
    private let rig = DownloadsRig()

    @Test("A late report of a transfer that was ended is not taken for one of another episode")
    func numbersAreUsedOnce() throws {
        rig.add("e1")
        let old = try rig.order("e1").number
        rig.begin(old)
        rig.send { $0.pause.episodes = ["e1"] }
        rig.add("e2")
        #expect(try rig.order("e2").number != old)
        rig.report(.completed(old, bytes: 1_000))
        #expect(rig.state("e2") == .downloading)
    }

    @Test("A file that was whole at the moment of the pause is downloaded")
    func completesWhilePausing() throws {
        rig.add("e1")
        let number = try rig.order("e1").number
        rig.begin(number)
        rig.send { $0.pause.episodes = ["e1"] }
        rig.report(.completed(number, bytes: 1_000))
        #expect(rig.state("e1") == .downloaded && rig.stored("e1")?.path == "/d/Show/Part 1 [e1].mp3")
    }

    @Test("A file that was whole at the moment it was given up is deleted")
    func completesWhileCancelling() throws {
        rig.add("e1")
        let number = try rig.order("e1").number
        rig.begin(number)
        rig.send { $0.cancel.episodes = ["e1"] }
        rig.report(.completed(number, bytes: 1_000))
        #expect(rig.state("e1") == .notDownloaded)
        #expect(rig.actions.last == .delete(episode: "e1", path: "Show/Part 1 [e1].mp3"))
    }

    @Test("What was ended by a command that could not be saved is fetched on")
    func refusedPause() throws {
        rig.add("e1")
        rig.begin(try rig.order("e1").number)
        rig.refusal = Failure(.diskFull, "full")
        rig.send { $0.pause.episodes = ["e1"] }
        rig.refusal = nil
        let orders = rig.orders.count
        rig.advance(6)
        #expect(rig.state("e1") == .downloading && rig.orders.count == orders + 1)
    }

    @Test("A file that was at its place when the process died is found, and not fetched again")
    func findsWholeFiles() throws {
        rig.add("e1")
        let number = try rig.order("e1").number
        rig.begin(number)
        rig.start()
        rig.report(.surveyed(["Show/Part 1 [e1].mp3": 1_000]))
        #expect(rig.state("e1") == .downloaded && rig.alerts.isEmpty)
        #expect(rig.actions.contains(.cancel(try rig.order("e1").number)))
    }

    @Test("A rule waits until the hour is known")
    func hourIsNotKnown() throws {
        rig.set(.autoDownloadHours, "22-6")
        rig.set(.autoDownload, "1", podcast: "p1")
        #expect(rig.orders.isEmpty)
        rig.report(.surroundings(interfaces: ["eth0"], hour: 23))
        #expect(rig.state("e5") == .downloading)
    }

    @Test("Nothing is deleted by rule before all queues can be known")
    func queuesComeOneByOne() throws {
        rig.add("e1")
        try rig.complete("e1")
        rig.set(.deletePlayed, "on")
        rig.library["e1"]?.state.played = true
        rig.start()
        var player = WirePlaybackState()
        player.status = .idle
        rig.observe(.playbackState, .put, player.wireBytes)
        var main = WireQueueState()
        main.name = "main"
        rig.observe(.queue("main"), .put, main.wireBytes)
        var other = WireQueueState()
        other.name = "walks"
        var entry = WireQueueEntry()
        entry.id = "q1"
        entry.episode.id = "e1"
        other.entries = [entry]
        rig.observe(.queue("walks"), .put, other.wireBytes)
        rig.advance(60)
        #expect(rig.state("e1") == .downloaded)
        other.entries = []
        rig.observe(.queue("walks"), .put, other.wireBytes)
        rig.advance(60)
        #expect(rig.state("e1") == .notDownloaded)
    }
}
