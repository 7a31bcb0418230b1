import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import DownloadsService

/// Regression tests, one for each fault.
struct DownloadsRegressionTests {
    private let rig = DownloadsRig()

    @Test func `a late report of a cancelled transfer isn’t attributed to another episode`() throws {
        rig.add("e1")
        let old = try rig.order("e1").number
        rig.begin(old)
        rig.send { $0.pause.episodes = ["e1"] }
        rig.add("e2")
        #expect(try rig.order("e2").number != old)
        rig.report(.completed(old, bytes: 1_000))
        #expect(rig.state("e2") == .downloading)
    }

    @Test func `a file that is complete at the moment of the pause counts as downloaded`() throws {
        rig.add("e1")
        let number = try rig.order("e1").number
        rig.begin(number)
        rig.send { $0.pause.episodes = ["e1"] }
        rig.report(.completed(number, bytes: 1_000))
        #expect(rig.state("e1") == .downloaded && rig.stored("e1")?.path == "/d/Show/Part 1 [e1].mp3")
    }

    @Test func `a file that is complete at the moment it is cancelled is deleted`() throws {
        rig.add("e1")
        let number = try rig.order("e1").number
        rig.begin(number)
        rig.send { $0.cancel.episodes = ["e1"] }
        rig.report(.completed(number, bytes: 1_000))
        #expect(rig.state("e1") == .notDownloaded)
        #expect(rig.actions.last == .delete(episode: "e1", path: "Show/Part 1 [e1].mp3"))
    }

    @Test func `ended transfers are removed from the schedule`() throws {
        for _ in 0..<50 {
            rig.add("e1")
            let number = try rig.order("e1").number
            rig.begin(number)
            rig.send { $0.pause.episodes = ["e1"] }
            #expect(rig.machine.schedule.cancelled.keys.sorted() == [number])
            rig.report(.stopped(episode: "e1", FileVersion(etag: "\"a\"", lastModified: ""), received: 10))
            rig.report(.ended(number))
            #expect(rig.machine.schedule.cancelled.isEmpty && rig.machine.schedule.transfers.isEmpty)
        }
    }

    @Test func `a refusal names the episode’s title, or the ID if it is unknown`() {
        let paused = rig.send { $0.pause.episodes = ["e2"] }?.failure
        #expect(paused?.known == .notFound)
        #expect(paused?.message == "“Part 2” isn’t downloaded and isn’t waiting to be; nothing was done.")
        rig.add("e1")
        let resumed = rig.send { $0.resume.episodes = ["e1", "e77"] }?.failure
        #expect(resumed?.message == "There is no episode “e77”; nothing was done.")
        #expect(rig.state("e1") == .downloading)
    }

    @Test func `only the 64 newest answers to alerts are stored`() throws {
        var alerts: [String] = []
        for _ in 0..<70 {
            rig.add("e1")
            rig.report(.failed(try rig.order("e1").number, TransferFailure(Failure(.verificationFailed, "a page"))))
            let alert = try #require(rig.alerts.first)
            alerts.append(alert.id)
            rig.send {
                $0.answerAlert.alert = alert.id
                $0.answerAlert.action = "dismiss"
            }
            rig.advance(1)
        }
        let kept = Set((rig.records["answer"] ?? [:]).keys)
        #expect(kept == Set(alerts.suffix(64)))
    }

    @Test func `the explanation of an episode says why it was never downloaded`() {
        #expect(rig.why("e1").contains("never downloaded"))
        rig.library["e2"]?.enclosureURL = "file:///a/2.mp3"
        #expect(rig.why("e2") == "It is a file on this machine; there is nothing to download.")
        rig.library["e3"]?.enclosureURL = ""
        #expect(rig.why("e3") == "It has no audio to download.")
        #expect(rig.why("e77").contains("never downloaded"))
    }

