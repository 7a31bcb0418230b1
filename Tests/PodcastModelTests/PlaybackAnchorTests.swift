import PodcastModel
import Testing

private let second: UInt64 = 1_000_000_000

private func anchor(position: Double, speed: Double = 1, running: Bool = true) throws -> PlaybackAnchor {
    PlaybackAnchor(
        position: try #require(PlaybackPosition(seconds: position)),
        speed: try #require(PlaybackSpeed(factor: speed)),
        at: MonotonicTime(nanoseconds: 100 * second),
        bootID: "this",
        running: running,
        wall: Timestamp(milliseconds: 1_000_000)
    )
}

struct PlaybackAnchorTests {
    @Test(arguments: [(1.0, 10.0), (0.5, 5.0), (3.5, 35.0), (1.25, 12.5)])
    func `the position of a running anchor advances by the elapsed time multiplied by the speed`(
        speed: Double, expected: Double
    ) throws {
        let position = try anchor(position: 20, speed: speed).position(at: MonotonicTime(nanoseconds: 110 * second))
        #expect(abs(position.seconds - 20 - expected) < 1e-9)
    }

    @Test func `the position of a paused anchor doesn’t change`() throws {
        let position = try anchor(position: 20, running: false).position(at: MonotonicTime(nanoseconds: 500 * second))
        #expect(position.seconds == 20)
    }

    @Test func `a clock reading before the anchor never moves the position back`() throws {
        let position = try anchor(position: 20).position(at: MonotonicTime(nanoseconds: 99 * second))
        #expect(position.seconds == 20)
    }

    @Test func `the position stops at the duration, with no time remaining`() throws {
        let duration = try #require(EpisodeDuration(seconds: 25))
        let late = MonotonicTime(nanoseconds: 200 * second)
        let running = try anchor(position: 20)
        #expect(running.position(at: late, duration: duration).seconds == 25)
        #expect(running.remaining(at: late, duration: duration) == 0)
        #expect(running.remaining(at: MonotonicTime(nanoseconds: 102 * second), duration: duration) == 3)
    }

    @Test func `an observer of another boot uses the wall clock, one of the same boot the monotonic clock`() throws {
        let running = try anchor(position: 20)
        let now = Moment(
            monotonic: MonotonicTime(nanoseconds: 103 * second),
            wall: Timestamp(milliseconds: 1_007_000)
        )
        #expect(running.position(at: now, bootID: "this").seconds == 23)
        #expect(running.position(at: now, bootID: "other").seconds == 27)
    }
}

@Suite struct BootTimeTests {
    private static let moment = BootTime(
        at: MonotonicTime(nanoseconds: 100 * second), bootID: "this", wall: Timestamp(milliseconds: 1_000_000))

    @Test(arguments: [("this", 90, 10.0, 0.0), ("this", 104, 0, 4), ("other", 90, 0, 5)])
    func `an observer of another boot uses the wall clock`(
        bootID: String, monotonic: UInt64, remaining: Double, elapsed: Double
    ) {
        let now = Moment(
            monotonic: MonotonicTime(nanoseconds: monotonic * second), wall: Timestamp(milliseconds: 1_005_000))
        #expect(Self.moment.remaining(at: now, bootID: bootID) == remaining)
        #expect(max(0, Self.moment.elapsed(at: now, bootID: bootID)) == elapsed)
    }
}
