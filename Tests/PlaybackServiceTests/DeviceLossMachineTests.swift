import BusKit
import PodcastModel
import Testing

@testable import PlaybackService

/// Tests the loss of a sound device, without a player.
struct DeviceLossMachineTests {
    private var machine = DeviceLossMachine(limits: PlaybackLimits())
    private var now = MonotonicTime(nanoseconds: 1_000_000_000_000)

    private mutating func output(
        _ audibility: DeviceLossMachine.Audibility, isPlaying: Bool = true, at seconds: Double = 100
    ) throws -> [DeviceLossMachine.Action] {
        machine.outputChanged(
            to: audibility, isPlaying: isPlaying, position: try PlaybackPosition(seconds), now: now)
    }

    /// Advances the time to the machine’s next deadline, within a number of seconds.
    private mutating func pass(_ seconds: Double, heard: Double = 0) throws -> [DeviceLossMachine.Action] {
        let end = now.advanced(by: .seconds(seconds))
        var actions: [DeviceLossMachine.Action] = []
        while let next = machine.nextAt, next <= end {
            now = max(now, next)
            actions += machine.tick(isPlaying: true, heard: try PlaybackPosition(heard), now: now)
        }
        now = end
        return actions
    }

    @Test mutating func `playback that begins without sound isn’t a loss`() throws {
        #expect(try output(.silent) == [])
        machine.follow(isPlaying: true, now: now)
        #expect(try pass(2) == [.reload])
        #expect(try output(.onChosen) == [])
        machine.follow(isPlaying: true, now: now)
        #expect(machine.nextAt == nil)
    }

    @Test mutating func `the search for a device backs off, and runs only during playback`() throws {
        _ = try output(.silent)
        machine.follow(isPlaying: true, now: now)
        #expect(try pass(60).count == 4)
        machine.follow(isPlaying: false, now: now)
        #expect(machine.nextAt == nil)
    }

    @Test mutating func `after a loss playback resumes half a second before the position of the loss`() throws {
        _ = try output(.onChosen)
        let place = try PlaybackPosition(99.5)
        #expect(try output(.silent) == [.pause(place)])
        #expect(try pass(1) == [.reload])
        #expect(try output(.onChosen, isPlaying: false) == [.resume])
        #expect(try pass(2, heard: 100.2) == [.recovered])
        #expect(!machine.isLost)
    }

    @Test mutating func `the deadline for the position to advance starts when the audio is open`() throws {
        machine.restore(at: try PlaybackPosition(100), now: now)
        #expect(machine.devicesAnswered(isThere: true, now: now) == [.resume])
        machine.opensToResume()
        #expect(try pass(20) == [])
        machine.follow(isPlaying: true, now: now)
        #expect(try pass(1.4, heard: 100) == [])
        #expect(try pass(0.2, heard: 101) == [.recovered])
    }

    @Test mutating func `on a repeatedly lost device playback resumes at the position of the first loss`() throws {
        _ = try output(.onChosen)
        let place = try PlaybackPosition(99.5)
        _ = try output(.silent)
        for _ in 1...5 {
            #expect(try output(.onChosen, isPlaying: false) == [.resume])
            #expect(try output(.silent, at: 103) == [.pause(place)])
        }
        #expect(try output(.onChosen, isPlaying: false) == [.resume])
    }

    @Test mutating func `playback that doesn’t advance on a device is paused and retried`() throws {
        _ = try output(.onChosen)
        _ = try output(.silent)
        _ = try output(.onChosen, isPlaying: false)
        #expect(try pass(1.5, heard: 99.6) == [.pause(try PlaybackPosition(99.5)), .failed])
        #expect(try pass(5) == [.reload])
    }

    @Test mutating func `waiting for a lost device ends after a minute`() throws {
        _ = try output(.onChosen)
        _ = try output(.silent)
        #expect(try pass(60).last == .stopWaiting)
        #expect(machine.nextAt == nil && !machine.isLost)
        #expect(try output(.onChosen, isPlaying: false) == [])
    }

    @Test mutating func `a device other than the chosen one doesn’t end a loss`() throws {
        _ = try output(.onChosen)
        #expect(try !output(.onOther).isEmpty)
        #expect(try output(.silent, isPlaying: false) == [])
        #expect(try output(.onOther, isPlaying: false) == [])
        #expect(try output(.onChosen, isPlaying: false) == [.resume])
    }

    @Test mutating func `playback on another device is interrupted for the chosen device only`() throws {
        _ = try output(.onOther)
        machine.follow(isPlaying: true, now: now)
        machine.deviceListed(isChosen: false, isPlaying: true, now: now)
        #expect(machine.nextAt == nil)
        machine.deviceListed(isChosen: true, isPlaying: true, now: now)
        #expect(try pass(60) == [.reload])
    }

    @Test mutating func `playback resumes from the position of a seek during the wait`() throws {
        _ = try output(.onChosen)
        _ = try output(.silent)
        machine.moved(to: try PlaybackPosition(300))
        _ = try output(.onChosen, isPlaying: false)
        #expect(try output(.silent) == [.pause(try PlaybackPosition(300))])
    }
}
