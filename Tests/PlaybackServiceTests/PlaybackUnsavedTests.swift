import BusKit
import EngineDouble
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Tests marks and answers that are being committed or were refused.
struct PlaybackUnsavedTests {
    private let rig = PlayerRig()

    @discardableResult
    private func mark(_ episode: String, played: Bool = true) throws -> Result<WirePlaybackReply, Failure>? {
        try rig.send {
            $0.setPlayed.episode = episode
            $0.setPlayed.played = played
        }
    }

    // MARK: Marks

    @Test func `an unsaved mark isn’t overwritten by a load whose lookup lacks it`() throws {
        try rig.start()
        let episode = rig.episode(position: 100)
        rig.holdsCommits = true
        try mark("e1")
        try rig.load(episode)
        try rig.releaseCommits()
        try rig.advance(12)
        #expect(rig.stored().played && rig.session?.register.played == true)
    }

    @Test func `a mark of an episode that is being loaded survives an older reply of the library`() throws {
        try rig.start()
        rig.holdsLookups = true
        try rig.load(rig.episode(position: 100))
        rig.holdsLookups = false
        #expect(try mark("e1")?.reply?.changed == true)
        try rig.releaseLookups()
        try rig.advance(12)
        #expect(rig.stored().played && rig.session?.register.played == true)
    }

    @Test func `a mark doesn’t store a load that is still being looked up`() throws {
        try rig.start()
        rig.holdsLookups = true
        try rig.load(rig.episode())
        rig.holdsLookups = false
        try mark("e1")
        #expect(rig.stored().played && rig.session == nil)
    }

    @Test func `a refused mark of several episodes is rolled back, and succeeds when it is repeated`() throws {
        try rig.start()
        _ = rig.episode("e2")
        try rig.load(rig.episode(), at: 100, paused: true)
        rig.refusal = Failure(.storageFailed, "away")
        let both = try rig.send {
            $0.setPlayed.episodes = ["e1", "e2"]
            $0.setPlayed.played = true
        }
        #expect(both?.failure != nil)
        rig.refusal = nil
        let repeated = try mark("e1")?.reply
        #expect(repeated?.changed == true && repeated?.episodeState.played == true)
        #expect(rig.stored().played && rig.session?.register.played == true)
    }

    @Test func `a mark that equals an unsaved state is acknowledged when it is saved`() throws {
        try rig.start()
        _ = rig.episode("e2")
        try rig.load(rig.episode(), at: 100, paused: true)
        rig.refusal = Failure(.storageFailed, "away")
        #expect(try mark("e1")?.failure?.known == .notSaved)
        rig.refusal = nil
        rig.holdsCommits = true
        try rig.advance(3)
        #expect(try mark("e1") == nil, "the loaded episode")
        try rig.load(rig.episode("e2"), as: "l2")
        #expect(try mark("e1") == nil, "another one")
        try rig.releaseCommits()
        #expect(rig.stored().played && rig.replies.values.count { $0.reply?.episodeState.played == true } == 2)
    }

    // MARK: Answers

    private func failed() throws -> WireAlert {
        try rig.start()
        let episode = rig.episode()
        rig.setFile("e1", .broken(Failure(.decoderFailed, "broken")))
        try rig.load(episode, at: 100)
        rig.setFile("e1", SimulatedEngine.Audio(length: 600))
        return try #require(rig.alerts.first)
    }

    @Test func `a second answer to an alert doesn’t resume playback that was paused after both`() throws {
        let alert = try failed()
        rig.holdsCommits = true
        try rig.answer(alert.id, "retry")
        try rig.answer(alert.id, "retry")
        try rig.setPaused(true)
        try rig.refuseFirstCommit()
        try rig.releaseCommits()
        try rig.advance(3)
        #expect(rig.state.status == .failed && rig.session?.status == .failed)
        #expect(rig.alerts.isEmpty)
    }

    @Test func `an uncommitted answer doesn’t override the end of the sleep timer`() throws {
        let alert = try failed()
        try rig.send { $0.setSleep.seconds = 5 }
        rig.holdsCommits = true
        try rig.answer(alert.id, "retry")
        try rig.advance(6)
        try rig.releaseCommits()
        #expect(rig.state.status == .failed && rig.session?.status == .failed)
    }

    @Test func `an alert and an answer that an earlier version stored are restored`() throws {
        _ = try failed()
        let alert = try #require(rig.alerts.first)
        var record = WirePlaybackAlertRecord()
        record.alert = alert
        record.alert.subject = ""
        record.loadID = "l1"
        rig.store("alert", alert.id, record.wireBytes)
        var answer = WirePlaybackAnswerRecord()
        answer.action = "dismiss"
        rig.store("answer", "a2", answer.wireBytes)
        try rig.start()
        #expect(rig.alerts.map(\.subject) == ["l1"])
        #expect(try rig.answer("a2", "retry")?.failure?.known == .alreadyAnswered)
        #expect(try rig.answer(alert.id, "retry")?.reply?.changed == true)
        #expect(rig.state.status == .playing)
    }
}
