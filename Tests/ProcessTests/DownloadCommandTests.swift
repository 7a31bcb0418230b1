import BusKit
import Foundation
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests that commands report downloads correctly: files changed by other programs, downloads that can’t be
/// resumed, and episodes that are no longer in the library.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct DownloadCommandTests {
    private static let audio = Tone.wav(seconds: 20)

    private static func feed(_ server: HTTPTestServer) -> HTTPTestResponse {
        .feed(
            """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Show</title>
            <description>x</description><item><title>One</title><guid>1</guid>
            <pubDate>Mon, 01 Jan 2024 10:00:00 GMT</pubDate>
            <enclosure url="\(server.url("/1.wav"))" type="audio/wav" length="\(audio.count)"/></item></channel></rss>
            """)
    }

    /// Runs with a fleet that has subscribed to a podcast of one episode.
    private func with(
        _ change: (inout HTTPTestResponse) -> Void = { $0.etag = "\"one\"" },
        _ body: @escaping @Sendable (ProcessFleet, FleetObserver, HTTPTestServer) async throws -> Void
    ) async throws {
        var audio = HTTPTestResponse.audio(Self.audio, type: "audio/wav")
        change(&audio)
        let response = audio
        try await HTTPTestServer.with { server in
            server.route("/feed.xml", Self.feed(server))
            server.route("/1.wav", response)
            try await FleetObserver.with(feedOf: server) { try await body($0, $1, server) }
        }
    }

    /// Downloads the episode and returns its file’s path; an earlier state may show the deleted file.
    private func add(_ fleet: ProcessFleet, _ observer: FleetObserver) async throws -> String {
        let before = observer.view.downloads.values.first?.requestedAt ?? 0
        #expect(try await fleet.succeed("download", "add", "One") == "Queued for download: “One”.\n")
        try await observer.until("the episode is downloaded") { view in
            view.downloads.values.contains { $0.state == .downloaded && $0.requestedAt > before }
        }
        return try #require(observer.view.downloads.values.first).path
    }

    @Test func `a deleted file is downloaded again on request`() async throws {
        try await with { fleet, observer, server in
            let path = try await add(fleet, observer)
            #expect(
                try await fleet.succeed("download", "add", "One").hasPrefix("No change: “One” is already downloaded"))
            unlink(path)
            #expect(try await add(fleet, observer) == path)
            #expect(FileManager.default.contents(atPath: path) == Data(Self.audio))
            #expect(server.requests(for: "/1.wav").count == 2)
        }
    }

    @Test func `a deleted file is no longer shown as downloaded, without a request`() async throws {
        try await with { fleet, observer, _ in
            unlink(try await add(fleet, observer))
            try await observer.until("the episode is no longer downloaded") { $0.downloads.isEmpty }
            #expect(try await fleet.succeed("why", "One").contains("its file was missing"))
            // After a second download and deletion, `why` reports the deletion at once.
            let path = try await add(fleet, observer)
            unlink(path)
            #expect(try await fleet.succeed("why", "One").contains("its file was missing"))
            #expect(try await fleet.succeed("downloads").hasPrefix("There are no downloads."))
        }
    }

    @Test func `an unavailable folder loses no download, and its files are found once it is available`() async throws {
        try await with { fleet, observer, server in
            let path = try await add(fleet, observer)
            let folder = fleet.home.downloadDirectory
            // The file is marked once it is checked, which is certain after a restart.
            for _ in 0..<2 {
                #expect(try await fleet.succeed("why", "One").contains("It is downloaded"))
                _ = try await fleet.succeed("down")
                try await fleet.up()
                try await observer.untilReady()
            }
            _ = try await fleet.succeed("down")
            try FileManager.default.moveItem(atPath: folder, toPath: folder + ".out")
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            try await fleet.up()
            try await observer.untilReady()
            try await observer.until("the alert is shown") { view in
                view.alertsInOrder.contains { $0.code == "downloadsAway" }
            }
            #expect(try await fleet.succeed("why", "One").contains("can’t be reached"))
            #expect(observer.view.downloads.values.first?.state == .downloaded)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
            try FileManager.default.removeItem(atPath: folder)
            try FileManager.default.moveItem(atPath: folder + ".out", toPath: folder)
            try await observer.until("no alert is shown") { view in
                !view.alertsInOrder.contains { $0.code == "downloadsAway" }
            }
            #expect(try await fleet.succeed("why", "One").contains("It is downloaded: "))
            #expect(FileManager.default.contents(atPath: path) == Data(Self.audio))
            #expect(server.requests(for: "/1.wav").count == 1)
        }
    }

    @Test func `a download that can’t be continued is reported as such when it is paused and resumed`() async throws {
        try await with({ $0.fault = .stall(afterBytes: 100_000) }) { fleet, observer, server in
            _ = try await fleet.succeed("download", "add", "One")
            try await observer.until("data is received") { ($0.downloads.values.first?.totalBytes ?? 0) > 0 }
            let host = try #require(WebAddress(server.url("/1.wav"))?.host)
            let says =
                "If it is interrupted, it starts from the beginning: \(host) doesn’t identify the version of the file."
            #expect(
                try await fleet.succeed("download", "pause", "One") == "Paused the download of “One”. \(says)\n")
            try await observer.until("the received part is kept") {
                ($0.downloads.values.first?.receivedBytes ?? 0) > 0
            }
            #expect(try await fleet.succeed("downloads", "--json").contains(says))
            #expect(try await fleet.succeed("show", "One").contains(says))
            #expect(
                try await fleet.succeed("download", "resume", "One")
                    == "Resumed the download of “One”. \(says)\n")
        }
    }

    @Test func `the download of a forgotten episode that is loaded can be removed`() async throws {
        try await with { fleet, observer, _ in
            let path = try await add(fleet, observer)
            _ = try await fleet.succeed("play", "One")
            _ = try await fleet.succeed("pause")
            _ = try await fleet.succeed("unsubscribe", "--forget", "--now", "--yes", "Show")
            #expect(try await fleet.succeed("downloads").contains("One"))
            #expect(try await fleet.succeed("why", "One").contains("It is downloaded"))
            #expect(try await fleet.succeed("download", "remove", "One") == "Removed the download of “One”.\n")
            try await observer.until("the download is removed") { $0.downloads.isEmpty }
            let nobody = try await fleet.lockstep(["download", "remove", "One"])
            #expect(nobody.status != 0 && nobody.errors.contains("One"))
            // A pending deletion has completed when the service has stopped.
            _ = try await fleet.succeed("down")
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }
}
