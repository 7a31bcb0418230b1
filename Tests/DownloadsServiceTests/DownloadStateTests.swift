import BusKit
import LibC
import OwnerHarness
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import DownloadsService

/// Tests that reports about downloads are correct, even after another program has changed the files.
struct DownloadStateTests {
    private let rig = DownloadsRig()
    private let cut = TransferFailure(Failure(.streamFailed, "cut"))

    // MARK: Missing files

    @Test(arguments: [FoundFile.nothing, .file(999), .other])
    func
        `a file that was deleted or replaced by another program soon ends its download and is left alone`(
            _ found: FoundFile
        ) throws
    {
        rig.add("e1", "e2")
        try rig.complete("e1")
        try rig.complete("e2")
        rig.found["e1"] = found
        rig.advance(16)
        #expect(rig.state("e1") == .notDownloaded && rig.shown("e1") == nil && rig.state("e2") == .downloaded)
        let what = found == .nothing ? "missing" : "replaced by another one"
        #expect(rig.why("e1") == "It is no longer downloaded: its file was \(what).")
        #expect(!rig.actions.contains { if case .delete = $0 { true } else { false } })
    }

    @Test
    func `requesting a downloaded episode fetches its file again only if it is missing`()
        throws
    {
        rig.add("e1", "e2")
        try rig.complete("e1")
        try rig.complete("e2")
        #expect(rig.add("e1", "e2")?.reply?.changed == [false, false])
        rig.found["e1"] = .nothing
        let reply = rig.add("e1", "e2")?.reply
        #expect(reply?.changed == [true, false] && reply?.downloads.map(\.state) == [.queued, .downloaded])
        #expect(rig.state("e1") == .downloading && rig.state("e2") == .downloaded && rig.orders.count == 3)
        rig.found["e1"] = nil
        try rig.complete("e1")
        #expect(rig.why("e1") == "It is downloaded: requested by test.")
    }

    @Test func `the explanation of a download is checked against its file`() throws {
        rig.add("e1")
        try rig.complete("e1")
        rig.found["e1"] = .nothing
        #expect(rig.why("e1").contains("its file was missing"))
        #expect(rig.state("e1") == .notDownloaded)
    }

    @Test func `a file that can’t be checked stays downloaded`() throws {
        rig.add("e1")
        try rig.complete("e1")
        rig.isDiskOut = true
        rig.advance(100)
        #expect(rig.add("e1")?.reply?.changed == [false])
        #expect(rig.why("e1") == "It is downloaded: requested by test.")
    }

    @Test func `a folder scan ignores files that were completed after it began`() throws {
        rig.add("e1")
        rig.start()
        try rig.complete("e1")
        rig.report(.folderScanned([:]))
        #expect(rig.state("e1") == .downloaded)
    }

    @Test func `files are checked every 15 s while a download is complete, and never otherwise`() throws {
        func looks() -> Int { rig.actions.count { if case .checkFiles = $0 { true } else { false } } }
        rig.add("e1")
        for _ in 0..<20 { rig.advance(5) }
        #expect(looks() == 0)
        try rig.complete("e1")
        for _ in 0..<12 { rig.advance(5) }
        #expect(looks() == 4)
        rig.send { $0.remove.episodes = ["e1"] }
        for _ in 0..<20 { rig.advance(5) }
        #expect(looks() == 4)
    }

