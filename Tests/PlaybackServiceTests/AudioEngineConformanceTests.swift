import EngineDouble
import PodcastModel
import TestSupport
import Testing

@testable import PlaybackService

/// Tests the contract of `AudioEngine`, run against each engine.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct AudioEngineConformanceTests {
    private let folder: TemporaryFolder
    private let path: String
    private let load: EngineLoad

    init() throws {
        folder = try TemporaryFolder()
        path = try folder.file("tone.wav", Tone.wav(seconds: 3))
        load = EngineLoad(id: .random(), source: .file(path: path))
    }

    private func harness(_ kind: EngineHarness.Kind) -> EngineHarness {
        EngineHarness(kind, files: [path: SimulatedEngine.Audio(length: 3)])
    }

    @Test(arguments: EngineHarness.Kind.allCases)
    func `the engine opens a file, reports its length, and plays`(_ kind: EngineHarness.Kind) async throws {
        let harness = harness(kind)
        harness.engine.perform(.open(load))
        let length = try #require(try await harness.opened())
        #expect(abs(length.duration.seconds - 3) < 0.05)
        #expect(length.source == .declared)
        let first = try await harness.progress(\.running)
        let later = try await harness.progress { $0.position.seconds > first.position.seconds + 0.3 }
        #expect(!later.buffering)
        await harness.engine.close()
    }

    @Test(arguments: EngineHarness.Kind.allCases)
    func `the engine starts at the requested position, and keeps exactly that position while paused`(
        _ kind: EngineHarness.Kind
    )
        async throws
    {
        let harness = harness(kind)
        var load = load
        load.start = try PlaybackPosition(1.5)
        load.paused = true
        harness.engine.perform(.open(load))
        _ = try await harness.opened()
        var serial: UInt64 = 0
        for place in [1.5, 0.7, 2.2, 1.2] {
            if serial > 0 { harness.engine.perform(.seek(try PlaybackPosition(place), serial: serial)) }
            // The output’s buffer distorts the first reports.
            for _ in 0..<20 {
                let progress = try await harness.progress { [serial] in $0.serial == serial }
                #expect(abs(progress.position.seconds - place) < 0.001 && !progress.running)
                harness.engine.perform(.sample)
            }
            serial += 1
        }
        await harness.engine.close()
    }

    @Test(arguments: EngineHarness.Kind.allCases)
    func `the engine pauses and resumes`(_ kind: EngineHarness.Kind) async throws {
        let harness = harness(kind)
        harness.engine.perform(.open(load))
        _ = try await harness.progress { $0.running && $0.position.seconds > 0.1 }
        harness.engine.perform(.setPaused(true))
        let held = try await harness.progress { !$0.running }
        harness.engine.perform(.sample)
        let still = try await harness.progress { !$0.running }
        #expect(abs(held.position.seconds - still.position.seconds) < 0.1)
        harness.engine.perform(.setPaused(false))
        _ = try await harness.progress { $0.running && $0.position.seconds > still.position.seconds + 0.1 }
        await harness.engine.close()
    }

    @Test(arguments: EngineHarness.Kind.allCases, [true, false])
    func `the engine seeks exactly and reports which seek it has completed`(_ kind: EngineHarness.Kind, paused: Bool)
        async throws
    {
        let harness = harness(kind)
        var load = load
        load.paused = paused
        harness.engine.perform(.open(load))
        _ = try await harness.opened()
        harness.engine.perform(.seek(try PlaybackPosition(0.7), serial: 6))
        harness.engine.perform(.seek(try PlaybackPosition(2.2), serial: 7))
        let progress = try await harness.progress { $0.serial == 7 }
        #expect(progress.position.seconds >= 2.15 && progress.position.seconds < 2.9)
        await harness.engine.close()
    }

    @Test(arguments: EngineHarness.Kind.allCases)
    func `a seek before the file is open takes effect when it is open`(_ kind: EngineHarness.Kind) async throws {
        let harness = harness(kind)
        harness.engine.perform(.open(load))
        harness.engine.perform(.seek(try PlaybackPosition(2), serial: 3))
        let progress = try await harness.progress { $0.serial == 3 }
        #expect(progress.position.seconds >= 1.95)
        await harness.engine.close()
    }

    @Test(arguments: EngineHarness.Kind.allCases)
    func `the engine reports the end once, at the right position, and plays after a seek`(_ kind: EngineHarness.Kind)
        async throws
    {
        let harness = harness(kind)
        var load = load
        load.start = try PlaybackPosition(2.5)
        harness.engine.perform(.open(load))
        let end = try await harness.ended()
        #expect(abs(end.position.seconds - 3) < 0.1)
        #expect(end.isConfirmed(announced: nil))
        harness.engine.perform(.seek(try PlaybackPosition(1), serial: 1))
        let progress = try await harness.progress { $0.serial == 1 && $0.running }
        #expect(progress.position.seconds < 2)
        #expect(harness.events.count { if case .ended = $0 { true } else { false } } == 1)
        await harness.engine.close()
    }

    @Test(arguments: EngineHarness.Kind.allCases)
    func `a missing file fails to open, and the next file opens`(_ kind: EngineHarness.Kind) async throws {
        let harness = harness(kind)
        let absent = folder.path + "/absent.mp3"
        harness.engine.perform(.open(EngineLoad(id: .random(), source: .file(path: absent))))
        let failure = try await harness.failed()
        #expect(failure.known == .fileMissing)
        #expect(failure.message.contains(absent))
        harness.engine.perform(.open(load))
        _ = try await harness.progress(\.running)
        await harness.engine.close()
    }

    @Test(arguments: EngineHarness.Kind.allCases)
    func `a new file replaces the open one, which reports nothing after that`(_ kind: EngineHarness.Kind) async throws {
        let harness = harness(kind)
        harness.engine.perform(.open(load))
        _ = try await harness.progress(\.running)
        var second = load
        second.id = .random()
        second.start = try PlaybackPosition(1)
        harness.engine.perform(.open(second))
        let wanted = second.id
        try await harness.next { event in
            if case .progress(wanted, let progress) = event, progress.running { () } else { nil }
        }
        let events = harness.events
        let opened = try #require(events.lastIndex { if case .opened(wanted, _, _) = $0 { true } else { false } })
        let strays = events[opened...].filter { if case .progress(load.id, _) = $0 { true } else { false } }
        #expect(strays.isEmpty)
        await harness.engine.close()
    }

    @Test(arguments: EngineHarness.Kind.allCases)
    func `commands without a file, or after the engine is closed, do nothing`(_ kind: EngineHarness.Kind) async throws {
        let harness = harness(kind)
        for command: EngineCommand in [.setPaused(true), .sample, .setSpeed(.normal), .unload, .setVolume(.full)] {
            harness.engine.perform(command)
        }
        await harness.engine.close()
        harness.engine.perform(.open(load))
        await harness.engine.close()
        #expect(harness.events.isEmpty)
    }
}
