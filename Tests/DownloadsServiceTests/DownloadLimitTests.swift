import BusKit
import OwnerHarness
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import DownloadsService

/// Tests the limit for the size of all downloads.
@Suite struct DownloadLimitTests {
    private let rig = DownloadsRig()

    /// Downloads the episodes e5, e4, e3 and e2 by a rule, with 600 kB each.
    private func download(alsoRequested: [String] = []) throws {
        observe(queued: [])
        for number in 1...5 { rig.library["e\(number)"]?.published = Int64(number) * 86_400_000 }
        rig.set(.downloadsAtOnce, "9")
        rig.set(.downloadsPerHost, "9")
        rig.set(.autoDownload, "4")
        for episode in alsoRequested { rig.add(episode) }
        for episode in ["e5", "e4", "e3", "e2"] + alsoRequested { try rig.complete(episode, bytes: 600_000) }
    }

    private func observe(queued: [String]) {
        let queue = WireQueueState.with { state in
            state.name = "main"
            state.entries = queued.map { id in
                .with {
                    $0.id = "q\(id)"
                    $0.episode.id = id
                }
            }
        }
        rig.observe(.queue("main"), .put, queue.wireBytes)
        rig.observe(.playbackState, .put, WirePlaybackState.with { $0.status = .idle }.wireBytes)
    }

    private func listen(to episode: String, played: Bool) {
        let state = WireEpisodeState.with {
            ($0.episode, $0.position, $0.played) = (episode, played ? 0 : 30, played)
            if played { $0.completedAt = rig.now.wall.milliseconds }
        }
        rig.observe(.episodeState(episode), .event, state.wireBytes)
    }

    private var files: [String] { rig.library.keys.filter { rig.state($0) == .downloaded }.sorted() }

    @Test func `the oldest automatic downloads are deleted until all fit, and requested ones stay`() throws {
        try download(alsoRequested: ["e1"])
        rig.set(.downloadLimit, "2 mb")
        rig.advance(11)
        #expect(files == ["e1", "e4", "e5"])
        #expect(rig.why("e2").contains("exceeded the limit of 2MB"), "\(rig.why("e2"))")
        #expect(rig.why("e1").contains("because it was requested"))
        #expect(rig.why("e5").contains("It may be deleted when"))
        rig.set(.downloadLimit, "1MB")
        rig.advance(11)
        #expect(files == ["e1"])
        // What was deleted isn’t fetched again.
        rig.start()
        #expect(rig.orders.isEmpty)
    }

    @Test func `a played file is deleted first, and one that is queued or played in part never`() throws {
        try download()
        observe(queued: ["e2"])
        listen(to: "e3", played: false)
        listen(to: "e5", played: true)
        rig.set(.downloadLimit, "1.9MB")
        rig.advance(11)
        #expect(files == ["e2", "e3", "e4"])
        #expect(rig.why("e3").contains("because it was played in part"))
        rig.set(.downloadLimit, "1MB")
        rig.advance(11)
        #expect(files == ["e2", "e3"])
    }

    @Test func `an automatic download that wouldn’t be kept waits for room, and a requested one doesn’t`() throws {
        try download(alsoRequested: ["e1"])
        rig.set(.downloadLimit, "1MB")
        rig.advance(11)
        #expect(files == ["e1"])
        for number in [6, 7] {
            rig.library["e\(number)"] = rig.library["e5"]
            rig.library["e\(number)"]?.id = "e\(number)"
            rig.library["e\(number)"]?.published = Int64(number) * 86_400_000
            // A feed can announce any size.
            rig.library["e\(number)"]?.enclosureLength = number == 7 ? .max : 600_000
        }
        rig.set(.autoDownload, "1")
        #expect(rig.state("e7") == .queued, "\(rig.why("e7"))")
        #expect(rig.why("e7").contains("waits for room"), "\(rig.why("e7"))")
        rig.add("e6")
        #expect(rig.state("e6") == .downloading)
        rig.set(.downloadLimit, "off")
        #expect(rig.state("e7") == .downloading)
    }

    @Test(arguments: ["5GB", "1.5 tb", "500MB", "off", "0"])
    func `a size with a unit is accepted`(text: String) throws {
        #expect(throws: Never.self) { try SettingKey.downloadLimit.value(of: text) }
    }

    @Test(arguments: ["", "5", "5G", "GB", "-5GB", "0.5MB", "1e9GB", "nanGB", "infGB", "0x5GB", "5 GB 3"])
    func `any other text is refused`(text: String) {
        #expect(throws: Failure.self) { try SettingKey.downloadLimit.value(of: text) }
    }
}