    @Test func `a file is checked by its size, and links and folders at its path don’t count`()
        throws
    {
        let temporary = try TemporaryFolder()
        let folder = DownloadFolder(root: temporary.path + "/downloads")
        #expect(folder.check(["e1": "P/T [e1].mp3"]).found == ["e1": .nothing])
        for name in ["downloads", "downloads/P", "downloads/P/dir", "other"] {
            mkdir("\(temporary.path)/\(name)", 0o700)
        }
        try temporary.file("downloads/P/T [e1].mp3", "audio".utf8)
        try temporary.file("other/T [e1].mp3", "audio".utf8)
        symlink(temporary.path + "/other/T [e1].mp3", folder.root + "/P/link")
        symlink(temporary.path + "/other", folder.root + "/Q")
        let found = folder.check([
            "e1": "P/T [e1].mp3", "e2": "P/gone", "e3": "P/link", "e4": "P/dir", "e5": "Q/T [e1].mp3", "e6": "R/gone",
        ]).found
        #expect(
            found == ["e1": .file(5), "e2": .nothing, "e3": .other, "e4": .other, "e5": .nothing, "e6": .nothing])
    }

    // MARK: Notes

    @Test(arguments: [("", "", true), ("W/\"a\"", "", true), ("\"a\"", "", false), ("", "Mon, 01 Jan 2024", false)])
    func `a download that can’t be continued is reported as restarting until it is complete`(
        etag: String, date: String, isAnew: Bool
    ) throws {
        rig.add("e1")
        let version = FileVersion(etag: etag, lastModified: date)
        let start = TransferStart(total: 1_000, offset: 0, version: version, contentType: "audio/mpeg")
        rig.report(.began(try rig.order("e1").number, start))
        let note = rig.send { $0.pause.episodes = ["e1"] }?.reply?.downloads.first?.note
        #expect(note?.contains("starts from the beginning: host1") == isAnew && note?.isEmpty == !isAnew)
        rig.report(.stopped(episode: "e1", version, received: 400))
        #expect(rig.why("e1").contains("starts from the beginning") == isAnew)
        #expect(rig.send { $0.resume.episodes = ["e1"] }?.reply?.downloads.first?.note == note)
        rig.report(.began(try rig.order("e1").number, start))
        rig.report(.completed(try rig.order("e1").number, bytes: 1_000))
        #expect(rig.stored("e1")?.note.isEmpty == true)
    }

    @Test(arguments: [
        (28_800_000, 160_000, true), (28_800_000, 2_879_999, true), (28_800_000, 2_880_000, false),
        (28_800_000, 28_000_000, false), (28_800_000, 60_000_000, false), (3_600, 100, false), (0, 5, false),
    ])
    func `a file that is much smaller than announced is kept with a warning`(
        announced: UInt64, came: UInt64, warns: Bool
    ) throws {
        rig.library["e1"]?.enclosureLength = announced
        rig.add("e1")
        try rig.complete("e1", bytes: came)
        #expect(rig.state("e1") == .downloaded && rig.stored("e1")?.note.isEmpty == !warns)
        #expect(rig.why("e1").contains("Its feed announces 28.8 MB") == warns)
    }

    // MARK: Addresses

    /// The current address, the number of kept bytes, and whether the service was stopped when the feed changed.
    @Test(arguments: [
        ("http://host1/new.mp3", 0, false), ("http://host1/new.mp3", 0, true),
        ("http://host1/1.mp3?token=2", 999, false),
    ])
    func `a failed download is fetched from its feed’s current address, and continued only for the same file`(
        url: String, kept: UInt64, isAway: Bool
    ) throws {
        rig.add("e1")
        rig.begin(try rig.order("e1").number)
        rig.report(.saved(try rig.order("e1").number, received: 400))
        rig.report(.failed(try rig.order("e1").number, TransferFailure(Failure(.episodeUnavailable, "404"))))
        rig.library["e1"]?.enclosureURL = url
        var news = WireEpisodesChanged()
        news.podcast = "p1"
        news.updated = ["e1", "e2"]
        if isAway { rig.start() } else { rig.observe(.episodes(of: "p1"), .event, news.wireBytes) }
        rig.send { $0.resume.episodes = ["e1"] }
        #expect(try rig.order("e1").download.url == url && rig.order("e1").download.resumableBytes == kept)
    }

    @Test(arguments: [false, true])
    func `an active or complete download keeps its address when its feed changes it, until it fails`(
        isWhole: Bool
    ) throws {
        rig.add("e1")
        rig.begin(try rig.order("e1").number)
        if isWhole { rig.report(.completed(try rig.order("e1").number, bytes: 1_000)) }
        let before = rig.stored("e1")
        rig.library["e1"]?.enclosureURL = "http://host1/new.mp3"
        var news = WireEpisodesChanged()
        news.podcast = "p1"
        news.updated = ["e1"]
        rig.observe(.episodes(of: "p1"), .event, news.wireBytes)
        #expect(rig.stored("e1") == before && rig.orders.count == 1)
        guard !isWhole else { return }
        rig.report(.failed(try rig.order("e1").number, TransferFailure(Failure(.episodeUnavailable, "404"))))
        rig.add("e1")
        #expect(try rig.order("e1").download.url == "http://host1/new.mp3")
    }

    private func show(isSubscribed: Bool, episodes: UInt32 = 5) {
        var podcast = WirePodcast()
        podcast.id = "p1"
        podcast.episodeCount = episodes
        podcast.subscribed = isSubscribed
        rig.observe(.podcast("p1"), .put, podcast.wireBytes)
    }

    @Test(arguments: ["", "p1"], [false, true])
    func `a rule fetches nothing of an unsubscribed podcast until it is subscribed to again`(
        podcast: String, isOnStream: Bool
    ) throws {
        rig.unsubscribed = ["p1"]
        rig.start()
        rig.set(.autoDownload, "1", podcast: podcast)
        if isOnStream { show(isSubscribed: false) }
        if isOnStream { show(isSubscribed: false, episodes: 6) }
        rig.set(.autoDownload, "2", podcast: podcast)
        #expect(rig.orders.isEmpty)
        rig.unsubscribed = []
        show(isSubscribed: true, episodes: 6)
        #expect(Set(rig.orders.map(\.episode)) == ["e4", "e5"])
    }

    @Test func `a download that was paused while its feed changed the address continues at the new address`() throws {
        rig.add("e1")
        rig.begin(try rig.order("e1").number)
        rig.library["e1"]?.enclosureURL = "http://host1/new.mp3"
        var news = WireEpisodesChanged()
        news.podcast = "p1"
        news.updated = ["e1"]
        rig.observe(.episodes(of: "p1"), .event, news.wireBytes)
        rig.send { $0.pause.episodes = ["e1"] }
        rig.send { $0.resume.episodes = ["e1"] }
        #expect(try rig.order("e1").download.url == "http://host1/new.mp3")
    }

    // MARK: Removed podcasts

    @Test
    func `the settings of a forgotten podcast are deleted, but not those of one that no page contains`() {
        var other = rig.library["e1"] ?? WireEpisode()
        (other.id, other.podcastID) = ("f1", "p2")
        rig.library["f1"] = other
        let ids = (kept: PodcastID.derived(from: "kept").text, gone: PodcastID.derived(from: "gone").text)
        other.podcastID = ids.kept
        rig.library["f2"] = other
        for id in [ids.kept, ids.gone] { rig.set(.keepDownloads, "1", podcast: id) }
        rig.overlooked = [ids.kept]
        rig.start()
        #expect(rig.records["setting/\(ids.kept)"]?["keepDownloads"] != nil)
        #expect(rig.records["setting/\(ids.gone)"]?["keepDownloads"] == nil)
    }

    @Test func `a podcast that leaves the stream but not the library is not forgotten`() throws {
        rig.add("e1", "e2")
        try rig.complete("e1")
        rig.observe(.podcast("p1"), .delete, [])
        rig.observe(.playbackState, .put, WirePlaybackState().wireBytes)
        var queue = WireQueueState()
        queue.name = "up next"
        rig.observe(.queue("up next"), .put, queue.wireBytes)
        rig.advance(60)
        #expect(rig.state("e1") == .downloaded && rig.state("e2") == .downloading)
    }

    // MARK: Explanations

    @Test func `the explanation says whether a file is among the newest that are kept`() throws {
        for episode in ["e1", "e2"] {
            rig.add(episode)
            try rig.complete(episode)
            rig.advance(1)
        }
        rig.set(.keepDownloads, "1")
        #expect(rig.why("e2").hasSuffix("It is the newest file of its podcast, which is kept."))
        #expect(
            rig.why("e1").hasSuffix(
                "It is deleted once it is neither loaded nor in a queue: only the newest file of its podcast is kept."))
    }

    @Test func `a waiting download is explained once, and a refusal suggests the right command`()
        throws
    {
        rig.set(.downloadsAtOnce, "1")
        rig.add("e1")
        rig.add("e2")
        #expect(
            rig.why("e2") == "It is to be downloaded: requested by test. It’s waiting for other downloads to finish.")
        rig.report(.failed(try rig.order("e1").number, TransferFailure(Failure(.episodeUnavailable, "404"))))
        let refusal = rig.send { $0.cancel.episodes = ["e1"] }?.failure
        #expect(
            refusal?.message == "“Part 1” has failed and can’t be cancelled; `lockstep download remove` removes it.")
        #expect(
            rig.send { $0.remove.episodes = ["e2"] }?.failure?.message
                == "“Part 2” is being downloaded and can’t be removed; `lockstep download cancel` cancels it.")
    }

    @Test(arguments: [false, true])
    func `a download is reported as restarting only if the server refuses ranges`(isRefused: Bool) throws {
        rig.add("e1")
        rig.begin(try rig.order("e1").number)
        #expect(rig.stored("e1")?.note.isEmpty == true)
        var start = TransferStart(
            total: 1_000, offset: 0, version: FileVersion(etag: "\"a\"", lastModified: ""), contentType: "audio/mpeg")
        start.isPartRefused = isRefused
        rig.report(.began(try rig.order("e1").number, start))
        let note = "If it is interrupted, it starts from the beginning: host1 doesn’t support partial requests."
        #expect(rig.stored("e1")?.note == (isRefused ? note : ""))
    }

    // MARK: Reasons

    @Test func `a cancelled download isn’t described as downloaded`() throws {
        rig.add("e1", "e2")
        try rig.complete("e1")
        rig.send { $0.remove.episodes = ["e1"] }
        rig.send { $0.cancel.episodes = ["e2"] }
        #expect(rig.why("e1") == "It is no longer downloaded: removed by test.")
        #expect(rig.why("e2") == "It is not downloaded; its download was cancelled by test.")
    }
}
