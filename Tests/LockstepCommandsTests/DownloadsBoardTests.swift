import BusKit
import PodcastModel
import Testing
import WireMessages

@testable import LockstepClient
@testable import LockstepCommands

@Suite struct DownloadsBoardTests {
    private static func download(
        _ id: String, _ state: WireDownload.State, _ received: UInt64 = 0, _ total: UInt64 = 0
    ) -> WireDownload {
        var download = WireDownload()
        download.episode = id
        download.title = "Title \(id)"
        download.podcastTitle = "Podcast"
        download.state = state
        download.receivedBytes = received
        download.totalBytes = total
        if state == .failed {
            download.error.code = "fetchFailed"
            download.error.message = "The server said 404."
        }
        return download
    }

    private static func put(_ download: WireDownload, _ sequence: UInt64 = 1) -> ReplicaUpdate {
        .event(
            StreamEvent(
                topic: .download(download.episode), header: BusHeader(.put, epoch: 1, sequence: sequence),
                payload: download.wireBytes))
    }

    private static func live(_ id: String, _ received: UInt64, _ total: UInt64, rate: Double) -> ReplicaUpdate {
        var progress = WireDownloadProgress()
        progress.episode = id
        progress.receivedBytes = received
        progress.totalBytes = total
        progress.bytesPerSecond = rate
        return .live(
            StreamEvent(
                topic: .downloadProgress(id), header: BusHeader(.live, epoch: 0, sequence: 0),
                payload: progress.wireBytes))
    }

    private static func state(_ updates: [ReplicaUpdate]) -> FleetState {
        updates.reduce(FleetState(FleetView())) { $0.after($1) }
    }

    private static func board(_ updates: [ReplicaUpdate]) -> DownloadsBoard { DownloadsBoard(state(updates)) }

    @Test func `active downloads are listed first, then queued ones, then finished ones`() {
        let board = Self.board(
            [.downloaded, .paused, .failed, .queued, .downloading].enumerated().map {
                Self.put(Self.download("e\($0)", $1))
            })
        #expect(board.downloads.map(\.wire.state) == [.downloading, .queued, .failed, .paused, .downloaded])
        #expect(board.isActive)
    }

    @Test func `progress is taken from telemetry if that is newer than the state`() {
        var state = Self.state([Self.put(Self.download("e1", .downloading, 100, 1_000))])
        var view = state.view
        #expect(view.apply(Self.live("e1", 500, 1_000, rate: 100)) == [.download("e1")])
        #expect(view.apply(Self.live("e2", 500, 1_000, rate: 100)).isEmpty)
        #expect(FleetState(view).downloads.first?.receivedBytes == 500)
        state = FleetState(view).after(Self.put(Self.download("e1", .paused, 600, 1_000), 2))
        #expect(state.downloads.first?.receivedBytes == 600)
        #expect(!DownloadsBoard(state).isActive)
    }

    @Test func `an active download has progress once telemetry has arrived`() {
        var state = Self.state([
            Self.put(Self.download("e1", .downloading, 0, 1_000)), Self.put(Self.download("e2", .paused, 5, 1_000), 2),
        ])
        #expect(!DownloadsBoard(state).hasProgressForAll)
        state = state.after(Self.live("e1", 500, 1_000, rate: 100))
        #expect(DownloadsBoard(state).hasProgressForAll)
        state = state.after(Self.put(Self.download("e3", .downloading, 0, 1_000), 3))
        #expect(!DownloadsBoard(state).hasProgressForAll)
    }

