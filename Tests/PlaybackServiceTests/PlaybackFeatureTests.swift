import BusKit
import EngineDouble
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Tests settings, chapters, the sleep timer, marks and bookmarks.
struct PlaybackFeatureTests {
    private let rig = PlayerRig()

    @discardableResult
    private func set(
        _ key: SettingKey, _ value: String, podcast: String = ""
    ) throws -> Result<WirePlaybackReply, Failure>? {
        try rig.send {
            $0.setSetting.key = key.rawValue
            $0.setSetting.value = value
            $0.setSetting.podcast = podcast
        }
    }

    // MARK: Settings

    @Test func `a podcast’s own setting applies to its episodes, the general one to others, and both persist`()
        throws
    {
        try rig.start()
        try set(.speed, "1.5", podcast: "p1")
        try set(.speed, "1.2")
        try set(.gain, "3", podcast: "p1")
        #expect(rig.state.speed == 1.2)
        try rig.load(rig.episode())
        #expect(rig.state.speed == 1.5 && rig.state.sound.gain == 3)
        #expect(rig.engine.speed == 1.5)
        try rig.start()
        #expect(rig.machine.state.speed == 1.5)
        var other = rig.episode("e2")
        other.podcastID = "p2"
        try rig.load(other, as: "l2")
        #expect(rig.state.speed == 1.2 && rig.state.sound.gain == 0)
        let topics = rig.retained.keys.map(\.text).filter { $0.contains("settings") }.sorted()
        #expect(topics == ["stream/playback/settings/all", "stream/playback/settings/p1"])
    }

    @Test func `setting the speed changes the podcast’s own if it has one, and keeps the position`() throws {
        try rig.start()
        try set(.speed, "2", podcast: "p1")
        try rig.load(rig.episode(), at: 100)
        try rig.advance(1)
        try rig.send { $0.setSpeed.speed = 3 }
        #expect(rig.state.speed == 3 && abs(rig.position - 102) < 0.1)
        try set(.speed, "", podcast: "p1")
        #expect(rig.state.speed == 1 && rig.engine.speed == 1)
        #expect(!rig.retained.keys.contains(.settings(.playback, podcast: "p1")))
    }

    @Test(arguments: [
        ("speed", "9", ""), ("speed", "fast", ""), ("autoDownload", "3", ""), ("volume", "3", ""),
        ("autoPlay", "on", "p1"), ("gain", "3", "x1"), ("playedThreshold", "120%", ""),
    ])
    func `an invalid setting is refused with the valid values`(
        _ key: String, _ value: String, _ podcast: String
    ) throws {
        try rig.start()
        let failure = try rig.send {
            $0.setSetting.key = key
            $0.setSetting.value = value
            $0.setSetting.podcast = podcast
        }?.failure
        #expect(failure?.known == .invalidArgument)
    }

    @Test func `a speed that an earlier version stored still applies`() throws {
        var record = WirePlaybackSettingsRecord()
        record.speed = 1.7
        rig.store("settings", "current", record.wireBytes)
        try rig.start()
        #expect(rig.machine.state.speed == 1.7)
        try rig.load(rig.episode())
        try rig.start()
        #expect(rig.machine.state.speed == 1.7)
    }

    // MARK: Intro, outro, played

    @Test(arguments: [0.0, 50])
    func `the intro is skipped when an episode begins, not after a seek back`(position: Double) throws {
        try rig.start()
        try set(.skipIntro, "20", podcast: "p1")
        try rig.load(rig.episode(position: position))
        #expect(abs(rig.position - (position == 0 ? 20 : position)) < 0.1)
        try rig.seek(0)
        #expect(rig.position < 0.1)
        try rig.load(rig.episode("e2", length: 15, announced: 15), as: "l2")
        #expect(rig.position < 0.1)
    }

    @Test func `an unplayed episode as short as its skipped intro starts from the beginning without an alert`() throws {
        try rig.start()
        try set(.skipIntro, "20", podcast: "p1")
        try rig.load(rig.episode(length: 20.2, announced: 0))
        #expect(rig.position < 0.1 && rig.alerts.isEmpty)
    }

