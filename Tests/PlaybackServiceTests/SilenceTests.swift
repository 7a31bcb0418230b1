import PodcastModel
import Testing

@testable import PlaybackService

struct SilenceDetectorTests {
    /// The levels of a file whose passages have these lengths in seconds.
    private func detector(_ passages: [(seconds: Double, decibels: Double)], from start: Double = 0) -> SilenceDetector
    {
        var detector = SilenceDetector()
        var index = 0
        for passage in passages {
            for _ in 0..<Int((passage.seconds * 40).rounded()) {
                detector.add(AudioLevel(start: start + Double(index) / 40, decibels: passage.decibels))
                index += 1
            }
        }
        return detector
    }

    @Test func `silence is trimmed between its edges, which stay as they are`() {
        var detector = detector([(1, -20), (1, -60), (1, -20)])
        #expect(abs((detector.nextChange(after: 0.5) ?? 0) - 1.1) < 0.001)
        #expect(abs((detector.nextChange(after: 1.2) ?? 0) - 1.65) < 0.001)
        #expect(detector.nextChange(after: 1.8) == nil)
        let trimmed = [1.05, 1.15, 1.6, 1.7].map { detector.isTrimmed(at: $0) }
        #expect(trimmed == [false, true, true, false])
    }

    @Test func `an earlier decision is kept if the output’s position proves to be earlier`() {
        var detector = detector([(1, -20), (1, -60), (1, -20)])
        let trimmed = [1.5, 1.7, 1.6].map { detector.isTrimmed(at: $0) }
        #expect(trimmed == [true, false, false])
        #expect(detector.nextChange(after: 1.2) == nil)
    }

    @Test(arguments: [(-50.0, true), (-44, false)])
    func `the noise of a room is silence, a whisper is not`(decibels: Double, isSilence: Bool) {
        #expect((detector([(1, -20), (1, decibels), (1, -20)]).nextChange(after: 0) != nil) == isSilence)
    }

    @Test(arguments: [0.1, 0.3, 0.6])
    func `pauses that are too short are not trimmed`(seconds: Double) {
        #expect(detector([(1, -20), (seconds, -60), (1, -20)]).nextChange(after: 0) == nil)
    }

    @Test func `only the certain part of a silence without a known end is trimmed`() {
        var detector = detector([(1, -20), (2, -.infinity)])
        let trimmed = [2.6, 2.7].map { detector.isTrimmed(at: $0) }
        #expect(trimmed == [true, false])
    }

    @Test func `after a seek earlier levels are discarded`() {
        var detector = detector([(1, -20), (2, -60)])
        detector.add(AudioLevel(start: 60, decibels: -60))
        #expect(detector.nextChange(after: 0) == nil)
    }

    @Test func `silences before the played position are eventually removed`() {
        let detector = detector([(1, -20), (1, -60), (40, -20), (1, -60)])
        #expect((detector.nextChange(after: 0) ?? 0) > 42)
    }
}

struct LevelParserTests {
    @Test(arguments: [1, 7, 1_000])
    func `levels are read from lines in pieces of any size`(size: Int) {
        let text = """
            frame:0    pts:3600000000 pts_time:3600
            lavfi.astats.Overall.RMS_level=-16.956079
            frame:1    pts:3600025000 pts_time:3600.03
            lavfi.astats.Overall.RMS_level=-inf

            """
        var parser = LevelParser()
        let bytes = Array(text.utf8)
        let items = stride(from: 0, to: bytes.count, by: size).flatMap { start in
            parser.parse(bytes[start..<min(start + size, bytes.count)])
        }
        #expect(
            items == [
                .beginning, .level(AudioLevel(start: 3_600, decibels: -16.956079)),
                .level(AudioLevel(start: 3_600.025, decibels: -.infinity)),
            ])
    }

    @Test(arguments: [
        "", "frame:1 pts:NOPTS pts_time:NOPTS\nlavfi.astats.Overall.RMS_level=-1\n",
        "lavfi.astats.Overall.RMS_level=-1\n", "frame:1 pts:5\nlavfi.astats.Overall.RMS_level=x\n",
        String(repeating: "x", count: 10_000) + "\n", "frame:1 pts:5\n\u{0}\n",
    ])
    func `lines without a valid level are ignored`(text: String) {
        var parser = LevelParser()
        #expect(parser.parse(text.utf8).isEmpty)
    }
}

struct SpeedTimelineTests {
    private let fast = PlaybackSpeed(factor: 2.5) ?? .normal

    @Test func `the position advances at the old speed until a change is audible`() {
        var timeline = SpeedTimeline(.normal)
        timeline.change(to: fast, at: 100, shown: 10, delay: 0.3)
        for elapsed in [0.0, 0.1, 0.2] {
            let heard = timeline.heard(shown: 10.3 - 2.5 * (0.3 - elapsed))
            #expect(abs(heard.position - 10 - elapsed) < 1e-9)
            #expect(heard.speed == .normal)
            #expect(abs((heard.changesIn ?? 0) - 0.3 + elapsed) < 1e-9)
        }
        let heard = timeline.heard(shown: 10.55)
        #expect(heard.position == 10.55 && heard.speed == fast && heard.changesIn == nil)
    }

    @Test func `several changes may be buffered at once`() {
        var timeline = SpeedTimeline(.normal)
        timeline.change(to: fast, at: 100, shown: 10, delay: 0.3)
        // After 0.1 s the output has 0.2 s at the old speed and 0.1 s at the new one, and reports 10.55 s minus 0.3 s.
        timeline.change(to: .normal, at: 100.1, shown: 10.55 - 0.3 * 2.5, delay: 0.3)
        let heard = timeline.heard(shown: 10.25)
        #expect(abs(heard.position - 10.1) < 1e-9)
        #expect(heard.speed == .normal)
        let later = timeline.heard(shown: 10.5)
        #expect(abs(later.position - 10.425) < 1e-9)
        #expect(later.speed == fast)
        #expect(abs((later.changesIn ?? 0) - 0.05) < 1e-9)
    }

    @Test func `sound at the old speed that arrives late delays the change without a jump`() {
        var timeline = SpeedTimeline(fast)
        timeline.change(to: .normal, at: 100, shown: 10, delay: 0.3)
        // 0.05 s later another 0.04 s at the old speed have arrived.
        let shown = 10.75 - 0.3 + 0.05 + 1.5 * 0.04
        _ = timeline.update(shown: shown, at: 100.05)
        let heard = timeline.heard(shown: shown)
        #expect(abs(heard.position - 10.125) < 1e-9)
        #expect(abs((heard.changesIn ?? 0) - 0.29) < 1e-9)
    }

    @Test func `audible changes are dropped, and reported once`() {
        var timeline = SpeedTimeline(.normal)
        timeline.change(to: fast, at: 100, shown: 10, delay: 0)
        let told = [9.9, 10, 10.1].map { timeline.update(shown: $0, at: 101) }
        #expect(told == [false, true, false])
        // Playback doesn’t return to the old speed.
        #expect(timeline.heard(shown: 9.99).speed == fast)
    }

    @Test func `changes far ahead of the played position are from before a seek, and are ignored`() {
        var timeline = SpeedTimeline(.normal)
        timeline.change(to: fast, at: 100, shown: 100, delay: 0)
        #expect(timeline.heard(shown: 20).position == 20)
        let isTold = timeline.update(shown: 20, at: 101)
        #expect(isTold)
        #expect(timeline.heard(shown: 99.9).position == 99.9)
    }
}
