import EngineDouble
import NIOConcurrencyHelpers
import PodcastModel
import Testing

@testable import PlaybackService

/// An engine under test, its events in order, and its clock.
final class EngineHarness: Sendable {
    let engine: any AudioEngine
    private let advance: @Sendable () -> Void
    private let seen: NIOLockedValueBox<[EngineEvent]>
    private let stream: AsyncStream<EngineEvent>

    /// The kinds of engine with the same contract.
    enum Kind: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case simulated, libmpv
        var testDescription: String { rawValue }
    }

    convenience init(_ kind: Kind, files: [String: SimulatedEngine.Audio] = [:]) {
        switch kind {
        case .simulated:
            let sources = files.map { (AudioSource.file(path: $0.key), $0.value) }
            self.init { observer in
                let engine = SimulatedEngine(files: Dictionary(sources) { $1 }, observer: observer)
                return (
                    engine,
                    {
                        engine.advance(seconds: 0.05)
                        engine.perform(.sample)
                    }
                )
            }
        case .libmpv:
            self.init { observer in (MPVEngine(audioOutputs: "null", observer: observer), {}) }
        }
    }

    init(_ make: (@escaping EngineObserver) -> (any AudioEngine, @Sendable () -> Void)) {
        let seen = NIOLockedValueBox<[EngineEvent]>([])
        let (stream, continuation) = AsyncStream.makeStream(of: EngineEvent.self)
        (engine, advance) = make { event in
            seen.withLockedValue { $0.append(event) }
            continuation.yield(event)
        }
        self.seen = seen
        self.stream = stream
    }

    /// Measures the real engine against the clock, with a new engine each time, until two measurements are correct: a
    /// computer that stops briefly falsifies one measurement, a faulty engine most of them. The first two measurements
    /// are made at the same time, because they mostly wait.
    static func measure(tries: Int = 5, _ objections: @Sendable (EngineHarness) async throws -> [String]) async throws {
        @Sendable func measureOnce() async throws -> [String] {
            let harness = EngineHarness(.libmpv)
            let found = try await objections(harness)
            await harness.engine.close()
            return found
        }
        async let other = measureOnce()
        var measured = [try await measureOnce(), try await other]
        while measured.count < tries, measured.count(where: \.isEmpty) < 2 { measured.append(try await measureOnce()) }
        let found = measured.filter { !$0.isEmpty }
        if measured.count - found.count < 2 { Issue.record("in \(found.count) of \(tries) tries: \(found)") }
    }

    var events: [EngineEvent] { seen.withLockedValue { $0 } }

    /// Returns the first match among the following events; the test’s time limit ends the wait.
    func next<Found: Sendable>(_ match: (EngineEvent) -> Found?) async throws -> Found {
        var waiting = stream.makeAsyncIterator()
        // A simulated engine is advanced until it reports the expected event.
        advance()
        while let event = await waiting.next() {
            if let found = match(event) { return found }
            advance()
        }
        throw Unseen(events: events)
    }

    /// Returns the length of the file once it is open.
    func opened() async throws -> MeasuredDuration? {
        try await next { if case .opened(_, let duration, _) = $0 { .some(duration) } else { nil } }
    }

    func progress(_ match: @escaping @Sendable (EngineProgress) -> Bool) async throws -> EngineProgress {
        try await sampling { event in
            guard case .progress(_, let progress) = event, match(progress) else { return nil }
            return progress
        }
    }

    func ended() async throws -> ReportedEnd {
        try await sampling { if case .ended(_, let end) = $0 { end } else { nil } }
    }

    /// Waits like `next`, but requests samples at intervals: during playback the engine may report nothing by itself
    /// until the end.
    private func sampling<Found: Sendable>(_ match: (EngineEvent) -> Found?) async throws -> Found {
        let sampling = Task { [engine] in
            while !Task.isCancelled {
                engine.perform(.sample)
                try? await Task.sleep(for: .milliseconds(5))
            }
        }
        defer { sampling.cancel() }
        return try await next(match)
    }

    func failed() async throws -> Failure {
        try await next { if case .failed(_, let failure) = $0 { failure } else { nil } }
    }

    struct Unseen: Error, CustomStringConvertible {
        let events: [EngineEvent]
        var description: String { "what was waited for did not come; seen: \(events)" }
    }
}

extension PlaybackPosition {
    init(_ seconds: Double) throws { self = try #require(PlaybackPosition(seconds: seconds)) }
}
