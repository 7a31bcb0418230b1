import BusKit
import OwnerHarness
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import PlaybackService

/// Tests that marks can be undone.
@Suite struct MarkUndoTests {
    private let rig = PlayerRig()

    @discardableResult
    private func mark(
        _ episodes: [String], played: Bool = true, group: String = ""
    ) throws -> Result<WirePlaybackReply, Failure>? {
        try rig.send {
            $0.setPlayed.episodes = episodes
            $0.setPlayed.played = played
            $0.setPlayed.group = group
        }
    }

    private func undo() throws -> WirePlaybackReply? { try rig.send { $0.undoMarks = WireUndoMarks() }?.reply }

    private func add(_ episodes: ClosedRange<Int>) -> [String] {
        episodes.map { number in
            _ = rig.episode("e\(number)", position: Double(number))
            return "e\(number)"
        }
    }

    @Test func `undoing a mark restores positions, marks and reasons exactly`() throws {
        try rig.start()
        let episodes = add(2...4)
        rig.library["e4"]?.state.played = true
        rig.library["e4"]?.state.completedAt = 7
        rig.library["e4"]?.state.reason = "played to its end"
        let before = episodes.map { rig.stored($0) }
        try mark(episodes)
        #expect(rig.stored("e2").played && rig.stored("e2").position == 0)
        let reply = try #require(try undo())
        #expect(reply.changed && reply.marksUndone.played && !reply.marksUndone.more)
        for (episode, state) in zip(episodes, before) {
            let restored = rig.stored(episode)
            #expect(restored.played == state.played && restored.position == state.position)
            #expect(restored.completedAt == state.completedAt && restored.reason == state.reason)
        }
        #expect(try undo()?.changed == false)
    }

    @Test func `a mark can be undone after the process was killed`() throws {
        try rig.start()
        try mark(add(2...3))
        try rig.start()
        #expect(rig.stored("e3").played)
        #expect(try undo()?.changed == true)
        #expect(!rig.stored("e3").played && rig.stored("e3").position == 3)
        try rig.start()
        #expect(try undo()?.changed == false)
    }

    @Test func `all requests of a group are undone, the newest first, and then the mark before it`() throws {
        try rig.start()
        let episodes = add(2...7)
        try mark(["e2"])
        try mark(Array(episodes[1...2]), group: "g")
        try mark(Array(episodes[3...5]), group: "g")
        let first = try #require(try undo()?.marksUndone)
        #expect(first.more && first.states.states.map(\.episode) == ["e5", "e6", "e7"])
        let second = try #require(try undo()?.marksUndone)
        #expect(!second.more && second.states.states.map(\.episode) == ["e3", "e4"])
        #expect(rig.stored("e2").played)
        #expect(try undo()?.marksUndone.states.states.map(\.episode) == ["e2"])
        #expect(!rig.stored("e2").played)
    }

    @Test func `an episode that was marked again or deleted keeps its state`() throws {
        try rig.start()
        _ = add(2...4)
        try mark(["e2", "e3", "e4"])
        rig.library["e2"]?.state.completedAt += 5
        rig.library["e4"] = nil
        let reply = try #require(try undo()?.marksUndone)
        #expect(reply.states.changed == [false, true, false])
        #expect(rig.stored("e2").played && !rig.stored("e3").played)
    }

    @Test(arguments: [false, true]) func `the mark of the loaded episode is undone at its position`(isBulk: Bool) throws
    {
        try rig.start()
        try rig.load(rig.episode(), at: 100, paused: true)
        try rig.send {
            if isBulk { $0.setPlayed.episodes = ["e1"] } else { $0.setPlayed.episode = "e1" }
            $0.setPlayed.played = true
        }
        #expect(rig.session?.register.played == true)
        let position = rig.position
        #expect(try undo()?.marksUndone.states.changed == [true])
        #expect(rig.session?.register.played == false && rig.position == position && !rig.stored().played)
    }

    @Test func `a refused mark isn’t undone, and a refused undo can be repeated`() throws {
        try rig.start()
        _ = add(2...3)
        try mark(["e2"])
        rig.refusal = Failure(.storageFailed, "away")
        #expect(try mark(["e3"])?.failure != nil)
        #expect(try rig.send { $0.undoMarks = WireUndoMarks() }?.failure != nil)
        rig.refusal = nil
        #expect(try undo()?.marksUndone.states.states.map(\.episode) == ["e2"])
        #expect(!rig.stored("e2").played && rig.stored("e2").position == 2)
    }

    @Test func `the oldest marks are evicted, and a group that is too large can’t be undone`() throws {
        try rig.start()
        let episodes = add(2...(MarkHistory.limit + 3))
        for episode in episodes { try mark([episode]) }
        #expect(rig.records["marks"]?.count == MarkHistory.limit)
        for episode in episodes { try mark([episode], played: false, group: "all") }
        #expect(rig.records["marks"]?.count == 1)
        #expect(try rig.send { $0.undoMarks = WireUndoMarks() }?.failure?.known == .notApplicable)
    }
}
