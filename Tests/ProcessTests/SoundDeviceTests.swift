import BusKit
import Foundation
import LockstepClient
import PodcastModel
import TestSupport
import Testing
import WireMessages

/// Tests sound devices that are lost and return, with real sound servers, by recording their sinks’ monitors.
@Suite(.timeLimit(.minutes(5)), .enabled(if: SoundServer.isAvailable, SoundServer.isMissing))
struct SoundDeviceTests {
    /// Checks that nothing is omitted between recordings and little is repeated. A busy machine drops some tenths of a
    /// second; a recording with a fragmented end, or an empty one, shows less of what was played.
    static func expectContinuity(_ recordings: [Float]...) {
        let recorded = recordings.map(Sweep.stretches)
        var end: Double?
        var last: Sweep.Stretch?
        for recording in recorded {
            if recording.isEmpty { last = nil }
            for (index, stretch) in recording.enumerated() {
                defer { last = stretch }
                if let end {
                    let wasClean = last.map { $0.to - $0.from >= 0.5 } ?? false
                    let gap = index == 0 && wasClean ? 0.5 : 1
                    #expect(stretch.from <= end + gap, "\(stretch.from - end) s weren’t recorded: \(recorded)")
                    #expect(
                        stretch.from >= end - 3.5, "playback moved back from \(end) to \(stretch.from): \(recorded)")
                }
                end = max(end ?? 0, stretch.to)
            }
        }
        #expect(recorded.first?.isEmpty == false && recorded.last?.isEmpty == false)
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `sound resumes by itself after a restart of the sound server`(_ kind: SoundServer.Kind) async throws {
        try await SoundFleet.with(kind) { player in
            var recorder = try await SoundRecorder.of("one", on: player.server)
            try await player.fleet.succeed("play", "One")
            try await recorder.untilHeard(seconds: 1)
            player.server.kill()
            try await player.untilLost()
            recorder.end()
            let before = recorder.recorded
            try player.server.start(sinks: [])
            recorder = try await player.recorder(plugging: "one")
            defer { recorder.end() }
            Self.expectContinuity(before, try await recorder.untilHeard(seconds: 1))
            try await player.untilNoAlert()
            #expect(player.player.status == .playing && !player.player.nullOutput)
        }
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `playback is audible on a sound server that starts later`(_ kind: SoundServer.Kind) async throws {
        try await SoundFleet.with(kind, sinks: nil) { player in
            try await player.fleet.succeed("play", "One")
            try await player.until("playback is silent") { $0.nullOutput && $0.status == .playing }
            try player.server.start()
            let recorder = try await SoundRecorder.of("one", on: player.server)
            defer { recorder.end() }
            try await recorder.untilHeard(seconds: 1)
            try await player.untilNoAlert()
        }
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `a pause while the device is gone holds when it returns`(_ kind: SoundServer.Kind) async throws {
        try await SoundFleet.with(kind) { player in
            var recorder = try await SoundRecorder.of("one", on: player.server)
            try await player.fleet.succeed("play", "One")
            try await recorder.untilHeard()
            player.server.kill()
            try await player.untilLost()
            recorder.end()
            try await player.fleet.succeed("pause")
            try await player.setPaused(true)
            try await player.until("playback stays paused") { $0.pausedBy == .somebody }
            try player.server.start()
            recorder = try await SoundRecorder.of("one", on: player.server)
            defer { recorder.end() }
            #expect(try await recorder.more(seconds: 5).allSatisfy { $0 == 0 })
            // A command makes it audible at once.
            try await player.setPaused(false)
            try await recorder.untilHeard()
            try await player.untilNoAlert()
        }
    }

    @Test func `silent playback without a device isn’t treated as its loss`() async throws {
        try await SoundFleet.with(.pulseAudio, sinks: nil) { player in
            try await player.fleet.succeed("play", "One")
            for title in ["One", "Two", "One", "Two"] {
                try await player.until("playback is silent") { $0.nullOutput && $0.status == .playing }
                try await player.ask { $0.stop = WireStopPlayback() }
                try await player.setPaused(false)
                try await player.until("playback is silent") { $0.nullOutput && $0.status == .playing }
                try await player.fleet.succeed("play", title)
                try await player.untilPlaying(title)
            }
            #expect(!player.states.contains { $0.pausedBy == .soundDevice })
            #expect(player.alertMessages.allSatisfy { $0.contains("playing silently") }, "\(player.alertMessages)")
        }
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `the loss of a selected device pauses playback, which resumes when it returns`(_ kind: SoundServer.Kind)
        async throws
    {
        try await SoundFleet.with(kind, sinks: ["speakers", "headset"]) { player in
            let speakers = try await SoundRecorder.of("speakers", on: player.server)
            defer { speakers.end() }
            var headset = try await SoundRecorder.of("headset", on: player.server)
            try await player.fleet.succeed("play", "One")
            try await speakers.untilHeard()
            try await player.fleet.succeed("output", kind.device("headset"))
            try await headset.untilHeard(seconds: 1)
            let start = speakers.count
            try player.server.removeSink("headset")
            try await player.untilLost()
            headset.end()
            let before = headset.recorded
            headset = try await player.recorder(plugging: "headset")
            defer { headset.end() }
            let after = try await headset.untilHeard(seconds: 1)
            try await player.untilNoAlert()
            // The other device plays the audio only until the loss is detected.
            let elsewhere = Array(speakers.recorded[start...])
            Self.expectContinuity(before, elsewhere, after)
            let extra = Sweep.windows(elsewhere).count { $0.position != nil }
            #expect(Double(extra) * Sweep.window < 1, "\(extra) windows were played on the other device")
            #expect(player.player.output == kind.device("headset"))
        }
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `losing the last device pauses playback even if a dummy device is left`(_ kind: SoundServer.Kind) async throws
    {
        try await SoundFleet.with(kind) { player in
            var recorder = try await SoundRecorder.of("one", on: player.server)
            try await player.fleet.succeed("play", "One")
            try await recorder.untilHeard(seconds: 1)
            try player.server.removeSink("one")
            try await player.untilLost()
            recorder.end()
            let before = recorder.recorded
            recorder = try await player.recorder(plugging: "one")
            defer { recorder.end() }
            Self.expectContinuity(before, try await recorder.untilHeard(seconds: 1))
            try await player.untilNoAlert()
        }
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `a device that is plugged in during playback can be selected at once`(_ kind: SoundServer.Kind) async throws {
        try await SoundFleet.with(kind) { player in
            try await player.fleet.succeed("play", "One")
            try await player.untilPlaying()
            try player.server.addSink("headset")
            let recorder = try await SoundRecorder.of("headset", on: player.server)
            defer { recorder.end() }
            try await player.fleet.succeed("output", kind.device("headset"))
            try await recorder.untilHeard()
        }
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `a selected device that is missing at the start is replaced by the default, and this is reported`(
        _ kind: SoundServer.Kind
    ) async throws {
        try await SoundFleet.with(kind, sinks: ["one", "headset"]) { player in
            try await player.fleet.succeed("play", "One")
            try await player.untilPlaying()
            try await player.fleet.succeed("output", kind.device("headset"))
            try await player.fleet.succeed("pause")
            try await player.fleet.succeed("down")
            try player.server.removeSink("headset")
            try await SoundFleet.up(player.fleet, player.server)
            let recorder = try await SoundRecorder.of("one", on: player.server)
            defer { recorder.end() }
            try await SoundFleet.observing(player.fleet, player.server) { player in
                try await player.fleet.succeed("resume")
                try await recorder.untilHeard()
                try await player.observer.until("the use of another device is reported") { view in
                    view.alertsInOrder.contains { $0.code == "outputMissing" } && view.player?.nullOutput == false
                        && view.output?.inUse == "" && view.output?.chosen == kind.device("headset")
                }
                try player.server.addSink("headset")
                let headset = try await SoundRecorder.of("headset", on: player.server)
                defer { headset.end() }
                try await headset.untilHeard()
                try await player.untilNoAlert()
            }
        }
    }

    @Test func `a device that disconnects repeatedly loses no part of the playback`() async throws {
        try await SoundFleet.with(.pulseAudio, sinks: ["one"]) { player in
            var recorder = try await SoundRecorder.of("one", on: player.server)
            try await player.fleet.succeed("play", "One")
            var before = try await recorder.untilHeard(seconds: 1)
            for _ in 1...4 {
                try player.server.removeSink("one")
                try await player.untilLost()
                recorder.end()
                before = recorder.recorded
                // The device is removed before it can be used.
                try player.server.addSink("one")
                try player.server.removeSink("one")
                recorder = try await player.recorder(plugging: "one")
                Self.expectContinuity(before, try await recorder.untilHeard(seconds: 1))
            }
            recorder.end()
        }
    }

    @Test func `16-bit audio at a low volume is quiet, not silent`() async throws {
        let audio = Sweep.wav(seconds: 150)
        try await SoundFleet.with(.pulseAudio, audio: audio) { player in
            let recorder = try await SoundRecorder.of("one", on: player.server)
            defer { recorder.end() }
            try await player.fleet.succeed("play", "One")
            let loud = try await recorder.untilHeard(seconds: 1).suffix(SoundRecorder.rate / 2).map(abs).max() ?? 0
            for volume in [1.0, 5, 10, 12, 15, 20] {
                try await player.ask { $0.setVolume.volume = volume }
                // The amplification is the cube of the volume.
                let expected = loud * Float(volume * volume * volume / 1e6)
                try await recorder.until("volume \(volume)") { samples in
                    let top = samples.suffix(SoundRecorder.rate / 10).map(abs).max() ?? 0
                    return top > expected * 0.8 && top < expected * 1.25
                }
            }
        }
    }
}
