import BusKit
import Foundation
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests playback and downloads from a faulty server while processes are killed at random moments.
///
/// `LOCKSTEP_KILL_SEEDS=7,8,9` chooses the seeds; a failing run names its own.
@Suite(.serialized)
struct StreamKillTests {
    static let seeds: [UInt64] = {
        let chosen = ProcessInfo.processInfo.environment["LOCKSTEP_KILL_SEEDS"] ?? "1,2,3,4,5,6,7,8"
        return chosen.split(separator: ",").compactMap { UInt64($0) }
    }()

    @Test(
        .timeLimit(.minutes(5)),
        arguments: seeds)
    func `the position is kept, no partial file counts as finished, and nothing acknowledged is lost`(seed: UInt64)
        async throws
    {
        try await HTTPTestServer.with { server in
            try await ProcessFleet.with { fleet in
                try await FleetObserver.with(2, of: fleet) { observers in
                    var scenario = FaultyServerScenario(fleet, observers[0], server, seed: seed)
                    try await scenario.begin()
                    let page = try await PersistenceClient(observers[0].client).episodes(.with { $0.limit = 20 })
                    let others = page.episodes.filter { !["Number 1.", "Number 2.", "Number 3."].contains($0.title) }
                    let editor = QueueEditor(observers[1].client, episodes: others.map(\.id))
                    let editing = Task { await editor.edit(seed: seed) }
                    do {
                        for round in 0..<4 { try await scenario.killProcesses(round) }
                    } catch {
                        editing.cancel()
                        throw error
                    }
                    editing.cancel()
                    await editing.value
                    try await scenario.checkQueue(editor)
                    try await scenario.end()
                }
            }
        }
    }
}

/// Plays one episode and downloads two others from a faulty server, in a fleet whose processes are killed.
private struct FaultyServerScenario {
    /// The fault of the server.
    private enum Fault: CaseIterable { case truncates, stalls, resets, refuses, sendsSlowly }

    private static let wave = Tone.wav(seconds: 120)
    private static let slow = Tone.slowMP3(seconds: 600)

    private let fleet: ProcessFleet
    private let observer: FleetObserver
    private let server: HTTPTestServer
    private let fault: Fault
    private let audio: [UInt8]
    private let name: Comment
    /// The audio’s length and the position of the seek, in seconds.
    private let length: Double
    private let place: Double
    private var random: SeededGenerator

    init(_ fleet: ProcessFleet, _ observer: FleetObserver, _ server: HTTPTestServer, seed: UInt64) {
        (self.fleet, self.observer, self.server) = (fleet, observer, server)
        fault = Fault.allCases[Int(seed % UInt64(Fault.allCases.count))]
        (audio, length, place) = fault == .sendsSlowly ? (Self.slow, 600, 400) : (Self.wave, 120, 60)
        name = "seed \(seed), the server \(fault)"
        random = SeededGenerator(seed: seed)
    }

    // MARK: The server

    private var good: HTTPTestResponse {
        var response = HTTPTestResponse.audio(audio, type: fault == .sendsSlowly ? "audio/mpeg" : "audio/wav")
        response.etag = "\"one\""
        return response
    }

    /// The response is correct but slow, so that a transfer is active when a process is killed.
    private var paced: HTTPTestResponse {
        var response = good
        (response.chunkSize, response.chunkInterval) = fault == .sendsSlowly ? (100, 100) : (16_384, 100)
        return response
    }

    /// Makes a path respond with the fault.
    private mutating func breakPath(_ path: String) {
        let bytes = 1_000 + random.below(300_000)
        switch fault {
        case .truncates: server.route(path, paced.with(.close(afterBytes: bytes)))
        case .stalls: server.route(path, paced.with(.stall(afterBytes: bytes)))
        case .resets: server.route(path, paced.with(.reset(afterBytes: bytes)))
        case .refuses:
            server.route(
                path, paced.with(.close(afterBytes: bytes)), .status(503, headers: [("Retry-After", "1")]))
        case .sendsSlowly: server.route(path, paced)
        }
    }

    private func feed() -> HTTPTestResponse {
        let items = (1...10).map { number in
            """
            <item><title>Number \(number).</title><guid>\(number)</guid><pubDate>Mon, 01 Jan 2024 10:00:00 GMT</pubDate>
            <enclosure url="\(server.url("/\(number)"))" type="audio/wav" length="\(audio.count)"/></item>
            """
        }
        return .feed(
            """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Wrong</title>
            <description>x</description>\(items.joined())</channel></rss>
            """)
    }

    // MARK: Steps

    /// Plays an episode from its middle, and downloads another.
    mutating func begin() async throws {
        server.route("/feed.xml", feed())
        // At 1 kB/s the start would take half a minute; the data that arrives at once ends before the seek position.
        server.route("/1", fault == .sendsSlowly ? good.with(.stall(afterBytes: 300_000)) : paced)
        try await observer.untilReady()
        _ = try await fleet.succeed("subscribe", server.url("/feed.xml"))
        _ = try await fleet.succeed("play", "Number 1.")
        for path in ["/1", "/2", "/3"] { breakPath(path) }
        _ = try await fleet.succeed("seek", "\(place)")
        _ = try await fleet.succeed("download", "add", "Number 2.")
    }