    @Test func `a rule fetches no episode that another rule would delete`() throws {
        rig.set(.downloadsAtOnce, "9")
        rig.set(.downloadsPerHost, "9")
        var idle = WirePlaybackState()
        idle.status = .idle
        rig.observe(.playbackState, .put, idle.wireBytes)
        var main = WireQueueState()
        main.name = "main"
        rig.observe(.queue("main"), .put, main.wireBytes)
        rig.set(.keepDownloads, "1")
        rig.set(.autoDownload, "4")
        try rig.complete("e5")
        var news = WireEpisodesChanged()
        news.podcast = "p1"
        news.added = ["e5"]
        for _ in 0..<5 {
            rig.advance(30)
            rig.observe(.episodes(of: "p1"), .event, news.wireBytes)
        }
        #expect(rig.library.keys.filter { rig.state($0) != .notDownloaded } == ["e5"])
        #expect(rig.orders.count == 1)
    }

    @Test func `a transfer whose cancellation couldn’t be saved continues`() throws {
        rig.add("e1")
        rig.begin(try rig.order("e1").number)
        rig.refusal = Failure(.diskFull, "full")
        rig.send { $0.pause.episodes = ["e1"] }
        rig.refusal = nil
        let orders = rig.orders.count
        rig.advance(6)
        #expect(rig.state("e1") == .downloading && rig.orders.count == orders + 1)
    }

    @Test func `a file that was at its path when the process crashed is found and not fetched again`() throws {
        rig.add("e1")
        let number = try rig.order("e1").number
        rig.begin(number)
        rig.start()
        rig.report(.folderScanned(["Show/Part 1 [e1].mp3": 1_000]))
        #expect(rig.state("e1") == .downloaded && rig.alerts.isEmpty)
        #expect(rig.actions.contains(.cancel(try rig.order("e1").number)))
    }

    @Test func `a rule waits until the hour is known`() throws {
        rig.set(.autoDownloadHours, "22-6")
        rig.set(.autoDownload, "1", podcast: "p1")
        #expect(rig.orders.isEmpty)
        rig.report(.networkChecked(interfaces: ["eth0"], hour: 23))
        #expect(rig.state("e5") == .downloading)
    }

