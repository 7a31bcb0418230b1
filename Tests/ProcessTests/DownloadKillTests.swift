import BusKit
import Foundation
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests downloads and playback while processes are killed.
@Suite(.serialized)
struct DownloadKillTests {
    private static let audio = Tone.wav(seconds: 120)

    private static func feed(_ server: HTTPTestServer) -> String {
        """
        <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Slow</title><description>x</description>
        <item><title>One</title><guid>one</guid><pubDate>Mon, 01 Jan 2024 10:00:00 GMT</pubDate>
        <enclosure url="\(server.url("/1.wav"))" type="audio/wav" length="\(audio.count)"/></item></channel></rss>
        """
    }

    private static func largestFile(in folder: String) -> Int {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let sizes = names.map { name in
            (try? FileManager.default.attributesOfItem(atPath: folder + "/" + name))?[.size] as? Int ?? 0
        }
        return sizes.max() ?? 0
    }

    @Test(.timeLimit(.minutes(5)), arguments: [true, false])
    func `an interrupted download resumes at the end of its partial file`(isKilled: Bool) async throws {
        try await HTTPTestServer.with { server in
            var response = HTTPTestResponse.audio(Self.audio, type: "audio/wav")
            response.etag = "\"one\""
            response.fault = .stall(afterBytes: 200_000)
            server.route("/feed.xml", .feed(Self.feed(server)))
            var whole = response
            whole.fault = .none
            server.route("/1.wav", response, whole)
            try await FleetObserver.with(feedOf: server) { fleet, observer in
                try await fleet.succeed("download", "add", "One")
                await server.stalled(at: "/1.wav")
                try await observer.until("the version that is received is known") {
                    $0.downloads.values.contains { !$0.etag.isEmpty }
                }
                #expect(observer.view.downloads.values.first?.receivedBytes == 0)
                let partial = fleet.home.downloadDirectory + "/.partial"
                while Self.largestFile(in: partial) < 200_000 {
                    try await ContinuousClock().sleep(for: .milliseconds(10))
                }
                if isKilled {
                    fleet.signal("downloads", SIGKILL)
                } else {
                    try await fleet.succeed("down")
                    try await fleet.up()
                }
                try await observer.until("the download is complete") {
                    $0.downloads.values.first?.state == .downloaded
                }
                #expect(server.requests(for: "/1.wav").map { $0.header("Range") } == [nil, "bytes=200000-"])
                let path = try #require(observer.view.downloads.values.first?.path)
                #expect(try Data(contentsOf: URL(filePath: path)) == Data(Self.audio))
            }
        }
    }

    @Test(.timeLimit(.minutes(5)), arguments: ["downloads", "playback", "persistence", "bus"], [1, 2] as [UInt64])
    func `a download is completed and the played position is kept whichever process is killed`(
        service: String, seed: UInt64
    ) async throws {
        try await HTTPTestServer.with { server in
            var response = HTTPTestResponse.audio(Self.audio, type: "audio/wav")
            response.etag = "\"one\""
            response.chunkSize = 16_384
            response.chunkInterval = 50
            server.route("/feed.xml", .feed(Self.feed(server)))
            server.route("/1.wav", response)
            try await FleetObserver.with(feedOf: server) { fleet, observer in
                _ = try await fleet.succeed("play", "One")
                // The position isn’t 0, so a restart at the beginning would be detected.
                _ = try await fleet.succeed("seek", "1:00")
                _ = try await fleet.succeed("download", "add", "One")
                var random = SeededGenerator(seed: seed)
                var heard = 60.0
                for _ in 0..<3 {
                    try await observer.until("the episode plays") { $0.player?.status == .playing }
                    try await ContinuousClock().sleep(for: .milliseconds(random.below(1_000)))
                    heard = max(heard, try await fleet.status().position)
                    let generation = ServiceName(service).flatMap { observer.view.replica.ready[$0] } ?? 0
                    let epoch = observer.view.replica.position.epoch
                    #expect(fleet.signal(service, SIGKILL) != nil)
                    try await observer.until("\(service) is ready again") { view in
                        guard service != "bus" else { return view.replica.position.epoch > epoch }
                        return ServiceName(service).flatMap { view.replica.ready[$0] } ?? 0 > generation
                    }
                    try await observer.untilReady()
                    // A second crash of the player within a minute leaves it paused until a command resumes it.
                    if observer.view.player?.status != .playing { _ = try await fleet.succeed("resume") }
                    #expect(try await fleet.status().position >= heard - 10)
                }
                try await observer.until("the download is complete") {
                    $0.downloads.values.first?.state == .downloaded
                }
                let path = try #require(observer.view.downloads.values.first?.path)
                #expect(try Data(contentsOf: URL(filePath: path)) == Data(Self.audio))
                let why = try await fleet.succeed("why", "One")
                #expect(why.contains("requested by"))
            }
        }
    }
}
