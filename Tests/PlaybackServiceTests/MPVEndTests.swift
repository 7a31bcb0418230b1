import BusKit
import PodcastModel
import TestSupport
import Testing

@testable import PlaybackService

/// Tests the end of audio in libmpv while its output is reopened.
@Suite(.timeLimit(.minutes(2)))
struct MPVEndTests {
    private let folder: TemporaryFolder
    private let harness = EngineHarness(.libmpv)

    init() throws { folder = try TemporaryFolder() }

    /// Plays an episode of six seconds from the third on, performs an action at each position report in the last two
    /// seconds, and waits for its end.
    private static func end(
        of source: AudioSource, at speed: Double, _ harness: EngineHarness,
        _ perturb: @escaping @Sendable (any AudioEngine, Int) -> Void
    ) async throws -> ReportedEnd {
        let speed = try #require(PlaybackSpeed(factor: speed))
        let engine = harness.engine
        engine.perform(.open(EngineLoad(id: .random(), source: source, start: try PlaybackPosition(3), speed: speed)))
        _ = try await harness.progress { $0.running && $0.position.seconds > 4 }
        // The engine reports nothing while its output plays the last moment, so `perturb` is repeated every 50 ms until
        // the end.
        let disturbing = Task {
            for count in 0..<200 where !Task.isCancelled {
                perturb(engine, count)
                engine.perform(.sample)
                try? await Task.sleep(for: .milliseconds(50))
            }
        }
        let end = try await harness.next { if case .ended(_, let end) = $0 { end } else { nil } }
        disturbing.cancel()
        return end
    }

    @Test(arguments: [1, 2.8, 3.5])
    func `an episode still ends if the output is reopened just before the end`(speed: Double) async throws {
        let source = AudioSource.file(path: try folder.file("six.wav", Tone.wav(seconds: 6)))
        let end = try await Self.end(of: source, at: speed, harness) { engine, count in
            if count.isMultiple(of: 8) { engine.perform(.reloadOutput) }
        }
        #expect(end.isConfirmed(announced: EpisodeDuration(seconds: 6)))
        await harness.engine.close()
    }

    @Test(arguments: [1, 2.8, 3.5])
    func `an episode still ends if the device changes just before the end`(speed: Double) async throws {
        let source = AudioSource.file(path: try folder.file("six.wav", Tone.wav(seconds: 6)))
        let end = try await Self.end(of: source, at: speed, harness) { engine, count in
            if count.isMultiple(of: 8) { engine.perform(.setOutput(count.isMultiple(of: 16) ? "null" : "")) }
        }
        #expect(end.isConfirmed(announced: EpisodeDuration(seconds: 6)))
        await harness.engine.close()
    }

    @Test func `a cut stream is detected even if its output is reopened`() async throws {
        let harness = harness
        try await HTTPTestServer.with { server in
            var response = HTTPTestResponse.audio(Tone.wav(seconds: 60), type: "audio/wav")
                .with(.close(afterBytes: 96_000))
            response.acceptsRanges = false
            server.route("/a.wav", response)
            let end = try await Self.end(of: .web(url: server.url("/a.wav")), at: 3, harness) { engine, count in
                if count.isMultiple(of: 8) { engine.perform(.setOutput(count.isMultiple(of: 16) ? "null" : "")) }
            }
            #expect(end.position.seconds < 8 && !end.isConfirmed(announced: EpisodeDuration(seconds: 60)))
            await harness.engine.close()
        }
    }
}

struct StandstillWatchTests {
    private func at(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: UInt64(seconds * 1e9)) }

    private func stands(_ places: [(position: Double, isRunning: Bool, at: Double)]) throws -> [Bool] {
        var watch = StandstillWatch()
        return try places.map { place in
            watch.isStalled(
                at: try PlaybackPosition(place.position), isRunning: place.isRunning, now: at(place.at))
        }
    }

    @Test func `a position that doesn’t move in several samples is a stall`() throws {
        #expect(try stands((0..<5).map { (9, true, Double($0)) }) == [false, false, false, true, true])
    }

    @Test func `several positions at one time count once, and a stopped process isn’t a stall`() throws {
        #expect(try stands((0..<20).map { (9, true, Double($0) / 100) }).allSatisfy { !$0 })
        #expect(try stands([(9, true, 0), (9, true, 600), (9.5, true, 601)]).allSatisfy { !$0 })
    }

    @Test func `a position that moves or is paused isn’t a stall`() throws {
        #expect(try stands((0..<20).map { (Double($0) / 10, true, Double($0)) }).allSatisfy { !$0 })
        #expect(try stands((0..<20).map { (9, false, Double($0)) }).allSatisfy { !$0 })
    }
}
