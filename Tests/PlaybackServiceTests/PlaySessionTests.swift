import BusKit
import EngineDouble
import OwnerHarness
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import PlaybackService

/// Tests the measurement of play sessions alone, by the anchors of a player.
struct PlaySessionRecorderTests {
    /// A player whose clocks a test advances.
    private struct Listener {
        var recorder = PlaySessionRecorder(device: "laptop")
        var now = Moment(
            monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000), wall: Timestamp(milliseconds: 1_700_000_000_000))
        var load = LoadID("l1")
        var willPlay = true
        var trimsSilence = false
        var speed = PlaybackSpeed.normal
        var anchor: PlaybackAnchor
        var ended: [WirePlaySession] = []

        init() {
            anchor = PlaybackAnchor(
                position: .zero, at: now.monotonic, bootID: "boot", running: false, wall: now.wall)
        }

        /// Plays from the present position, at a pace that differs from the speed while silence is shortened.
        mutating func play(_ seconds: Double, pace: Double? = nil) {
            turn(running: true, pace: pace)
            pass(seconds)
        }

        mutating func pass(_ seconds: Double) {
            now.monotonic = now.monotonic.advanced(by: .seconds(seconds))
            now.wall = Timestamp(milliseconds: now.wall.milliseconds + Int64(seconds * 1_000))
            follow()
        }

        mutating func turn(running: Bool, at position: Double? = nil, pace: Double? = nil) {
            let present = position.flatMap { PlaybackPosition(seconds: $0) } ?? anchor.position(at: now.monotonic)
            anchor = PlaybackAnchor(
                position: present, speed: pace.flatMap { PlaybackSpeed(reported: $0) } ?? speed, at: now.monotonic,
                bootID: "boot", running: running, wall: now.wall)
            follow(hasSought: position != nil)
        }

        mutating func pause() {
            willPlay = false
            turn(running: false)
        }

        mutating func resume() {
            willPlay = true
            turn(running: true)
        }

