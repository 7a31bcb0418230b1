import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import QueueService

/// Tests skips of episodes that can’t be played.
@Suite struct QueueFailureTests {
    private static let gone = Failure(.episodeUnavailable, "a.example has no such file (HTTP 404).")
    private static let away = Failure(.streamFailed, "a.example cannot be reached: no route to host.")

    private func fail(_ queue: QueueRig, of failure: Failure = gone) {
        queue.playerChanges {
            $0.status = .failed
            $0.error = WireFailure(failure)
        }
    }

    private func playing(_ queue: QueueRig) -> String? {
        queue.player.status == .playing ? queue.player.episode.id : nil
    }

    /// Returns a queue of these episodes, the second of which plays automatically after the end of the first.
    private func advanced(_ count: Int) -> QueueRig {
        let queue = QueueRig()
        for number in 1...count { queue.add(number) }
        queue.play(1)
        queue.playerChanges { _ in }
        queue.playerChanges { $0.status = .finished }
        queue.playerChanges { _ in }
        return queue
    }

    @Test func `an unplayable entry is skipped without removal and raises an alert`() throws {
        let queue = advanced(3)
        #expect(playing(queue) == QueueRig.episode(2))
        fail(queue)
        #expect(playing(queue) == QueueRig.episode(3))
        #expect(queue.numbers == [2, 3] && queue.current == 3)
        let alert = try #require(queue.alerts.first)
        #expect(alert.code == "passedOver" && alert.episode == QueueRig.episode(2))
        #expect(alert.message.hasPrefix(Self.gone.message))
        // The entry plays on a later attempt.
        queue.play(2)
        queue.playerChanges { _ in }
        #expect(queue.alerts.isEmpty)
    }

    @Test func `the alert of a skipped entry is removed with the entry`() {
        let queue = advanced(3)
        fail(queue)
        #expect(queue.alerts.count == 1)
        let entry = queue.entry(2)
        queue.send { $0.remove.entries = [entry] }
        #expect(queue.alerts.isEmpty)
    }

    @Test func `an alert’s removal that a full disk prevents isn’t retried at once`() {
        let queue = advanced(3)
        fail(queue)
        queue.holdsCommits = true
        let entry = queue.entry(2)
        queue.send { $0.remove.entries = [entry] }
        queue.settle()
        #expect(queue.owner.heldTransactions.count == 1 && queue.machine.rules.alerts.active.isEmpty)
        queue.refuse()
        #expect(queue.owner.heldTransactions.isEmpty && queue.alerts.count == 1)
        queue.playerChanges { _ in }
        queue.settle()
        #expect(queue.alerts.isEmpty)
    }

    @Test(arguments: [("skip", true, true), ("stop", false, false), ("auto", true, false)])
    func `the setting onFailure decides whether an episode that fails is skipped`(
        value: String, skipsGone: Bool, skipsAway: Bool
    ) {
        for (failure, isSkipped) in [(Self.gone, skipsGone), (Self.away, skipsAway)] {
            let queue = advanced(3)
            queue.send {
                $0.setSetting.key = SettingKey.onFailure.rawValue
                $0.setSetting.value = value
            }
            fail(queue, of: failure)
            #expect((playing(queue) == QueueRig.episode(3)) == isSkipped, "\(failure)")
            #expect(queue.numbers == [2, 3] && queue.alerts.count == (isSkipped ? 1 : 0))
        }
    }

    @Test func `an entry with a temporary failure isn’t skipped`() {
        let queue = advanced(3)
        fail(queue, of: Self.away)
        #expect(queue.player.status == .failed && queue.current == 2 && queue.alerts.isEmpty)
        fail(queue, of: Failure(.noSoundDevice, "none"))
        #expect(queue.player.status == .failed)
    }

    @Test func `an unplayable entry that a user has just played or resumed isn’t skipped`() {
        var queue = QueueRig()
        queue.add(1, 2)
        queue.play(1)
        fail(queue)
        #expect(queue.player.status == .failed && queue.alerts.isEmpty)
        queue = advanced(3)
        queue.playerChanges { $0.status = .paused }
        queue.playerChanges {
            $0.status = .loading
            $0.willPlay = true
        }
        fail(queue)
        #expect(queue.player.status == .failed && queue.alerts.isEmpty)
    }