    @Test func `rules delete nothing before all queues are known`() throws {
        rig.add("e1")
        try rig.complete("e1")
        rig.set(.deletePlayed, "on")
        rig.advance(1)
        rig.library["e1"]?.state.played = true
        rig.library["e1"]?.state.completedAt = rig.now.wall.milliseconds
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

    // MARK: Played again

    private func holdNothing() {
        rig.observe(.playbackState, .put, WirePlaybackState().wireBytes)
        var main = WireQueueState()
        main.name = "main"
        rig.observe(.queue("main"), .put, main.wireBytes)
    }

    private func hear(_ episode: String) {
        rig.advance(1)
        var state = WireEpisodeState()
        state.episode = episode
        state.played = true
        state.completedAt = rig.now.wall.milliseconds
        rig.library[episode]?.state = state
        rig.observe(.episodeState(episode), .event, state.wireBytes)
    }

    @Test(arguments: [false, true])
    func `an episode that is requested after it was played keeps its file until it is played again`(restarts: Bool)
        throws
    {
        rig.set(.deletePlayed, "on")
        hear("e1")
        rig.advance(1)
        rig.add("e1")
        if restarts { rig.start() }
        holdNothing()
        try rig.complete("e1")
        rig.advance(60)
        #expect(rig.state("e1") == .downloaded)
        #expect(rig.why("e1").hasSuffix("It is deleted when it has been played again."))
        hear("e1")
        rig.advance(60)
        #expect(rig.state("e1") == .notDownloaded)
    }

    @Test(arguments: [false, true])
    func `a failed download that was played from the stream keeps its file when it is requested again`(byResuming: Bool)
        throws
    {
        holdNothing()
        rig.set(.deletePlayed, "on")
        rig.set(.autoDownload, "1", podcast: "p1")
        let gone = TransferFailure(Failure(.episodeUnavailable, "404"))
        rig.report(.failed(try rig.order("e5").number, gone))
        hear("e5")
        rig.advance(1)
        rig.send { byResuming ? ($0.resume.episodes = ["e5"]) : ($0.add.episodes = ["e5"]) }
        try rig.complete("e5")
        rig.advance(60)
        #expect(rig.state("e5") == .downloaded)
    }

    // MARK: Existing files

    @Test
    func `a file that was complete when the process crashed is found even without an announced size`()
        throws
    {
        rig.add("e1", "e2")
        rig.begin(try rig.order("e1").number, bytes: 0)
        // A file existed at the path of this download before it was begun.
        var start = TransferStart(
            total: 0, offset: 0, version: FileVersion(etag: "", lastModified: ""), contentType: "")
        start.isPathFree = false
        rig.report(.began(try rig.order("e2").number, start))
        rig.start()
        rig.report(.folderScanned(["Show/Part 1 [e1].mp3": 777, "Show/Part 2 [e2].mp3": 777]))
        #expect(rig.state("e1") == .downloaded && rig.stored("e1")?.totalBytes == 777)
        #expect(rig.state("e2") == .downloading)
    }

    @Test func `a file at the path of a failed download isn’t mistaken for the download`() throws {
        rig.add("e1")
        rig.begin(try rig.order("e1").number, bytes: 0)
        rig.report(.failed(try rig.order("e1").number, TransferFailure(Failure(.streamFailed, "cut"))))
        rig.start()
        rig.report(.folderScanned(["Show/Part 1 [e1].mp3": 777]))
        #expect(rig.state("e1") == .queued && rig.alerts.map(\.code) == ["unknownFiles"])
    }

    @Test func `a file that couldn’t be deleted is deleted after the next start, a foreign file never is`() throws {
        rig.add("e1", "e2")
        try rig.complete("e1")
        try rig.complete("e2")
        rig.send { $0.remove.episodes = ["e1", "e2"] }
        rig.report(.deleted(episode: "e1", Failure(.storageFailed, "a folder that cannot be written to")))
        rig.report(.deleted(episode: "e2", Failure(code: "storageFailed", message: "a link, left alone")))
        rig.start()
        rig.report(.folderScanned([:]))
        let deletions = rig.actions.filter { if case .delete = $0 { true } else { false } }
        #expect(deletions == [.delete(episode: "e1", path: "Show/Part 1 [e1].mp3")])
    }

    @Test func `records of files that are yet to be deleted are never evicted`() {
        var change = DownloadStoreChange(DownloadStore(root: "/d"), now: DownloadsRig().now)
        change.recordPast("e0", "removed", path: "Show/0.mp3")
        for number in 1...1_100 { change.recordPast("e\(number)", "cancelled") }
        #expect(change.store.past["e0"]?.path == "Show/0.mp3" && change.store.past.count == 1_000)
    }

    // MARK: Missed events

    @Test func `a download that waits for its rule’s hours or its next attempt begins when it is requested`() throws {
        rig.report(.networkChecked(interfaces: ["eth0"], hour: 12))
        rig.set(.autoDownloadHours, "22-6")
        rig.set(.autoDownload, "1", podcast: "p1")
        #expect(rig.state("e5") == .queued)
        #expect(rig.add("e5")?.reply?.changed == [true])
        #expect(rig.state("e5") == .downloading && rig.why("e5").contains("requested by test"))
        #expect(rig.add("e5")?.reply?.changed == [false])
        let cut = TransferFailure(Failure(.streamFailed, "503"), retryAfter: 3_600)
        rig.report(.failed(try rig.order("e5").number, cut))
        #expect(rig.state("e5") == .queued)
        #expect(rig.add("e5")?.reply?.changed == [true] && rig.state("e5") == .downloading)
    }

    private func count(_ episodes: UInt32, of id: String = "p1") {
        var podcast = WirePodcast()
        podcast.id = id
        podcast.episodeCount = episodes
        podcast.subscribed = true
        rig.observe(.podcast(id), .put, podcast.wireBytes)
    }

    @Test func `new episodes whose event was missed are found by the podcast’s episode count`() throws {
        rig.set(.autoDownload, "1", podcast: "p1")
        count(5)
        rig.library["e6"] = rig.library["e5"]
        rig.library["e6"]?.id = "e6"
        count(6)
        try rig.complete("e5")
        #expect(rig.state("e6") == .downloading)
    }

    @Test func `a missed end of an episode is found when another episode is loaded`() throws {
        holdNothing()
        rig.set(.deletePlayed, "on")
        rig.add("e1")
        try rig.complete("e1")
        var player = WirePlaybackState()
        player.status = .playing
        player.episode.id = "e1"
        rig.observe(.playbackState, .put, player.wireBytes)
        rig.advance(60)
        rig.library["e1"]?.state.played = true
        rig.library["e1"]?.state.completedAt = rig.now.wall.milliseconds
        player.episode.id = "e2"
        rig.observe(.playbackState, .put, player.wireBytes)
        rig.advance(60)
        #expect(rig.state("e1") == .notDownloaded)
    }

    @Test(arguments: [MessageKind.put, .delta]) func `nothing is deleted while a queue can’t be decoded`(
        kind: MessageKind
    ) throws {
        holdNothing()
        rig.add("e1")
        try rig.complete("e1")
        hear("e1")
        rig.set(.deletePlayed, "on")
        var walks = WireQueueState()
        walks.name = "walks"
        rig.observe(.queue("walks"), .put, walks.wireBytes)
        rig.observe(.queue("walks"), kind, [0xff])
        rig.advance(60)
        #expect(rig.state("e1") == .downloaded)
        rig.observe(.queue("walks"), .put, walks.wireBytes)
        rig.advance(60)
        #expect(rig.state("e1") == .notDownloaded)
    }

    @Test func `rules delete nothing until a long queue is completely received`() throws {
        holdNothing()
        rig.add("e1")
        try rig.complete("e1")
        hear("e1")
        rig.set(.deletePlayed, "on")
        var main = WireQueueState()
        main.name = "main"
        main.more = true
        rig.observe(.queue("main"), .put, main.wireBytes)
        rig.advance(60)
        #expect(rig.state("e1") == .downloaded)
        holdNothing()
        rig.advance(60)
        #expect(rig.state("e1") == .notDownloaded)
    }

    @Test(arguments: [false, true])
    func `files of a forgotten podcast are deleted, but not while they are queued or loaded`(whileAway: Bool)
        throws
    {
        rig.add("e1", "e2", "e3")
        try rig.complete("e1")
        try rig.complete("e2")
        if whileAway {
            rig.library = [:]
            rig.start()
        }
        var player = WirePlaybackState()
        player.status = .playing
        player.episode.id = "e2"
        holdNothing()
        rig.observe(.playbackState, .put, player.wireBytes)
        if !whileAway {
            rig.library = [:]
            rig.observe(.podcast("p1"), .delete, [])
        }
        #expect(rig.state("e3") == .notDownloaded)
        rig.advance(60)
        #expect(rig.state("e1") == .notDownloaded && rig.why("e1").contains("its podcast was forgotten"))
        #expect(rig.state("e2") == .downloaded)
        holdNothing()
        rig.advance(60)
        #expect(rig.state("e2") == .notDownloaded)
    }

    @Test(arguments: [false, true])
    func `an episode of a forgotten podcast keeps its file only as long as it is in a queue`(restarts: Bool)
        throws
    {
        func queue(_ episodes: [String]) {
            var main = WireQueueState()
            main.name = "main"
            main.entries = episodes.map { id in
                var entry = WireQueueEntry()
                entry.id = "q\(id)"
                entry.episode.id = id
                return entry
            }
            rig.observe(.queue("main"), .put, main.wireBytes)
        }
        rig.observe(.playbackState, .put, WirePlaybackState().wireBytes)
        queue(["e1"])
        rig.add("e1")
        try rig.complete("e1")
        rig.library = [:]
        rig.observe(.podcast("p1"), .delete, [])
        queue([])
        rig.advance(5)
        queue(["e1"])
        if restarts {
            rig.start()
            rig.observe(.playbackState, .put, WirePlaybackState().wireBytes)
            queue(["e1"])
        }
        rig.advance(60)
        #expect(rig.state("e1") == .downloaded && rig.why("e1").contains("The podcast was forgotten"))
        queue([])
        rig.advance(60)
        #expect(rig.state("e1") == .notDownloaded)
        let deletion = DownloadsAction.delete(
            episode: "e1", path: "Show/Part 1 [e1].mp3", folder: try #require(rig.marker))
        #expect(rig.actions.contains(deletion))
    }

    @Test func `a podcast that reappears in the library keeps its files`() throws {
        rig.add("e1")
        try rig.complete("e1")
        let library = rig.library
        rig.library = [:]
        rig.observe(.podcast("p1"), .delete, [])
        rig.library = library
        count(5)
        rig.start()
        holdNothing()
        rig.advance(60)
        #expect(rig.state("e1") == .downloaded)
    }

    // MARK: Restored networks and files

    private func failUnreachable(_ episodes: String...) throws {
        for wait in [5.0, 15, 60, 0] {
            for episode in episodes {
                rig.report(.failed(try rig.order(episode).number, TransferFailure(Failure(.unreachable, "no way"))))
            }
            rig.advance(wait)
        }
    }

    private func checkNetwork(_ seconds: Double) {
        for _ in 0..<Int(seconds / 10) {
            rig.advance(10)
            rig.report(.networkChecked(interfaces: ["eth0"], hour: 12))
        }
    }

    @Test func `a network that works again over the same route is detected without new alerts`() throws {
        rig.report(.networkChecked(interfaces: ["eth0"], hour: 12))
        rig.add("e1", "e2")
        try failUnreachable("e1", "e2")
        #expect(rig.state("e1") == .failed && rig.state("e2") == .failed)
        let alerts = rig.alerts.map(\.id).sorted()
        let count = rig.orders.count
        checkNetwork(130)
        #expect(rig.orders.count == count + 1 && rig.orders.last?.episode == "e1")
        rig.report(.failed(try rig.order("e1").number, TransferFailure(Failure(.unreachable, "no way"))))
        #expect(rig.state("e1") == .failed && rig.alerts.map(\.id).sorted() == alerts)
        checkNetwork(130)
        #expect(rig.orders.last?.episode == "e2")
        rig.begin(try rig.order("e2").number)
        #expect(rig.state("e1") == .downloading && rig.state("e2") == .downloading && rig.alerts.isEmpty)
        #expect(rig.stored("e2")?.attempt == 0)
    }

    @Test func `unknown files raise one alert, and a second alert when another file is added`() throws {
        rig.report(.folderScanned(["mine.txt": 1]))
        let alert = try #require(rig.alerts.first)
        rig.send {
            $0.answerAlert.alert = alert.id
            $0.answerAlert.action = "dismiss"
        }
        rig.start()
        rig.report(.folderScanned(["mine.txt": 1]))
        #expect(rig.alerts.isEmpty)
        rig.report(.folderScanned(["mine.txt": 1, "other.txt": 2]))
        #expect(rig.alerts.count == 1)
        rig.report(.folderScanned([:]))
        #expect(rig.alerts.isEmpty)
    }

    @Test func `a folder that was moved with all its files keeps its downloads at the new path`() throws {
        rig.add("e1")
        try rig.complete("e1")
        rig.start(root: "/elsewhere/d")
        rig.report(.folderScanned(["Show/Part 1 [e1].mp3": 1_000]))
        #expect(rig.shown("e1")?.path == "/elsewhere/d/Show/Part 1 [e1].mp3" && rig.alerts.isEmpty)
    }

    @Test func `a file that the player couldn’t find is no longer reported as downloaded`() throws {
        rig.add("e1", "e2")
        try rig.complete("e1")
        try rig.complete("e2")
        var alert = WireAlert()
        alert.id = "a1"
        alert.code = "playsStream"
        alert.episode = "e1"
        rig.found["e1"] = .nothing
        rig.observe(.alert(.playback, "a1"), .put, alert.wireBytes)
        #expect(rig.state("e1") == .notDownloaded && rig.shown("e1") == nil && rig.state("e2") == .downloaded)
        #expect(rig.why("e1") == "It is no longer downloaded: its file was missing.")
        rig.report(.folderScanned(["Show/Part 2 [e2].mp3": 1_000, "mine.txt": 1], rig.snapshot))
        #expect(rig.state("e2") == .downloaded && rig.alerts.map(\.code) == ["unknownFiles"])
    }

    @Test func `a file that exists but that the player couldn’t play stays downloaded`() throws {
        rig.add("e1")
        try rig.complete("e1")
        var alert = WireAlert()
        alert.id = "a1"
        alert.code = "playsStream"
        alert.episode = "e1"
        rig.observe(.alert(.playback, "a1"), .put, alert.wireBytes)
        #expect(rig.state("e1") == .downloaded)
    }

    @Test func `downloads of an unsubscribed podcast are kept across a restart`() throws {
        rig.add("e1", "e2")
        try rig.complete("e1")
        rig.begin(try rig.order("e2").number)
        rig.send { $0.pause.episodes = ["e2"] }
        rig.unsubscribed = ["p1"]
        rig.start()
        var player = WirePlaybackState()
        player.status = .idle
        rig.observe(.playbackState, .put, player.wireBytes)
        var queue = WireQueueState()
        queue.name = "main"
        rig.observe(.queue("main"), .put, queue.wireBytes)
        rig.advance(60)
        #expect(rig.state("e1") == .downloaded && rig.state("e2") == .paused)
    }

    @Test(arguments: [true, false])
    func `while nothing can be saved no transfer is begun`(isFull: Bool) throws {
        rig.add("e1")
        let first = try rig.order("e1").number
        rig.report(.failed(first, TransferFailure(Failure(.streamFailed, "503"))))
        rig.refusal = Failure(.diskFull, "full")
        rig.advance(5)
        for _ in 0..<100 {
            guard let order = rig.orders.last, order.number != first else { break }
            if isFull {
                rig.report(.failed(order.number, TransferFailure(Failure(.insufficientStorage, "full"))))
            } else {
                rig.begin(order.number)
            }
        }
        rig.advance(4)
        #expect(rig.orders.count == 1)
        rig.advance(60)
        #expect(rig.orders.count == 1)
        rig.refusal = nil
        rig.advance(6)
        #expect(rig.orders.count == 2 && rig.state("e1") == .downloading)
    }

    @Test(arguments: ["resume", "retry", "add"])
    func `a download that a client requests again no longer belongs to a rule`(how: String) throws {
        rig.set(.autoDownload, "1")
        rig.set(.autoDownloadHours, "22-6")
        rig.report(.networkChecked(interfaces: ["eth0"], hour: 23))
        var news = WireEpisodesChanged()
        news.podcast = "p1"
        news.added = ["e5"]
        rig.observe(.episodes(of: "p1"), .event, news.wireBytes)
        let number = try rig.order("e5").number
        if how == "retry" {
            rig.report(.failed(number, TransferFailure(Failure(.verificationFailed, "a page"))))
        } else {
            rig.send { $0.pause.episodes = ["e5"] }
        }
        rig.report(.networkChecked(interfaces: ["eth0"], hour: 12))
        switch how {
        case "resume": rig.send { $0.resume.episodes = ["e5"] }
        case "add": rig.add("e5")
        default:
            let alert = try #require(rig.alerts.first { $0.episode == "e5" }).id
            rig.send {
                $0.answerAlert.alert = alert
                $0.answerAlert.action = "retry"
            }
        }
        #expect(rig.state("e5") == .downloading && rig.stored("e5")?.automatic == false)
    }
}
