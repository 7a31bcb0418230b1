import Foundation
import LockstepClient
import PodcastModel
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
    func `a time to sleep is read`(words: [String], expected: SleepExpression) {
        #expect(SleepExpression(words) == expected)
    }

    @Test(arguments: [
        [], ["0"], ["-5"], ["25h"], ["30m1h"], ["x"], ["1x"], ["m"], ["0", "episodes"], ["101", "episodes"],
        ["3", "chapters"],
        ["+"], ["nan"], ["1h2"], ["episode", "3"], ["99999999999999999"],
        ["1:75"], ["24:00"], ["7:5"], ["2h1h"], ["h"], ["3", "weeks"], ["0", "minutes"], ["24:00:01"],
        ["10", "30"].map { $0 + "x" },
    ])
    func `what is no time to sleep is refused`(words: [String]) {
        #expect(SleepExpression(words) == nil)
    }

    @Test(arguments: [(0, 0), (7, 5), (12, 30), (23, 59)])
    func `a time of the day is waited for until clocks show it`(hour: Int32, minute: Int32) throws {
        let now = Moment(monotonic: Self.now.monotonic, wall: Timestamp(milliseconds: 1_790_000_000_000))
        let request = try SleepTimer.request(
            .at(hour: hour, minute: minute), Self.player(nil), now: now, bootID: "b")
        let seconds = try #require(request?.seconds)
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

    private static func timed(_ seconds: Double, boot: String = "b") -> WireSleepState {
        var sleep = WireSleepState()
        sleep.endsAt = now.monotonic.nanoseconds + UInt64(seconds * 1e9)
        sleep.endsAtWall = now.wall.milliseconds + Int64(seconds * 1_000)
        sleep.bootID = boot
        return sleep
    }

    private static func episodes(_ count: UInt32) -> WireSleepState {
        var sleep = WireSleepState()
        sleep.episodes = count
        return sleep
    }

    @Test func `a timer is put off from what is left of it, on another boot too`() throws {
        for boot in ["b", "another"] {
            let request = try SleepTimer.request(
                .later(600), Self.player(Self.timed(300, boot: boot)), now: Self.now, bootID: "b")
            #expect(request?.seconds == 900)
        }
    }

    @Test func `a timer that does not end by time cannot be put off`() {
        for sleep in [nil, Self.episodes(2)] {
            #expect(throws: Failure.self) {
                try SleepTimer.request(.later(600), Self.player(sleep), now: Self.now, bootID: "b")
            }
        }
    }

    @Test func `what holds already is not asked for again`() throws {
        let cases: [(SleepExpression, WireSleepState?)] = [
            (.off, nil), (.episodes(2), Self.episodes(2)),
        ]
        for (expression, sleep) in cases {
            #expect(try SleepTimer.request(expression, Self.player(sleep), now: Self.now, bootID: "b") == nil)
        }
        #expect(try SleepTimer.request(.episodes(3), Self.player(Self.episodes(2)), now: Self.now, bootID: "b") != nil)
        #expect(try SleepTimer.request(.off, Self.player(Self.episodes(2)), now: Self.now, bootID: "b")?.until == nil)
    }

    @Test func `an episode without chapters has no chapter to wait for`() {
        #expect(throws: Failure.self) {
            try SleepTimer.request(.chapter, WirePlaybackState(), now: Self.now, bootID: "b")
        }
    }

    @Test func `the status says what is left`() {
        let player = Self.player(Self.timed(90.5))
        let json = player.statusJSON(at: Self.now, bootID: "b")["sleep"]
        #expect(json?["remaining"] == .number(90.5))
        #expect(json?["episodes"] == .null)
        #expect(Sentence.sleep(.init(player.sleep, at: Self.now, bootID: "b")) == "sleep in 1:31")
        #expect(Sentence.sleep(.init(Self.episodes(3), at: Self.now, bootID: "b")) == "sleep after 3 episodes")
        #expect(Sentence.sleep(nil) == "no sleep timer")
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

    @Test(arguments: [
        ("next", 0.0, 2), ("next", 10, 3), ("next", 9.99, 3), ("previous", 25, 3), ("previous", 21, 2), ("prev", 11, 1),
        ("previous", 2, 1), ("3", 0, 3),
    ])
    func `a chapter is found from a place`(text: String, position: Double, number: Int) throws {
        let target = try #require(ChapterTarget(text))
        #expect(try target.number(in: Self.player([0, 10, 20]), at: position) == number)
    }

    @Test(arguments: [
        ("next", 20.0, FailureCode.atEdge), ("previous", 0, .atEdge), ("4", 0, .notFound), ("0", 0, .notFound),
    ])
    func `beyond the edges there is none`(text: String, position: Double, code: FailureCode) throws {
        let target = try #require(ChapterTarget(text))
        #expect { try target.number(in: Self.player([0, 10, 20]), at: position) } throws: { error in
            (error as? Failure)?.known == code
        }
        #expect { try target.number(in: Self.player([]), at: position) } throws: { error in
            (error as? Failure)?.known == .notFound
        }
    }

    @Test(arguments: ["", "first", "-1", "1.5", "99999999"])
    func `what is no chapter is refused`(text: String) {
        #expect(ChapterTarget(text) == nil)
    }

    @Test(arguments: [(0.0, 0), (5, 1), (9.5, 0), (10, 2), (19.96, 3), (100, 3)])
    func `a place is in one chapter or in none`(position: Double, number: Int) {
        #expect(Self.player([1, 10, 20], ends: [9, 20, 0]).chapters.number(at: position) == number)
    }

    @Test func `chapters end where the next one begins, the last with the episode`() {
        let chapters = Self.player([0, 10, 20], ends: [5, 0, 0]).chapters
        #expect(chapters.indices.map { chapters.end(of: $0, duration: 100) } == [5, 20, 100])
        #expect(chapters.end(of: 2, duration: 0) == nil)
    }

    @Test func `chapters are listed with a mark at the one that plays`() {
        #expect(
            ChapterCommand.lines(Self.player([0, 10]), position: 12) == [
                "      start  length  chapter", "1      0:00    0:10  Part 1", "2  *   0:10    1:30  Part 2",
            ])
        #expect(ChapterCommand.lines(Self.player([]), position: 0) == ["This episode has no chapters."])
    }

    @Test func `chapters are listed to the nearest second`() {
        #expect(
            ChapterCommand.lines(Self.player([0, 59.95, 80.02]), position: 0) == [
                "      start  length  chapter", "1  *   0:00    1:00  Part 1", "2      1:00    0:20  Part 2",
                "3      1:20    0:20  Part 3",
            ])
    }

    @Test func `two hundred chapters are passed one by one in both directions`() throws {
        let player = Self.player((0..<200).map { Double($0) * 30 })
        var position = 0.0
        for number in 2...200 {
            #expect(try ChapterTarget.next.number(in: player, at: position) == number)
            position = player.chapters[number - 1].start
            #expect(player.chapters.number(at: position) == number)
        }
        for number in (1...199).reversed() {
            #expect(try ChapterTarget.previous.number(in: player, at: position) == number)
            position = player.chapters[number - 1].start
        }
    }
}

