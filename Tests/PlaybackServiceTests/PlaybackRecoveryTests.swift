import EngineDouble
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Tests recovery after a crash, a graceful exit, a reboot and a full disk.
struct PlaybackRecoveryTests {
    private let rig = PlayerRig()
    private let diskFull = Failure(.diskFull, "the disk is full.")

    private func playing(from position: Double = 100) throws {
        try rig.start()
        try rig.load(rig.episode(), at: position)
        try #require(rig.state.status == .playing)
    }

    @Test func `after a crash in a running fleet playback resumes from the last saved position`() throws {
        try playing()
        try rig.advance(25)
        rig.advanceClocks(by: 1)
        try rig.start()
        #expect(rig.state.status == .playing)
        #expect(rig.state.loadID == "l1")
        #expect(rig.position >= 115 && rig.position <= 125.1)
        #expect(rig.alerts.isEmpty)
    }

    @Test func `a second crash on an episode within a minute leaves it paused, with an alert that resumes it`()
        throws
    {
        try playing()
        try rig.start()
        try rig.advance(30)
        try rig.start()
        #expect(rig.machine.state.status == .paused)
        #expect(rig.engine.performed.isEmpty)
        #expect(rig.position >= 100)
        let alert = try #require(rig.alerts.first)
        #expect(alert.code == "playbackCrashed" && alert.actions.contains("resume"))
        try rig.answer(alert.id, "resume")
        #expect(rig.state.status == .playing)
        #expect(rig.alerts.isEmpty)
    }

    @Test func `playback resumes after every crash if the crashes are more than a minute apart`() throws {
        try playing()
        for _ in 0..<3 {
            try rig.start()
            #expect(rig.state.status == .playing)
            try rig.advance(61)
        }
    }

    @Test func `a file that crashes the process when it is opened doesn’t cause a crash loop`() throws {
        try rig.start()
        rig.holdsCommits = true
        try rig.load(rig.episode())
        rig.holdsCommits = false
        try rig.releaseCommits()
        // The engine opens the file, and the process crashes each time.
        var opens = 1
        for _ in 0..<4 {
            rig.advanceClocks(by: 0.2)
            try rig.start()
            opens += rig.engine.open == nil ? 0 : 1
        }
        #expect(opens == 2)
        #expect(rig.machine.state.status == .paused)
    }

    @Test func `a graceful restart of the service resumes playback and doesn’t count as a crash`() throws {
        try playing()
        for _ in 0..<3 {
            try rig.advance(5)
            try rig.stopProcess()
            #expect(rig.session?.clean == true)
            try rig.start()
            #expect(rig.state.status == .playing)
        }
        #expect(abs(rig.position - 115) < 0.3)
    }

    @Test(arguments: [
        ("run2", "boot1", true), ("run2", "boot1", false), ("run2", "boot2", false), ("", "boot1", false),
    ])
    func `after a restart of the fleet or a reboot the episode is restored paused, with the engine closed`(
        run: String, boot: String, inGoodOrder: Bool
    ) throws {
        try playing()
        try rig.advance(12)
        if inGoodOrder { try rig.stopProcess() }
        rig.context = PlaybackContext(bootID: boot, fleetRun: run)
        rig.advanceClocks(by: 3_600)
        try rig.start()
        #expect(rig.machine.state.status == .paused)
        #expect(rig.machine.state.episode.title == "Episode e1")
        #expect(rig.position >= (inGoodOrder ? 111.9 : 102) && rig.position <= 112.1)
        #expect(rig.engine.performed.isEmpty)
        #expect(rig.alerts.isEmpty)
        try rig.setPaused(false)
        #expect(rig.state.status == .playing)
    }

    @Test(arguments: [
        ("resume", 102.0), ("restart", 0.0),
    ])
    func `after more than a day an alert asks whether to resume or to restart`(action: String, expected: Double) throws
    {
        try playing()
        try rig.advance(12)
        try rig.stopProcess()
        rig.context.fleetRun = "run2"
        rig.advanceClocks(by: 25 * 3_600)
        try rig.start()
        let alert = try #require(rig.alerts.first)
        #expect(alert.code == "resumeOrRestart")
        #expect(rig.machine.state.status == .paused)
        try rig.answer(alert.id, action)
        #expect(rig.state.status == .playing)
        #expect(abs(rig.position - expected) < 0.3)
        #expect(rig.alerts.isEmpty)
    }

    @Test func `when the file is missing the session is cleared, with an alert`() throws {
        try playing()
        try rig.stopProcess()
        rig.context.fleetRun = "run2"
        rig.files = [:]
        try rig.start()
        #expect(rig.state.status == .idle)
        #expect(rig.session == nil)
        #expect(rig.alerts.map(\.code) == ["episodeGone"])
        #expect(rig.examined == ["/audio/e1.mp3"])
    }

    @Test func `unreadable records don’t prevent the others from being restored`() throws {
        var machine = PlaybackMachine(context: rig.context)
        var settings = WirePlaybackSettingsRecord()
        settings.speed = 1.5
        let records = [
            StoredRecord(collection: "alert", key: "a1", value: [0xff, 0xff]),
            StoredRecord(collection: "session", key: "current", value: [0x08]),
            StoredRecord(collection: "settings", key: "current", value: settings.wireBytes),
            StoredRecord(collection: "unheardOf", key: "x", value: []),
        ]
        let effects = machine.restore(records, now: rig.now)
        #expect(machine.state.speed == 1.5 && machine.state.status == .idle)
        #expect(effects.count { if case .log(.error, _) = $0 { true } else { false } } == 3)
    }

