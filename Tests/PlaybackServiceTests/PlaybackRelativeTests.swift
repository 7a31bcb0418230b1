import BusKit
import EngineDouble
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Tests commands that depend on the player’s current state, and `changed` in replies.
struct PlaybackRelativeTests {
    private let rig = PlayerRig()

    private func loadWithChapters(
        _ starts: [Double] = [0, 100, 200], at position: Double = 0, paused: Bool = false
    ) throws {
        let episode = rig.episode()
        rig.library["e1"]?.chapters = starts.map { start in
            var chapter = WireChapter()
            chapter.start = start
            chapter.title = "Chapter at \(Int(start))"
            return chapter
        }
        try rig.load(episode, at: position, paused: paused)
    }

    private func set(_ key: SettingKey, _ value: String, podcast: String = "") throws -> WirePlaybackReply? {
        try rig.send {
            $0.setSetting.key = key.rawValue
            $0.setSetting.value = value
            $0.setSetting.podcast = podcast
        }?.reply
    }

    // MARK: Seeking

    @Test(arguments: [
        (100.0, 30.0, 130.0), (100, -30, 70), (20, -30, 0), (580, 30, 599), (599.5, 30, 599.5), (599.8, -0.1, 599),
    ])
    func `a seek by a distance starts at the current position and stops a second before the end`(
        start: Double, distance: Double, expected: Double
    ) throws {
        try rig.start()
        try rig.load(rig.episode(), at: 1, paused: true)
        try rig.seek(start)
        let reply = try rig.send { $0.seekRelative.by = distance }?.reply
        #expect(reply?.state.anchor.position == expected)
        #expect(reply?.changed == (expected != start))
    }

