import BusKit
import EngineDouble
import OwnerHarness
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

struct PlaybackEndTests {
    private let rig = PlayerRig()

    @Test func `an episode played to its end is finished: marked, at its end, without a resume position`() throws {
        try rig.start()
        try rig.load(rig.episode(length: 20, announced: 20), at: 5)
        try rig.advance(16)
        #expect(rig.state.status == .finished)
        #expect(rig.state.loadID == "l1" && rig.state.queueEntry == "q1")
        #expect(rig.position == 20)
        #expect(rig.stored().played && rig.stored().position == 0 && rig.stored().duration == 20)
        #expect(rig.stored().completedAt == rig.now.wall.milliseconds || rig.stored().completedAt > 0)
        #expect(rig.session?.status == .finished)
        #expect(rig.session?.position == 0)
        #expect(rig.alerts.isEmpty)
    }

    @Test func `an end is published when it is durable, not before`() throws {
        try rig.start()
        try rig.load(rig.episode(length: 20, announced: 20), at: 15)
        rig.holdsCommits = true
        try rig.advance(6)
        #expect(rig.state.status == .playing && !rig.state.anchor.running && rig.state.anchor.position == 20)
        // Other changes are published meanwhile.
        try rig.send { $0.setVolume.volume = 40 }
        #expect(rig.state.status == .playing && rig.state.volume == 40)
        try rig.releaseCommits()
        #expect(rig.state.status == .finished && rig.state.volume == 40)
        #expect(rig.stored().played)
    }

    @Test func `a load that follows an end that isn’t durable yet is published at once, after the end`() throws {
        try rig.start()
        try rig.load(rig.episode(length: 20, announced: 20), at: 15)
        rig.holdsCommits = true
        try rig.advance(6)
        let before = rig.states.count
        try rig.load(rig.episode("e2"), as: "l2")
        #expect(rig.states[before...].map(\.loadID).prefix(2) == ["l1", "l2"])
        #expect(rig.states[before].status == .finished)
        try rig.releaseCommits()
        #expect(rig.state.loadID == "l2" && rig.stored("e1").played)
    }

    @Test func `a published end is saved, even if the process is killed at any step`() throws {
        for limit in 1...40 {
            let rig = PlayerRig()
            try rig.start()
            try rig.load(rig.episode(length: 20, announced: 20), at: 18)
            let before = rig.owner.performed
            rig.owner.killAfter = before + limit
            do { try rig.advance(3) } catch is PlayerRig.Killed {}
            #expect(rig.state.status != .finished || rig.stored().played && rig.session?.status == .finished)
        }
    }

    @Test func `an end that can’t be saved is still published, and is saved later`() throws {
        try rig.start()
        try rig.load(rig.episode(length: 20, announced: 20), at: 15)
        rig.refusal = Failure(.diskFull, "the disk is full.")
        try rig.advance(6)
        #expect(rig.state.status == .finished && !rig.stored().played)
        rig.refusal = nil
        try rig.advance(40)
        #expect(rig.stored().played)
    }

    @Test func `a finished episode stays finished through commands and restarts until the next load`() throws {
        try rig.start()
        try rig.load(rig.episode(length: 4, announced: 4))
        try rig.advance(5)
        #expect(try rig.setPaused(false)?.failure?.known == .nothingLoaded)
        #expect(try rig.seek(1)?.failure?.known == .nothingLoaded)
        #expect(try rig.setPaused(true)?.reply?.state.status == .finished)
        for run in ["run1", "run2"] {
            rig.context.fleetRun = run
            try rig.start()
            #expect(rig.machine.state.status == .finished)
            #expect(rig.machine.state.loadID == "l1")
        }
        #expect(rig.engine.performed.isEmpty)
        try rig.load(rig.episode("e2"), as: "l2")
        #expect(rig.state.status == .playing)
        #expect(rig.stored("e1").played && rig.stored("e1").position == 0)
    }