    @Test func `on a full disk a pause takes effect, is answered as not saved, and is saved later`()
        throws
    {
        try playing()
        try rig.advance(5)
        rig.refusal = diskFull
        let failure = try rig.setPaused(true)?.failure
        #expect(failure?.known == .notSaved && failure?.retry == true)
        #expect(failure?.message.hasPrefix("Paused") == true)
        #expect(rig.state.status == .paused)
        #expect(rig.stored().updatedAt == 0)
        rig.refusal = nil
        try rig.advance(40)
        #expect(abs(rig.stored().position - 105) < 0.1)
        #expect(rig.session?.status == .paused)
    }

    @Test func `repeating a command that was not saved saves it`() throws {
        try playing()
        rig.refusal = diskFull
        try rig.setPaused(true)
        rig.refusal = nil
        #expect(try rig.setPaused(true)?.reply?.state.status == .paused)
        #expect(rig.session?.status == .paused)
    }

    @Test(arguments: 0..<6)
    func `the engine keeps working while the disk is full`(_ command: Int) throws {
        try playing()
        rig.refusal = diskFull
        let failures = try [
            { try self.rig.load(self.rig.episode("e2"), as: "l2") }, { try self.rig.seek(200) },
            { try self.rig.send { $0.setSpeed.speed = 2 } }, { try self.rig.send { $0.setVolume.volume = 5 } },
            { try self.rig.send { $0.stop = WireStopPlayback() } }, { try self.rig.send { $0.unload.loadID = "l1" } },
        ][command]()
        #expect(failures?.failure?.known == .notSaved)
        let state = rig.state
        let happened = [
            state.status == .playing && state.loadID == "l2", state.anchor.position >= 200, state.speed == 2,
            state.volume == 5, state.status == .paused, state.status == .idle,
        ]
        #expect(happened[command])
    }

    @Test func `while the database doesn’t answer, at most one save of the position waits for it`() throws {
        try playing()
        rig.holdsCommits = true
        try rig.advance(60)
        let before = rig.owner.committed.count
        try rig.releaseCommits()
        try rig.advance(11)
        #expect(rig.owner.committed.count - before <= 3)
        #expect(rig.position - rig.stored().position <= 10.2)
    }

    @Test func `the state of a forgotten episode is not retried forever`() throws {
        try playing()
        rig.refusal = Failure(.notFound, "no such episode")
        try rig.setPaused(true)
        rig.refusal = nil
        try rig.advance(40)
        #expect(rig.session?.status == .paused)
        #expect(rig.stored().updatedAt == 0)
    }

    @Test(arguments: 0..<60)
    func `acknowledged changes are restored, even if the process is killed at any step`(_ step: Int) throws {
        rig.owner.killAfter = step
        var acknowledged: [String: Double] = [:]
        var finished = false
        do {
            try rig.start()
            if try rig.load(rig.episode("e1", length: 30, announced: 30))?.reply != nil { acknowledged["load"] = 1 }
            if try rig.send({ $0.setSpeed.speed = 1.5 })?.reply != nil { acknowledged["speed"] = 1.5 }
            try rig.advance(2)
            if try rig.seek(20)?.reply != nil { acknowledged["seek"] = 20 }
            if try rig.setPaused(true)?.reply != nil { acknowledged["pause"] = 1 }
            if try rig.setPaused(false)?.reply != nil { acknowledged["pause"] = nil }
            try rig.advance(12)
            finished = rig.session?.status == .finished
            if try rig.load(rig.episode("e2"), as: "l2")?.reply != nil { acknowledged["next"] = 1 }
            try rig.advance(11)
        } catch is PlayerRig.Killed {}
        rig.owner.killAfter = nil
        rig.advanceClocks(by: 0.2)
        try rig.start()
        let state = rig.machine.state
        if acknowledged["speed"] != nil { #expect(state.speed == 1.5) }
        if acknowledged["next"] != nil {
            #expect(state.loadID == "l2" && state.status == .playing)
            #expect(rig.stored("e1").played)
        } else if finished {
            #expect(state.status == .finished || state.loadID == "l2")
            #expect(rig.stored("e1").played)
        } else if acknowledged["load"] != nil {
            #expect(state.loadID == "l1" || state.loadID == "l2")
            if state.loadID == "l1", acknowledged["seek"] != nil, state.status != .finished {
                #expect(rig.position >= 19.9)
            }
            if acknowledged["pause"] != nil { #expect(state.status == .paused || state.status == .playing) }
        }
        // The engine has an open file exactly while the state is playing.
        #expect((rig.engine.open != nil) == (state.status == .playing))
    }

    @Test func `all durable state is written again to a database that has lost it`() throws {
        try playing()
        try rig.send { $0.setSpeed.speed = 2 }
        try rig.setPaused(true)
        let kinds = rig.machine.everything().map { change in
            if case .put(let record)? = change.change { record.collection } else { "episodeState" }
        }
        #expect(kinds == ["settings", "session", "episodeState", "setting/all"])
    }
}
