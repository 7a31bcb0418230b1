import BusKit
import EngineDouble
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Regression tests, one for each fault.
struct PlaybackRegressionTests {
    private let rig = PlayerRig()

    private func set(_ key: SettingKey, _ value: String) throws {
        try rig.send {
            $0.setSetting.key = key.rawValue
            $0.setSetting.value = value
        }
    }

    private func chapter(at start: Double) -> WireChapter {
        var chapter = WireChapter()
        chapter.start = start
        chapter.title = "At \(start)"
        return chapter
    }

    // MARK: Sessions

    @Test func `a paused session whose downloaded file is missing is restored with the stream, at its position`() throws
    {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 600))
        rig.download("e1", SimulatedEngine.Audio(length: 600))
        try rig.load(episode, at: 100)
        try rig.setPaused(true)
        try rig.stopProcess()
        rig.context.fleetRun = "run2"
        rig.files[.file(path: "/downloads/e1.mp3")] = nil
        try rig.start()
        #expect(rig.session?.localPath == "" && rig.machine.state.episode.id == "e1")
        #expect(!rig.alerts.contains { $0.code == "episodeGone" })
        try rig.setPaused(false)
        #expect(rig.engine.source == .web(url: "https://a/e1.mp3"))
        #expect(rig.state.status == .playing && abs(rig.position - 100) < 0.3)
    }

    @Test func `an announced length is not mistaken for a measured one after a restart`() throws {
        try rig.start()
        try set(.skipOutro, "30")
        let episode = rig.episode(announced: 200)
        var audio = SimulatedEngine.Audio(length: 600)
        audio.opens = false
        rig.setFile("e1", audio)
        try rig.load(episode, at: 160)
        try rig.start()
        #expect(rig.machine.state.duration == 200)
        #expect(rig.machine.session?.knownDuration == nil)
    }

    @Test(arguments: ["skip", "restart"])
    func `the answer to an alert is saved together with its outcome`(action: String) throws {
        try rig.start()
        if action == "skip" {
            rig.setFile("e1", .broken(Failure(.decoderFailed, "broken")))
            var episode = rig.episode()
            episode.enclosureURL = "file:///audio/none.mp3"
            try rig.load(episode, at: 100)
        } else {
            try rig.load(rig.episode(), at: 100)
            try rig.setPaused(true)
            try rig.stopProcess()
            rig.advanceClocks(by: 2 * 86_400)
            rig.context.fleetRun = "run2"
            try rig.start()
        }
        let alert = try #require(rig.alerts.first)
        // The answer is saved and sent; then the process is killed before it is notified.
        rig.holdsCommits = true
        try rig.answer(alert.id, action)
        rig.killsAtOutcome = true
        #expect(throws: PlayerRig.Killed.self) { try rig.releaseCommits() }
        rig.killsAtOutcome = false
        try rig.start()
        if action == "skip" {
            #expect(rig.machine.state.skip)
        } else {
            #expect(rig.session?.position == 0 && rig.state.status == .playing)
        }
    }

    // MARK: Settings and marks

    @Test func `a speed that an earlier version stored isn’t restored after it was unset`() throws {
        var record = WirePlaybackSettingsRecord()
        record.speed = 1.7
        rig.store("settings", "current", record.wireBytes)
        try rig.start()
        try set(.speed, "")
        #expect(rig.state.speed == 1)
        try rig.start()
        #expect(rig.machine.state.speed == 1)
    }

    @Test func `an episode marked as not played beyond its threshold keeps the mark until it is loaded again`() throws {
        try rig.start()
        try set(.playedThreshold, "50%")
        try rig.load(rig.episode(), at: 310)
        try rig.advance(1)
        #expect(rig.stored().played)
        let reply = try rig.send {
            $0.setPlayed.episode = "e1"
            $0.setPlayed.played = false
        }
        #expect(reply?.reply?.episodeState.played == false)
        try rig.advance(15)
        #expect(!rig.stored().played && rig.stored().reason == "marked as unplayed by test")
        try rig.start()
        try rig.advance(15)
        #expect(!rig.stored().played)
        try rig.load(rig.episode("e2"), as: "l2")
        try rig.load(rig.episode(), as: "l3", at: 310)
        try rig.advance(1)
        #expect(rig.stored().played)
    }

    private func prepare(_ episode: WireEpisodeSummary, as load: String) throws {
        try rig.send {
            $0.prepare.afterLoad = "l1"
            $0.prepare.load.episode = episode
            $0.prepare.load.loadID = load
        }
    }

    private func loadPrepared(_ episode: WireEpisodeSummary, as load: String) throws {
        try rig.send {
            $0.load.episode = episode
            $0.load.loadID = load
        }
    }

    @Test func `an episode marked after it was prepared stays marked when it plays`() throws {
        try rig.start()
        let next = rig.episode("e2")
        try rig.load(rig.episode("e1", length: 30, announced: 30))
        try prepare(next, as: "l2")
        try rig.send {
            $0.setPlayed.episode = "e2"
            $0.setPlayed.played = true
        }
        #expect(rig.stored("e2").played)
        try loadPrepared(next, as: "l2")
        try rig.advance(12)
        #expect(rig.state.status == .playing && rig.stored("e2").played)
    }

    @Test func `an episode that is played again starts at its beginning and stays marked as played`() throws {
        try rig.start()
        let episode = rig.episode("e1", length: 30, announced: 30, position: 10)
        try rig.load(episode)
        try prepare(episode, as: "l2")
        try rig.advance(25)
        #expect(rig.state.status == .finished && rig.stored().played)
        try loadPrepared(episode, as: "l2")
        try rig.advance(1)
        #expect(rig.state.status == .playing && rig.position < 2)
        try rig.setPaused(true)
        #expect(rig.stored().played)
    }

    // MARK: Sleep

    @Test func `a sleep timer that expired while the service wasn’t running pauses playback when the process starts`()
        throws
    {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try rig.send { $0.setSleep.seconds = 20 }
        try rig.advance(15)
        rig.advanceClocks(by: 10)
        try rig.start()
        try rig.advance(1)
        #expect(rig.state.status == .paused && !rig.state.hasSleep)
        #expect(rig.records["sleep"]?["current"] == nil)
    }

    @Test
    func `a finished sleep timer doesn’t pause a later load`()
        throws
    {
        try rig.start()
        try rig.send { $0.setSleep.episodes = 1 }
        try rig.load(rig.episode("e1", length: 4, announced: 4))
        try rig.advance(5)
        #expect(rig.state.status == .finished)
        try rig.send { $0.unload = WireUnload() }
        try rig.load(rig.episode("e2", length: 4, announced: 4), as: "l2")
        try rig.advance(5)
        #expect(rig.state.status == .finished)
        try rig.load(rig.episode("e3"), as: LoadID.advance(after: "l2").text)
        #expect(rig.state.status == .playing)
    }

    @Test func `a renamed queue has its new name in the player’s state, also after a restart`() throws {
        try rig.start()
        let episode = rig.episode()
        try rig.send {
            ($0.load.episode, $0.load.loadID, $0.load.queueEntry) = (episode, "l1", "q1")
            $0.load.queue = "evening"
        }
        try rig.send { ($0.queueRenamed.queue, $0.queueRenamed.name) = ("other", "night") }
        #expect(rig.state.queue == "evening")
        try rig.send { ($0.queueRenamed.queue, $0.queueRenamed.name) = ("evening", "night") }
        #expect(rig.state.queue == "night" && rig.session?.queue == "night")
    }

    // MARK: Chapters

    @Test func `chapters can be removed while the sleep timer waits for the end of one`() throws {
        try rig.start()
        let episode = rig.episode()
        rig.library["e1"]?.chapters = [chapter(at: 0), chapter(at: 50)]
        try rig.load(episode, at: 60)
        try rig.send { $0.setSleep.endOfChapter = true }
        rig.library["e1"]?.chapters = []
        try rig.send { $0.refreshEpisode.episode = "e1" }
        #expect(rig.state.chapters.isEmpty && rig.state.chapter == 0)
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity, -1, 1e300])
    func `chapters at invalid positions are dropped, and the others sorted`(_ start: Double) throws {
        try rig.start()
        let episode = rig.episode()
        rig.library["e1"]?.chapters = [chapter(at: 90), chapter(at: start), chapter(at: 0)]
        try rig.load(episode, at: 10)
        try rig.advance(1)
        #expect(rig.state.chapters.map(\.start) == [0, 90] && rig.state.chapter == 1)
    }

    @Test func `a thousand chapters fit in one message`() throws {
        try rig.start()
        let episode = rig.episode("e1", length: 10_000, announced: 10_000)
        let title = String(repeating: "e" + String(repeating: "\u{301}", count: 3), count: 200)
        rig.library["e1"]?.chapters = (0..<1_000).map { number in
            var chapter = chapter(at: Double(number))
            chapter.title = "\(number) \(title)"
            chapter.url = "https://a/" + String(repeating: "u", count: 2_000)
            return chapter
        }
        try rig.load(episode)
        #expect(rig.state.chapters.count == 1_000 && rig.state.chapters[0].title.hasPrefix("0 "))
        #expect(rig.state.wireBytes.count < 160_000)
    }

    // MARK: Bookmarks

    @Test func `a bookmark and a change to it are both rolled back if neither can be saved`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        rig.holdsCommits = true
        try rig.send { $0.setBookmark.note = "first" }
        let id = try #require(rig.machine.bookmarks.bookmarks.values.keys.first)
        try rig.send {
            $0.setBookmark.id = id
            $0.setBookmark.note = "second"
        }
        rig.refusal = Failure(.diskFull, "full")
        try rig.releaseCommits()
        #expect(rig.machine.bookmarks.bookmarks.values.isEmpty)
        #expect(rig.retained[.bookmarks(of: "e1")] == nil)
    }

    @Test func `a list of more bookmarks than fit into one reply is refused`() throws {
        try rig.start()
        for number in 1...3 {
            try rig.load(rig.episode("e\(number)"), as: "l\(number)", at: 100)
            for _ in 0..<160 { try rig.send { $0.setBookmark.note = String(repeating: "n", count: 2_000) } }
        }
        #expect(try rig.send { $0.bookmarks = WireBookmarksQuery() }?.failure?.known == .limitReached)
        #expect(try rig.send { $0.bookmarks.episode = "e2" }?.reply?.bookmarks.bookmarks.count == 160)
    }

    // MARK: Sound devices

    @Test func `a missing sound device doesn’t replace a downloaded file with the stream`() throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 600))
        rig.download("e1", SimulatedEngine.Audio(length: 600))
        try rig.load(episode, at: 100)
        try rig.report(.failed(try #require(LoadID("l1")), Failure(.noSoundDevice, "No sound device can be opened.")))
        #expect(rig.state.status == .failed && rig.state.local)
        #expect(!rig.alerts.contains { $0.code == "playsStream" })
    }

    @Test func `the sleep timer ends the wait for a lost sound device`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 50)
        try rig.send { $0.setSleep.seconds = 60 }
        try rig.advance(3)
        rig.engine.setSilent(true)
        try rig.advance(70)
        rig.engine.setDevices([OutputDevice(name: "headphones", description: "Headphones")], works: true)
        try rig.advance(5)
        #expect(rig.state.status == .paused)
    }

    @Test func `a device that appears during silent playback is used`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 50)
        try rig.advance(1)
        rig.engine.setSilent(true)
        try rig.advance(0.1)
        try rig.setPaused(false)
        try rig.advance(1)
        rig.engine.setDevices([OutputDevice(name: "headphones", description: "Headphones")], works: true)
        try rig.advance(2)
        #expect(rig.state.status == .playing && !rig.state.nullOutput && rig.alerts.isEmpty)
    }

    // MARK: Streams

    @Test func `pausing a broken stream during a retry wait ends the retries`() throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 130, declared: 600, cut: true))
        try rig.load(episode, at: 100)
        try rig.advance(31)
        #expect(rig.state.hasRetry)
        let opens = rig.opens
        rig.setStream(.broken(Failure(.streamFailed, "no")))
        try rig.setPaused(true)
        try rig.advance(60)
        #expect(rig.state.status == .paused && !rig.state.hasRetry && rig.opens == opens && rig.alerts.isEmpty)
    }

    @Test(arguments: [false, true])
    func `a probe’s refusal is ignored if the engine gets the audio`(answersLate: Bool)
        throws
    {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 130, declared: 600, cut: true))
        rig.answers["https://a/e1.mp3"] = .refused(403)
        rig.holdsProbes = answersLate
        try rig.load(episode, at: 100)
        try rig.releaseProbes()
        try rig.advance(31)
        #expect(rig.state.status == .loading && rig.state.retry.attempt == 1)
        try rig.advance(2.1)
        #expect(rig.state.retry.attempt == 2)
    }

    @Test
    func `a much shorter replacement plays if the user accepts it, or its length was announced`()
        throws
    {
        try rig.start()
        for announced in [7_200.0, 0] {
            let episode = rig.episode("e\(Int(announced))", length: 600, announced: announced)
            rig.library[episode.id]?.state.duration = 7_200
            try rig.load(episode, as: "l\(Int(announced))", at: 100)
            #expect(rig.state.status == .failed && rig.state.error.code == "endedEarly")
            // A retry doesn’t accept the replacement.
            try rig.setPaused(false)
            #expect(rig.state.status == .failed && rig.stored(episode.id).position == 100)
            let alert = try #require(rig.alerts.first)
            #expect(alert.actions == ["retry", "accept", "skip", "dismiss"] && rig.alerts.count == 1)
            try rig.answer(alert.id, "accept")
            #expect(rig.state.status == .playing && rig.state.duration == 600 && rig.alerts.isEmpty)
        }
        let announced = rig.episode("e3", length: 600, announced: 600)
        rig.library["e3"]?.state.duration = 7_200
        try rig.load(announced, as: "l3", at: 100)
        #expect(rig.state.status == .playing)
    }

    @Test func `an estimated length ends an episode and marks it as played only if it was also announced`() throws {
        try rig.start()
        try set(.skipOutro, "30")
        try set(.playedThreshold, "90%")
        for announced in [0.0, 900] {
            let id = "e\(Int(announced))"
            try rig.load(rig.episode(id, length: 3_600, announced: announced), as: "l\(id)", at: 860)
            let load = try #require(LoadID("l\(id)"))
            try rig.report(.measured(load, MeasuredDuration(try #require(EpisodeDuration(seconds: 900)), .estimated)))
            try rig.advance(20)
            #expect(rig.state.status == (announced == 0 ? .playing : .finished))
            #expect(rig.stored(id).played == (announced != 0))
            #expect(rig.stored(id).duration == announced || announced == 0)
        }
    }

    // MARK: Positions

    @Test func `a seek or mark during the lookup keeps the stored state`() throws {
        try rig.start()
        let episode = rig.episode()
        rig.library["e1"]?.state.duration = 600
        rig.library["e1"]?.state.reason = "heard to its end"
        rig.library["e1"]?.state.audioTag = "etag:x"
        rig.holdsLookups = true
        try rig.load(episode)
        try rig.seek(200)
        try rig.send {
            $0.setPlayed.episode = "e1"
            $0.setPlayed.played = true
        }
        try rig.releaseLookups()
        try rig.advance(12)
        #expect(rig.stored().duration == 600 && rig.stored().audioTag == "etag:x" && rig.stored().played)
        #expect(abs(rig.stored().position - 210) < 3)
        #expect(rig.state.episode.id == "e1" && rig.state.status == .playing)
    }

    @Test(arguments: [220.0, 0])
    func `a position beyond a length that proves too short is kept`(announced: Double) throws {
        try rig.start()
        var audio = SimulatedEngine.Audio(length: 220)
        audio.estimate = 40
        let episode = rig.episode(announced: announced)
        rig.setFile("e1", audio)
        try rig.load(episode)
        #expect(rig.state.duration == 40)
        try rig.advance(30)
        #expect(rig.stored().position > 15)
        try rig.advance(35)
        try rig.setPaused(true)
        #expect(abs(rig.position - 65) < 1.2 && rig.state.duration != 40)
        try rig.load(rig.episode("e2"), as: "l2")
        for life in 3...4 {
            let place = rig.stored().position
            try rig.load(episode, as: "l\(life)")
            #expect(abs(rig.position - place) < 0.3)
            let states = rig.states.count
            try rig.advance(20)
            #expect(abs(rig.position - place - 20) < 1.2)
            #expect(rig.states.count - states < 8)
            try rig.load(rig.episode("e2"), as: "o\(life)")
            #expect(abs(rig.stored().position - place - 20) < 1.2)
        }
    }

    @Test func `a position in the last moment is played, and one beyond a shorter version’s end moves before that`()
        throws
    {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try rig.seek(599.8)
        try rig.send { $0.stop = WireStopPlayback() }
        try rig.setPaused(false)
        #expect(rig.position > 598)
        try rig.advance(3)
        #expect(rig.state.status == .finished)
        let shorter = rig.episode("e2", length: 500, announced: 0)
        rig.library["e2"]?.state.duration = 600
        try rig.load(shorter, as: "l2", at: 590)
        try rig.advance(0.1)
        #expect(abs(rig.position - 470) < 0.3)
    }

    @Test func `a session that isn’t played keeps its age across reboots`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try rig.advance(5)
        try rig.setPaused(true)
        try rig.advance(1)
        let stamped = rig.stored().updatedAt
        for day in 1...3 {
            rig.advanceClocks(by: 10 * 3_600)
            try rig.stopProcess()
            rig.context.fleetRun = "run\(day + 1)"
            rig.advanceClocks(by: 10 * 3_600)
            try rig.start()
        }
        #expect(rig.alerts.map(\.code) == ["resumeOrRestart"])
        #expect(rig.stored().updatedAt == stamped)
    }

    @Test(arguments: [true, false])
    func `resuming rewinds after a stop and after the end of the process`(byStop: Bool) throws {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try rig.advance(5)
        if byStop { try rig.send { $0.stop = WireStopPlayback() } } else { try rig.stopProcess() }
        rig.rest(9 * 3_600)
        if !byStop {
            rig.context.fleetRun = "run2"
            try rig.start()
        }
        try rig.setPaused(false)
        #expect(abs(rig.position - 95) < 0.3)
    }

    @Test func `resuming a stopped episode prepares the next episode again`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try prepare(rig.episode("e2"), as: "l2")
        try rig.send { $0.stop = WireStopPlayback() }
        try rig.setPaused(false)
        let last = rig.engine.performed.last { if case .prepare = $0 { true } else { false } }
        guard case .prepare(let load?)? = last else {
            Issue.record("nothing is prepared: \(String(describing: last))")
            return
        }
        #expect(load.id == LoadID("l2"))
    }

    @Test func `an alert about a missing episode ends when another episode is loaded`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try rig.stopProcess()
        rig.context.fleetRun = "run2"
        rig.files = [:]
        try rig.start()
        #expect(rig.alerts.map(\.code) == ["episodeGone"])
        try rig.load(rig.episode("e2"), as: "l2")
        #expect(rig.alerts.isEmpty)
    }
}
