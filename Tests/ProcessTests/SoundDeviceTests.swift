import BusKit
import Foundation
import PodcastModel
import TestSupport
import Testing
import WireMessages

/// Sound devices that come and go, with real sound servers; what is heard is what their sinks’ monitors record.
@Suite(.serialized, .timeLimit(.minutes(5)), .enabled(if: SoundServer.isAvailable, SoundServer.isMissing))
struct SoundDeviceTests {
    /// The last place that is heard in a recording, but for the window in which the sound ends.
    private func last(_ samples: [Float]) throws -> Double {
        try #require(Sweep.windows(samples).compactMap(\.position).dropLast().last)
    }

    /// The first place that is heard in a recording, but for the window in which the sound begins; nil: it began before
    /// the recording did.
    private func first(_ samples: [Float]) throws -> Double? {
        let windows = Sweep.windows(samples)
        guard windows.first?.position == nil else { return nil }
        return windows.compactMap(\.position).dropFirst().first
    }

    /// Nothing between the two places was left out, and little is heard twice.
    private func expectContinuity(_ before: Double, _ after: Double?) {
        guard let after else { return }
        #expect(after <= before + 0.15, "\(after - before) s went unheard")
        #expect(after >= before - 2, "it went back from \(before) to \(after)")
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `after a restart of the sound server it sounds again by itself`(_ kind: SoundServer.Kind) async throws {
        try await SoundFleet.with(kind) { player in
            var recorder = try await SoundRecorder.of("one", on: player.server)
            try await player.fleet.succeed("play", "One")
            try await recorder.untilHeard(seconds: 1)
            player.server.kill()
            try await player.untilLost()
            recorder.end()
            let before = try last(recorder.heard)
            try player.server.start()
            recorder = try await SoundRecorder.of("one", on: player.server)
            defer { recorder.end() }
            expectContinuity(before, try first(try await recorder.untilHeard(seconds: 1)))
            try await player.untilNoAlert()
            #expect(player.player.status == .playing && !player.player.nullOutput)
        }
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `a sound server that starts after playing has begun is heard`(_ kind: SoundServer.Kind) async throws {
        try await SoundFleet.with(kind, sinks: nil) { player in
            try await player.fleet.succeed("play", "One")
            try await player.until("it plays silently") { $0.nullOutput && $0.status == .playing }
            try player.server.start()
            let recorder = try await SoundRecorder.of("one", on: player.server)
            defer { recorder.end() }
            try await recorder.untilHeard(seconds: 1)
            try await player.untilNoAlert()
        }
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `pausing while the device is gone holds when it has returned`(_ kind: SoundServer.Kind) async throws {
        try await SoundFleet.with(kind) { player in
            var recorder = try await SoundRecorder.of("one", on: player.server)
            try await player.fleet.succeed("play", "One")
            try await recorder.untilHeard()
            player.server.kill()
            try await player.untilLost()
            recorder.end()
            try await player.fleet.succeed("pause")
            try await player.setPaused(true)
            #expect(player.player.pausedBy == .somebody)
            try player.server.start()
            recorder = try await SoundRecorder.of("one", on: player.server)
            defer { recorder.end() }
            #expect(try await recorder.more(seconds: 5).allSatisfy { $0 == 0 })
            // By hand it sounds at once.
            try await player.setPaused(false)
            try await recorder.untilHeard()
            try await player.untilNoAlert()
        }
    }

    @Test func `nothing that is played without a device is taken for a loss`() async throws {
        try await SoundFleet.with(.pulseAudio, sinks: nil) { player in
            try await player.fleet.succeed("play", "One")
            for title in ["One", "Two", "One", "Two"] {
                try await player.until("it plays silently") { $0.nullOutput && $0.status == .playing }
                try await player.ask { $0.stop = WireStopPlayback() }
                try await player.setPaused(false)
                try await player.until("it plays silently") { $0.nullOutput && $0.status == .playing }
                try await player.fleet.succeed("play", title)
                try await player.untilPlaying(title)
            }
            #expect(!player.states.contains { $0.pausedBy == .soundDevice })
            #expect(player.alertsTold.allSatisfy { $0.contains("without sound") }, "\(player.alertsTold)")
        }
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `a chosen device that leaves pauses, and plays on when it returns`(_ kind: SoundServer.Kind) async throws {
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
            let before = try last(headset.heard)
            try player.server.addSink("headset")
            headset = try await SoundRecorder.of("headset", on: player.server)
            defer { headset.end() }
            expectContinuity(before, try first(try await headset.untilHeard(seconds: 1)))
            try await player.untilNoAlert()
            // The others hear no more of it than the moment that it takes to notice.
            let stray = Sweep.windows(speakers.heard[start...]).count { $0.position != nil }
            #expect(Double(stray) * Sweep.window < 0.5, "\(stray) windows were heard on the other device")
            #expect(player.player.output == kind.device("headset"))
        }
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `the last device that leaves pauses, though the server has a dummy`(_ kind: SoundServer.Kind) async throws {
        try await SoundFleet.with(kind) { player in
            var recorder = try await SoundRecorder.of("one", on: player.server)
            try await player.fleet.succeed("play", "One")
            try await recorder.untilHeard(seconds: 1)
            try player.server.removeSink("one")
            try await player.untilLost()
            recorder.end()
            let before = try last(recorder.heard)
            try player.server.addSink("one")
            recorder = try await SoundRecorder.of("one", on: player.server)
            defer { recorder.end() }
            expectContinuity(before, try first(try await recorder.untilHeard(seconds: 1)))
            try await player.untilNoAlert()
        }
    }

    @Test(arguments: SoundServer.Kind.allCases)
    func `a device that is plugged in while it plays can be chosen at once`(_ kind: SoundServer.Kind) async throws {
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
    func `a chosen device that is absent at the start gives way to the default, and says so`(
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
                try await player.observer.until("it is said that another device is used") { view in
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

    @Test func `a device that flaps loses nothing of what is played`() async throws {
        try await SoundFleet.with(.pulseAudio, sinks: ["one"]) { player in
            var places: [Double] = []
            var recorder = try await SoundRecorder.of("one", on: player.server)
            try await player.fleet.succeed("play", "One")
            for _ in 1...4 {
                let heard = try await recorder.untilHeard(seconds: 0.3)
                if let before = places.last { expectContinuity(before, try first(heard)) }
                try player.server.removeSink("one")
                try await player.untilLost()
                recorder.end()
                places.append(try last(recorder.heard))
                // It comes and goes before it can be used.
                try player.server.addSink("one")
                try player.server.removeSink("one")
                try player.server.addSink("one")
                recorder = try await SoundRecorder.of("one", on: player.server)
            }
            expectContinuity(places.last ?? 0, try first(try await recorder.untilHeard(seconds: 0.5)))
            recorder.end()
        }
    }

    @Test func `quiet volumes of 16-bit audio are quiet, not silent`() async throws {
        let audio = Sweep.wav(seconds: 150)
        try await SoundFleet.with(.pulseAudio, audio: audio) { player in
            let recorder = try await SoundRecorder.of("one", on: player.server)
            defer { recorder.end() }
            try await player.fleet.succeed("play", "One")
            let loud = try await recorder.untilHeard(seconds: 1).suffix(SoundRecorder.rate / 2).map(abs).max() ?? 0
            for volume in [1.0, 5, 10, 12, 15, 20] {
                try await player.ask { $0.setVolume.volume = volume }
                // The factor of a volume is its cube.
                let expected = loud * Float(volume * volume * volume / 1e6)
                try await recorder.until("volume \(volume)") { samples in
                    let top = samples.suffix(SoundRecorder.rate / 10).map(abs).max() ?? 0
                    return top > expected * 0.8 && top < expected * 1.25
                }
            }
        }
    }
}
