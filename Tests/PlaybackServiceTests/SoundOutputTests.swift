import BusKit
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Tests the sound devices and their alerts without a player.
struct SoundOutputTests {
    private static let speakers = OutputDevice(name: "pulse/speakers", description: "Speakers")
    private static let headset = OutputDevice(name: "pulse/headset", description: "Headset")
    private var output = SoundOutput(limits: PlaybackLimits())
    private let now = MonotonicTime(nanoseconds: 1_000_000_000_000)

    private mutating func list(_ devices: [OutputDevice], isAwaited: Bool = false) -> [SoundOutput.Action] {
        output.listed(devices, isPlaying: false, isAwaited: isAwaited, now: now)
    }

    private mutating func report(
        inUse: String = "", silent: Bool?, isPlaying: Bool = true
    ) -> [SoundOutput.Action] {
        let outputs = EngineOutputs(devices: nil, inUse: inUse, silent: silent)
        return output.reported(outputs, isPlaying: isPlaying, position: .zero, now: now)
    }

    private mutating func follow(_ status: PlaybackSession.Status?) -> [SoundOutput.Action] {
        output.follow(status, isPlaying: status?.willPlay == true, now: now)
    }

    @Test mutating func `devices are saved and published only when they change`() {
        #expect(list([Self.speakers]) == [.save, .publishDevices])
        #expect(list([Self.speakers]) == [])
        #expect(list([]) == [.save, .publishDevices])
    }

    @Test mutating func `an unknown device is chosen only after a fresh list that has it`() throws {
        _ = list([Self.speakers])
        #expect(try output.choose("pulse/headset", isFresh: false, isOpen: false) == nil)
        #expect(throws: Failure.self) { _ = try output.choose("pulse/headset", isFresh: true, isOpen: false) }
        #expect(output.chosen.isEmpty)
        _ = list([Self.speakers, Self.headset])
        #expect(try output.choose("pulse/headset", isFresh: true, isOpen: false) == true)
        #expect(try output.choose("pulse/headset", isFresh: false, isOpen: false) == false)
        #expect(output.chosen == "pulse/headset" && output.inUse == "pulse/headset")
    }

    @Test mutating func `an open engine reports the device in use itself`() throws {
        _ = list([Self.headset])
        #expect(try output.choose("pulse/headset", isFresh: false, isOpen: true) == true)
        #expect(output.inUse.isEmpty)
        #expect(report(inUse: "pulse/headset", silent: false) == [.publishDevices, .publishState, .publishState])
        #expect(output.inUse == "pulse/headset" && output.isSilent == false)
    }

    @Test mutating func `silent playback raises one alert, which ends when a device is in use`() {
        _ = report(silent: true)
        #expect(follow(.playing) == [.showAlert(.silent)])
        #expect(follow(.playing) == [])
        #expect(output.raised(.silent, as: "a1") == true)
        _ = report(silent: false)
        #expect(follow(.playing) == [.save, .commit, .showAlert(nil)])
        #expect(output.alertIDs.isEmpty)
    }

    @Test mutating func `an alert keeps its ID while a pause hides the alert`() {
        _ = report(silent: true)
        _ = follow(.playing)
        #expect(output.raised(.silent, as: "a1") == true)
        #expect(follow(.paused) == [.showAlert(nil)])
        #expect(follow(.playing) == [.showAlert(.silent)])
        #expect(output.alertIDs == [.silent: "a1"] && output.raised(.silent, as: "a1") == false)
    }

    @Test mutating func `a lost device resumes playback when it is listed for the second time`() {
        _ = report(silent: false)
        let lost = report(silent: true)
        #expect(lost == [.publishState, .followLoss(.pause(.zero))])
        #expect(follow(.paused) == [.showAlert(.lost)])
        #expect(list([Self.speakers], isAwaited: true) == [.save, .publishDevices])
        #expect(list([Self.speakers], isAwaited: true) == [.followLoss(.resume)])
    }

    @Test mutating func `the chosen device, the devices and the alert IDs are restored`() throws {
        _ = list([Self.speakers, Self.headset])
        _ = try output.choose("pulse/headset", isFresh: false, isOpen: false)
        _ = output.raised(.other, as: "a1")
        var record = WirePlaybackSettingsRecord()
        output.fill(&record)
        output = SoundOutput(limits: PlaybackLimits())
        output.restore(record)
        #expect(output.chosen == "pulse/headset" && output.devices == [Self.speakers, Self.headset])
        #expect(output.alertIDs == [.other: "a1"] && output.isSilent == nil)
    }
}
