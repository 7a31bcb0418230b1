import BusKit
import Foundation
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests an unusable download folder, planted files in it, and names that point outside.
@Suite(.serialized)
struct DownloadFolderTests {
    private static let audio = Tone.wav(seconds: 20)

    /// A podcast with an episode for each title, all with the same audio.
    private static func feed(_ server: HTTPTestServer, podcast: String, titles: [String]) -> HTTPTestResponse {
        func escaped(_ text: String) -> String {
            text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
        }
        let items = titles.enumerated().map { number, title in
            """
            <item><title>\(escaped(title))</title><guid>\(number)</guid><pubDate>Mon, 01 Jan 2024 10:00:00 GMT</pubDate>
            <enclosure url="\(server.url("/1.wav"))" type="audio/wav" length="\(audio.count)"/></item>
            """
        }
        return .feed(
            """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>\(escaped(podcast))</title>
            <description>x</description>\(items.joined())</channel></rss>
            """)
    }

    /// Runs with a fleet that has subscribed to a podcast.
    private func with(
        podcast: String = "Show", titles: [String] = ["One"],
        _ body: @escaping @Sendable (ProcessFleet, FleetObserver, HTTPTestServer) async throws -> Void
    ) async throws {
        try await HTTPTestServer.with { server in
            server.route("/feed.xml", Self.feed(server, podcast: podcast, titles: titles))
            var response = HTTPTestResponse.audio(Self.audio, type: "audio/wav")
            response.etag = "\"one\""
            server.route("/1.wav", response)
            try await FleetObserver.with(feedOf: server) { try await body($0, $1, server) }
        }
    }

    private func ended(_ observer: FleetObserver, count: Int = 1) async throws -> [WireDownload] {
        try await observer.until("\(count) downloads have ended") { view in
            view.downloads.values.count { $0.state == .downloaded || $0.state == .failed } == count
        }
        return observer.view.downloads.values.sorted { $0.title < $1.title }
    }

    /// Checks that the download fails with a message, and that nothing else fails.
    private func checkRefused(_ fleet: ProcessFleet, _ observer: FleetObserver, contains text: String) async throws {
        _ = try await fleet.succeed("download", "add", "One")
        // A failure that may have another cause is retried three times; the first one is enough here.
        try await observer.until("the download is refused") { view in
            view.downloads.values.contains { $0.attempt > 0 || $0.state == .failed }
        }
        let refused = try #require(observer.view.downloads.values.first)
        let message = refused.waitsFor + refused.error.message
        #expect(message.contains(text), "\(message)")
        _ = try await fleet.succeed("play", "One")
        #expect(try await fleet.status().state == "playing")
        #expect(try await fleet.services().values.allSatisfy { $0.state == "ready" && $0.restarts == 0 })
    }

    /// Checks that the download completes once the folder is usable.
    private func checkCompleted(_ fleet: ProcessFleet, _ observer: FleetObserver) async throws {
        _ = try await fleet.lockstep(["download", "cancel", "One"])
        _ = try await fleet.succeed("download", "add", "One")
        // The first state received may still be the failure.
        try await observer.until("the download is complete") { $0.downloads.values.first?.state == .downloaded }
        let download = try #require(observer.view.downloads.values.first)
        #expect(FileManager.default.contents(atPath: download.path) == Data(Self.audio))
    }

    // MARK: The folder

