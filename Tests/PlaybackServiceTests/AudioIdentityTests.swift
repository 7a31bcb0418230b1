import PodcastModel
import Testing

@testable import PlaybackService

/// Tests the comparison of the open audio with the audio that was begun.
struct AudioIdentityTests {
    private static let begun = AudioTag(etag: "1", size: 0)
    private var audio = AudioIdentity(announced: 600)

    private func length(
        _ seconds: Double, _ source: MeasuredDuration.Source = .declared
    ) throws -> MeasuredDuration {
        MeasuredDuration(try #require(EpisodeDuration(seconds: seconds)), source)
    }

    private mutating func replacement(
        _ measured: MeasuredDuration, playedFrom: Double = 0, isHeard: Bool = false
    ) -> Failure? {
        audio.replacement(
            measured, playedFrom: PlaybackPosition(clamping: playedFrom), isHeard: isHeard, title: "x")
    }

    private mutating func start(at position: Double) -> Double? {
        audio.start(insteadOf: PlaybackPosition(clamping: position))?.seconds
    }

    @Test mutating func `audio of less than half its recorded length isn’t the episode, unless accepted`()
        throws
    {
        audio.recorded = EpisodeDuration(seconds: 1_000)
        #expect(replacement(try length(400)) != nil && audio.isReplaced)
        audio.opens(isStream: true)
        #expect(!audio.isReplaced)
        audio.acceptsReplacement = true
        #expect(replacement(try length(400)) == nil && !audio.isReplaced)
    }

    @Test mutating func `audio of the announced length is the episode`() throws {
        audio.recorded = EpisodeDuration(seconds: 2_000)
        #expect(replacement(try length(610)) == nil)
    }

    @Test mutating func `the played position counts against a declared length, unless the tag is the same`() throws {
        #expect(replacement(try length(100, .estimated), playedFrom: 300) == nil)
        #expect(replacement(try length(100), playedFrom: 300) != nil)
        audio.identify(Self.begun, begun: Self.begun)
        #expect(replacement(try length(100), playedFrom: 300) == nil)
    }

    @Test
    mutating func `a position beyond the end isn’t retried if it wasn’t heard and nothing indicates longer audio`()
        throws
    {
        // The feed announces 600 s.
        #expect(replacement(try length(100), playedFrom: 300)?.retry == true)
        #expect(replacement(try length(100), playedFrom: 900)?.retry == false)
        #expect(replacement(try length(100), playedFrom: 900, isHeard: true)?.retry == true)
        audio.recorded = EpisodeDuration(seconds: 800)
        #expect(replacement(try length(100), playedFrom: 900)?.retry == true)
        audio.recorded = EpisodeDuration(seconds: 100)
        #expect(replacement(try length(100), playedFrom: 900)?.retry == false)
    }

    @Test
    mutating func `a start in the last second plays that second, or the whole episode if that is its stored position`()
        throws
    {
        audio.measured = try length(600)
        #expect(start(at: 598) == nil)
        #expect(start(at: 599.5) == 599)
        audio.begin(nil, atStoredPosition: true)
        #expect(start(at: 599.5) == 0)
        #expect(start(at: 599.5) == 599)
    }

    @Test mutating func `a position beyond the end of other audio is replaced by half a minute before the end`() throws
    {
        audio.measured = try length(600)
        audio.identify(AudioTag(etag: "2", size: 0), begun: Self.begun)
        #expect(start(at: 700) == 570)
        audio.acceptsReplacement = true
        #expect(start(at: 700) == 0)
    }

    @Test mutating func `if nothing plays beyond the declared end, playback continues before it, once`() throws {
        audio.measured = try length(600)
        #expect(start(at: 700) == nil)
        let end = ReportedEnd(position: PlaybackPosition(clamping: 700), measured: try length(600))
        let playedFrom = PlaybackPosition(clamping: 700)
        #expect(audio.resumption(afterEnd: end, playedFrom: playedFrom)?.seconds == 570)
        #expect(audio.resumption(afterEnd: end, playedFrom: playedFrom) == nil)
    }

    @Test mutating func `a replacement’s tag doesn’t replace the tag of the audio that was begun`() {
        audio.identify(AudioTag(etag: "2", size: 0), begun: Self.begun)
        #expect(audio.newTag(insteadOf: "etag:2") == nil && !audio.saved())
        #expect(audio.newTag(insteadOf: Self.begun.text) == "etag:2")
        #expect(audio.saved() && !audio.saved())
        audio.acceptsReplacement = true
        #expect(audio.newTag(insteadOf: Self.begun.text) == nil && audio.newTag(insteadOf: "") == "etag:2")
    }
}