        mutating func follow(hasSought: Bool = false) {
            let player = load.map {
                PlaySessionRecorder.Player(
                    load: $0, episode: "e1", podcast: "p1", willPlay: willPlay, anchor: anchor,
                    position: anchor.position(at: now.monotonic), speed: speed, trimsSilence: trimsSilence,
                    hasSought: hasSought)
            }
            if let session = recorder.follow(player, now: now) { ended.append(session) }
        }
    }

    private var listener = Listener()

    @Test mutating func `a sleep of the computer during a pause ends the session`() {
        listener.play(30)
        listener.pause()
        let first = listener.recorder.currentID
        listener.recorder.interrupt()
        listener.pass(1)
        listener.resume()
        listener.pass(30)
        listener.pause()
        #expect(first.isEmpty && listener.ended.count == 2)
        #expect(Set(listener.ended.map(\.id)).count == 2)
    }

    @Test mutating func `a session lasts from the first sound to the pause`() throws {
        listener.pass(5)
        #expect(listener.recorder.currentID.isEmpty)
        listener.play(30)
        #expect(!listener.recorder.currentID.isEmpty && listener.ended.isEmpty)
        listener.pause()
        let session = try #require(listener.ended.first)
        #expect(PlaySessionID(session.id) != nil && session.episode == "e1" && session.podcast == "p1")
        #expect(session.started == 1_700_000_005_000 && session.ended == 1_700_000_035_000)
        #expect(session.began == 0 && abs(session.leftAt - 30) < 0.001 && session.device == "laptop")
        #expect(abs(session.heard - 30) < 0.001 && abs(session.wall - 30) < 0.001 && session.silence == 0)
        #expect(listener.recorder.currentID.isEmpty && listener.recorder.takeUnsaved() == nil)
    }

    @Test(arguments: [(59.0, true), (61, false)])
    mutating func `a short pause continues the session, a long one ends it`(pause: Double, continues: Bool) throws {
        listener.play(30)
        listener.pause()
        listener.pass(pause)
        listener.resume()
        listener.pass(10)
        listener.pause()
        #expect(listener.ended.count == 2)
        let (first, last) = (listener.ended[0], listener.ended[1])
        #expect((first.id == last.id) == continues)
        #expect(abs(last.heard - (continues ? 40 : 10)) < 0.001 && abs(last.wall - last.heard) < 0.001)
        #expect(last.ended - last.started == Int64(continues ? 40 + pause : 10) * 1_000)
    }

    @Test mutating func `a seek changes only the position, and skipped audio doesn’t count`() throws {
        listener.play(10)
        listener.turn(running: false, at: 500)
        listener.play(20)
        listener.turn(running: false, at: 100)
        listener.play(10)
        #expect(listener.ended.isEmpty)
        listener.pause()
        let session = try #require(listener.ended.first)
        #expect(abs(session.heard - 40) < 0.001 && session.began == 0 && abs(session.leftAt - 110) < 0.001)
    }

    @Test mutating func `a jump without a seek doesn’t count, a correction does`() throws {
        listener.play(10)
        listener.anchor.position = PlaybackPosition(clamping: listener.anchor.position.seconds + 0.2)
        listener.follow()
        let current = try #require(listener.recorder.current)
        #expect(abs(current.heard - 10.2) < 0.001)
        // The outro is skipped: the player shows the end.
        listener.willPlay = false
        listener.anchor = PlaybackAnchor(
            position: PlaybackPosition(clamping: 60), at: listener.now.monotonic, bootID: "boot", running: false,
            wall: listener.now.wall)
        listener.follow()
        let session = try #require(listener.ended.first)
        #expect(abs(session.heard - 10.2) < 0.001 && abs(session.leftAt - 10.2) < 0.001)
    }

    @Test mutating func `at speed 2 twice the audio is heard, and shortened silence is counted apart`() throws {
        listener.speed = try #require(PlaybackSpeed(factor: 2))
        listener.play(10)
        listener.trimsSilence = true
        listener.play(2, pace: 3.5)
        listener.play(1)
        listener.pause()
        let session = try #require(listener.ended.first)
        #expect(abs(session.heard - 29) < 0.001 && abs(session.wall - 13) < 0.001)
        // 7 s of audio took 2 s instead of 3.5 s.
        #expect(abs(session.silence - 1.5) < 0.001)
    }

    @Test(arguments: [-3_600_000, 3_600_000] as [Int64])
    mutating func `a step of the clock doesn’t change the length`(step: Int64) throws {
        listener.play(10)
        listener.now.wall = Timestamp(milliseconds: listener.now.wall.milliseconds + step)
        listener.pass(10)
        listener.pause()
        let session = try #require(listener.ended.first)
        #expect(session.ended - session.started == 20_000 && abs(session.wall - 20) < 0.001)
    }

    @Test mutating func `waiting for data doesn’t count, and ends a session after a minute`() throws {
        listener.play(10)
        listener.turn(running: false)
        listener.pass(30)
        listener.play(10)
        let current = try #require(listener.recorder.current)
        #expect(listener.ended.isEmpty && abs(current.wall - 20) < 0.001)
        listener.turn(running: false)
        listener.pass(90)
        listener.play(5)
        let session = try #require(listener.ended.first)
        #expect(abs(session.wall - 20) < 0.001 && session.ended - session.started == 50_000)
        let next = try #require(listener.recorder.current)
        #expect(next.id != session.id)
    }

    @Test mutating func `another load, and the sleep of the computer, end the session`() throws {
        listener.play(10)
        listener.load = LoadID("l2")
        listener.anchor.position = PlaybackPosition(clamping: 3)
        listener.follow()
        #expect(listener.ended.count == 1 && abs(listener.ended[0].leftAt - 10) < 0.001)
        listener.pass(10)
        listener.recorder.interrupt()
        listener.pass(1)
        #expect(listener.ended.count == 2)
        listener.pass(10)
        listener.load = nil
        listener.follow()
        #expect(listener.ended.count == 3 && Set(listener.ended.map(\.id)).count == 3)
    }

    @Test mutating func `a session of less than a second is dropped`() {
        listener.play(0.9)
        #expect(listener.recorder.takeUnsaved() == nil)
        listener.pause()
        #expect(listener.ended.isEmpty)
    }
}

