import BusKit
import Foundation
import LockstepClient
import PodcastModel
import TestSupport
import Testing
import WireMessages

/// Tests a disk that fills up during a download: only the download fails, and it completes once there is space.
@Suite(.serialized, .enabled(if: SmallDisk.isAvailable, SmallDisk.isMissing))
struct FullDiskTests {
    private static let pattern: [UInt8] = {
        var random = SeededGenerator(seed: 4)
        return (0..<65_536).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }()

    /// Audio whose server doesn’t announce its length.
    private static func file(megabytes: Int, _ fault: HTTPTestResponse.Fault = .none) -> HTTPTestResponse {
        HTTPTestResponse(
            headers: [("Content-Type", "audio/mpeg")], body: .repeated(pattern, total: megabytes << 20),
            etag: "\"one\"", acceptsRanges: true, announcesLength: false, fault: fault, chunkSize: 1 << 20)
    }

    private static func feed(_ server: HTTPTestServer) -> String {
        let items = ["One", "Two", "Three"].map { title in
            """
            <item><title>\(title)</title><guid>\(title)</guid><pubDate>Mon, 01 Jan 2024 10:00:00 GMT</pubDate>
            <enclosure url="\(server.url("/\(title)"))" type="audio/mpeg" length="0"/></item>
            """
        }
        return """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Large</title>
            <description>x</description>\(items.joined())</channel></rss>
            """
    }

    /// Runs with a fleet that plays a stream and has one of its folders on a disk of `size` MiB.
    private func with(
        _ folder: @escaping @Sendable (LockstepHome) -> String, size: Int,
        _ body: @escaping @Sendable (ProcessFleet, FleetObserver, HTTPTestServer) async throws -> Void
    ) async throws {
        try await HTTPTestServer.with { server in
            server.route("/feed.xml", .feed(Self.feed(server)))
            server.route("/Two", .audio(Tone.wav(seconds: 300), type: "audio/wav"))
            try await ProcessFleet.with(isUp: false) { fleet in
                try await SmallDisk(folder: folder(fleet.home), size: size).up(fleet)
                try await FleetObserver.with(1, of: fleet) { observers in
                    try await observers[0].untilReady()
                    _ = try await fleet.succeed("subscribe", server.url("/feed.xml"))
                    _ = try await fleet.succeed("play", "Two")
                    try await body(fleet, observers[0], server)
                }
            }
        }
    }

    private func download(_ title: String, _ observer: FleetObserver) throws -> WireDownload {
        try #require(observer.view.downloads.values.first { $0.title == title })
    }

    /// Checks that the download has failed for lack of space and is kept, and that nothing else is affected.
    private func checkFailure(_ fleet: ProcessFleet, _ observer: FleetObserver) async throws {
        try await observer.until("it has failed, with its alert") { view in
            view.downloads.values.contains { $0.title == "One" && $0.state == .failed }
                && view.alertsInOrder.contains { $0.code == "downloadFailed" }
        }
        let failed = try download("One", observer)
        #expect(failed.error.code == FailureCode.insufficientStorage.rawValue, "\(failed.error)")
        #expect(failed.receivedBytes > 0)
        let folder = try SmallDisk.path(fleet.home.downloadDirectory, of: fleet)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(Set(files).subtracting(["filler"]) == [".partial"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder + "/.partial").count == 1)
        let output = try await fleet.succeed("downloads", "--json")
        #expect(output.contains(#""insufficientStorage""#) && output.contains(#""failed""#))
        // Playback continues, and so do writes to the database.
        let before = try await fleet.status()
        #expect(before.state == "playing")
        _ = try await fleet.succeed("queue", "add", "Three")
        _ = try await fleet.succeed("bookmark", "add")
        _ = try await fleet.succeed("why", "One")
        try await observer.until("playback continues") { view in
            guard let player = view.player else { return false }
            return player.status == .playing && player.anchor.running
        }
        #expect(try await fleet.status().position > before.position)
        #expect(try await fleet.services().values.allSatisfy { $0.state == "ready" && $0.restarts == 0 })
    }

