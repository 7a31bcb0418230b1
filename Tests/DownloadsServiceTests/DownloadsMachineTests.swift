import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import DownloadsService

struct DownloadsMachineTests {
    private let rig = DownloadsRig()
    private let cut = TransferFailure(Failure(.streamFailed, "cut"))

    @Test func `a request is durable, then fetched, and reported as downloaded when its file is complete`() throws {
        #expect(rig.add("e1")?.reply?.changed == [true])
        #expect(rig.state("e1") == .downloading && rig.shown("e1")?.state == .downloading)
        #expect(try rig.order("e1").download.targetPath == "Show/Part 1 [e1].mp3")
        try rig.complete("e1", bytes: 77)
        let download = try #require(rig.stored("e1"))
        #expect(
            download.state == .downloaded && download.totalBytes == 77 && download.path == "/d/Show/Part 1 [e1].mp3")
        #expect(rig.add("e1")?.reply?.changed == [false])
        #expect(rig.why("e1") == "It is downloaded: requested by test.")
    }

    @Test func `transfers keep to the limits in total and for each host, in order of their requests`() throws {
        rig.set(.downloadsAtOnce, "3")
        rig.set(.downloadsPerHost, "2")
        rig.add("e1", "e3", "e5", "e2", "e4")
        #expect(rig.orders.map(\.episode).sorted() == ["e1", "e2", "e3"])
        try rig.complete("e1")
        #expect(rig.orders.last?.episode == "e4")
        try rig.complete("e3")
        #expect(rig.orders.last?.episode == "e5")
        rig.set(.downloadsAtOnce, "1")
        #expect(rig.state("e5") == .downloading)
    }

    @Test
    func `pausing keeps the partial file, resuming continues it, cancelling deletes it, removing deletes the file`()
        throws
    {
        rig.add("e1")
        let number = try rig.order("e1").number
        rig.begin(number)
        rig.send { $0.pause.episodes = ["e1"] }
        #expect(rig.state("e1") == .paused && rig.actions.contains(.cancel(number)))
        rig.report(.stopped(episode: "e1", FileVersion(etag: "\"a\"", lastModified: ""), received: 400))
        #expect(rig.send { $0.pause.episodes = ["e1"] }?.reply?.changed == [false])
        #expect(rig.why("e1").hasPrefix("Its download is paused. It was requested by"))
        rig.send { $0.resume.episodes = ["e1"] }
        #expect(try rig.order("e1").download.resumableBytes == 999 && rig.order("e1").download.version.etag == "\"a\"")
        rig.send { $0.cancel.episodes = ["e1"] }
        #expect(rig.state("e1") == .notDownloaded && rig.shown("e1") == nil)
        #expect(rig.actions.suffix(2).contains(.discard(episode: "e1")))
        #expect(rig.why("e1") == "It is not downloaded; its download was cancelled by test.")
        rig.add("e2")
        try rig.complete("e2")
        #expect(rig.send { $0.cancel.episodes = ["e2"] }?.failure?.known == .notApplicable)
        rig.send { $0.remove.episodes = ["e2"] }
        #expect(rig.actions.last == .delete(episode: "e2", path: "Show/Part 2 [e2].mp3"))
    }

    @Test func `a command that doesn’t apply to one of its episodes changes none of them`() throws {
        rig.add("e1", "e2")
        try rig.complete("e2")
        #expect(rig.send { $0.pause.episodes = ["e1", "e2"] }?.failure?.known == .notApplicable)
        #expect(rig.state("e1") == .downloading)
        #expect(rig.add("e3", "e77")?.failure?.known == .notFound)
        #expect(rig.state("e3") == .notDownloaded)
        #expect(rig.add()?.failure?.known == .invalidArgument)
        #expect(rig.add("../x")?.failure?.known == .invalidArgument)
        #expect(rig.send { $0.pause.episodes = ["e5"] }?.failure?.known == .notFound)
        #expect(rig.send { $0.remove.episodes = ["e5"] }?.reply?.changed == [false])
        #expect(rig.send { $0.cancel.episodes = ["e5"] }?.reply?.changed == [false])
        rig.library["e5"]?.enclosureURL = "file:///etc/passwd"
        #expect(rig.add("e5")?.failure?.known == .badURL)
        rig.library["e4"]?.enclosureURL = ""
        #expect(rig.add("e4")?.failure?.known == .episodeUnavailable)
    }

    @Test func `a failure is retried after 5, 15 and 60 s, then an alert offers another retry`() throws {
        rig.add("e1")
        for wait in [5.0, 15, 60] {
            rig.report(.failed(try rig.order("e1").number, cut))
            #expect(rig.state("e1") == .queued)
            let count = rig.orders.count
            rig.advance(wait - 0.01)
            #expect(rig.orders.count == count)
            rig.advance(0.02)
            #expect(rig.orders.count == count + 1 && rig.state("e1") == .downloading)
        }
        rig.report(.failed(try rig.order("e1").number, cut))
        #expect(rig.state("e1") == .failed && rig.stored("e1")?.error.message == "cut")
        let alert = try #require(rig.alerts.first)
        #expect(alert.code == "downloadFailed" && alert.episode == "e1")
        rig.send {
            $0.answerAlert.alert = alert.id
            $0.answerAlert.action = "retry"
        }
        #expect(rig.state("e1") == .downloading && rig.alerts.isEmpty)
        let late = rig.send {
            $0.answerAlert.alert = alert.id
            $0.answerAlert.action = "dismiss"
        }
        #expect(late?.failure?.known == .alreadyAnswered)
        #expect(rig.machine.everything().contains { $0.put.collection == "answer" && $0.put.key == alert.id })
    }

    @Test func `progress resets the attempts, and a server’s Retry-After is respected`() throws {
        rig.add("e1")
        for _ in 0..<5 {
            let number = try rig.order("e1").number
            rig.begin(number, bytes: 10_000_000)
            rig.report(.progressed(number, received: 1_000_000, bytesPerSecond: 1))
            rig.report(.failed(number, cut))
            #expect(rig.stored("e1")?.attempt == 1)
            rig.advance(5)
        }
        rig.report(.failed(try rig.order("e1").number, TransferFailure(Failure(.streamFailed, "503"), retryAfter: 120)))
        let count = rig.orders.count
        rig.advance(119)
        #expect(rig.orders.count == count)
        rig.advance(1)
        #expect(rig.orders.count == count + 1)
    }

    @Test func `attempts that each make a little progress don’t add up to a failure`() throws {
        rig.add("e1")
        for attempt in 1...10 {
            let number = try rig.order("e1").number
            rig.begin(number, bytes: 10_000_000, offset: UInt64(attempt * 1_000))
            rig.report(.saved(number, received: UInt64(attempt * 1_000 + 500)))
            rig.report(.failed(number, cut))
            #expect(rig.state("e1") == .queued && rig.stored("e1")?.attempt == 1)
            rig.advance(5)
        }
    }

    @Test func `a download that was interrupted early continues at the end of its partial file`() throws {
        rig.add("e1")
        rig.begin(try rig.order("e1").number)
        rig.start()
        #expect(try rig.order("e1").download.resumableBytes == 999 && rig.order("e1").download.version.etag == "\"a\"")
        rig.begin(try rig.order("e1").number, etag: "")
        rig.start()
        #expect(try rig.order("e1").download.resumableBytes == 0)
    }

    @Test func `the service stops when its transfers have reported their bytes`() throws {
        rig.add("e1", "e2")
        let numbers = try [rig.order("e1").number, rig.order("e2").number]
        rig.begin(numbers[0])
        rig.handle(.stopping)
        #expect(!rig.machine.hasStopped)
        rig.report(.stopped(episode: "e1", FileVersion(etag: "\"a\"", lastModified: ""), received: 400))
        rig.report(.ended(numbers[0]))
        #expect(!rig.machine.hasStopped && rig.stored("e1")?.receivedBytes == 400)
        rig.report(.ended(numbers[1]))
        #expect(rig.machine.hasStopped)
    }

    @Test(arguments: [
        Failure(.episodeUnavailable, "404"), Failure(.verificationFailed, "a page"),
        Failure(.insufficientStorage, "full"),
    ])
    func `a permanent failure is final at once, and can be requested again`(_ failure: Failure) throws {
        rig.add("e1")
        rig.report(.failed(try rig.order("e1").number, TransferFailure(failure)))
        #expect(rig.state("e1") == .failed && rig.stored("e1")?.error.code == failure.code)
        #expect(rig.add("e1")?.reply?.changed == [true])
        #expect(rig.state("e1") == .downloading && rig.alerts.isEmpty)
    }

    @Test func `a download that failed without a network waits for one`() throws {
        rig.report(.networkChecked(interfaces: ["eth0"], hour: 12))
        rig.add("e1")
        for wait in [5.0, 15, 60, 0] {
            rig.report(.failed(try rig.order("e1").number, TransferFailure(Failure(.unreachable, "no network"))))
            rig.advance(wait)
        }
        #expect(rig.state("e1") == .failed)
        rig.report(.networkChecked(interfaces: [], hour: 12))
        #expect(rig.state("e1") == .failed)
        rig.report(.networkChecked(interfaces: ["wlan0"], hour: 12))
        #expect(rig.state("e1") == .downloading && rig.alerts.isEmpty)
    }

    @Test
    func `after a crash a transfer continues from the synchronised bytes, and late reports are ignored`()
        throws
    {
        rig.add("e1")
        let number = try rig.order("e1").number
        rig.begin(number)
        rig.report(.saved(number, received: 300))
        rig.start()
        #expect(rig.state("e1") == .downloading)
        #expect(try rig.order("e1").download.resumableBytes == 999 && rig.order("e1").download.version.etag == "\"a\"")
        rig.report(.completed(number + 17, bytes: 1_000))
        #expect(rig.state("e1") == .downloading)
    }

    @Test
    func `the folder scan at the start finds missing and replaced files and doesn’t change unknown ones`()
        throws
    {
        rig.add("e1", "e2", "e3")
        try rig.complete("e1")
        try rig.complete("e2")
        try rig.complete("e3")
        rig.add("e4")
        rig.begin(try rig.order("e4").number, bytes: 55)
        rig.start()
        rig.send { $0.pause.episodes = ["e4"] }
        rig.report(
            .folderScanned(
                [
                    "Show/Part 1 [e1].mp3": 1_000, "Show/Part 2 [e2].mp3": 3, "Show/Part 4 [e4].mp3": 55, "mine.txt": 9,
                ]))
        #expect(rig.state("e1") == .downloaded && rig.state("e2") == .notDownloaded)
        #expect(rig.state("e3") == .notDownloaded && rig.state("e4") == .downloaded)
        #expect(rig.why("e3").contains("missing"))
        #expect(rig.alerts.map(\.code) == ["unknownFiles"] && rig.alerts[0].message.contains("mine.txt"))
        #expect(!rig.actions.contains { if case .delete = $0 { true } else { false } })
    }

    // MARK: Rules

    private func hold(loaded: String, queued: [String] = []) {
        var player = WirePlaybackState()
        player.status = .playing
        player.episode.id = loaded
        var queue = WireQueueState()
        queue.name = "main"
        queue.entries = queued.map { id in
            var entry = WireQueueEntry()
            entry.id = "q\(id)"
            entry.episode.id = id
            return entry
        }
        rig.observe(.queue("main"), .put, queue.wireBytes)
        rig.observe(.playbackState, .put, player.wireBytes)
    }

    private func hear(_ episode: String) {
        var state = WireEpisodeState()
        state.episode = episode
        state.played = true
        rig.advance(1)
        state.completedAt = rig.now.wall.milliseconds
        rig.observe(.episodeState(episode), .event, state.wireBytes)
    }

    private func publishNew() {
        var news = WireEpisodesChanged()
        news.podcast = "p1"
        news.added = ["e5"]
        rig.observe(.episodes(of: "p1"), .event, news.wireBytes)
    }

    @Test func `a rule downloads the newest episodes once, without played and removed ones`()
        throws
    {
        rig.library["e4"]?.state.played = true
        rig.set(.autoDownload, "3", podcast: "p1")
        #expect(Set(rig.orders.map(\.episode)) == ["e5", "e3"])
        #expect(rig.why("e5").contains("by a rule, as one of the newest 3 of “Show”"))
        rig.send { $0.cancel.episodes = ["e5"] }
        publishNew()
        #expect(rig.state("e5") == .notDownloaded)
        rig.add("e5")
        #expect(rig.state("e5") == .downloading)
    }

    @Test
    func `a rule for all podcasts applies to each at once and after a start, unless the podcast has its own rule`()
        throws
    {
        rig.library["e5"]?.podcastID = "p2"
        rig.set(.downloadsAtOnce, "9")
        rig.set(.downloadsPerHost, "9")
        rig.set(.autoDownload, "1")
        #expect(Set(rig.orders.map(\.episode)) == ["e5", "e4"])
        rig.set(.autoDownload, "2", podcast: "p1")
        #expect(Set(rig.orders.map(\.episode)) == ["e5", "e4", "e3"])
        rig.library["e6"] = rig.library["e5"]
        rig.library["e6"]?.id = "e6"
        rig.start()
        #expect(rig.state("e6") == .downloading)
    }

    @Test func `automatic downloads wait for their hours and networks, requested ones don’t`() throws {
        rig.report(.networkChecked(interfaces: ["wwan0"], hour: 12))
        rig.set(.autoDownloadHours, "22-6")
        rig.set(.autoDownloadNetworks, "wlan0")
        rig.set(.autoDownload, "1", podcast: "p1")
        #expect(rig.orders.isEmpty && rig.shown("e5")?.waitsFor == "the hours 22-6")
        rig.add("e1")
        #expect(rig.state("e1") == .downloading)
        rig.report(.networkChecked(interfaces: ["wwan0"], hour: 23))
        #expect(rig.shown("e5")?.waitsFor == "the network wlan0")
        rig.report(.networkChecked(interfaces: ["wlan0"], hour: 23))
        #expect(rig.state("e5") == .downloading)
    }

    @Test func `queued downloads of a rule end when it is removed, and return when it is set again`() throws {
        rig.report(.networkChecked(interfaces: ["wwan0"], hour: 12))
        rig.set(.autoDownloadNetworks, "wlan0")
        rig.set(.autoDownload, "3", podcast: "p1")
        #expect(["e5", "e4", "e3"].allSatisfy { rig.state($0) == .queued })
        rig.set(.autoDownload, "0", podcast: "p1")
        #expect(["e5", "e4", "e3"].allSatisfy { rig.state($0) == .notDownloaded })
        rig.report(.networkChecked(interfaces: ["wlan0"], hour: 12))
        #expect(rig.orders.isEmpty)
        rig.set(.autoDownload, "1", podcast: "p1")
        #expect(rig.state("e5") == .downloading)
    }

    @Test func `a rule deletes played files, but never loaded or queued ones, and the explanations say why`() throws {
        rig.add("e1", "e2", "e3")
        for episode in ["e1", "e2", "e3"] { try rig.complete(episode) }
        rig.set(.deletePlayed, "on")
        hear("e1")
        #expect(rig.state("e1") == .downloaded)
        hold(loaded: "e2", queued: ["e3"])
        rig.advance(11)
        #expect(rig.state("e1") == .notDownloaded && rig.why("e1").contains("it has been played"))
        hear("e2")
        hear("e3")
        rig.advance(11)
        #expect(rig.state("e2") == .downloaded && rig.state("e3") == .downloaded)
        #expect(rig.why("e3").contains("waits in Up Next"))
        hold(loaded: "e9")
        rig.advance(11)
        #expect(rig.state("e2") == .notDownloaded && rig.state("e3") == .notDownloaded)
    }

    @Test func `a rule keeps only the newest files of a podcast`() throws {
        hold(loaded: "")
        rig.set(.downloadsAtOnce, "9")
        for episode in ["e1", "e2", "e3", "e4"] {
            rig.add(episode)
            try rig.complete(episode)
            rig.advance(1)
        }
        rig.set(.keepDownloads, "2", podcast: "p1")
        rig.add("e5")
        try rig.complete("e5")
        rig.advance(11)
        #expect(["e1", "e2", "e3"].allSatisfy { rig.state($0) == .notDownloaded })
        #expect(rig.state("e4") == .downloaded && rig.state("e5") == .downloaded)
    }

    @Test func `the newest episodes are kept in whichever order they were downloaded`() throws {
        hold(loaded: "")
        for number in 1...5 { rig.library["e\(number)"]?.published = Int64(number) * 86_400_000 }
        rig.set(.downloadsAtOnce, "9")
        rig.set(.downloadsPerHost, "9")
        rig.set(.autoDownload, "4")
        for episode in ["e5", "e2", "e4", "e3"] {
            try rig.complete(episode)
            rig.advance(1)
        }
        rig.set(.keepDownloads, "2")
        rig.advance(11)
        #expect(rig.library.keys.filter { rig.state($0) == .downloaded }.sorted() == ["e4", "e5"])
        #expect(rig.why("e3").contains("deleted by the rule that keeps the newest 2 downloads of “Show”"))
    }

    @Test func `a rule fetches no more episodes than are kept, the newest first`() throws {
        hold(loaded: "")
        for number in 1...5 { rig.library["e\(number)"]?.published = Int64(number) * 86_400_000 }
        rig.set(.downloadsAtOnce, "1")
        rig.set(.keepDownloads, "2")
        rig.set(.autoDownload, "4")
        try rig.complete("e5")
        try rig.complete("e4")
        rig.advance(60)
        #expect(rig.orders.map(\.episode) == ["e5", "e4"])
        #expect(rig.library.keys.filter { rig.state($0) == .downloaded }.sorted() == ["e4", "e5"])
    }

    @Test func `an old episode that a client requested is not deleted for its age`() throws {
        hold(loaded: "")
        for number in 1...5 { rig.library["e\(number)"]?.published = Int64(number) * 86_400_000 }
        rig.set(.keepDownloads, "1")
        rig.set(.autoDownload, "1")
        try rig.complete("e5")
        rig.add("e1")
        try rig.complete("e1")
        rig.advance(11)
        #expect(rig.state("e1") == .downloaded && rig.state("e5") == .notDownloaded)
    }

    @Test func `the record of a file to delete is kept until the file is deleted`() throws {
        rig.add("e1")
        try rig.complete("e1")
        rig.send { $0.remove.episodes = ["e1"] }
        rig.start()
        rig.report(.folderScanned(["Show/Part 1 [e1].mp3": 1_000]))
        #expect(rig.actions.contains(.delete(episode: "e1", path: "Show/Part 1 [e1].mp3")))
        rig.report(.deleted(episode: "e1", nil))
        rig.start()
        rig.report(.folderScanned([:]))
        #expect(!rig.actions.contains { if case .delete = $0 { true } else { false } })
    }

    @Test func `a change that can’t be saved is refused and rolled back`() throws {
        rig.refusal = Failure(.diskFull, "full")
        #expect(rig.add("e1")?.failure?.known == .diskFull)
        rig.refusal = nil
        #expect(rig.state("e1") == .notDownloaded)
        #expect(rig.why("e1").contains("never downloaded"))
    }

    @Test func `a complete file that can’t be recorded is recorded later and not fetched again`() throws {
        rig.add("e1")
        let number = try rig.order("e1").number
        rig.begin(number)
        rig.refusal = Failure(.diskFull, "full")
        rig.report(.completed(number, bytes: 1_000))
        #expect(rig.state("e1") == .downloading)
        rig.refusal = nil
        rig.advance(6)
        #expect(rig.state("e1") == .downloaded && rig.orders.count == 1)
    }

    @Test(arguments: 0..<40)
    func `any sequence of commands and reports leaves the stream, the database and the transfers consistent`(
        seed: UInt64
    )
        throws
    {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let episode = "e\(Int.random(in: 1...5, using: &random))"
            let number = rig.orders.last { $0.episode == episode }?.number ?? 0
            switch Int.random(in: 0..<15, using: &random) {
            case 0, 1: rig.add(episode)
            case 2: rig.send { $0.pause.episodes = [episode] }
            case 3: rig.send { $0.resume.episodes = [episode] }
            case 4: rig.send { $0.cancel.episodes = [episode] }
            case 5: rig.send { $0.remove.episodes = [episode] }
            case 6: rig.begin(number)
            case 7: rig.report(.completed(number, bytes: 1_000))
            case 8: rig.report(.failed(number, cut))
            case 9: rig.report(.saved(number, received: 10))
            case 10: rig.advance(Double.random(in: 0...70, using: &random))
            case 11: rig.report(.ended(number))
            case 12: rig.found[episode] = [nil, .nothing, .other, .file(3)].randomElement(using: &random) ?? nil
            case 13: rig.refusal = rig.refusal == nil ? Failure(.diskFull, "full") : nil
            default: rig.start()
            }
            rig.refusal = Bool.random(using: &random) ? rig.refusal : nil
            for id in rig.library.keys {
                // Downloads that were active in an earlier process are queued again, which need not be saved.
                var stored = rig.stored(id)
                if stored?.state == .downloading, rig.shown(id)?.state == .queued { stored?.state = .queued }
                #expect(rig.shown(id) == stored)
            }
        }
        rig.refusal = nil
        rig.advance(100)
        let running = rig.machine.schedule.transfers.values.filter { $0.completed == nil }.map(\.episode).sorted()
        #expect(Set(running).count == running.count && running.count <= 2)
        #expect(running == rig.library.keys.filter { rig.shown($0)?.state == .downloading }.sorted())
    }
}
