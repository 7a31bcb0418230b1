import BusKit
import LibC
import OwnerHarness
import OwnerKit
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

@testable import DownloadsService

/// Tests missing disks, whose downloads keep their state, and hung disks, which block no command.
struct UnavailableFolderTests {
    private let rig = DownloadsRig()

    /// Creates two files and a recognised folder.
    private func download() throws -> String {
        rig.add("e1", "e2")
        try rig.complete("e1")
        try rig.complete("e2")
        rig.advance(16)
        return try #require(rig.marker)
    }

    private var isToldAway: Bool { rig.alerts.contains { $0.code == "downloadsAway" } }

    private func looks() -> Int { rig.actions.count { if case .checkFiles = $0 { true } else { false } } }

    // MARK: The folder

    @Test(arguments: ["", "of another disk"], [false, true])
    func
        `while the folder is unavailable downloads keep their state, nothing is fetched and one alert is shown`(
            other: String, restarts: Bool
        ) throws
    {
        let marker = try download()
        #expect(!marker.isEmpty)
        rig.marker = other
        rig.found["e1"] = .nothing
        if restarts {
            rig.start()
            rig.report(.folderScanned(["Show/Part 2 [e2].mp3": 1_000, "mine.txt": 1], rig.snapshot))
        }
        for _ in 0..<5 { rig.advance(16) }
        #expect(rig.state("e1") == .downloaded && rig.state("e2") == .downloaded)
        #expect(rig.alerts.map(\.code) == ["downloadsAway"])
        #expect(rig.why("e1").contains("can’t be reached"))
        let orders = rig.orders.count
        rig.add("e3")
        #expect(rig.orders.count == orders && rig.shown("e3")?.waitsFor.contains("download folder") == true)
        // The folder is available again.
        rig.marker = marker
        rig.found["e1"] = nil
        rig.advance(16)
        #expect(rig.alerts.isEmpty && rig.actions.contains(.scanFolder))
        #expect(try rig.order("e3").folder == marker)
        #expect(rig.state("e1") == .downloaded && rig.state("e2") == .downloaded)
    }

    @Test func `a file that is missing from the right folder ends its download, even after a restart`() throws {
        _ = try download()
        rig.start()
        rig.report(.folderScanned(["Show/Part 2 [e2].mp3": 1_000], rig.snapshot))
        #expect(rig.state("e1") == .notDownloaded && rig.state("e2") == .downloaded && rig.alerts.isEmpty)
    }

    @Test(arguments: ["", "another"])
    func `a folder that has all files is accepted with any marker`(marker: String) throws {
        let before = try download()
        rig.marker = marker
        rig.advance(16)
        #expect(!isToldAway && rig.marker?.isEmpty == false && rig.marker != before)
        rig.found["e1"] = .nothing
        rig.advance(16)
        #expect(rig.state("e1") == .notDownloaded && !isToldAway)
    }

    @Test func `accepting a lost folder ends its downloads, and they can be requested again`() throws {
        _ = try download()
        rig.marker = ""
        rig.found = ["e1": .nothing, "e2": .nothing]
        rig.advance(16)
        let alert = try #require(rig.alerts.first)
        #expect(rig.send { $0.answerAlert = .with { ($0.alert, $0.action) = (alert.id, "accept") } }?.failure == nil)
        #expect(rig.state("e1") == .notDownloaded && rig.state("e2") == .notDownloaded && rig.alerts.isEmpty)
        rig.found = [:]
        rig.add("e1")
        #expect(try rig.order("e1").folder.isEmpty)
        try rig.complete("e1")
        rig.advance(16)
        #expect(rig.marker?.isEmpty == false && rig.state("e1") == .downloaded)
    }

    @Test func `a dismissed alert is not raised again while its folder stays unavailable`() throws {
        _ = try download()
        rig.marker = ""
        rig.isDiskOut = true
        rig.advance(16)
        let alert = try #require(rig.alerts.first)
        rig.send { $0.answerAlert = .with { ($0.alert, $0.action) = (alert.id, "dismiss") } }
        for _ in 0..<5 { rig.advance(16) }
        #expect(rig.alerts.isEmpty && rig.state("e1") == .downloaded)
    }

    @Test
    func `a transfer that finds another folder waits for the right folder without counting an attempt`()
        throws
    {
        let marker = try download()
        rig.send { $0.remove.episodes = ["e1", "e2"] }
        rig.advance(16)
        rig.add("e3")
        rig.marker = ""
        let orders = rig.orders.count
        rig.report(.failed(try rig.order("e3").number, TransferFailure(DownloadFolder(root: "/d").wrongFolder)))
        for _ in 0..<6 { rig.advance(100) }
        #expect(rig.state("e3") == .queued && rig.stored("e3")?.attempt == 0 && rig.orders.count == orders)
        #expect(rig.alerts.map(\.code) == ["downloadsAway"])
        rig.marker = marker
        rig.advance(16)
        #expect(rig.state("e3") == .downloading && rig.alerts.isEmpty)
    }