    @Test func `the outro ends an episode that is played to it, but not after a seek beyond it`() throws {
        try rig.start()
        try set(.skipOutro, "30")
        try rig.load(rig.episode(), at: 560)
        try rig.advance(9.9)
        #expect(rig.state.status == .playing)
        try rig.advance(0.2)
        #expect(rig.state.status == .finished)
        #expect(rig.stored().played && rig.stored().reason == "heard to its outro")
        try rig.load(rig.episode("e2"), as: "l2")
        try rig.seek(590)
        try rig.advance(5)
        #expect(rig.state.status == .playing)
    }

    @Test(arguments: [("90%", 540.0), ("30", 570)])
    func `an episode counts as played at its threshold, and keeps playing`(threshold: String, place: Double) throws {
        try rig.start()
        try set(.playedThreshold, threshold)
        try rig.load(rig.episode(), at: place - 5)
        try rig.advance(4.9)
        #expect(!rig.stored().played)
        try rig.advance(0.2)
        #expect(rig.stored().played && rig.state.status == .playing)
        #expect(rig.stored().reason.contains(threshold))
        #expect(rig.stored().position >= place - 0.1)
        try rig.send {
            $0.setPlayed.episode = "e1"
            $0.setPlayed.played = false
        }
        #expect(rig.stored().reason == "marked as unplayed by test" && !rig.stored().played)
    }

    // MARK: Chapters

    private func loadWithChapters(at position: Double = 0) throws {
        let episode = rig.episode()
        rig.library["e1"]?.chapters = [0.0, 100, 200].map { start in
            var chapter = WireChapter()
            chapter.start = start
            chapter.title = "Chapter at \(Int(start))"
            return chapter
        }
        try rig.load(episode, at: position)
    }

    @Test func `a change of the chapter is published: after playing, at any speed, and after a seek`() throws {
        try rig.start()
        try loadWithChapters(at: 95)
        #expect(rig.state.chapter == 1 && rig.state.chapters.count == 3)
        try rig.advance(4.9)
        let before = rig.states.count
        try rig.advance(0.2)
        #expect(rig.state.chapter == 2 && rig.states.count == before + 1)
        try rig.seek(200)
        #expect(rig.state.chapter == 3)
        try rig.send { $0.setSpeed.speed = 2 }
        try rig.seek(98)
        try rig.advance(1.1)
        #expect(rig.state.chapter == 2)
    }

    @Test func `later chapters from the library replace those of the file`() throws {
        try rig.start()
        let episode = rig.episode()
        rig.setFile(
            "e1",
            SimulatedEngine.Audio(
                length: 600, chapters: [ChapterMark(start: .zero, title: "Only one")]))
        try rig.load(episode)
        #expect(rig.state.chapters.map(\.title) == ["Only one"] && rig.state.chapter == 1)
        var chapter = WireChapter()
        chapter.start = 50
        chapter.title = "Late"
        rig.library["e1"]?.chapters = [chapter]
        try rig.send { $0.refreshEpisode.episode = "e1" }
        #expect(rig.state.chapters.map(\.title) == ["Late"] && rig.state.chapter == 0)
    }

    @Test func `a file’s chapters are shown before it is reopened, and are replaced with another file’s`() throws {
        try rig.start()
        let episode = rig.episode()
        let chapters = [
            ChapterMark(start: .zero, title: "First"), ChapterMark(start: .init(clamping: 90), title: "Last"),
        ]
        rig.setFile("e1", SimulatedEngine.Audio(length: 600, chapters: chapters))
        try rig.load(episode, at: 100)
        #expect(rig.state.chapters.map(\.title) == ["First", "Last"])
        try rig.stopProcess()
        rig.context.fleetRun = "run2"
        try rig.start()
        #expect(rig.engine.performed.isEmpty)
        #expect(rig.state.chapters.map(\.title) == ["First", "Last"] && rig.state.chapter == 2)
        try rig.load(rig.episode("e2"), as: "l2")
        #expect(rig.state.chapters.isEmpty)
        // The library also has the file’s chapters; the chapters of a changed file take precedence.
        rig.library["e1"]?.chapters = [WireChapter()]
        rig.library["e1"]?.chaptersOfFile = true
        rig.setFile("e1", SimulatedEngine.Audio(length: 600, chapters: [ChapterMark(start: .zero, title: "Other")]))
        try rig.load(episode, as: "l3")
        #expect(rig.state.chapters.map(\.title) == ["Other"])
        rig.setFile("e1", SimulatedEngine.Audio(length: 600))
        try rig.load(episode, as: "l4")
        #expect(rig.state.chapters.isEmpty && rig.records["chapters"]?["e1"] == nil)
    }