    /// Kills one or two processes.
    mutating func killProcesses(_ round: Int) async throws {
        let volume = Double(20 + round)
        let request = WirePlaybackRequest.with { $0.setVolume.volume = volume }
        _ = try await observer.client.ask(
            .playback, request, reply: WirePlaybackReply.self, within: .seconds(60))
        if round == 1 { _ = try await fleet.succeed("download", "add", "Number 3.") }
        try await ContinuousClock().sleep(for: .milliseconds(random.below(1_200)))
        let all = ["playback", "persistence", "downloads"].shuffled(using: &random)
        let victims = Array(all.prefix(1 + random.below(2)))
        let ready = observer.view.replica.ready
        let (heard, before) = (position, SystemClocks.monotonic())
        for victim in victims { #expect(fleet.signal(victim, SIGKILL) != nil, name) }
        try await observer.until("\(victims) are ready again") { view in
            victims.compactMap { ServiceName($0) }.allSatisfy { view.replica.ready[$0] ?? 0 > ready[$0] ?? 0 }
        }
        try await observer.untilReady()
        let elapsed = SystemClocks.monotonic().since(before) / .seconds(1)
        #expect(position >= heard - 10 && position <= heard + elapsed + 1, name)
        #expect(position > place - 10, name)
        #expect(observer.view.player?.volume == volume, name)
        checkFiles(requested: round < 1 ? ["Number 2."] : ["Number 2.", "Number 3."])
        // A second crash of the player within a minute leaves it paused until a command resumes it.
        if observer.view.player?.status == .paused { try await setPaused(false) }
    }

    /// Restores the server and waits for the expected end.
    func end() async throws {
        for path in ["/1", "/2", "/3"] {
            server.route(path, good)
            server.release(path)
        }
        let late = observer.view.downloads.values.filter { $0.state != .downloaded }.map(\.episode).sorted()
        // Downloads that wait for a retry or for data are restarted, one by one: a command applies to all
        // or none, and one of them may be completed meanwhile.
        for episode in late {
            for action in ["pause", "resume"] {
                let outcome = try await fleet.lockstep(["download", action, episode])
                #expect(outcome.status == 0 || outcome.errors.contains("is downloaded"), name)
            }
        }
        try await observer.until("the downloads are complete") { view in
            view.downloads.values.count { $0.state == .downloaded } == 2
        }
        checkFiles(requested: ["Number 2.", "Number 3."])
        let heard = position
        _ = try await observer.client.ask(
            .playback, WirePlaybackRequest.with { $0.stop = WireStopPlayback() }, reply: WirePlaybackReply.self,
            within: .seconds(60))
        try await setPaused(false)
        try await observer.until("the episode plays") {
            $0.player?.status == .playing && $0.player?.anchor.running == true
        }
        #expect(abs(position - heard) < 10, name)
    }

    private func setPaused(_ isPaused: Bool) async throws {
        _ = try await observer.client.ask(
            .playback, WirePlaybackRequest.with { $0.setPaused.paused = isPaused }, reply: WirePlaybackReply.self,
            within: .seconds(60))
    }

    // MARK: Checks

    /// The current position, as far as it is known.
    private var position: Double {
        guard let player = observer.view.player else { return 0 }
        let anchor = player.anchor
        let elapsed = SystemClocks.monotonic().since(MonotonicTime(nanoseconds: anchor.at)) / .seconds(1)
        let speed = anchor.speed > 0 ? anchor.speed : player.speed
        return min(length, anchor.position + (anchor.running ? max(0, elapsed) * speed : 0))
    }

    /// Checks that every requested download is known and every finished file is complete.
    private func checkFiles(requested: [String]) {
        let downloads = observer.view.downloads.values
        #expect(downloads.map(\.title).sorted() == requested, name)
        let folder = fleet.home.downloadDirectory
        let found = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
        var isFolder: ObjCBool = false
        let files = found.filter { file in
            !file.hasPrefix(".partial")
                && FileManager.default.fileExists(atPath: "\(folder)/\(file)", isDirectory: &isFolder)
                && !isFolder.boolValue
        }
        let paths = Set(files.map { "\(folder)/\($0)" } + downloads.filter { $0.state == .downloaded }.map(\.path))
        for path in paths.sorted() {
            #expect(FileManager.default.contents(atPath: path) == Data(audio), "\(name): \(path)")
        }
    }

    /// Checks that the queue contains the acknowledged edits.
    func checkQueue(_ editor: QueueEditor) async throws {
        let last = try await observer.client.ask(
            .queue, WireQueueRequest.with { $0.history.limit = 1 }, reply: WireQueueReply.self, within: .seconds(60))
        try await observer.until("the last revision is published") {
            $0.mainQueue?.revision ?? 0 >= last.reply.revision
        }
        editor.outcomes.check(try #require(observer.view.mainQueue).entries.map(\.episode.id), name)
        #expect(editor.outcomes.changes > 0, name)
    }
}
