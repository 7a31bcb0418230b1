import BusKit
import Foundation
import PodcastModel
import TestSupport
import Testing
import WireMessages

/// Tests real sound servers that hang and block libmpv.
@Suite(.timeLimit(.minutes(5)), .enabled(if: SoundServer.isAvailable, SoundServer.isMissing))
struct SoundServerHangTests {
    /// Plays “One” on the default device, and requests another device from a server that is stopped.
    private func hang(_ player: SoundFleet) async throws -> (speakers: SoundRecorder, headset: SoundRecorder) {
        let speakers = try await SoundRecorder.of("speakers", on: player.server)
        let headset = try await SoundRecorder.of("headset", on: player.server)
        try await player.fleet.succeed("play", "One")
        try await speakers.untilHeard(seconds: 1)
        // The devices are listed now, because a frozen server lists none.
        try await player.fleet.succeed("output")
        player.server.freeze()
        let generation = player.generation
        try await player.ask { $0.setOutput.device = player.server.kind.device("headset") }
        try await player.untilLost()
        #expect(player.alertMessages.contains("The sound system doesn’t respond; playback is paused."))
        try await player.observer.until("another process of the player plays") {
            SoundFleet.generation(in: $0) > generation
        }
        return (speakers, headset)
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `a sound server that hangs pauses playback, which resumes when it answers`(
        _ kind: SoundServer.Kind
    ) async throws {
        try await SoundFleet.with(kind, sinks: ["speakers", "headset"]) { player in
            let (speakers, headset) = try await hang(player)
            defer { [speakers, headset].forEach { $0.end() } }
            player.server.thaw()
            let after = try await headset.untilHeard(seconds: 1)
            SoundDeviceTests.expectContinuity(speakers.recorded, after)
            try await player.untilNoAlert()
            #expect(player.player.status == .playing && !player.player.nullOutput)
        }
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `a sound server that hangs during playback is detected`(_ kind: SoundServer.Kind) async throws {
        try await SoundFleet.with(kind) { player in
            let recorder = try await SoundRecorder.of("one", on: player.server)
            defer { recorder.end() }
            try await player.fleet.succeed("play", "One")
            try await recorder.untilHeard(seconds: 1)
            let generation = player.generation
            player.server.freeze()
            try await player.untilLost()
            try await player.observer.until("another process of the player plays") {
                SoundFleet.generation(in: $0) > generation
            }
            let count = recorder.count
            player.server.thaw()
            // The audio that the server had buffered plays first.
            SoundDeviceTests.expectContinuity(try await recorder.untilHeard(seconds: 1, from: count))
            try await player.untilNoAlert()
        }
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `a sound server that hangs blocks no command`(_ kind: SoundServer.Kind) async throws {
        try await SoundFleet.with(kind, sinks: ["speakers", "headset"]) { player in
            let (speakers, headset) = try await hang(player)
            defer { [speakers, headset].forEach { $0.end() } }
            try await player.fleet.succeed("output")
            try await player.fleet.succeed("play", "Two")
            try await player.until("“Two” is loaded") { $0.episode.title == "Two" && $0.status == .paused }
            try await player.fleet.succeed("pause")
            try await player.until("playback stays paused") { $0.pausedBy == .somebody }
            player.server.thaw()
            #expect(try await headset.more(seconds: 3).suffix(SoundRecorder.rate).allSatisfy { $0 == 0 })
            try await player.setPaused(false)
            try await headset.untilHeard()
            try await player.untilNoAlert()
        }
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `a sound server that is killed while it hangs is found again`(_ kind: SoundServer.Kind) async throws {
        try await SoundFleet.with(kind, sinks: ["speakers", "headset"]) { player in
            let (speakers, headset) = try await hang(player)
            player.server.kill()
            [speakers, headset].forEach { $0.end() }
            try player.server.start(sinks: ["speakers"])
            let recorder = try await player.recorder(plugging: "headset")
            defer { recorder.end() }
            SoundDeviceTests.expectContinuity(speakers.recorded, try await recorder.untilHeard(seconds: 1))
            try await player.untilNoAlert()
        }
    }
}