    @Test func `chapters of files are kept for the newest 64 episodes`() throws {
        try rig.start()
        for number in 1...70 {
            let episode = rig.episode("e\(number)")
            let chapters = [ChapterMark(start: .zero, title: "Chapter of \(number)")]
            rig.setFile("e\(number)", SimulatedEngine.Audio(length: 600, chapters: chapters))
            try rig.load(episode, as: "l\(number)")
            try rig.advance(0.1)
        }
        let kept = Set((rig.records["chapters"] ?? [:]).keys)
        #expect(kept == Set((7...70).map { "e\($0)" }))
    }

    // MARK: Sleep

    @Test func `the sleep timer fades out and pauses, and the chosen volume applies again afterwards`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try rig.send { $0.setSleep.seconds = 30 }
        #expect(rig.state.hasSleep)
        try rig.advance(19.9)
        #expect(rig.engine.volume == 100 && !rig.state.sleep.fading)
        try rig.advance(5)
        #expect(rig.state.sleep.fading && rig.state.volume == 100)
        #expect(rig.engine.volume > 40 && rig.engine.volume < 60)
        try rig.advance(5.2)
        #expect(rig.state.status == .paused && !rig.state.hasSleep)
        #expect(rig.state.pausedBy == .sleepTimer)
        #expect(abs(rig.stored().position - 130) < 0.3)
        #expect(rig.engine.volume == 100)
        try rig.setPaused(false)
        try rig.advance(40)
        #expect(rig.state.status == .playing)
        try rig.setPaused(true)
        #expect(rig.state.pausedBy == .somebody)
    }

    @Test func `the state shows that playback was stopped, also after a restart, until it resumes`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try rig.setPaused(true)
        #expect(rig.state.pausedBy == .somebody)
        for _ in 1...2 {
            try rig.send { $0.stop = WireStopPlayback() }
            #expect(rig.state.status == .paused && rig.state.pausedBy == .stop)
        }
        try rig.start()
        #expect(rig.machine.state.pausedBy == .stop)
        try rig.setPaused(false)
        try rig.advance(1)
        try rig.setPaused(true)
        #expect(rig.state.status == .paused && rig.state.pausedBy == .somebody)
    }

    @Test func `the sleep timer runs during a pause and a restart, and can be extended and turned off`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try rig.send { $0.setSleep.seconds = 60 }
        try rig.advance(20)
        try rig.start()
        #expect(rig.machine.state.hasSleep && rig.state.status == .playing)
        try rig.send { $0.setSleep.seconds = 100 }
        try rig.advance(95)
        #expect(rig.state.status == .playing && rig.engine.volume < 60)
        try rig.send { $0.setSleep.endOfChapter = false }
        #expect(!rig.state.hasSleep && rig.engine.volume == 100)
        try rig.advance(20)
        #expect(rig.state.status == .playing)
        try rig.send { $0.setSleep.seconds = 5 }
        try rig.setPaused(true)
        try rig.advance(6)
        #expect(!rig.state.hasSleep)
    }

    @Test(arguments: [1, 2])
    func `after a sleep timer’s last episode an automatic advance is loaded paused; a request plays`(count: UInt32)
        throws
    {
        try rig.start()
        try rig.send { $0.setSleep.episodes = count }
        var load = "l1"
        for number in 1...Int(count) {
            try rig.load(rig.episode("e\(number)", length: 4, announced: 4), as: load)
            #expect(rig.state.status == .playing && rig.state.sleep.episodes == count - UInt32(number) + 1)
            try rig.advance(5)
            #expect(rig.state.status == .finished)
            load = LoadID.advance(after: load).text
        }
        try rig.start()
        try rig.load(rig.episode("e9"), as: load)
        #expect(rig.state.status == .paused && rig.state.pausedBy == .sleepTimer)
        try rig.setPaused(false)
        #expect(rig.state.status == .playing)
    }

    @Test func `an episode that is requested after the sleep timer’s end plays`() throws {
        try rig.start()
        try rig.send { $0.setSleep.episodes = 1 }
        try rig.load(rig.episode(length: 4, announced: 4))
        try rig.advance(5)
        try rig.load(rig.episode("e2"), as: "l5")
        #expect(rig.state.status == .playing)
        try rig.load(rig.episode("e3"), as: LoadID.advance(after: "l5").text)
        #expect(rig.state.status == .playing)
    }

    @Test func `a sleep timer pauses at the end of the chapter, even after a seek to another chapter`()
        throws
    {
        try rig.start()
        try loadWithChapters(at: 50)
        try rig.send { $0.setSleep.endOfChapter = true }
        try rig.seek(150)
        #expect(rig.state.status == .playing)
        try rig.advance(49.9)
        #expect(rig.state.status == .playing)
        try rig.advance(0.3)
        #expect(rig.state.status == .paused && !rig.state.hasSleep)
        #expect(abs(rig.position - 200) < 0.1)
        try rig.setPaused(false)
        try rig.send { $0.setSleep.endOfChapter = true }
        try rig.seek(598)
        try rig.advance(3)
        #expect(rig.state.status == .finished)
        try rig.load(rig.episode("e2"), as: LoadID.advance(after: "l1").text)
        #expect(rig.state.status == .paused)
    }

    @Test(arguments: [0.0, -1, .infinity, 90_000])
    func `an invalid sleep timer is refused`(seconds: Double) throws {
        try rig.start()
        #expect(try rig.send { $0.setSleep.seconds = seconds }?.failure?.known == .invalidArgument)
        #expect(try rig.send { $0.setSleep.episodes = 0 }?.failure?.known == .invalidArgument)
        #expect(try rig.send { $0.setSleep.endOfChapter = true }?.failure?.known == .nothingLoaded)
        try rig.load(rig.episode())
        #expect(try rig.send { $0.setSleep.endOfChapter = true }?.failure?.known == .notFound)
    }

    // MARK: Resuming

    @Test(arguments: [(5.0, 0.0), (10, 0), (20, 1.19), (40, 2.38), (600, 6.99), (3_600, 10), (90_000, 10)])
    func `resuming rewinds more after a longer pause`(pause: Double, expected: Double) throws {
        #expect(abs(Rewind.seconds(pause: pause, limit: 10) - expected) < 0.1)
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try rig.setPaused(true)
        rig.rest(pause)
        try rig.setPaused(false)
        #expect(abs(rig.position - (100 - expected)) < 0.1)
        #expect(rig.state.status == .playing)
    }

    @Test func `resuming rewinds once, not after a seek, not beyond the start, and also after a restart`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try rig.setPaused(true)
        rig.rest(4_000)
        try rig.seek(200)
        try rig.setPaused(false)
        #expect(rig.position == 200)
        try rig.seek(3)
        try rig.setPaused(true)
        rig.rest(4_000)
        try rig.stopProcess()
        rig.context.fleetRun = "run2"
        try rig.start()
        try rig.setPaused(false)
        #expect(rig.position == 0)
        try rig.setPaused(true)
        try rig.setPaused(false)
        #expect(rig.position == 0)
    }

    @Test
    func `resuming doesn’t rewind if nothing was played: neither at each retry nor after a silent seek`()
        throws
    {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(.broken(Failure(.episodeUnavailable, "404")))
        try rig.load(episode, at: 100)
        for _ in 1...3 {
            try rig.advance(60)
            try rig.setPaused(false)
            #expect(rig.state.status == .failed && rig.position == 100)
        }
        rig.setStream(SimulatedEngine.Audio(length: 600))
        try rig.setPaused(false)
        try rig.advance(5)
        rig.engine.setStalled(true)
        try rig.seek(300)
        try rig.advance(2)
        try rig.setPaused(true)
        try rig.advance(60)
        try rig.setPaused(false)
        #expect(rig.position == 300)
        rig.engine.setStalled(false)
        try rig.advance(5)
        try rig.setPaused(true)
        rig.rest(4_000)
        try rig.setPaused(false)
        #expect(rig.position > 290 && rig.position < 300)
    }

    @Test(arguments: [true, false])
    func `auto-play resumes an episode that was playing when the fleet stopped`(wasPlaying: Bool) throws {
        try rig.start()
        try set(.autoPlay, "on")
        try rig.load(rig.episode(), at: 100)
        if !wasPlaying { try rig.setPaused(true) }
        try rig.stopProcess()
        rig.context = PlaybackContext(bootID: "boot2", fleetRun: "run2")
        rig.advanceClocks(by: 3_600)
        try rig.start()
        #expect((rig.state.status == .playing) == wasPlaying)
    }

    // MARK: Bookmarks

    @Test func `bookmarks keep their positions and notes, in order, and are published`() throws {
        try rig.start()
        #expect(try rig.send { $0.setBookmark.note = "x" }?.failure?.known == .nothingLoaded)
        try rig.load(rig.episode(), at: 100)
        let first = try rig.send { $0.setBookmark.note = "here" }?.reply?.bookmarks.bookmarks.first
        try rig.send { $0.setBookmark.position = 20 }
        #expect(abs((first?.position ?? 0) - 100) < 0.1)
        let id = try #require(first?.id)
        try rig.send {
            $0.setBookmark.id = id
            $0.setBookmark.note = "better"
        }
        try rig.start()
        let payload = try #require(rig.retained[.bookmarks(of: "e1")])
        let kept = try WireBookmarks(wireBytes: payload).bookmarks
        #expect(kept.map(\.note) == ["", "better"] && kept.map(\.title) == ["Episode e1", "Episode e1"])
        #expect(try rig.send { $0.bookmarks = WireBookmarksQuery() }?.reply?.bookmarks.bookmarks == kept)
        for bookmark in kept { try rig.send { $0.removeBookmark.id = bookmark.id } }
        #expect(rig.retained[.bookmarks(of: "e1")] == nil)
        #expect(try rig.send { $0.removeBookmark.id = id }?.failure?.known == .notFound)
    }

    @Test
    func `bookmarks of other episodes are looked up; invalid ones are refused, and unsaved ones rolled back`()
        throws
    {
        try rig.start()
        _ = rig.episode("e2", position: 33)
        rig.library["e2"]?.duration = 600
        let made = try rig.send { $0.setBookmark.episode = "e2" }?.reply?.bookmarks.bookmarks.first
        #expect(made?.position == 33)
        func refused(_ fill: (inout WireSetBookmark) -> Void) throws -> FailureCode? {
            try rig.send { fill(&$0.setBookmark) }?.failure?.known
        }
        #expect(try refused { $0.episode = "e7" } == .notFound)
        #expect(try refused { $0.episode = "7" } == .invalidArgument)
        #expect(try refused { ($0.episode, $0.position) = ("e2", 700) } == .notApplicable)
        #expect(try refused { ($0.episode, $0.position) = ("e2", -1) } == .invalidArgument)
        #expect(try refused { $0.note = String(repeating: "n", count: 2_001) } == .limitReached)
        #expect(try refused { $0.id = "b77" } == .notFound)
        rig.refusal = Failure(.diskFull, "full")
        #expect(try refused { $0.episode = "e2" } == .diskFull)
        let payload = try #require(rig.retained[.bookmarks(of: "e2")])
        #expect(try WireBookmarks(wireBytes: payload).bookmarks.count == 1)
    }
}
