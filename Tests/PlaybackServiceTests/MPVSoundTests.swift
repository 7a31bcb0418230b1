import BusKit
import NIOConcurrencyHelpers
import PodcastModel
import TestSupport
import Testing

@testable import PlaybackService

/// Tests libmpv’s sound processing and the position during it.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct MPVSoundTests {
    private let folder: TemporaryFolder
    private let harness = EngineHarness(.libmpv)

    init() throws {
        folder = try TemporaryFolder()
    }

    /// The difference between each report of the engine and the position that the previous one predicts.
    private final class Observer: Sendable {
        private struct State {
            var last: EngineProgress?
            var worst = 0.0
            var place = ""
            var speeds: [Double] = []
            var all: [EngineProgress] = []
        }

        private let state = NIOLockedValueBox(State())

        func see(_ progress: EngineProgress) {
            state.withLockedValue { state in
                let speed = progress.speed?.factor ?? 0
                if state.speeds.last != speed { state.speeds.append(speed) }
                state.all.append(progress)
                defer { state.last = progress }
                // The first reports only cover the filling of the output’s buffer.
                guard let last = state.last, last.running, progress.running, last.position.seconds > 0.5 else { return }
                let elapsed = progress.at.since(last.at) / .seconds(1)
                let expected = last.position.seconds + elapsed * (last.speed?.factor ?? 1)
                let off = abs(progress.position.seconds - expected)
                guard off > state.worst else { return }
                state.worst = off
                state.place = "\(off) s off at \(progress.position.seconds) of \(speed), after \(elapsed) s"
            }
        }

        /// Samples a hundred times a second; continuous requests would slow the engine.
        func follow(
            _ harness: EngineHarness, until isOver: (EngineProgress) -> Bool
        ) async throws -> EngineProgress {
            while true {
                harness.engine.perform(.sample)
                let progress = try await harness.next { event -> EngineProgress? in
                    if case .progress(_, let progress) = event { progress } else { nil }
                }
                see(progress)
                if isOver(progress) { return progress }
                try await Task.sleep(for: .milliseconds(10))
            }
        }

        var worst: Double { state.withLockedValue(\.worst) }
        /// A description of the largest difference, for test failures.
        var place: String { state.withLockedValue(\.place) }
        var speeds: [Double] { state.withLockedValue(\.speeds) }
        /// The part of a passage that was heard at another speed, in seconds.
        func heard(notAt speed: Double, in passage: Range<Double>) -> Double {
            let all = state.withLockedValue(\.all)
            return zip(all, all.dropFirst()).reduce(0) { sum, pair in
                let range = pair.0.position.seconds..<max(pair.0.position.seconds, pair.1.position.seconds)
                let part = range.clamped(to: passage)
                return pair.0.speed?.factor == speed ? sum : sum + part.upperBound - part.lowerBound
            }
        }
    }

    @Test(arguments: [true, false])
    func `a seek after a filter change completes at its target position`(paused: Bool) async throws {
        let source = AudioSource.file(path: try folder.file("sound.wav", Tone.wav(seconds: 600)))
        harness.engine.perform(.open(EngineLoad(id: .random(), source: source, paused: paused)))
        _ = try await harness.opened()
        for serial in UInt64(1)...150 {
            let place = try PlaybackPosition(serial.isMultiple(of: 2) ? 30 : 500)
            harness.engine.perform(.setSound(EngineSound(gain: Double(serial % 3), trimSilence: serial % 2 == 0)))
            harness.engine.perform(.sample)
            harness.engine.perform(.seek(place, serial: serial))
            let arrived = try await harness.next { event -> PlaybackPosition? in
                guard case .progress(_, let progress) = event, progress.serial == serial else { return nil }
                return progress.position
            }
            #expect(abs(arrived.seconds - place.seconds) < 1, "\(serial)")
        }
        await harness.engine.close()
    }

    /// Reopens the output during a pause after a seek, or during playback, and checks the sound that follows.
    @Test(arguments: [false, true], [false, true])
    func `reopening the output loses none of the buffered sound`(
        trimSilence: Bool, paused: Bool
    ) async throws {
        let source = AudioSource.file(path: try folder.file("sound.wav", Tone.wav(seconds: 60)))
        try await EngineHarness.measure { harness in
            var sound = EngineSound()
            sound.trimSilence = trimSilence
            harness.engine.perform(.open(EngineLoad(id: .random(), source: source, sound: sound)))
            var before = try await harness.progress { $0.running && $0.position.seconds > 2 }
            if paused {
                harness.engine.perform(.setPaused(true))
                _ = try await harness.progress { !$0.running }
                harness.engine.perform(.seek(.zero, serial: 1))
                _ = try await harness.progress { $0.serial == 1 }
                // The engine fills its output during the pause.
                try await Task.sleep(for: .milliseconds(300))
                harness.engine.perform(.sample)
                before = try await harness.progress { $0.serial == 1 }
            }
            let start = SystemClocks.monotonic()
            harness.engine.perform(.reloadOutput)
            if paused { harness.engine.perform(.setPaused(false)) }
            let (from, count) = (before, harness.events.count)
            _ = try await harness.progress { $0.running && $0.position.seconds > from.position.seconds + 2 }
            return harness.events[count...].compactMap { event in
                guard case .progress(_, let progress) = event, progress.running else { return nil }
                let since = progress.at.since(paused ? start : before.at) / .seconds(1)
                let ahead = progress.position.seconds - before.position.seconds - since
                return ahead < 0.1 ? nil : "\(ahead) s ahead, \(since) s later"
            }
        }
    }

    /// Plays the audio with an observer attached, and repeats the measurement until two are correct or all have failed;
    /// see `EngineHarness.measure`.
    private func observe(
        _ bytes: [UInt8], sound: EngineSound = EngineSound(), speed: PlaybackSpeed = .normal, off limit: Double = 0.05,
        _ objections: @escaping @Sendable (EngineHarness, Observer) async throws -> [String]
    ) async throws {
        let source = AudioSource.file(path: try folder.file("sound.wav", bytes))
        try await EngineHarness.measure { harness in
            let observer = Observer()
            harness.engine.perform(.open(EngineLoad(id: .random(), source: source, speed: speed, sound: sound)))
            let found = try await objections(harness, observer)
            return found + (observer.worst < limit ? [] : [observer.place])
        }
    }

    @Test func `a change of speed is reported when it is audible, and observed positions stay within 50 ms`()
        async throws
    {
        try await observe(Tone.wav(seconds: 40)) { harness, observer in
            for speed in [1, 3.5, 0.5, 2, 3.5, 1] {
                harness.engine.perform(.setSpeed(try #require(PlaybackSpeed(factor: speed))))
                harness.engine.perform(.sample)
                let heard = try await harness.progress { progress in
                    observer.see(progress)
                    return progress.running && progress.speed?.factor == speed
                }
                harness.engine.perform(.sample)
                _ = try await harness.progress { progress in
                    observer.see(progress)
                    return progress.at.since(heard.at) > .milliseconds(700)
                }
            }
            return observer.speeds == [1, 3.5, 0.5, 2, 3.5, 1] ? [] : ["speeds \(observer.speeds)"]
        }
    }

    @Test func `at speed 3.5 each report predicts the next position within 50 ms`()
        async throws
    {
        try await observe(Tone.wav(seconds: 40)) { harness, observer in
            harness.engine.perform(.setSpeed(try #require(PlaybackSpeed(factor: 3.5))))
            _ = try await harness.progress { progress in
                observer.see(progress)
                return progress.position.seconds > 14
            }
            return []
        }
    }

    @Test func `silence plays fast, sound plays at its own speed, and the position stays exact`() async throws {
        let passages = Tone.passages([(2, 1), (5, 0), (2, 1), (3, 0), (1.5, 1)])
        try await observe(passages, sound: EngineSound(trimSilence: true)) { harness, observer in
            let first = try await harness.progress(\.running)
            let last = try await harness.progress { progress in
                observer.see(progress)
                // At the end libmpv reports the end of the file before it has been heard.
                return progress.position.seconds > 12.5
            }
            let elapsed = last.at.since(first.at) / .seconds(1)
            #expect(elapsed > 7)
            return (elapsed < 11 ? [] : ["\(elapsed) s for 13 s, of which 8 are silence"])
                + (observer.speeds == [1, 2.5, 1, 2.5, 1] ? [] : ["speeds \(observer.speeds)"])
        }
    }

    /// Sentences and the pauses after them, in seconds, with noise of −50 dBFS.
    private static let speech: [(sentence: Double, pause: Double)] = [
        (1.2, 0.45), (0.7, 0.75), (1, 1), (0.3, 0.7), (0.8, 0.9),
    ]

    @Test(arguments: [1, 1.5])
    func `noisy pauses in speech are shortened, sentences aren’t, and the position stays exact`(
        speed: Double
    ) async throws {
        let speed = try #require(PlaybackSpeed(factor: speed))
        let speech = Tone.passages(
            Self.speech.flatMap { [($0.sentence, 1), ($0.pause, 0)] } + [(2, 1)], noise: 0.00316, rate: 44_100)
        let length = Self.speech.reduce(0) { $0 + $1.sentence + $1.pause }
        try await observe(speech, sound: EngineSound(trimSilence: true), speed: speed) { harness, observer in
            let first = try await harness.progress(\.running)
            let last = try await observer.follow(harness) { $0.position.seconds > length + 0.5 }
            let elapsed = last.at.since(first.at) / .seconds(1)
            let plain = (last.position.seconds - first.position.seconds) / speed.factor
            var objections = elapsed < plain * 0.95 ? [] : ["\(elapsed) s instead of \(plain)"]
            var start = 0.0
            for part in Self.speech {
                let fast = observer.heard(notAt: speed.factor, in: start..<start + part.sentence)
                if fast > 0.05 { objections.append("\(fast) s of the sentence at \(start) s were heard fast") }
                start += part.sentence + part.pause
            }
            return objections
        }
    }

    @Test func `sound processing changes during playback without a restart or a jump`() async throws {
        let sounds = [
            EngineSound(gain: 6), EngineSound(gain: 6, boost: true), EngineSound(trimSilence: true, normalise: true),
            EngineSound(),
        ]
        try await observe(Tone.wav(seconds: 20), off: 0.1) { harness, observer in
            let first = try await harness.progress { $0.running && $0.position.seconds > 1 }
            var last = first
            for (index, sound) in sounds.enumerated() {
                harness.engine.perform(.setSound(sound))
                harness.engine.perform(.sample)
                last = try await harness.progress { progress in
                    observer.see(progress)
                    return progress.position.seconds > Double(index) + 2
                }
            }
            #expect(!harness.events.contains { if case .failed = $0 { true } else { false } })
            #expect(harness.events.count { if case .opened = $0 { true } else { false } } == 1)
            let elapsed = last.at.since(first.at) / .seconds(1)
            let off = last.position.seconds - first.position.seconds - elapsed
            return abs(off) < 0.2 ? [] : ["\(off) s off after \(elapsed) s"]
        }
    }

    /// The loudness, in dB, of a tone of a level after some seconds of an `EngineSound`, or at its end if the test
    /// doesn’t run in real time.
    private func loudness(_ sound: EngineSound, level: Double, inRealTime: Bool = false) throws -> Double {
        let core = try MPVCore(audioOutputs: "null")
        defer { core.destroy() }
        let filters = MPVFilters.text(for: sound)
        core.set("af", (filters.isEmpty ? "" : filters + ",") + "@meter:lavfi=[astats=metadata=1:reset=4]")
        core.set("ao-null-untimed", !inRealTime)
        core.command(["loadfile", try folder.file("tone-\(level).wav", Tone.passages([(12, level)])), "replace"])
        while (core.number("time-pos") ?? 0) < 9 { _ = core.wait(seconds: 0.05) }
        guard case .map(let map)? = core.value("af-metadata/meter"),
            let text = map["lavfi.astats.Overall.RMS_level"]?.text
        else { return -.infinity }
        return Double(text) ?? -.infinity
    }

    @Test(arguments: [(6.0, 6.0), (-6, -6)])
    func `gain changes the level by the set amount without clipping`(gain: Double, heard: Double) throws {
        let plain = try loudness(EngineSound(), level: 0.5)
        let louder = try loudness(EngineSound(gain: gain), level: 0.5)
        #expect(abs(louder - plain - heard) < 0.7, "\(plain) dB became \(louder) dB")
    }

    @Test func `boost raises quiet sound more than loud sound`() throws {
        let quiet = try loudness(EngineSound(boost: true), level: 0.1) - loudness(EngineSound(), level: 0.1)
        let loud = try loudness(EngineSound(boost: true), level: 6) - loudness(EngineSound(), level: 6)
        #expect(quiet > 5, "\(quiet) dB")
        #expect(loud < quiet - 3, "\(loud) dB against \(quiet) dB")
    }

    @Test func `normalisation gives a quiet and a loud episode nearly the same loudness`() async throws {
        let plain = try loudness(EngineSound(), level: 4) - loudness(EngineSound(), level: 0.5)
        // In real time, so both at once.
        async let loud = loudness(EngineSound(normalise: true), level: 4, inRealTime: true)
        async let quiet = loudness(EngineSound(normalise: true), level: 0.5, inRealTime: true)
        let even = try await loud - quiet
        #expect(plain > 15)
        #expect(abs(even) < 6, "\(even) dB apart")
    }

    @Test
    func
        `a prepared file is fetched before the end, does not begin by itself, and opens without another request`()
        async throws
    {
        let harness = harness
        let folder = folder
        try await HTTPTestServer.with { server in
            server.route("/b.wav", .audio(Tone.wav(seconds: 30), type: "audio/wav"))
            let first = EngineLoad(
                id: .random(), source: .file(path: try folder.file("a.wav", Tone.wav(seconds: 3))))
            let second = EngineLoad(
                id: .random(), source: .web(url: server.url("/b.wav")), start: try PlaybackPosition(5))
            harness.engine.perform(.open(first))
            harness.engine.perform(.prepare(second))
            await server.received(1, at: "/b.wav")
            let end = try await harness.ended()
            #expect(end.isConfirmed(announced: nil))
            let clock = ContinuousClock()
            let ended = clock.now
            let asked = server.requests(for: "/b.wav").count
            harness.engine.perform(.unload)
            harness.engine.perform(.sample)
            harness.engine.perform(.open(second))
            _ = try await harness.opened()
            let progress = try await harness.progress(\.running)
            print("prepared: sound after \(clock.now - ended)")
            #expect(progress.position.seconds >= 4.9 && progress.position.seconds < 8)
            // A position in the middle is requested, the beginning isn’t requested again.
            #expect(server.requests(for: "/b.wav").count <= asked + 1)
            let early = harness.events.contains { event in
                if case .progress(let id, let progress) = event, id == second.id {
                    progress.position.seconds < 4
                } else {
                    false
                }
            }
            #expect(!early)
            await harness.engine.close()
        }
    }

    @Test(arguments: [true, false])
    func `a load other than the prepared one opens as if nothing had been prepared`(ends: Bool) async throws {
        let first = EngineLoad(id: .random(), source: .file(path: try folder.file("a.wav", Tone.wav(seconds: 2))))
        let second = EngineLoad(id: .random(), source: .file(path: try folder.file("b.wav", Tone.wav(seconds: 9))))
        let third = EngineLoad(id: .random(), source: .file(path: try folder.file("c.wav", Tone.wav(seconds: 5))))
        harness.engine.perform(.open(first))
        harness.engine.perform(.prepare(second))
        if ends { _ = try await harness.ended() } else { _ = try await harness.progress(\.running) }
        harness.engine.perform(.unload)
        if ends { harness.engine.perform(.prepare(nil)) }
        harness.engine.perform(.open(third))
        let duration = try await harness.next { event -> MeasuredDuration?? in
            if case .opened(third.id, let duration, _) = event { .some(duration) } else { nil }
        }
        #expect(abs((duration?.duration.seconds ?? 0) - 5) < 0.1)
        _ = try await harness.progress { $0.running && $0.position.seconds > 0.5 }
        #expect(!harness.events.contains { if case .opened(second.id, _, _) = $0 { true } else { false } })
        await harness.engine.close()
    }

    @Test func `a missing prepared file fails when it is opened, and doesn’t perturb playback`() async throws {
        let harness = harness
        let folder = folder
        try await HTTPTestServer.with { server in
            server.route("/b.wav", .status(404))
            let first = EngineLoad(
                id: .random(), source: .file(path: try folder.file("a.wav", Tone.wav(seconds: 2))))
            let second = EngineLoad(id: .random(), source: .web(url: server.url("/b.wav")))
            harness.engine.perform(.open(first))
            harness.engine.perform(.prepare(second))
            let end = try await harness.ended()
            #expect(end.isConfirmed(announced: nil))
            harness.engine.perform(.unload)
            harness.engine.perform(.open(second))
            #expect(try await harness.failed().known == .streamFailed)
            await harness.engine.close()
        }
    }

    @Test(arguments: [404, 503])
    func `a prepared file stays silent when the previous one can’t be opened, and opens when it is loaded`(
        status: Int
    ) async throws {
        let harness = harness
        let folder = folder
        try await HTTPTestServer.with { server in
            server.route("/a.wav", .status(status))
            server.route("/b.wav", .audio(Tone.wav(seconds: 30), type: "audio/wav"))
            let first = EngineLoad(id: .random(), source: .web(url: server.url("/a.wav")))
            let second = EngineLoad(id: .random(), source: .web(url: server.url("/b.wav")))
            let other = EngineLoad(id: .random(), source: .file(path: try folder.file("c.wav", Tone.wav(seconds: 9))))
            harness.engine.perform(.open(first))
            harness.engine.perform(.prepare(second))
            _ = try await harness.failed()
            harness.engine.perform(.unload)
            harness.engine.perform(.open(other))
            _ = try await harness.progress { $0.running && $0.position.seconds > 1 }
            #expect(server.requests(for: "/b.wav").isEmpty)
            harness.engine.perform(.open(first))
            harness.engine.perform(.prepare(second))
            _ = try await harness.failed()
            harness.engine.perform(.open(second))
            _ = try await harness.next { event -> Void? in
                if case .opened(second.id, _, _) = event { () } else { nil }
            }
            let progress = try await harness.progress(\.running)
            #expect(progress.position.seconds < 5)
            await harness.engine.close()
        }
    }

    @Test func `when a file is missing, the file prepared after it stays silent`() async throws {
        let harness = harness
        let folder = folder
        try await HTTPTestServer.with { server in
            server.route("/b.wav", .audio(Tone.wav(seconds: 30), type: "audio/wav"))
            let garbage = EngineLoad(
                id: .random(), source: .file(path: try folder.file("a.wav", Array("no audio".utf8))))
            let second = EngineLoad(id: .random(), source: .web(url: server.url("/b.wav")))
            let other = EngineLoad(id: .random(), source: .file(path: try folder.file("c.wav", Tone.wav(seconds: 9))))
            harness.engine.perform(.open(garbage))
            harness.engine.perform(.prepare(second))
            _ = try await harness.failed()
            harness.engine.perform(.unload)
            harness.engine.perform(.open(other))
            _ = try await harness.progress { $0.running && $0.position.seconds > 1 }
            #expect(server.requests(for: "/b.wav").isEmpty)
            await harness.engine.close()
        }
    }
}
