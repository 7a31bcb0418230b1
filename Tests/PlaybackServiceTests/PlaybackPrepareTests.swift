import BusKit
import EngineDouble
import OwnerHarness
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

struct PlaybackPrepareTests {
    private let rig = PlayerRig()

    private func next(_ id: String = "e2", load: String = "l2", position: Double = 30) -> WireLoadEpisode {
        var wire = WireLoadEpisode()
        wire.episode = rig.episode(id, position: position)
        wire.loadID = load
        wire.queueEntry = "q1"
        return wire
    }

    private func prepare(_ load: WireLoadEpisode?, after: String = "l1") throws {
        try rig.send {
            $0.prepare.afterLoad = after
            if let load { $0.prepare.load = load }
        }
    }

    private func setting(_ key: String, _ value: String, podcast: String = "") -> WireSetSetting {
        var setting = WireSetSetting()
        setting.key = key
        setting.value = value
        setting.podcast = podcast
        return setting
    }

    private var preparations: [EngineLoad?] {
        rig.engine.performed.compactMap { if case .prepare(let load) = $0 { .some(load) } else { nil } }
    }

    private func playing(at position: Double = 100) throws {
        try rig.start()
        try rig.load(rig.episode(), at: position)
    }

    @Test func `the next episode is prepared with its position, speed and sound`() throws {
        try playing()
        try rig.send { $0.setSetting = setting("skipIntro", "7") }
        try rig.send { $0.setSetting = setting("speed", "2", podcast: "p2") }
        var load = next(position: 0)
        load.episode.podcastID = "p2"
        try prepare(load)
        #expect(preparations.map { $0?.id } == [LoadID("l2")])
        #expect(preparations.last??.start.seconds == 7)
        #expect(preparations.last??.speed.factor == 2)
    }

    @Test func `a prepared load needs no lookup, and opens exactly what was prepared`() throws {
        try playing(at: 599)
        let load = next()
        try prepare(load)
        try rig.advance(2)
        #expect(rig.state.status == .finished)
        try rig.send { $0.load = load }
        #expect(rig.state.status == .playing)
        #expect(rig.state.episode.id == "e2")
        let opened = rig.engine.performed.last { if case .open = $0 { true } else { false } }
        var prepared = try #require(preparations.last.flatMap { $0 })
        prepared.serial = rig.serial
        #expect(opened == .open(prepared))
    }

    @Test(arguments: [true, false])
    func `a download or deletion after preparing is detected a minute before the end`(comes: Bool) throws {
        func setFile(_ isThere: Bool) {
            rig.library["e2"]?.download.state = isThere ? .downloaded : .notDownloaded
            rig.library["e2"]?.download.path = isThere ? "/d/2.mp3" : ""
        }
        try playing(at: 100)
        var load = next()
        load.episode.enclosureURL = "https://a/2.mp3"
        setFile(!comes)
        try prepare(load)
        #expect(preparations.count == 1)
        setFile(comes)
        try rig.advance(430)
        #expect(preparations.count == 1)
        try rig.advance(11)
        #expect(preparations.count == 2)
        let source = try #require(preparations.last??.source)
        #expect((source == .file(path: "/d/2.mp3")) == comes)
        try rig.advance(50)
        #expect(preparations.count == 2 && rig.state.status == .playing)
    }

    @Test func `an unchanged preparation is kept shortly before the end`() throws {
        try playing(at: 530)
        try prepare(next())
        try rig.advance(20)
        #expect(preparations.count == 1)
    }

    @Test(arguments: 0..<4)
    func `a preparation is ignored for another load, and dropped if nothing follows, on stop and unload`(_ which: Int)
        throws
    {
        try playing()
        try prepare(next(), after: which == 0 ? "l7" : "l1")
        if which == 0 { return #expect(preparations.isEmpty) }
        switch which {
        case 1: try prepare(nil)
        case 2: try rig.send { $0.stop = WireStopPlayback() }
        default: try rig.send { $0.unload.loadID = "l1" }
        }
        #expect(preparations.count == 2)
        #expect(preparations.last == .some(nil))
    }

    @Test func `reopening a failed file prepares the next episode again`() throws {
        try playing()
        try prepare(next())
        try rig.report(.failed(try #require(LoadID("l1")), Failure(.decoderFailed, "It broke.")))
        try rig.setPaused(false)
        #expect(preparations.count == 2)
    }

    @Test func `a load without playable audio is refused, and the loaded episode continues to play`() throws {
        try playing()
        var load = next()
        load.episode.enclosureURL = "ftp://a/b.mp3"
        try prepare(load)
        #expect(preparations.isEmpty)
        #expect(rig.state.status == .playing)
    }
}