    @Test(arguments: [
        SimulatedEngine.Audio(length: 200, declared: 600),
        SimulatedEngine.Audio(length: 590, declared: 600, cut: true),
        SimulatedEngine.Audio(length: 200, declared: 600, cut: true),
    ])
    func `audio that ends far from the known length fails, keeps its position and isn’t marked as played`(
        _ audio: SimulatedEngine.Audio
    ) throws {
        try rig.start()
        let episode = rig.episode()
        rig.setFile("e1", audio)
        try rig.load(episode, at: audio.length - 3)
        try rig.advance(4)
        #expect(rig.state.status == .failed)
        #expect(rig.state.error.code == "endedEarly" && rig.state.error.retry)
        #expect(abs(rig.position - audio.length) < 0.1)
        #expect(!rig.stored().played)
        #expect(abs(rig.stored().position - audio.length) < 0.1)
        let alert = try #require(rig.alerts.first)
        #expect(alert.code == "endedEarly" && alert.actions == ["retry", "skip", "dismiss"] && alert.episode == "e1")
        // The title is shown beside the reason, and only the alert contains it.
        let title = rig.state.episode.title
        #expect(!title.isEmpty && !rig.state.error.message.contains(title))
        #expect(alert.message.contains("“\(title)”: The "))
    }

    @Test(arguments: [60.0, 590, 2_400, 0])
    func `the file’s declared length takes precedence over the announced one`(announced: Double) throws {
        try rig.start()
        try rig.load(rig.episode(length: 600, announced: announced), at: 598)
        try rig.advance(3)
        #expect(rig.state.status == .finished)
        #expect(rig.stored().duration == 600)
        let remark = announced == 2_400 ? " at 10:00, although its feed announces 40:00" : ""
        #expect(rig.stored().reason == "heard to its end" + remark)
    }

    @Test(arguments: [
        // position, measured, source, announced, cut, proven
        Proof(600, 600, .declared, nil, false, true), Proof(599, 600, .declared, 60, false, true),
        Proof(590, 600, .declared, 590, false, false), Proof(594.5, 600, .declared, nil, false, true),
        Proof(594.5, 600, .declared, nil, true, false), Proof(599, 600, .declared, nil, true, true),
        Proof(9_900, 10_000, .declared, nil, false, false), Proof(9_990, 10_000, .declared, nil, false, true),
        Proof(600, 700, .estimated, 600, false, true), Proof(600, 600, .estimated, 700, false, true),
        Proof(600, 700, .estimated, 700, false, false), Proof(600, 600, .estimated, 600, true, false),
        Proof(200, 200, .partial, 600, false, false), Proof(600, 600, .partial, 600, false, true),
        Proof(200, 200, .partial, nil, false, true), Proof(200, 200, .partial, nil, true, false),
        Proof(0, 1, .declared, nil, false, false), Proof(1, nil, .declared, nil, false, true),
        Proof(0, nil, .declared, nil, false, false),
        Proof(2.5, 2.3, .declared, 60, false, false, hasSize: false),
        Proof(50, 50, .declared, 60, false, false, hasSize: false),
        Proof(55, 55, .declared, 60, false, true, hasSize: false),
        Proof(50, 50, .declared, nil, false, true, hasSize: false),
    ])
    func `the most reliable known length decides whether an end is confirmed`(_ proof: Proof) throws {
        let end = ReportedEnd(
            position: try PlaybackPosition(proof.position),
            measured: proof.measured.flatMap(EpisodeDuration.init).map { MeasuredDuration($0, proof.source) },
            cut: proof.cut, hasSize: proof.hasSize)
        #expect(end.isConfirmed(announced: proof.announced.flatMap(EpisodeDuration.init)) == proof.proven)
    }

    struct Proof: Sendable {
        let position: Double, measured: Double?, source: MeasuredDuration.Source, announced: Double?
        let cut: Bool, proven: Bool, hasSize: Bool
        init(
            _ position: Double, _ measured: Double?, _ source: MeasuredDuration.Source, _ announced: Double?,
            _ cut: Bool, _ proven: Bool, hasSize: Bool = true
        ) {
            (self.position, self.measured, self.source, self.announced) = (position, measured, source, announced)
            (self.cut, self.proven, self.hasSize) = (cut, proven, hasSize)
        }
    }

    @Test
    func `a file that fails to open fails the load with an alert, and retrying it ends the alert`()
        throws
    {
        try rig.start()
        let episode = rig.episode(position: 77)
        rig.setFile("e1", .broken(Failure(.streamFailed, "The server answered 503.")))
        #expect(try rig.load(episode)?.reply != nil)
        #expect(rig.state.status == .failed)
        #expect(rig.position == 77)
        let alert = try #require(rig.alerts.first)
        rig.setFile("e1", SimulatedEngine.Audio(length: 600))
        #expect(try rig.answer(alert.id, "retry")?.reply?.alertAnswered.action == "retry")
        #expect(rig.state.status == .playing)
        #expect(rig.position >= 77)
        #expect(rig.alerts.isEmpty)
    }

