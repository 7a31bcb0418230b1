import OwnerHarness
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Tests that the computer’s sleep waits for the saved position, and that the engine’s position is published then.
struct PlaybackSuspendTests {
    private let rig = PlayerRig()

    @Test func `the computer may sleep once the current position is durable`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try rig.advance(4)
        rig.holdsCommits = true
        try rig.report(.suspends)
        #expect(rig.allowedSuspends == 0)
        try rig.releaseCommits()
        #expect(rig.allowedSuspends == 1)
        #expect(abs(rig.stored().position - 104) < 0.2)
        #expect(rig.state.status == .playing)
    }

    @Test(arguments: [true, false])
    func `the computer may sleep even if nothing can be saved`(isLoaded: Bool) throws {
        try rig.start()
        if isLoaded { try rig.load(rig.episode(), at: 100) }
        try rig.advance(2)
        rig.refusal = Failure(.insufficientStorage, "The disk is full.")
        try rig.report(.suspends)
        #expect(rig.allowedSuspends == 1)
    }

    @Test func `suspending the computer saves nothing unless an episode plays`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try rig.setPaused(true)
        try rig.advance(1)
        let commits = rig.owner.committed.count
        try rig.report(.suspends)
        #expect(rig.allowedSuspends == 1 && rig.owner.committed.count == commits)
    }

    @Test func `after the computer’s sleep the engine’s position is published, even if it differs little`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 100)
        try rig.advance(4)
        try rig.report(.suspends)
        let (states, samples) = (rig.states.count, rig.samples)
        try rig.report(.wakes)
        #expect(rig.samples == samples + 1)
        #expect(rig.states.count == states + 1)
        #expect(rig.state.anchor.at == rig.now.monotonic.nanoseconds)
        // A sleep that was cancelled, or notified twice, changes nothing.
        try rig.report(.wakes)
        try rig.advance(1)
        #expect(rig.allowedSuspends == 1 && rig.state.status == .playing)
    }
}