    /// Checks that with enough space the download resumes and the file is completed.
    private func checkRetry(
        _ fleet: ProcessFleet, _ observer: FleetObserver, _ server: HTTPTestServer, megabytes: Int
    ) async throws {
        let kept = try download("One", observer).receivedBytes
        let count = server.requests(for: "/One").count
        _ = try await fleet.succeed("download", "add", "One")
        try await observer.until("the download is complete") { view in
            view.downloads.values.contains { $0.title == "One" && $0.state == .downloaded }
                && view.alertsInOrder.isEmpty
        }
        #expect(server.requests(for: "/One").dropFirst(count).first?.header("Range") == "bytes=\(kept)-")
        let path = try SmallDisk.path(try download("One", observer).path, of: fleet)
        let content = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(content.count == megabytes << 20)
        let pattern = Data(Self.pattern)
        #expect(
            stride(from: 0, to: content.count, by: pattern.count).allSatisfy {
                content[$0..<$0 + pattern.count] == pattern
            })
    }

    @Test(.timeLimit(.minutes(5)))
    func `downloads survive a disk that another program has filled`() async throws {
        try await with({ $0.downloadDirectory }, size: 160) { fleet, observer, server in
            server.route("/One", Self.file(megabytes: 64, .stall(afterBytes: 40 << 20)))
            _ = try await fleet.succeed("download", "add", "One")
            await server.stalled(at: "/One")
            let filler = try SmallDisk.path(fleet.home.downloadDirectory + "/filler", of: fleet)
            #expect(try SmallDisk.fill(filler) > 0)
            server.release("/One")
            try await checkFailure(fleet, observer)
            // Without space it fails again at once, and keeps the received part.
            let kept = try download("One", observer).receivedBytes
            let before = observer.view.alertsInOrder.map(\.id)
            _ = try await fleet.succeed("download", "resume", "One")
            try await observer.until("the download has failed again") { view in
                view.alertsInOrder.contains { $0.code == "downloadFailed" && !before.contains($0.id) }
            }
            #expect(try download("One", observer).receivedBytes == kept)
            try FileManager.default.removeItem(atPath: filler)
            server.route("/One", Self.file(megabytes: 64))
            try await checkRetry(fleet, observer, server, megabytes: 64)
            // A download whose announced length doesn’t fit isn’t started.
            var huge = Self.file(megabytes: 1)
            (huge.announcesLength, huge.claimedLength) = (true, 500_000_000)
            server.route("/Three", huge)
            _ = try await fleet.succeed("download", "add", "Three")
            try await observer.until("the download has failed") { view in
                view.downloads.values.contains { $0.title == "Three" && $0.state == .failed }
            }
            let refused = try download("Three", observer)
            #expect(refused.error.code == FailureCode.insufficientStorage.rawValue && refused.receivedBytes == 0)
            #expect(refused.error.message.contains("550 MB are needed"), "\(refused.error.message)")
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `a download of unknown length to the database’s disk stops before the disk is full`() async throws {
        try await with({ $0.dataDirectory }, size: 224) { fleet, observer, server in
            let filler = try SmallDisk.path(fleet.home.dataDirectory + "/filler", of: fleet)
            #expect(try SmallDisk.fill(filler, bytes: 80 << 20) == 80 << 20)
            server.route("/One", Self.file(megabytes: 120))
            _ = try await fleet.succeed("download", "add", "One")
            try await checkFailure(fleet, observer)
            var space = statvfs()
            #expect(statvfs(try SmallDisk.path(fleet.home.dataDirectory, of: fleet), &space) == 0)
            // At most the bytes received between two checks exceed the limit.
            #expect(UInt64(space.f_bavail) * UInt64(space.f_frsize) > 40_000_000)
            try FileManager.default.removeItem(atPath: filler)
            try await checkRetry(fleet, observer, server, megabytes: 120)
        }
    }

    /// A feed of 2,000 episodes with distinct notes of 3,000 characters.
    private static let largeFeed: String = {
        var random = SeededGenerator(seed: 7)
        let items = (0..<2_000).map { number in
            let notes = (0..<400).map { _ in String(random.next() % 1_000_000) }.joined(separator: " ")
            return """
                <item><title>Number \(number)</title><guid>\(number)</guid><description>\(notes)</description>
                <enclosure url="/\(number).mp3" type="audio/mpeg" length="0"/></item>
                """
        }
        return """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Long</title>
            <description>x</description>\(items.joined())</channel></rss>
            """
    }()

    @Test(.timeLimit(.minutes(5)))
    func `a subscription that doesn’t fit on the disk stores nothing`() async throws {
        try await HTTPTestServer.with { server in
            server.route("/large.xml", .feed(Self.largeFeed))
            try await ProcessFleet.with(isUp: false) { fleet in
                try await SmallDisk(folder: fleet.home.dataDirectory, size: 96).up(fleet)
                let filler = try SmallDisk.path(fleet.home.dataDirectory + "/filler", of: fleet)
                #expect(try SmallDisk.fill(filler, bytes: 90 << 20) == 90 << 20)
                let refused = try await fleet.lockstep(["subscribe", server.url("/large.xml")])
                #expect(refused.status == 75)
                #expect(refused.errors.contains("is full: nothing was saved."), "\(refused.errors)")
                #expect(try await fleet.succeed("podcasts", "--json").contains("Long") == false)
                #expect(try await fleet.succeed("episodes", "--json").contains("Number") == false)
                try FileManager.default.removeItem(atPath: filler)
                _ = try await fleet.succeed("subscribe", server.url("/large.xml"))
                let podcasts = try await fleet.succeed("podcasts", "--json")
                #expect(podcasts.contains(#""episodeCount":2000"#), "\(podcasts)")
            }
        }
    }
}