    @Test func `resuming a failed episode retries it, with one alert for each failure`() throws {
        try rig.start()
        let episode = rig.episode(position: 77)
        rig.setFile("e1", .broken(Failure(.streamFailed, "The server answered 503.")))
        try rig.load(episode)
        let first = try #require(rig.alerts.first?.id)
        try rig.setPaused(false)
        #expect(rig.state.status == .failed)
        #expect(rig.alerts.count == 1)
        #expect(rig.alerts.first?.id != first)
        try rig.load(rig.episode("e2"), as: "l2")
        #expect(rig.alerts.isEmpty)
    }

    @Test func `the first answer to an alert wins; repeating it changes nothing, and another is refused`() throws {
        try rig.start()
        let episode = rig.episode()
        rig.setFile("e1", .broken(Failure(.streamFailed, "no")))
        try rig.load(episode)
        let alert = try #require(rig.alerts.first?.id)
        #expect(try rig.answer(alert, "explode")?.failure?.known == .invalidArgument)
        rig.holdsCommits = true
        try rig.answer(alert, "dismiss")
        try rig.answer(alert, "retry")
        #expect(rig.alerts.count == 1)
        try rig.releaseCommits()
        #expect(rig.alerts.isEmpty)
        #expect(Set(rig.replies.values.compactMap(\.failure?.known)) == [.invalidArgument, .alreadyAnswered])
        try rig.start()
        #expect(try rig.answer(alert, "dismiss")?.reply?.alertAnswered.action == "dismiss")
        let late = try rig.answer(alert, "retry")?.failure
        #expect(late?.known == .alreadyAnswered && late?.message.contains("dismiss") == true)
        #expect(try rig.answer("a0", "dismiss")?.failure?.known == .notFound)
        #expect(rig.state.status == .failed || rig.machine.state.status == .failed)
    }

    @Test func `a failure after a retry raises an alert even while the answer to the previous alert is uncommitted`()
        throws
    {
        try rig.start()
        let episode = rig.episode()
        rig.setFile("e1", .broken(Failure(.decoderFailed, "broken")))
        try rig.load(episode)
        let first = try #require(rig.alerts.first?.id)
        rig.holdsCommits = true
        try rig.answer(first, "dismiss")
        try rig.setPaused(false)
        #expect(rig.state.status == .failed)
        try rig.releaseCommits()
        #expect(rig.alerts.count == 1 && rig.alerts.first?.id != first)
    }

    @Test func `without a sound device playback continues silently with an alert until a device is available`() throws {
        try rig.start()
        rig.engine.setSilent(true)
        try rig.load(rig.episode())
        #expect(rig.state.status == .playing && rig.state.nullOutput)
        #expect(rig.alerts.map(\.code) == ["noSoundDevice"])
        rig.engine.setSilent(false)
        try rig.advance(1)
        #expect(!rig.state.nullOutput)
        #expect(rig.alerts.isEmpty)
    }

    @Test func `a missing sound device raises one alert for any number of episodes`() throws {
        try rig.start()
        rig.engine.setSilent(true)
        for number in 1...3 { try rig.load(rig.episode("e\(number)"), as: "l\(number)") }
        #expect(rig.alerts.map(\.code) == ["noSoundDevice"])
    }

    @Test func `losing the sound device pauses playback, and an alert offers to resume it`() throws {
        try rig.start()
        try rig.load(rig.episode())
        try rig.advance(3)
        rig.engine.setSilent(true)
        try rig.advance(0.05)
        #expect(rig.state.status == .paused)
        let alert = try #require(rig.alerts.first)
        #expect(alert.code == "noSoundDevice")
        try rig.answer(alert.id, "resume")
        #expect(rig.state.status == .playing)
    }

    @Test func `an episode that is paused before it can be heard stays paused, and plays when it is resumed`()
        throws
    {
        try rig.start()
        let episode = rig.episode()
        var audio = SimulatedEngine.Audio(length: 600)
        audio.stalls = true
        rig.setFile("e1", audio)
        try rig.load(episode)
        #expect(rig.state.status == .loading)
        try rig.setPaused(true)
        #expect(rig.state.status == .paused)
        try rig.setPaused(false)
        #expect(rig.state.status == .playing)
    }
}