    @Test func `an entry that was paused while it was loading is not skipped`() {
        let queue = advanced(3)
        queue.playerChanges { $0.status = .finished }
        queue.add(4)
        queue.playerChanges {
            $0.status = .loading
            $0.willPlay = false
        }
        fail(queue)
        #expect(queue.player.status == .failed && queue.current == 3 && queue.alerts.isEmpty)
    }

    @Test func `an unplayable entry that was resumed after a failure is not skipped`() {
        let queue = advanced(3)
        fail(queue, of: Self.away)
        queue.playerChanges {
            $0.status = .loading
            $0.willPlay = true
        }
        fail(queue)
        #expect(queue.player.status == .failed && queue.current == 2 && queue.alerts.isEmpty)
    }

    @Test func `an entry that is added after the last one has failed doesn’t play automatically`() {
        let queue = advanced(2)
        fail(queue)
        #expect(queue.player.status == .failed)
        queue.add(3)
        queue.playerChanges { $0.volume = 55 }
        #expect(queue.player.status == .failed && queue.current == 2 && queue.alerts.isEmpty)
    }

    @Test func `an entry that is skipped in each repetition of the queue has one alert`() {
        let queue = advanced(3)
        queue.send {
            $0.setModes.repeat = .all
            $0.setModes.consume = false
        }
        for _ in 1...3 {
            #expect(queue.player.episode.id == QueueRig.episode(2))
            fail(queue)
            #expect(playing(queue) == QueueRig.episode(3) && queue.alerts.count == 1)
            queue.playerChanges { _ in }
            queue.playerChanges { $0.status = .finished }
            queue.playerChanges { _ in }
        }
    }

    @Test func `a skip at the limit that a full disk prevented is retried later`() {
        let queue = advanced(FailureWatch.limit + 3)
        for _ in 1..<FailureWatch.limit {
            queue.player.status = .loading
            fail(queue)
        }
        let current = queue.current
        queue.holdsCommits = true
        queue.player.status = .loading
        fail(queue)
        queue.refuse()
        queue.holdsCommits = false
        queue.playerChanges { _ in }
        queue.settle()
        #expect(queue.current == current.map { $0 + 1 })
    }

    @Test func `an entry that fails permanently after it has played is skipped`() {
        let queue = QueueRig()
        queue.add(1, 2)
        queue.play(1)
        queue.playerChanges { _ in }
        fail(queue, of: Failure(.decoderFailed, "It is broken."))
        #expect(playing(queue) == QueueRig.episode(2) && queue.numbers == [1, 2])
    }

    @Test(arguments: [2, 3, 9])
    func `consecutive failing entries are each tried once, up to the limit`(count: Int) {
        let queue = advanced(count)
        queue.send { $0.setModes.repeat = .all }
        var tried: [String] = []
        while playing(queue) != nil, tried.count < 20 {
            tried.append(queue.player.episode.id)
            // Playback never starts, as with an invalid address.
            queue.player.status = .loading
            fail(queue)
        }
        #expect(tried.count == min(count - 1, FailureWatch.limit + 1))
        #expect(Set(tried).count == tried.count)
        #expect(queue.alerts.count == tried.count - 1)
        #expect(queue.numbers.count == count - 1)
    }

    @Test func `a failure from before the queue service started causes no advance`() {
        let queue = advanced(3)
        queue.player.status = .failed
        queue.player.error = WireFailure(Self.gone)
        queue.restart()
        queue.playerChanges { _ in }
        #expect(queue.player.status == .failed && queue.current == 2)
    }

    @Test func `an advance after a failure survives a crash before the player receives the load`() {
        let queue = advanced(3)
        queue.playerAnswers = false
        fail(queue)
        queue.playerAnswers = true
        queue.restart()
        queue.playerChanges { _ in }
        #expect(playing(queue) == QueueRig.episode(3) && queue.current == 3 && queue.alerts.count == 1)
    }
}