@Suite struct BookmarkTests {
    private static func bookmark(_ id: String, _ episode: String, _ position: Double) -> WireBookmark {
        var bookmark = WireBookmark()
        bookmark.id = id
        bookmark.episode = episode
        bookmark.position = position
        bookmark.title = "Title"
        return bookmark
    }

    @Test func `a bookmark is named by its id or the beginning of one`() throws {
        let all = [Self.bookmark("b1a", "e", 1), Self.bookmark("b1b", "e", 2), Self.bookmark("b2", "e", 3)]
        #expect(try WireBookmark.resolve("b2", in: all).position == 3)
        #expect(try WireBookmark.resolve("b1a", in: all).position == 1)
        let cases: [(String, FailureCode)] = [("b1", .ambiguous), ("b3", .notFound), ("", .notFound)]
        for (id, code) in cases {
            #expect { try WireBookmark.resolve(id, in: all) } throws: { ($0 as? Failure)?.known == code }
        }
    }

    @Test(arguments: [
        (WirePlaybackState.Status.playing, "e", 3_600.0, true), (.paused, "e", 3_600, true), (.failed, "e", 0, true),
        (.loading, "e", 60, true), (.playing, "e", 20, false), (.finished, "e", 3_600, false),
        (.idle, "", 0, false), (.playing, "e2", 3_600, false),
    ])
    func `a place is sought where it is loaded, and else loaded`(
        status: WirePlaybackState.Status, episode: String, duration: Double, isReached: Bool
    ) {
        var player = WirePlaybackState()
        player.status = status
        player.duration = duration
        if !episode.isEmpty { player.episode.id = episode }
        #expect(Self.bookmark("b1", "e", 60).isReached(from: player) == isReached)
    }

    @Test func `bookmarks are listed`() {
        #expect(
            BookmarkList.lines([Self.bookmark("b1", "e", 754)]) == [
                "   at  episode  note  id", "12:34  Title          b1",
            ])
    }
}
