import Foundation
import LockstepClient
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import LockstepCommands

@Suite struct SleepTests {
    @Test(arguments: [
        (["15"], SleepExpression.after(900)), (["15m"], .after(900)), (["1h30m"], .after(5_400)), (["90s"], .after(90)),
        (["1h"], .after(3_600)), (["0.5"], .after(30)), (["+10"], .later(600)), (["+1h"], .later(3_600)),
        (["episode"], .episodes(1)), (["3", "episodes"], .episodes(3)), (["1", "episode"], .episodes(1)),
        (["100", "episodes"], .episodes(100)),
        (["chapter"], .chapter), (["off"], .off), (["OFF"], .off), (["2 episodes"], .episodes(2)),
        (["30", "minutes"], .after(1_800)), (["30 min"], .after(1_800)), (["30", "m"], .after(1_800)),
        (["1", "hour", "5", "minutes"], .after(3_900)), (["90", "seconds"], .after(90)),
        (["12:30"], .at(hour: 12, minute: 30)), (["0:05"], .at(hour: 0, minute: 5)),
        (["+2:30"], .later(150)),
        (["1:00:00"], .after(3_600)), (["+10", "minutes"], .later(600)), (["1.5h"], .after(5_400)),
    ])
    func `a sleep time is parsed`(words: [String], expected: SleepExpression) {
        #expect(SleepExpression(words) == expected)
    }

    @Test(arguments: [
        [], ["0"], ["-5"], ["25h"], ["30m1h"], ["x"], ["1x"], ["m"], ["0", "episodes"], ["101", "episodes"],
        ["3", "chapters"],
        ["+"], ["nan"], ["1h2"], ["episode", "3"], ["99999999999999999"],
        ["1:75"], ["24:00"], ["7:5"], ["2h1h"], ["h"], ["3", "weeks"], ["0", "minutes"], ["24:00:01"],
        ["10", "30"].map { $0 + "x" },
    ])
    func `an invalid sleep time is refused`(words: [String]) {
        #expect(SleepExpression(words) == nil)
    }

    @Test(arguments: [(0, 0), (7, 5), (12, 30), (23, 59)])
    func `the wait until a time of day is less than a day`(hour: Int32, minute: Int32) throws {
        let now = Moment(monotonic: Self.now.monotonic, wall: Timestamp(milliseconds: 1_790_000_000_000))
        let seconds = SleepTimer.seconds(until: hour, minute, from: now.wall)
        #expect(seconds > 0 && seconds <= SleepLimits.seconds)
        let end = Timestamp(milliseconds: now.wall.milliseconds + Int64(seconds * 1_000))
        let suffix = ":\(minute < 10 ? "0" : "")\(minute)"
        #expect(LocalTime.calendar(end).hour == hour && LocalTime.calendar(end).minuteText.hasSuffix(suffix))
    }

    private static let now = Moment(
        monotonic: MonotonicTime(nanoseconds: 100_000_000_000), wall: Timestamp(milliseconds: 1_000_000))

    private static func player(_ sleep: WireSleepState?) -> WirePlaybackState {
        var player = WirePlaybackState()
        player.episode.id = "e1"
        player.chapters = [WireChapter()]
        if let sleep { player.sleep = sleep }
        return player
    }

    private static func timed(_ seconds: Double) -> WireSleepState {
        var sleep = WireSleepState()
        sleep.endsAt = now.monotonic.nanoseconds + UInt64(seconds * 1e9)
        sleep.endsAtWall = now.wall.milliseconds + Int64(seconds * 1_000)
        sleep.bootID = SystemClocks.bootID
        return sleep
    }

    private static func episodes(_ count: UInt32) -> WireSleepState {
        var sleep = WireSleepState()
        sleep.episodes = count
        return sleep
    }

    @Test func `the status shows the remaining time of the sleep timer`() {
        let player = Self.player(Self.timed(90.5))
        let json = PlayerState(player).json(at: Self.now)["sleep"]
        #expect(json?["remaining"] == .number(90.5))
        #expect(json?["episodes"] == .null)
        func sentence(_ player: WirePlaybackState) -> String {
            Sentence.sleep(PlayerSnapshot(PlayerState(player), at: Self.now))
        }
        #expect(sentence(player) == "sleep in 1:31")
        #expect(sentence(Self.player(Self.episodes(3))) == "sleep after 3 episodes")
        #expect(sentence(WirePlaybackState()) == "no sleep timer")
    }
}

@Suite struct ChapterTests {
    private static func player(_ starts: [Double], ends: [Double] = []) -> WirePlaybackState {
        var player = WirePlaybackState()
        player.status = .paused
        player.episode.id = "e1"
        player.duration = 100
        player.chapters = starts.enumerated().map { index, start in
            var chapter = WireChapter()
            chapter.start = start
            if ends.indices.contains(index) { chapter.end = ends[index] }
            chapter.title = "Part \(index + 1)"
            return chapter
        }
        return player
    }