    @Test(.timeLimit(.minutes(5)), .enabled(if: SmallDisk.isAvailable, SmallDisk.isMissing))
    func `a read-only folder is reported; playback and downloads to other folders continue`() async throws {
        try await with { fleet, observer, _ in
            _ = try await fleet.succeed("down")
            try await SmallDisk(folder: fleet.home.downloadDirectory, size: 80, isReadOnly: true).up(fleet)
            try await observer.untilReady()
            try await checkRefused(fleet, observer, contains: "Read-only file system")
            _ = try await fleet.succeed("down")
            try await fleet.up()
            try await observer.untilReady()
            try await checkCompleted(fleet, observer)
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `a file instead of the folder is reported and not changed`() async throws {
        try await with { fleet, observer, _ in
            let folder = fleet.home.downloadDirectory
            try? FileManager.default.removeItem(atPath: folder)
            try "mine".write(toFile: folder, atomically: false, encoding: .utf8)
            try await checkRefused(fleet, observer, contains: folder)
            #expect(try String(contentsOfFile: folder, encoding: .utf8) == "mine")
            try FileManager.default.removeItem(atPath: folder)
            try await checkCompleted(fleet, observer)
        }
    }

    @Test(.timeLimit(.minutes(5)), arguments: ["Show", ".partial"])
    func `a symbolic link instead of a folder is not followed`(name: String) async throws {
        try await with { fleet, observer, _ in
            let outside = fleet.root + "/outside"
            try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: true)
            try "precious".write(toFile: outside + "/precious", atomically: false, encoding: .utf8)
            let folder = fleet.home.downloadDirectory
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try? FileManager.default.removeItem(atPath: "\(folder)/\(name)")
            try FileManager.default.createSymbolicLink(atPath: "\(folder)/\(name)", withDestinationPath: outside)
            try await checkRefused(fleet, observer, contains: name)
            #expect(try FileManager.default.contentsOfDirectory(atPath: outside) == ["precious"])
            try FileManager.default.removeItem(atPath: "\(folder)/\(name)")
            try await checkCompleted(fleet, observer)
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `a symbolic link instead of a file is neither written through nor treated as the file`() async throws {
        try await with { fleet, observer, _ in
            // The file’s name is known only after a download.
            _ = try await fleet.succeed("download", "add", "One")
            let path = try #require(try await ended(observer).first).path
            _ = try await fleet.succeed("download", "remove", "One")
            try await observer.until("the download is removed") { $0.downloads.isEmpty }
            let precious = fleet.root + "/precious.wav"
            try Data(Self.audio).write(to: URL(fileURLWithPath: precious))
            try FileManager.default.createDirectory(
                atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
            unlink(path)
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: precious)
            try await checkRefused(fleet, observer, contains: "already exists and wasn’t replaced")
            #expect(FileManager.default.contents(atPath: precious) == Data(Self.audio))
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: path) == precious)
            unlink(path)
            try await checkCompleted(fleet, observer)
            // A link that replaces it isn’t the downloaded file: removal leaves the link and its target.
            unlink(path)
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: precious)
            _ = try await fleet.succeed("download", "remove", "One")
            try await observer.until("the episode isn’t downloaded") { $0.downloads.isEmpty }
            #expect(FileManager.default.contents(atPath: precious) == Data(Self.audio))
        }
    }

    // MARK: Names

    static let titles = [
        "../../../../outside", "/etc/passwd", "..", ".", "a\tb\u{85}c\u{7f}", String(repeating: "long ", count: 60),
        String(repeating: "ش", count: 300), "\u{202E}vaw.exe\u{2066}", "مقدمة في البرمجة", "con?*|<>:\"", "~root",
        "$(reboot)",
        "-rf", "👩‍👩‍👧", "%2e%2e%2fx",
    ]

    @Test(
        .timeLimit(.minutes(5)),
        arguments: ["../../outside", String(repeating: "ä", count: 300), "\u{202E}show", "Show"])
    func `downloads with hostile podcast and episode names stay inside the folder and are readable`(podcast: String)
        async throws
    {
        try await with(podcast: podcast, titles: Self.titles) { fleet, observer, _ in
            let before = try FileManager.default.contentsOfDirectory(atPath: fleet.root).sorted()
            let page = try await PersistenceClient(observer.client).episodes(.with { $0.limit = 50 })
            #expect(page.episodes.count == Self.titles.count)
            _ = try await fleet.lockstep(["download", "add"] + page.episodes.map(\.id))
            let downloads = try await ended(observer, count: Self.titles.count)
            #expect(Set(downloads.map(\.path)).count == downloads.count)
            for download in downloads {
                #expect(download.state == .downloaded, "\(download.title): \(download.error.message)")
                #expect(download.path.hasPrefix(fleet.home.downloadDirectory + "/"))
                let parts = download.path.dropFirst(fleet.home.downloadDirectory.count + 1).split(separator: "/")
                #expect(parts.count == 2 && parts.allSatisfy { $0.utf8.count <= 200 && !$0.hasPrefix(".") }, "\(parts)")
                #expect(
                    !parts.joined().unicodeScalars.contains { $0.value < 32 || (0x202A...0x202E).contains($0.value) })
                #expect(FileManager.default.contents(atPath: download.path) == Data(Self.audio))
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: fleet.root).sorted() == before)
            _ = try await fleet.lockstep(["download", "remove"] + page.episodes.map(\.id))
            try await observer.until("all downloads are removed") { $0.downloads.isEmpty }
        }
    }

    // MARK: Files

    @Test(.timeLimit(.minutes(5)))
    func `an emptied file is neither played instead of the stream nor treated as a download`() async throws {
        try await with { fleet, observer, _ in
            _ = try await fleet.succeed("download", "add", "One")
            let download = try #require(try await ended(observer).first)
            truncate(download.path, 0)
            _ = try await fleet.succeed("play", "One")
            try await observer.until("the stream plays") { view in
                view.player?.status == .playing && view.player?.local == false
                    && view.alertsInOrder.contains { $0.code == "playsStream" }
            }
            try await observer.until("the episode isn’t downloaded") { $0.downloads.isEmpty }
            #expect(try await fleet.succeed("why", "One").contains("was replaced by another one"))
        }
    }
}