    @Test func `two seeks by a distance add up even before the engine has completed the first`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try rig.send { $0.seekRelative.by = 30 }
        try rig.send { $0.seekRelative.by = 30 }
        #expect(abs(rig.position - 160) < 0.1)
    }

    @Test func `a seek to a fraction needs a known length`() throws {
        try rig.start()
        try rig.load(rig.episode(), paused: true)
        #expect(try rig.send { $0.seekRelative.fraction = 0.5 }?.reply?.state.anchor.position == 300)
        #expect(try rig.send { $0.seekRelative.fraction = 1 }?.reply?.state.anchor.position == 599)
        #expect(try rig.send { $0.seekRelative.fraction = 1.1 }?.failure?.known == .invalidArgument)
        rig.holdsLookups = true
        try rig.load(rig.episode("e2", announced: 0), as: "l2", paused: true)
        #expect(try rig.send { $0.seekRelative.fraction = 0.5 }?.failure?.known == .notApplicable)
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity])
    func `an infinite or undefined distance is refused`(distance: Double) throws {
        try rig.start()
        try rig.load(rig.episode(), paused: true)
        #expect(try rig.send { $0.seekRelative.by = distance }?.failure?.known == .invalidArgument)
        #expect(try rig.send { $0.seekRelative.fraction = distance }?.failure?.known == .invalidArgument)
        #expect(try rig.send { $0.seekRelative.skip.secondsIfUnset = distance }?.failure?.known == .invalidArgument)
        #expect(try rig.send { $0.changeSpeed.by = distance }?.failure?.known == .invalidArgument)
        #expect(try rig.send { $0.extendSleep.seconds = distance }?.failure?.known == .invalidArgument)
        let steps = try rig.send {
            $0.changeVolume.steps = 1
            $0.changeVolume.step = distance
        }
        #expect(steps?.failure?.known == .invalidArgument)
        #expect(try rig.send { $0.seekRelative = WireSeekRelative() }?.failure?.known == .invalidArgument)
    }

    @Test func `a skip’s distance is the podcast’s setting, else the general one, else the caller’s default`()
        throws
    {
        try rig.start()
        try rig.load(rig.episode(), at: 300, paused: true)
        func skip(back: Bool = false, seconds: Double = 0) throws -> Double? {
            try rig.send {
                $0.seekRelative.skip.back = back
                $0.seekRelative.skip.secondsIfUnset = seconds
            }?.reply?.state.anchor.position
        }
        #expect(try skip() == 330)
        #expect(try skip(back: true) == 320)
        #expect(try skip(seconds: 45) == 365)
        _ = try set(.skipForward, "20")
        #expect(try skip(seconds: 45) == 385)
        _ = try set(.skipForward, "15", podcast: "p1")
        #expect(try skip(seconds: 45) == 400)
    }

    @Test func `a relative seek that names another load is refused`() throws {
        try rig.start()
        #expect(try rig.send { $0.seekRelative.by = 1 }?.failure?.known == .nothingLoaded)
        try rig.load(rig.episode(), paused: true)
        let failure = try rig.send {
            $0.seekRelative.loadID = "l0"
            $0.seekRelative.by = 1
        }?.failure
        #expect(failure?.known == .revisionMismatch)
    }

    @Test func `chapters are found by number or as neighbours; “previous” selects the current start first`()
        throws
    {
        try rig.start()
        try loadWithChapters(at: 150, paused: true)
        func seek(_ fill: (inout WireChapterTarget) -> Void) throws -> Result<WirePlaybackReply, Failure>? {
            try rig.send { fill(&$0.seekRelative.chapter) }
        }
        #expect(try seek { $0.number = 3 }?.reply?.state.anchor.position == 200)
        #expect(try seek { $0.neighbour = .next }?.failure?.known == .atEdge)
        #expect(try seek { $0.number = 4 }?.failure?.known == .notFound)
        #expect(try seek { $0.number = 0 }?.failure?.known == .notFound)
        #expect(try seek { $0.neighbour = .previous }?.reply?.state.anchor.position == 100)
        try rig.seek(150)
        #expect(try seek { $0.neighbour = .previous }?.reply?.state.anchor.position == 100)
        try rig.seek(102)
        #expect(try seek { $0.neighbour = .previous }?.reply?.state.anchor.position == 0)
        #expect(try seek { $0.neighbour = .previous }?.failure?.known == .atEdge)
        #expect(try seek { _ in }?.failure?.known == .invalidArgument)
        #expect(try seek { $0.neighbour = .next }?.reply?.state.chapter == 2)
        try rig.load(rig.episode("e2"), as: "l2", paused: true)
        try rig.advance(1)
        #expect(try seek { $0.neighbour = .next }?.failure?.known == .notFound)
    }

    @Test func `a seek to a chapter of a file that is being opened waits until its chapters are known`() throws {
        try rig.start()
        let episode = rig.episode()
        rig.setFile(
            "e1",
            SimulatedEngine.Audio(
                length: 600,
                chapters: [0, 100].map { ChapterMark(start: PlaybackPosition(clamping: $0), title: "") }))
        rig.holdsLookups = true
        try rig.load(episode)
        #expect(try rig.send { $0.seekRelative.chapter.number = 2 } == nil)
        try rig.releaseLookups()
        try rig.advance(0.5)
        #expect(abs(rig.position - 100.5) < 0.6)
        #expect(rig.replies.values.allSatisfy { $0.failure == nil } && rig.replies.count == 2)
    }

    @Test func `a seek to a chapter of a file that doesn’t open is refused after a time limit`() throws {
        try rig.start()
        rig.holdsLookups = true
        try rig.load(rig.episode())
        try rig.send { $0.seekRelative.chapter.number = 2 }
        try rig.advance(4.9)
        #expect(rig.replies.isEmpty)
        try rig.advance(0.2)
        #expect(rig.replies.values.map(\.failure?.known) == [.notFound])
    }

    // MARK: The end

    @Test func `a seek to the end is answered with the episode that it has ended`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 10)
        try rig.advance(1)
        #expect(try rig.seek(600) == nil || rig.state.status == .finished)
        try rig.advance(1)
        let reply = rig.replies.values.compactMap(\.reply).first { $0.hasEnded }
        #expect(reply?.ended.id == "e1" && reply?.changed == true && reply?.state.status == .finished)
        #expect(rig.stored().played)
    }

    @Test func `a seek to the end is answered even if a pause keeps the episode from ending`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 10)
        try rig.advance(1)
        let before = rig.replies.count
        try rig.seek(599.8)
        #expect(rig.replies.count == before)
        try rig.setPaused(true)
        try rig.advance(0.1)
        #expect(rig.replies.count == before + 2)
        #expect(rig.replies.values.allSatisfy { $0.reply?.hasEnded == false })
    }

    @Test func `a seek to the end is answered when something else is loaded meanwhile`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 10)
        try rig.advance(1)
        try rig.seek(599.8)
        try rig.load(rig.episode("e2"), as: "l2")
        try rig.advance(0.1)
        #expect(rig.replies.count == 3 && rig.replies.values.allSatisfy { $0.failure == nil })
    }

    // MARK: Levels

    @Test func `speed and volume change by an amount or to the next multiple of a step, within their range`() throws {
        try rig.start()
        try rig.load(rig.episode(), paused: true)
        #expect(try rig.send { $0.changeSpeed.by = 0.25 }?.reply?.state.speed == 1.25)
        func speed(_ steps: Int32, _ step: Double = 0.1) throws -> Double? {
            try rig.send {
                $0.changeSpeed.steps = steps
                $0.changeSpeed.step = step
            }?.reply?.state.speed
        }
        #expect(try speed(1) == 1.3)
        #expect(try speed(-2) == 1.1)
        #expect(try speed(0) == 1.1)
        #expect(try speed(.max) == 3.5)
        #expect(try speed(1) == 3.5)
        #expect(try rig.send { $0.changeSpeed.by = -100 }?.reply?.state.speed == 0.5)
        let volume = try rig.send {
            $0.changeVolume.steps = -1
            $0.changeVolume.step = 30
        }?.reply
        #expect(volume?.state.volume == 90 && volume?.changed == true)
        #expect(try rig.send { $0.changeVolume.by = 20 }?.reply?.state.volume == 100)
        #expect(try rig.send { $0.changeVolume.by = 20 }?.reply?.changed == false)
    }

    @Test func `the reply to a change of the speed names the podcast whose setting it is`() throws {
        try rig.start()
        try rig.load(rig.episode(), paused: true)
        var setting = try rig.send { $0.setSpeed.speed = 1.5 }?.reply?.setting
        #expect(setting?.source == .all && setting?.value == "1.5" && setting?.changed == true)
        setting = try rig.send { $0.setSpeed.speed = 1.5 }?.reply?.setting
        #expect(setting?.changed == false)
        setting = try set(.speed, "2", podcast: "p1")?.setting
        #expect(setting?.source == .podcast && setting?.valueForAll == "1.5")
        setting = try rig.send { $0.changeSpeed.by = 0.5 }?.reply?.setting
        #expect(setting?.source == .podcast && setting?.value == "2.5" && setting?.valueForAll == "1.5")
    }

    // MARK: The sleep timer

    @Test func `a sleep timer with a time can be extended to a day at most`() throws {
        try rig.start()
        #expect(try rig.send { $0.extendSleep.seconds = 60 }?.failure?.known == .notApplicable)
        try rig.send { $0.setSleep.seconds = 600 }
        try rig.advance(60)
        let reply = try rig.send { $0.extendSleep.seconds = 60 }?.reply
        #expect(reply?.state.sleep.endsAt == rig.now.monotonic.advanced(by: .seconds(600)).nanoseconds)
        #expect(reply?.changed == true)
        #expect(try rig.send { $0.extendSleep.seconds = 86_400 }?.failure?.known == .invalidArgument)
    }

    @Test(arguments: [(UInt32(1), "with the episode"), (3, "after 3 episodes")])
    func `a timer that ends with an episode can’t be extended, and the refusal names it`(
        episodes: UInt32, end: String
    ) throws {
        try rig.start()
        try rig.send { $0.setSleep.episodes = episodes }
        let failure = try rig.send { $0.extendSleep.seconds = 60 }?.failure
        #expect(failure?.known == .notApplicable)
        #expect(failure?.message.contains("ends \(end)") == true)
        #expect(failure?.message.contains("`lockstep sleep 10`") == true)
    }

    @Test func `extending a sleep timer during its fade restores the volume`() throws {
        try rig.start()
        try rig.load(rig.episode())
        try rig.send { $0.setSleep.seconds = 12 }
        try rig.advance(7)
        #expect(rig.state.sleep.fading)
        try rig.send { $0.extendSleep.seconds = 600 }
        #expect(!rig.state.sleep.fading && rig.engine.volume == 100)
    }

    // MARK: Unchanged state

    @Test func `a command without effect is answered as unchanged`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 100, paused: true)
        func changed(_ fill: (inout WirePlaybackRequest) -> Void) throws -> Bool? {
            try rig.send(fill)?.reply?.changed
        }
        #expect(try changed { $0.setPaused.paused = true } == false)
        #expect(try changed { $0.seek.position = 100 } == false)
        #expect(try changed { $0.seek.position = 101 } == true)
        #expect(try changed { $0.setVolume.volume = 100 } == false)
        #expect(try changed { $0.setOutput.device = "" } == false)
        #expect(try changed { $0.setSleep = WireSetSleep() } == false)
        #expect(try changed { $0.setSleep.episodes = 2 } == true)
        #expect(try changed { $0.setSleep.episodes = 2 } == false)
        #expect(try changed { $0.stop = WireStopPlayback() } == true)
        #expect(try changed { $0.stop = WireStopPlayback() } == false)
        #expect(try changed { $0.unload.loadID = "" } == true)
        #expect(try changed { $0.unload.loadID = "" } == false)
    }

    @Test func `choosing the chosen device is answered as unchanged even if devices were listed for it`() throws {
        rig.devices = [OutputDevice(name: "alsa/usb", description: "USB")]
        try rig.start()
        let first = try rig.send { $0.setOutput.device = "alsa/usb" }?.reply
        #expect(first?.changed == true)
        let second = try rig.send { $0.setOutput.device = "alsa/usb" }?.reply
        #expect(second?.changed == false)
    }
}
