import BusKit
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Tests the sleep timer’s machine.
struct SleepTimerMachineTests {
    private static let fade = 10.0
    private var timer = SleepTimerMachine()
    private var now = Moment(
        monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000), wall: Timestamp(milliseconds: 1_700_000_000_000))

    private mutating func set(_ fill: (inout WireSetSleep) -> Void) throws -> [SleepTimerMachine.Action] {
        var request = WireSetSleep()
        fill(&request)
        return try timer.set(request, now: now)
    }

    private mutating func pass(_ seconds: Double) {
        now.monotonic = now.monotonic.advanced(by: .seconds(seconds))
        now.wall = Timestamp(milliseconds: now.wall.milliseconds + Int64(seconds * 1_000))
    }

    private func due(isPlaying: Bool = true) -> MonotonicTime? {
        timer.nextAt(isPlaying: isPlaying, fade: Self.fade, now: now.monotonic)
    }

    private var volume: Double { timer.volume(of: .full, fade: Self.fade, now: now.monotonic).percent }

    @Test mutating func `the sound fades out before the time is over, and then playback pauses`() throws {
        #expect(try set { $0.seconds = 60 } == [.save])
        #expect(due() == now.monotonic.advanced(by: .seconds(50)) && volume == 100)
        pass(50)
        #expect(timer.tick(isPlaying: true, now: now.monotonic) == [.publish, .setVolume] && volume == 100)
        pass(5)
        #expect(timer.tick(isPlaying: true, now: now.monotonic) == [.setVolume] && volume == 50)
        pass(5)
        #expect(timer.tick(isPlaying: true, now: now.monotonic) == [.expire("its time is over")])
        #expect(timer.turnOff() == [.save, .setVolume] && volume == 100 && due() == nil)
        #expect(timer.turnOff() == [])
    }

    @Test mutating func `the sound isn’t faded while playback is paused`() throws {
        _ = try set { $0.seconds = 60 }
        #expect(due(isPlaying: false) == now.monotonic.advanced(by: .seconds(60)))
        pass(55)
        #expect(timer.tick(isPlaying: false, now: now.monotonic) == [] && volume == 100)
    }

    @Test mutating func `setting another time ends a fade that has begun`() throws {
        _ = try set { $0.seconds = 60 }
        pass(55)
        _ = timer.tick(isPlaying: true, now: now.monotonic)
        #expect(volume == 50)
        #expect(try set { $0.seconds = 600 } == [.save, .setVolume] && volume == 100)
    }

    @Test mutating func `the timer stays over after its last episode until an episode is loaded`() throws {
        _ = try set { $0.episodes = 2 }
        #expect(timer.loaded() == false)
        #expect(timer.episodeEnded() == [.save] && timer.phase == .episodes(1))
        #expect(timer.episodeEnded() == [.save, .reportEnd("the episode has ended")] && timer.phase == .over)
        #expect(timer.episodeEnded() == [])
        #expect(timer.loaded() == true && timer.phase == .off)
    }

    @Test mutating func `a chapter’s end expires only a timer that waits for the end of a chapter`() throws {
        _ = try set { $0.seconds = 60 }
        #expect(timer.chapterEnded() == [])
        _ = try set { $0.endOfChapter = true }
        #expect(timer.chapterEnded() == [.expire("the chapter has ended")])
        #expect(timer.episodeEnded() == [.save, .reportEnd("the episode has ended")])
    }

    @Test(arguments: [0.0, -1, 86_401, .infinity, .nan])
    mutating func `a time outside the range is refused`(_ seconds: Double) {
        #expect(throws: Failure.self) { _ = try set { $0.seconds = seconds } }
        #expect(timer.phase == .off)
    }

    @Test(arguments: ["boot", "another boot"])
    mutating func `a stored time ends at the same moment on any boot`(_ boot: String) throws {
        _ = try set { $0.seconds = 60 }
        let stored = try #require(timer.wire(bootID: "boot"))
        pass(20)
        timer = SleepTimerMachine(stored, now: now, bootID: boot)
        #expect(due(isPlaying: false) == now.monotonic.advanced(by: .seconds(40)))
    }

    @Test mutating func `every phase is restored as it was stored`() throws {
        for phase in ["off", "episodes", "endOfChapter", "over"] {
            timer = SleepTimerMachine()
            if phase == "episodes" { _ = try set { $0.episodes = 3 } }
            if phase == "endOfChapter" { _ = try set { $0.endOfChapter = true } }
            if phase == "over" {
                _ = try set { $0.episodes = 1 }
                _ = timer.episodeEnded()
            }
            let stored = timer.wire(bootID: "boot")
            let restored = stored.map { SleepTimerMachine($0, now: now, bootID: "boot") } ?? SleepTimerMachine()
            #expect(restored == timer, "\(phase)")
        }
    }
}