    private static func state(_ starts: [Double], ends: [Double] = [], position: Double = 0) -> PlayerState {
        var player = player(starts, ends: ends)
        player.anchor.position = position
        return PlayerState(player)
    }

    @Test func `a chapter is specified by a word or its number`() throws {
        let targets: [(String, PlayerClient.SeekTarget)] = [
            ("next", .nextChapter), ("previous", .previousChapter), ("prev", .previousChapter), ("3", .chapter(3)),
        ]
        for (text, target) in targets { #expect(try ChapterCommand.target(text) == target) }
    }

    @Test(arguments: ["", "first", "-1", "1.5", "99999999"])
    func `an invalid chapter is refused`(text: String) {
        #expect(throws: Failure.self) { try ChapterCommand.target(text) }
    }

    @Test(arguments: [(0.0, 0), (5, 1), (9.5, 0), (10, 2), (19.96, 3), (100, 3)])
    func `a position is in one chapter or in none`(position: Double, number: Int) {
        let player = Self.state([1, 10, 20], ends: [9, 20, 0], position: position)
        #expect(player.chapter() == (number == 0 ? nil : number - 1))
    }

    @Test func `chapters end where the next one begins, the last with the episode`() {
        var player = Self.player([0, 10, 20], ends: [5, 0, 0])
        #expect(PlayerState(player).chapters.map(\.end) == [5, 20, 100])
        player.duration = 0
        #expect(PlayerState(player).chapters.last?.end == nil)
    }

    @Test func `the list of chapters marks the current one`() {
        #expect(
            ChapterCommand.lines(Self.state([0, 10], position: 12)) == [
                "\t\tstart\tlength\tchapter", "1\t\t0:00\t0:10\tPart 1", "2\t*\t0:10\t1:30\tPart 2",
            ])
        #expect(ChapterCommand.lines(Self.state([])) == ["This episode has no chapters."])
    }

    @Test func `the list of chapters rounds to the nearest second`() {
        #expect(
            ChapterCommand.lines(Self.state([0, 59.95, 80.02])) == [
                "\t\tstart\tlength\tchapter", "1\t*\t0:00\t1:00\tPart 1", "2\t\t1:00\t0:20\tPart 2",
                "3\t\t1:20\t0:20\tPart 3",
            ])
    }
}

@Suite struct BookmarkTests {
    private static func bookmark(_ id: String, _ episode: String, _ position: Double) throws -> Bookmark {
        try #require(
            Bookmark(
                .with { bookmark in
                    (bookmark.id, bookmark.episode, bookmark.position) = (id, episode, position)
                    bookmark.title = "Title"
                }))
    }

    @Test func `a bookmark is found by its ID or the beginning of one`() throws {
        let all = try [Self.bookmark("b1a", "e1", 1), Self.bookmark("b1b", "e1", 2), Self.bookmark("b2", "e1", 3)]
        #expect(try Bookmark.named("b2", among: all).position == 3)
        #expect(try Bookmark.named("b1a", among: all).position == 1)
        let cases: [(String, FailureCode)] = [("b1", .ambiguous), ("b3", .notFound), ("", .notFound)]
        for (id, code) in cases {
            #expect { try Bookmark.named(id, among: all) } throws: { ($0 as? Failure)?.known == code }
        }
    }

    @Test(arguments: [
        (WirePlaybackState.Status.playing, "e1", 3_600.0, true), (.paused, "e1", 3_600, true), (.failed, "e1", 0, true),
        (.loading, "e1", 60, true), (.playing, "e1", 20, false), (.finished, "e1", 3_600, false),
        (.idle, "", 0, false), (.playing, "e2", 3_600, false),
    ])
    func `a bookmark in the loaded episode is reached by a seek`(
        status: WirePlaybackState.Status, episode: String, duration: Double, isReached: Bool
    ) throws {
        var player = WirePlaybackState()
        player.status = status
        player.duration = duration
        if !episode.isEmpty { player.episode.id = episode }
        #expect(try Self.bookmark("b1", "e1", 60).isReached(from: PlayerState(player)) == isReached)
    }

    @Test func `a bookmark beyond the measured end of its episode can’t be played`() throws {
        var wire = WireEpisode()
        wire.id = "e1"
        wire.duration = 30
        let bookmark = try Self.bookmark("b1", "e1", 100_000)
        // An announced length may be wrong.
        try bookmark.checkPosition(in: Episode(wire))
        try bookmark.checkPosition(in: nil)
        wire.state.duration = 600
        let episode = try #require(Episode(wire))
        #expect {
            try bookmark.checkPosition(in: episode)
        } throws: { error in
            guard let failure = error as? Failure else { return false }
            return ExitStatus(failure) == .data && failure.message.contains("27:46:40")
                && failure.message.contains("10:00")
        }
    }

    @Test func `the list of bookmarks shows position, episode and note`() throws {
        #expect(
            try BookmarkList.lines([Self.bookmark("b1", "e1", 754)]) == [
                "episode\tat\tnote\tid", "Title\t12:34\t\tb1",
            ])
    }
}