    @Test func `an active download has a bar, a rate and the remaining time`() {
        let board = Self.board([
            Self.put(Self.download("e1", .downloading, 0, 20_000_000)),
            Self.live("e1", 5_000_000, 20_000_000, rate: 1_000_000), Self.put(Self.download("e2", .failed), 2),
        ])
        #expect(
            board.lines(columns: 90, rows: 10) == [
                "Title e1                         25 % ━━━─────────  5.0 MB of 20.0 MB, 1.0 MB/s, 15 s left",
                "Title e2                        failed: The server said 404.",
            ])
    }

    @Test(arguments: [(1, 1), (10, 2), (40, 3), (200, 50)])
    func `no line is wider and no list longer than the terminal`(columns: Int, rows: Int) {
        let board = Self.board(
            (0..<20).map { Self.put(Self.download("e\($0)", $0 % 2 == 0 ? .downloading : .queued, 3, 10)) })
        let lines = board.lines(columns: columns, rows: rows)
        #expect(lines.count <= rows)
        #expect(lines.allSatisfy { DisplayText.width($0) <= columns })
    }

    @Test func `plain text has a line for each change of the state and each tenth`() {
        var narrator = DownloadsNarrator()
        let isEmpty = (narrator.isEmptyAtFirst([]), narrator.isEmptyAtFirst([]))
        #expect(isEmpty == (true, false))
        func lines(_ downloads: [WireDownload]) -> [String] {
            narrator.news(downloads.compactMap { DownloadState($0) }).map(DownloadsNarrator.line)
        }
        #expect(lines([Self.download("e1", .queued)]) == ["“Title e1”: queued."])
        #expect(lines([Self.download("e1", .queued)]) == [])
        #expect(
            lines([Self.download("e1", .downloading, 0, 1_000)]) == ["“Title e1”: downloading 0 %, 0 B of 1 kB."])
        #expect(lines([Self.download("e1", .downloading, 50, 1_000)]) == [])
        #expect(lines([Self.download("e1", .downloading, 150, 1_000)]).count == 1)
        #expect(lines([Self.download("e1", .downloaded, 1_000, 1_000)]) == ["“Title e1”: downloaded, 1 kB."])
        #expect(lines([]) == ["“e1”: not downloaded."])
    }

    @Test(
        arguments: zip(
            [.paused, .downloaded, .failed, .downloading] as [WireDownload.State],
            [
                "paused at 5 B of 10 B. Mind this.", "downloaded, 10 B. Mind this.",
                "failed: The server said 404. Mind this.", "downloading 50 %, 5 B of 10 B",
            ]))
    func `a note is shown with the state, but not while the download is active`(
        state: WireDownload.State, text: String
    ) {
        var download = Self.download("e1", state, 5, 10)
        download.note = "Mind this."
        #expect(DownloadState(download).map(DownloadText.state) == text)
        #expect(download.json.line.hasSuffix(#""note":"Mind this."}"#))
    }

    @Test(arguments: [("e12", "e12"), ("e1", "e1"), ("e2", "e2"), ("Title e2", "e2"), ("e", nil), ("x", nil)])
    func `a download is found by its ID, the beginning of one or a part of its title`(text: String, episode: String?) {
        let downloads = ["e1", "e12", "e2"].compactMap { DownloadState(Self.download($0, .downloaded)) }
        #expect(DownloadText.named(text, in: downloads)?.episode.text == episode)
    }

    @Test func `the JSON of a download begins with the documented members`() {
        let json = Self.download("e1", .failed, 5).json.line
        #expect(
            json.hasPrefix(
                #"{"episode":"e1","state":"failed","receivedBytes":5,"totalBytes":null,"error":{"code":"fetchFailed","#)
        )
        #expect(Self.download("e1", .downloaded, 5, 5).json.line.contains(#""totalBytes":5,"error":null,"#))
    }

    @Test(
        arguments: zip(
            [.notDownloaded, .queued, .downloading, .paused, .downloaded, .failed] as [WireDownload.State],
            ["notDownloaded", "queued", "downloading", "paused", "downloaded", "failed"]))
    func `each state of a download has a description`(state: WireDownload.State, word: String) {
        #expect(state.word == word)
    }

    @Test func `a block is drawn over itself without wrapping, and the cursor returns to its beginning`() {
        var block = LiveBlock(.init(clearToEnd: "<el>", clearBelow: "<ed>", up: "<up>", wrapOff: "<", wrapOn: ">"))
        #expect(block.show(["abc", "def"], columns: 80) == "<\rabc<el>\ndef<ed><up>\r>")
        #expect(block.show(["abc", "def"], columns: 80) == "")
        #expect(block.show(["abc"], columns: 80) == "<\rabc<ed>\r>")
        #expect(block.show(["abc"], above: ["one", "two"], columns: 80) == "<\rone<el>\ntwo<el>\nabc<ed>\r>")
        // The lines as the terminal has wrapped them are below the cursor.
        #expect(block.show(["abc", "xyz"], columns: 2) == "<\r<ed>abc<el>\nxyz<ed><up>\r>")
        #expect(block.leave() == "\n\n")
        #expect(block.show(["abc", "xyz"], columns: 2) == "<\rabc<el>\nxyz<ed><up>\r>")
    }
}