    @Test(arguments: [false, true])
    func `nothing is fetched before the folder has been checked`(isOut: Bool) throws {
        _ = try download()
        rig.mounts = ["Show"]
        rig.advance(16)
        rig.add("e3")
        rig.start()
        #expect(rig.orders.isEmpty && rig.state("e3") == .queued)
        let files: [String: UInt64] = ["Show/Part 1 [e1].mp3": 1_000, "Show/Part 2 [e2].mp3": 1_000]
        if isOut { rig.mounts = [] }
        rig.report(.folderScanned(isOut ? [:] : files, rig.snapshot))
        #expect(rig.orders.isEmpty == isOut && rig.state("e1") == .downloaded)
        rig.start()
        rig.report(.scanFailed(Failure(.storageFailed, "it cannot be read")))
        #expect(rig.orders.count == 1)
    }

    @Test func `a folder that can’t be marked is used without a marker`() throws {
        rig.marker = nil
        rig.add("e1")
        try rig.complete("e1")
        for _ in 0..<5 { rig.advance(16) }
        #expect(rig.actions.count { if case .mark = $0 { true } else { false } } == 1)
        rig.found["e1"] = .nothing
        rig.advance(16)
        #expect(rig.state("e1") == .notDownloaded && rig.alerts.isEmpty)
    }

    @Test func `files in a podcast’s folder whose own disk is missing keep their state`() throws {
        rig.library["e2"]?.podcastTitle = "Other"
        _ = try download()
        rig.mounts = ["Show"]
        rig.advance(16)
        rig.mounts = []
        rig.found = ["e1": .nothing, "e2": .nothing]
        rig.start()
        for _ in 0..<3 { rig.advance(16) }
        #expect(rig.state("e1") == .downloaded && rig.state("e2") == .notDownloaded)
        #expect(rig.alerts.map(\.code) == ["downloadsAway"] && rig.alerts.first?.message.contains("/d/Show") == true)
        rig.add("e3", "e2")
        #expect(rig.state("e3") == .queued && rig.shown("e3")?.waitsFor.contains("“Show”") == true)
        #expect(rig.state("e2") == .downloading)
        rig.mounts = ["Show"]
        rig.found = ["e2": .nothing]
        rig.advance(16)
        #expect(rig.alerts.isEmpty && rig.state("e3") == .downloading && rig.state("e1") == .downloaded)
        // The files were moved back to the folder’s own disk.
        rig.mounts = []
        rig.advance(16)
        #expect(rig.alerts.isEmpty)
        rig.found["e1"] = .nothing
        rig.advance(16)
        #expect(rig.state("e1") == .notDownloaded)
    }

    @Test func `a download removed while its folder is unavailable is deleted once the folder is available`() throws {
        let marker = try download()
        rig.marker = ""
        rig.isDiskOut = true
        rig.advance(16)
        rig.send { $0.remove.episodes = ["e1"] }
        let deletion = DownloadsAction.delete(episode: "e1", path: "Show/Part 1 [e1].mp3", folder: marker)
        #expect(rig.actions.last == deletion)
        rig.report(.deleted(episode: "e1", DownloadFolder(root: "/d").wrongFolder))
        rig.marker = marker
        rig.isDiskOut = false
        rig.advance(16)
        rig.report(.folderScanned(["Show/Part 1 [e1].mp3": 1_000, "Show/Part 2 [e2].mp3": 1_000], rig.snapshot))
        #expect(rig.actions.count { $0 == deletion } == 2 && rig.alerts.isEmpty)
    }

    // MARK: The marker on the disk

    @Test
    func `a folder is marked once, and one with another marker is neither created, read nor changed`()
        throws
    {
        let temporary = try TemporaryFolder()
        var folder = DownloadFolder(root: temporary.path + "/downloads")
        mkdir(folder.root, 0o700)
        mkdir(folder.root + "/P", 0o700)
        try temporary.file("downloads/P/T [e1].mp3", "audio".utf8)
        let paths = ["e1": "P/T [e1].mp3"]
        #expect(folder.check(paths).snapshot == FolderSnapshot())
        #expect(try folder.mark("m1") == "m1")
        #expect(try folder.mark("m2") == "m1")
        #expect(folder.check(paths).snapshot == FolderSnapshot(marker: "m1"))
        let seen = try folder.files()
        #expect(seen.files == ["P/T [e1].mp3": 5] && seen.snapshot == FolderSnapshot(marker: "m1"))
        folder.marker = "m2"
        #expect(folder.delete("e1", at: "P/T [e1].mp3")?.retry == true)
        #expect(throws: Failure.self) { try folder.requireSpace(for: 1) }
        #expect(throws: Failure.self) { _ = try folder.openPartial("e1-x", of: "e1", keeping: 0) }
        folder.marker = "m1"
        try folder.requireSpace(for: 1)
        #expect(folder.delete("e1", at: "P/T [e1].mp3") == nil)
        rename(folder.root, folder.root + ".away")
        #expect(folder.check(paths).snapshot == FolderSnapshot())
        let failure = #expect(throws: Failure.self) { try folder.requireSpace(for: 1) }
        #expect(failure?.code == DownloadFolder.wrongFolderCode && access(folder.root, F_OK) != 0)
        #expect(folder.delete("e1", at: "P/T [e1].mp3")?.code == DownloadFolder.wrongFolderCode)
    }

