import BusKit
import EngineDouble
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Tests sound devices that appear, disappear and are chosen.
struct PlaybackDeviceTests {
    private let rig = PlayerRig()

    private let speaker = OutputDevice(name: "speaker", description: "Speaker")

    private func loseDevice() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 50)
        try rig.advance(3)
        rig.engine.setSilent(true)
        try rig.advance(0.05)
        try #require(rig.state.status == .paused)
    }

    @Test func `a sound device that returns is used 0.8 s later, and playback resumes`() throws {
        try loseDevice()
        rig.engine.setDevices([speaker], works: true)
        try rig.advance(0.75)
        #expect(rig.state.status == .paused)
        try rig.advance(0.1)
        #expect(rig.state.status == .playing)
        try rig.advance(2)
        #expect(rig.alerts.isEmpty)
        #expect(rig.owner.logged.map(\.text).contains("The sound device is available again, and playback has resumed."))
        #expect(rig.engine.performed.count { $0 == .reloadOutput } == 1)
    }

    @Test func `a device that can’t be opened yet is retried, and playback resumes at the lost position`() throws {
        try loseDevice()
        rig.engine.setDevices([speaker], works: false)
        try rig.advance(20)
        #expect(rig.state.status == .paused && abs(rig.position - 52.5) < 0.1)
        #expect(rig.alerts.map(\.code) == ["noSoundDevice"])
        rig.engine.setDevices([speaker], works: true)
        try rig.advance(5)
        #expect(rig.state.status == .playing && rig.position < 52.5 + 5)
        try rig.advance(2)
        #expect(rig.alerts.isEmpty)
    }

    @Test func `a lost device that no event lists is probed until it is available`() throws {
        try loseDevice()
        try rig.advance(20)
        #expect(rig.state.status == .paused && rig.state.pausedBy == .soundDevice)
        // A restarted sound server reports no list by itself.
        rig.engine.repair()
        try rig.advance(6)
        #expect(rig.state.status == .playing && rig.alerts.isEmpty)
    }

    @Test func `a device that was missing for more than a minute doesn’t resume playback when it returns`() throws {
        try loseDevice()
        try rig.advance(61)
        #expect(rig.state.pausedBy == .somebody && rig.alerts.map(\.code) == ["noSoundDevice"])
        let opens = rig.engine.performed.count { $0 == .reloadOutput }
        rig.engine.setDevices([speaker], works: true)
        try rig.advance(30)
        #expect(rig.state.status == .paused)
        #expect(rig.engine.performed.count { $0 == .reloadOutput } == opens)
        try rig.setPaused(false)
        #expect(rig.state.status == .playing && !rig.state.nullOutput && rig.alerts.isEmpty)
    }

    @Test func `the alert about silent playback is hidden while playback is paused`() throws {
        try rig.start()
        rig.engine.setSilent(true)
        try rig.load(rig.episode())
        #expect(rig.alerts.map(\.message) == ["Couldn’t open a sound device; playing silently."])
        try rig.setPaused(true)
        #expect(rig.alerts.isEmpty)
        rig.engine.setDevices([speaker], works: false)
        try rig.advance(1)
        #expect(rig.alerts.isEmpty)
        try rig.setPaused(false)
        #expect(rig.alerts.count == 1)
    }

    private func dismiss(_ id: String) throws {
        let reply = try rig.send {
            $0.answerAlert.alert = id
            $0.answerAlert.action = "dismiss"
        }
        _ = try #require(reply).get()
    }

    @Test func `the alert about a missing device keeps its ID across pauses, episodes and restarts`() throws {
        try rig.start()
        rig.engine.setSilent(true)
        try rig.load(rig.episode())
        let id = try #require(rig.alerts.first?.id)
        try rig.setPaused(true)
        try rig.setPaused(false)
        #expect(rig.alerts.map(\.id) == [id])
        try rig.load(rig.episode(), as: "l2")
        #expect(rig.alerts.map(\.id) == [id])
        try rig.send { $0.stop = WireStopPlayback() }
        #expect(rig.alerts.isEmpty)
        try rig.start()
        rig.engine.setSilent(true)
        try rig.setPaused(false)
        #expect(rig.alerts.map(\.id) == [id])
    }

    @Test func `a dismissed alert about a missing device stays dismissed until a device reappears`() throws {
        try rig.start()
        rig.engine.setSilent(true)
        try rig.load(rig.episode())
        let id = try #require(rig.alerts.first?.id)
        try dismiss(id)
        try rig.setPaused(true)
        try rig.setPaused(false)
        #expect(rig.alerts.isEmpty)
        try rig.load(rig.episode(), as: "l2")
        #expect(rig.alerts.isEmpty)
        // The device is still missing when the player restarts.
        try rig.send { $0.stop = WireStopPlayback() }
        try rig.start()
        rig.engine.setSilent(true)
        try rig.setPaused(false)
        #expect(rig.state.status == .playing && rig.state.nullOutput && rig.alerts.isEmpty)
        rig.engine.repair()
        try rig.advance(40)
        #expect(!rig.state.nullOutput && rig.alerts.isEmpty)
        rig.engine.setSilent(true)
        try rig.advance(1)
        #expect(rig.state.pausedBy == .soundDevice)
        try rig.setPaused(false)
        let again = try #require(rig.alerts.first)
        #expect(again.actions == ["dismiss"] && again.id != id)
    }

    @Test func `the answer to the alert about a missing device is kept after many later answers`() throws {
        try rig.start()
        rig.engine.setSilent(true)
        try rig.load(rig.episode())
        try dismiss(try #require(rig.alerts.first?.id))
        try rig.advance(1)
        for number in 0...OwnerAlerts.answerLimit {
            let broken = rig.episode("e\(number + 2)")
            rig.setFile(broken.id, .broken(Failure(.decoderFailed, "broken")))
            try rig.load(broken, as: "l\(number + 2)")
            try dismiss(try #require(rig.alerts.first?.id))
        }
        try rig.load(rig.episode(), as: "l1000")
        #expect(rig.state.status == .playing && rig.state.nullOutput && rig.alerts.isEmpty)
    }

    @Test func `an unknown output neither pauses nor resumes playback`() throws {
        try rig.start()
        rig.engine.setSilent(true)
        try rig.load(rig.episode())
        let alerts = rig.alerts
        try rig.report(.outputs(EngineOutputs(devices: [speaker], silent: nil)))
        try rig.report(.outputs(EngineOutputs(silent: true)))
        #expect(rig.state.status == .playing && rig.state.nullOutput && rig.alerts == alerts)
        try rig.send { $0.stop = WireStopPlayback() }
        try rig.setPaused(false)
        #expect(rig.state.status == .playing && rig.alerts.allSatisfy { $0.message.contains("silently") })
    }

    @Test func `resuming without a device searches for one first`() throws {
        try rig.start()
        rig.engine.setSilent(true)
        try rig.load(rig.episode())
        try rig.setPaused(true)
        rig.engine.repair()
        try rig.setPaused(false)
        #expect(rig.state.status == .playing && !rig.state.nullOutput && rig.alerts.isEmpty)
    }

    @Test func `losing the chosen device pauses playback, and only the return of that device resumes it`() throws {
        let headset = OutputDevice(name: "headset", description: "Headset")
        try rig.start()
        rig.engine.setDevices([speaker, headset], works: true)
        try rig.load(rig.episode(), at: 50)
        try rig.send { $0.setOutput.device = "headset" }
        try rig.advance(3)
        rig.engine.setDevices([speaker], works: true)
        try rig.advance(0.05)
        #expect(rig.state.status == .paused && rig.state.pausedBy == .soundDevice)
        #expect(rig.alerts.map(\.code) == ["noSoundDevice"])
        try rig.advance(20)
        #expect(rig.state.status == .paused)
        rig.engine.setDevices([speaker, headset], works: true)
        try rig.advance(3)
        #expect(rig.state.status == .playing && rig.state.output == "headset" && rig.alerts.isEmpty)
        #expect(abs(rig.position - 54.7) < 0.2)
    }

    @Test func `resuming without the chosen device uses the default, with an alert`() throws {
        try `losing the chosen device pauses playback, and only the return of that device resumes it`()
        rig.engine.setDevices([speaker], works: true)
        try rig.advance(0.05)
        #expect(rig.state.status == .paused)
        try rig.setPaused(false)
        #expect(rig.state.status == .playing && rig.state.output.isEmpty && rig.machine.output.wire.chosen == "headset")
        #expect(rig.alerts.map(\.code) == ["outputMissing"])
    }

    @Test func `a device that has just been plugged in can be chosen`() throws {
        try rig.start()
        try rig.load(rig.episode())
        rig.engine.plugIn(OutputDevice(name: "headset", description: "Headset"))
        let reply = try rig.send { $0.setOutput.device = "headset" }?.get()
        #expect(reply?.output.chosen == "headset" && reply?.changed == true)
        #expect(try rig.send { $0.setOutput.device = "none" }?.failure?.known == .notFound)
        let again = try rig.send { $0.setOutput.device = "headset" }?.get()
        #expect(again?.changed == false)
    }

    @Test func `a request for the devices lists them again`() throws {
        try rig.start()
        try rig.load(rig.episode())
        rig.engine.plugIn(OutputDevice(name: "headset", description: "Headset"))
        let reply = try rig.send { $0.listOutputs = WireListOutputs() }?.get()
        #expect(reply?.output.devices.map(\.name) == ["simulated", "headset"] && reply?.hasChanged == false)
    }

    @Test func `a reply says whether the command has changed anything`() throws {
        try rig.start()
        try rig.load(rig.episode())
        #expect(try rig.setPaused(true)?.get().changed == true)
        #expect(try rig.setPaused(true)?.get().changed == false)
        #expect(try rig.setPaused(false)?.get().changed == true)
        #expect(try rig.setPaused(false)?.get().changed == false)
        #expect(try rig.send { $0.setVolume.volume = 40 }?.get().changed == true)
        #expect(try rig.send { $0.setVolume.volume = 40 }?.get().changed == false)
        #expect(try rig.send { $0.stop = WireStopPlayback() }?.get().changed == true)
        #expect(try rig.send { $0.stop = WireStopPlayback() }?.get().changed == false)
    }

    @Test func `a toggle depends on the player’s state, not on a client’s view`() throws {
        try rig.start()
        #expect(try rig.send { $0.togglePaused = WireTogglePaused() }?.failure?.known == .nothingLoaded)
        try rig.load(rig.episode())
        // Another client has paused in the meantime.
        try rig.setPaused(true)
        let resumed = try rig.send { $0.togglePaused = WireTogglePaused() }?.get()
        #expect(resumed?.changed == true && resumed?.state.status == .playing)
        let paused = try rig.send { $0.togglePaused = WireTogglePaused() }?.get()
        #expect(paused?.changed == true && paused?.state.status == .paused)
    }

    @Test func `the reply to a pause while the device is missing reports a change`() throws {
        try loseDevice()
        #expect(try rig.setPaused(true)?.get().changed == true)
        #expect(rig.state.pausedBy == .somebody)
        #expect(try rig.setPaused(true)?.get().changed == false)
    }

    @Test(arguments: [true, false])
    func `an episode that is paused during the loss of a device stays paused when the device returns`(stops: Bool)
        throws
    {
        try loseDevice()
        if stops { try rig.send { $0.stop = WireStopPlayback() } } else { try rig.setPaused(true) }
        rig.engine.setDevices([speaker], works: true)
        try rig.advance(5)
        #expect(rig.state.status == .paused)
    }
}