/// Tests that the player stores play sessions with its positions.
struct PlaySessionTests {
    private let rig = PlayerRig()

    private var events: [WirePlaySession] {
        rig.published.filter { $0.topic == .playSession }.compactMap { try? WirePlaySession(wireBytes: $0.payload) }
    }

    /// The only stored session.
    private var stored: WirePlaySession {
        get throws {
            #expect(rig.playSessions.count == 1)
            return try #require(rig.playSessions.values.first)
        }
    }

    @Test func `a session is saved with each position, and published when it has ended`() throws {
        try rig.start()
        try rig.load(rig.episode())
        let before = rig.owner.committed.count
        try rig.advance(35)
        // Three saved positions, without further commits.
        #expect(rig.owner.committed.count == before + 3)
        let begun = try stored
        #expect((29...31).contains(begun.heard) && events.isEmpty && rig.state.playSession == begun.id)
        try rig.setPaused(true)
        let session = try stored
        #expect((34...36).contains(session.heard) && session.episode == "e1" && session.podcast == "p1")
        #expect(abs(session.leftAt - rig.position) < 0.1)
        #expect(events == [session] && rig.state.playSession.isEmpty)
        try rig.setPaused(false)
        try rig.advance(5)
        try rig.send { $0.stop = WireStopPlayback() }
        #expect(events.count == 2 && events[1].id == session.id && (39...41).contains(events[1].heard))
    }

    @Test func `after a crash the session has what was last saved, and another one begins`() throws {
        try rig.start()
        try rig.load(rig.episode())
        try rig.advance(38)
        let before = try stored
        #expect((29...31).contains(before.heard))
        try rig.start()
        try rig.advance(15)
        #expect(rig.playSessions.count == 2 && rig.playSessions[before.id] == before)
    }

    @Test func `the end, another episode and the exit of the process end a session`() throws {
        try rig.start()
        try rig.load(rig.episode(length: 20, announced: 20))
        try rig.advance(25)
        #expect(events.count == 1 && (19...20.1).contains(events[0].heard) && abs(events[0].leftAt - 20) < 0.1)
        try rig.load(rig.episode("e2"), as: "l2")
        try rig.advance(5)
        try rig.load(rig.episode("e3"), as: "l3")
        #expect(events.map(\.episode) == ["e1", "e2"])
        try rig.advance(5)
        try rig.stopProcess()
        #expect(rig.playSessions.values.map(\.episode).sorted() == ["e1", "e2", "e3"])
    }

    @Test func `a session that can’t be saved is saved later, and published then`() throws {
        try rig.start()
        try rig.load(rig.episode())
        try rig.advance(5)
        rig.owner.refusal = Failure(.storageFailed, "away")
        try rig.setPaused(true)
        #expect(rig.playSessions.isEmpty && events.isEmpty)
        rig.owner.refusal = nil
        try rig.advance(3)
        let session = try stored
        #expect((4...6).contains(session.heard) && events.count == 1)
    }

    @Test func `a session that the database refuses as invalid doesn’t block later saves`() throws {
        try rig.start()
        try rig.load(rig.episode())
        try rig.advance(5)
        rig.owner.refusal = Failure(.invalidArgument, "invalid")
        try rig.setPaused(true)
        rig.owner.refusal = nil
        try rig.advance(40)
        #expect(rig.playSessions.isEmpty && events.isEmpty && rig.session?.position ?? 0 > 4)
    }
}
