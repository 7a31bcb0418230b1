import BusKit
import Foundation
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// A fleet that plays through the test’s own sound server.
struct SoundFleet: Sendable {
    let fleet: ProcessFleet
    let server: SoundServer
    let observer: FleetObserver

    /// Runs `body` with a fleet whose podcast has the episodes “One” and “Two”, each with this audio.
    static func with(
        _ kind: SoundServer.Kind, sinks: [String]? = ["one"], audio: [UInt8] = Sweep.wav(seconds: 150),
        _ body: @Sendable (SoundFleet) async throws -> Void
    ) async throws {
        try await SoundServer.with(kind) { server in
            if let sinks { try server.start(sinks: sinks) }
            try await ProcessFleet.with(isUp: false) { fleet in
                try await up(fleet, server)
                try await fleet.succeed("subscribe", try writeFeed(fleet, audio))
                try await observing(fleet, server, body)
            }
        }
    }

    static func up(_ fleet: ProcessFleet, _ server: SoundServer) async throws {
        let up = try await fleet.lockstep(["up", "--detach"], environment: server.environment)
        guard up.status == 0 else { throw ProcessFleet.Unexpected(description: "\(up)") }
    }

    /// Runs `body` with an observer of a fleet that is up.
    static func observing(
        _ fleet: ProcessFleet, _ server: SoundServer, _ body: @Sendable (SoundFleet) async throws -> Void
    ) async throws {
        try await FleetObserver.with(1, of: fleet) { observers in
            try await observers[0].untilReady()
            server.setPlayer { observers[0].summary }
            try await body(SoundFleet(fleet: fleet, server: server, observer: observers[0]))
        }
    }

    private static func writeFeed(_ fleet: ProcessFleet, _ audio: [UInt8]) throws -> String {
        var items = ""
        for title in ["One", "Two"] {
            let path = fleet.root + "/\(title).wav"
            try Data(audio).write(to: URL(fileURLWithPath: path))
            items += """
                <item><title>\(title)</title><guid>\(title)</guid><pubDate>Mon, 01 Jan 2024 10:00:00 GMT</pubDate>
                <enclosure url="file://\(path)" type="audio/wav" length="\(audio.count)"/></item>
                """
        }
        let feed = """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Sound</title>
            <link>http://127.0.0.1/</link><description>x</description>\(items)</channel></rss>
            """
        let path = fleet.root + "/feed.xml"
        try feed.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    // MARK: Recording

    /// Plugs a device in and records it. The player is stopped until the recording has begun, so its output is
    /// recorded from the first sample.
    func recorder(plugging sink: String) async throws -> SoundRecorder {
        let generation = self.generation
        if fleet.signal("playback", SIGSTOP) == nil {
            // The previous process ended because its engine hung.
            try await observer.until("another process of the player is ready") { Self.generation(in: $0) > generation }
            guard fleet.signal("playback", SIGSTOP) != nil else {
                throw ProcessFleet.Unexpected(description: "there is no player")
            }
        }
        defer { _ = fleet.signal("playback", SIGCONT) }
        try server.addSink(sink)
        return try await SoundRecorder.of(sink, on: server)
    }

    // MARK: Player

    var player: WirePlaybackState { observer.view.player ?? WirePlaybackState() }

    /// The generation of the player’s current process.
    var generation: UInt32 { Self.generation(in: observer.view) }

    /// The generation of the player’s process while it is ready; else 0.
    static func generation(in view: FleetView) -> UInt32 { view.replica.ready[.playback] ?? 0 }

    @discardableResult
    func ask(_ fill: (inout WirePlaybackRequest) -> Void) async throws -> WirePlaybackReply {
        try await observer.client.ask(
            .playback, WirePlaybackRequest.with(fill), reply: WirePlaybackReply.self, within: .seconds(30)
        ).reply
    }

    func setPaused(_ paused: Bool) async throws { try await ask { $0.setPaused.paused = paused } }

    func until(_ what: String, _ condition: @escaping @Sendable (WirePlaybackState) -> Bool) async throws {
        try await observer.until(what) { $0.player.map(condition) ?? false }
    }

    func untilPlaying(_ title: String = "One") async throws {
        try await until("“\(title)” plays") {
            $0.status == .playing && $0.anchor.running && $0.episode.title == title
        }
    }

    /// Waits until the player has paused because its device was lost, and has reported it.
    func untilLost() async throws {
        try await observer.until("the loss of the device is reported") { view in
            view.player?.status == .paused && view.player?.pausedBy == .soundDevice
                && view.alertsInOrder.contains { $0.code == FailureCode.noSoundDevice.rawValue }
        }
    }

    func untilNoAlert() async throws { try await observer.until("there is no alert") { $0.alertsInOrder.isEmpty } }

    /// The messages of all alerts on the stream so far.
    var alertMessages: [String] {
        observer.events.compactMap { event in
            guard event.topic.text.hasPrefix("stream/playback/alert/"), event.header.kind == .put else { return nil }
            return (try? WireAlert(wireBytes: event.payload))?.message
        }
    }

    /// All player states on the stream so far.
    var states: [WirePlaybackState] {
        observer.events.filter { $0.topic == .playbackState }.compactMap {
            try? WirePlaybackState(wireBytes: $0.payload)
        }
    }
}