    @Test
    func `a marker that is empty, a link, a folder or unreadable text counts as none and is replaced if possible`()
        throws
    {
        let temporary = try TemporaryFolder()
        let folder = DownloadFolder(root: temporary.path + "/downloads")
        mkdir(folder.root, 0o700)
        let marker = folder.root + "/" + DownloadFolder.markerName
        try temporary.file("downloads/" + DownloadFolder.markerName, "".utf8)
        #expect(folder.check([:]).snapshot == FolderSnapshot())
        #expect(try folder.mark("m1") == "m1")
        unlink(marker)
        symlink("/etc/hostname", marker)
        #expect(folder.check([:]).snapshot == FolderSnapshot())
        #expect(try folder.mark("m2") == "m2")
        unlink(marker)
        mkdir(marker, 0o700)
        #expect(folder.check([:]).snapshot == FolderSnapshot())
        #expect(throws: Failure.self) { try folder.mark("m3") }
    }

    // MARK: A disk that hangs

    @Test func `one file check runs at a time even if it takes long`() throws {
        _ = try download()
        let before = looks()
        rig.isDiskHanging = true
        for _ in 0..<20 { rig.advance(16) }
        #expect(looks() == before + 1)
        rig.isDiskHanging = false
        let number = try #require(rig.unanswered.first)
        rig.report(.filesChecked(number, ["e1": .nothing, "e2": .file(1_000)], rig.snapshot))
        #expect(rig.state("e1") == .notDownloaded && rig.state("e2") == .downloaded)
        rig.advance(16)
        #expect(looks() == before + 2)
    }

    @Test func `while a disk hangs commands are answered from the store after 5 s, and then at once`() throws {
        _ = try download()
        rig.isDiskHanging = true
        var request = WireDownloadsRequest()
        request.add.episodes = ["e1", "e3"]
        let add = RequestID.random()
        rig.handle(.command(Command(id: add, origin: "test", payload: request.wireBytes)))
        request.why.episode = "e1"
        let why = RequestID.random()
        rig.handle(.command(Command(id: why, origin: "test", payload: request.wireBytes)))
        rig.advance(4)
        #expect(rig.reply(to: add) == nil && rig.reply(to: why) == nil)
        rig.advance(2)
        #expect(rig.reply(to: add)?.reply?.changed == [false, true])
        #expect(rig.reply(to: why)?.reply?.why.isEmpty == false)
        #expect(rig.why("e1").hasPrefix("It is downloaded") && rig.add("e2")?.reply?.changed == [false])
    }

    @Test
    func `a command during a file check is answered after the next check, and the running check ignores newer files`()
        throws
    {
        _ = try download()
        rig.isDiskHanging = true
        rig.advance(16)
        let old = try #require(rig.unanswered.last)
        rig.add("e3")
        try rig.complete("e3")
        var request = WireDownloadsRequest()
        request.why.episode = "e1"
        let why = RequestID.random()
        rig.handle(.command(Command(id: why, origin: "test", payload: request.wireBytes)))
        rig.report(.filesChecked(old, ["e1": .file(1_000), "e2": .file(1_000), "e3": .nothing], rig.snapshot))
        #expect(rig.state("e3") == .downloaded && rig.reply(to: why) == nil)
        let new = try #require(rig.unanswered.last)
        #expect(new != old)
        let found: [String: FoundFile] = ["e1": .nothing, "e2": .file(1_000), "e3": .file(1_000)]
        rig.report(.filesChecked(new, found, rig.snapshot))
        #expect(rig.reply(to: why)?.reply?.why.first?.contains("missing") == true)
    }

    @Test func `a command that waits for the next check is answered when no file is left to check`() throws {
        rig.marker = nil
        rig.add("e1")
        try rig.complete("e1")
        rig.isDiskHanging = true
        rig.advance(16)
        var request = WireDownloadsRequest()
        request.why.episode = "e1"
        let why = RequestID.random()
        rig.handle(.command(Command(id: why, origin: "test", payload: request.wireBytes)))
        rig.report(.filesChecked(try #require(rig.unanswered.last), ["e1": .nothing], rig.snapshot))
        #expect(rig.reply(to: why)?.reply?.why.first?.contains("missing") == true)
    }
}
