import BusKit
import PodcastModel
import Testing

@testable import PlaybackService

/// Tests the recovery of failed streams without a player.
struct StreamRecoveryTests {
    private static let broken = Failure(.streamFailed, "The connection broke.")
    private var recovery = StreamRecovery(limits: PlaybackLimits())
    private var now = Moment(
        monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000), wall: Timestamp(milliseconds: 1_700_000_000_000))
    private var serial: UInt64 = 0

    private func situation(
        plays: Bool = true, isOpen: Bool = false, isFailed: Bool = false
    ) -> StreamRecovery.Situation {
        StreamRecovery.Situation(
            position: PlaybackPosition(clamping: 100), plays: plays, isOpen: isOpen, isFailed: isFailed, now: now)
    }

    private mutating func pass(_ seconds: Double) {
        now.monotonic = now.monotonic.advanced(by: .seconds(seconds))
        now.wall = Timestamp(milliseconds: now.wall.milliseconds + Int64(seconds * 1_000))
    }

    private mutating func ask() {
        serial += 1
        recovery.asked(serial: serial, now: now.monotonic)
    }

    /// Opens the stream in the engine, and probes its server in parallel.
    private mutating func open() {
        #expect(recovery.opens(host: "a.example", now: now.monotonic) == [.askServer])
        ask()
    }

    private mutating func answer(
        _ answer: ProbeAnswer, isOpen: Bool = false, isFailed: Bool = false
    ) -> [StreamRecovery.Action] {
        recovery.answered(serial, answer, situation(isOpen: isOpen, isFailed: isFailed))
    }

    /// Reports a failure of the engine before the stream was open; its server gives no reason.
    private mutating func failOpening() -> [StreamRecovery.Action] {
        open()
        #expect(recovery.failed(Self.broken, situation(isOpen: true)) == [.awaitServer])
        return answer(.unanswered(nil))
    }

    private func progress(
        at seconds: Double = 100, running: Bool = false, buffering: Bool = true, cached: Double = 100
    ) -> EngineProgress {
        EngineProgress(
            position: PlaybackPosition(clamping: seconds), at: now.monotonic, running: running, buffering: buffering,
            cached: cached)
    }

    @Test mutating func `a stream is retried three times, and then it fails`() throws {
        for (attempt, wait) in [2.0, 5, 10].enumerated() {
            let actions = failOpening()
            guard case .awaitRetry(let retry)? = actions.first, actions.count == 1 else {
                Issue.record("\(actions)")
                return
            }
            #expect(retry.attempt == attempt + 1 && retry.of == 3 && retry.wait == .seconds(wait))
            #expect(recovery.nextAt(isOpen: false) == now.monotonic.advanced(by: .seconds(wait)))
            #expect(recovery.tick(situation()) == [])
            pass(wait)
            #expect(recovery.tick(situation()) == [.open])
        }
        #expect(failOpening() == [.fail(Self.broken, mayReturn: true)])
        #expect(recovery.retry == nil && recovery.awaitsServer)
    }

    @Test mutating func `a failure waits for the server’s answer until a time limit`() {
        open()
        #expect(recovery.failed(Self.broken, situation(isOpen: true)) == [.awaitServer])
        let due = recovery.nextAt(isOpen: false)
        #expect(due == now.monotonic.advanced(by: PlaybackLimits().probe))
        pass(PlaybackLimits().probe / .seconds(1))
        guard case .awaitRetry? = recovery.tick(situation()).first else {
            Issue.record("no retry")
            return
        }
        // The late answer ends the retries.
        guard case .fail(let failure, mayReturn: false)? = answer(.refused(404)).first else {
            Issue.record("not failed")
            return
        }
        #expect(failure.known == .episodeUnavailable)
    }

    @Test mutating func `the server’s answer takes precedence over the engine’s guess`() {
        open()
        #expect(answer(.refused(404), isOpen: true) == [])
        guard case .fail(let failure, mayReturn: false)? = recovery.failed(Self.broken, situation(isOpen: true)).first
        else {
            Issue.record("not failed")
            return
        }
        #expect(failure.known == .episodeUnavailable && failure.message.contains("a.example"))
    }

    @Test mutating func `a refused probe is ignored if the server lets the engine open the audio`() {
        open()
        #expect(answer(.refused(403), isOpen: true) == [])
        recovery.opened()
        guard case .awaitRetry(let retry)? = recovery.failed(Self.broken, situation(isOpen: true)).first else {
            Issue.record("no retry")
            return
        }
        #expect(retry.failure == Self.broken)
    }

    @Test mutating func `a server whose audio was opened is probed again when the stream fails`() {
        open()
        #expect(answer(.audio(AudioTag(etag: "1", size: 0)), isOpen: true) == [.identify(AudioTag(etag: "1", size: 0))])
        recovery.opened()
        #expect(recovery.failed(Self.broken, situation(isOpen: true)) == [.askServer, .awaitServer])
        ask()
        // The server’s earlier answer is stale.
        #expect(recovery.answered(serial - 1, .refused(404), situation()) == [])
    }

    @Test mutating func `a paused episode is not retried`() {
        open()
        #expect(recovery.failed(Self.broken, situation(plays: false, isOpen: true)) == [.awaitServer])
        let actions = recovery.answered(serial, .unanswered(nil), situation(plays: false))
        #expect(actions == [.stayPaused(Self.broken)] && recovery.nextAt(isOpen: false) == nil)
    }

    @Test mutating func `a stream that isn’t open after a minute has failed and is recovered`() {
        open()
        #expect(recovery.nextAt(isOpen: false) == nil)
        let due = recovery.nextAt(isOpen: true)
        #expect(due == now.monotonic.advanced(by: .seconds(60)))
        pass(60)
        guard case .recover(let failure)? = recovery.tick(situation(isOpen: true)).first else {
            Issue.record("nothing")
            return
        }
        #expect(failure.known == .streamFailed)
    }

    @Test mutating func `a stream times out after 20 s without data, or after 60 s if it hasn’t been heard yet`() {
        open()
        recovery.opened()
        #expect(recovery.starves(progress(), isExpected: true, now: now.monotonic) == nil)
        pass(59)
        #expect(recovery.starves(progress(), isExpected: true, now: now.monotonic) == nil)
        #expect(recovery.isStarving(for: .seconds(59), now: now.monotonic))
        pass(1)
        #expect(recovery.starves(progress(), isExpected: true, now: now.monotonic) != nil)
        // The stream is heard and then waits again: first while data arrives slowly, then without any data.
        let heard = progress(running: true, buffering: false)
        #expect(recovery.starves(heard, isExpected: true, now: now.monotonic) == nil)
        for drop in 1...4 {
            #expect(recovery.starves(progress(cached: 100 + Double(drop)), isExpected: true, now: now.monotonic) == nil)
            pass(19)
        }
        #expect(recovery.starves(progress(cached: 104), isExpected: true, now: now.monotonic) == nil)
        pass(1)
        #expect(recovery.starves(progress(cached: 104), isExpected: true, now: now.monotonic) != nil)
        #expect(recovery.starves(progress(cached: 104), isExpected: false, now: now.monotonic) == nil)
    }

    @Test mutating func `a failure is over once playback is five seconds past its position`() {
        _ = failOpening()
        #expect(recovery.retryNow() == [.open] && recovery.retryNow() == [])
        recovery.played(to: PlaybackPosition(clamping: 104))
        #expect(recovery.retry != nil)
        recovery.played(to: PlaybackPosition(clamping: 105))
        #expect(recovery.retry == nil)
    }

    // MARK: Waiting for the server

    /// Makes every attempt to open the stream fail.
    private mutating func failForGood() {
        for _ in 1...3 {
            _ = failOpening()
            _ = recovery.retryNow()
        }
        #expect(failOpening() == [.fail(Self.broken, mayReturn: true)])
    }

    @Test mutating func `the server is probed at growing intervals until it has the audio`() {
        failForGood()
        for wait in [30.0, 60, 120, 300, 300] {
            #expect(recovery.nextAt(isOpen: false) == now.monotonic.advanced(by: .seconds(wait)))
            pass(wait)
            #expect(recovery.tick(situation(isFailed: true)) == [.askServer])
            ask()
            #expect(answer(.refused(503), isFailed: true) == [])
        }
        #expect(answer(.audio(AudioTag(etag: "1", size: 0)), isFailed: true) == [.resume])
        #expect(recovery.nextAt(isOpen: false) == nil && recovery.awaitsServer)
        recovery.played(to: PlaybackPosition(clamping: 105))
        #expect(!recovery.awaitsServer)
    }

    @Test mutating func `a server that refuses permanently isn’t probed again`() {
        failForGood()
        pass(30)
        #expect(recovery.tick(situation(isFailed: true)) == [.askServer])
        ask()
        guard case .fail(let failure, mayReturn: false)? = answer(.refused(410), isFailed: true).first else {
            Issue.record("not failed")
            return
        }
        #expect(!failure.retry)
        recovery.end()
        #expect(recovery.nextAt(isOpen: false) == nil && !recovery.awaitsServer)
    }

    @Test(arguments: [true, false])
    mutating func `a server that is unavailable for too long by either clock is no longer probed`(_ isAwake: Bool) {
        failForGood()
        if isAwake { pass(1_800) } else { now.wall = Timestamp(milliseconds: now.wall.milliseconds + 1_800_000) }
        #expect(recovery.woke(situation(isFailed: true)) == [.stopWaiting])
        #expect(recovery.nextAt(isOpen: false) == nil && !recovery.stopProbing())
    }

    @Test mutating func `after the computer’s sleep the server is probed at once`() {
        failForGood()
        #expect(recovery.woke(situation(isFailed: true)) == [.askServer])
        #expect(recovery.nextAt(isOpen: false) == now.monotonic.advanced(by: .seconds(30)))
    }

    @Test mutating func `a command about the episode ends the wait for its server`() {
        failForGood()
        #expect(recovery.stopProbing() && !recovery.stopProbing())
        #expect(recovery.nextAt(isOpen: false) == nil)
    }
}
