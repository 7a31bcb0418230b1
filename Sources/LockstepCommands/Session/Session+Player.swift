import BusKit
import LockstepClient
import PodcastModel
import WireMessages

extension Session {
    /// Seeks within what is loaded now, and says where it is then.
    func seek(_ expression: SeekExpression, output: Output) async throws {
        let player = try await view(of: [.playback]).player ?? WirePlaybackState()
        guard player.hasEpisode, player.status != .idle else {
            throw Failure(.nothingLoaded, "Nothing is loaded. Start something with `lockstep play EPISODE`.")
        }
        let position = player.position(at: SystemClocks.now(), bootID: SystemClocks.bootID)
        let target = try expression.target(from: position, duration: player.duration > 0 ? player.duration : nil)
        if player.status == .paused, abs(target.seconds - position) < 0.01 {
            return try report(player, to: output, already: true)
        }
        let reply = try await playback {
            $0.seek.loadID = player.loadID
            $0.seek.position = target.seconds
        }
        guard let ended = try await playedToEnd(by: target.seconds, in: player, now: reply.state) else {
            return try report(await sounding(reply.state), to: output)
        }
        try output.change(ended.nowJSON, Sentence.playedToEnd(player))
    }

    /// The player when a seek to the end of what plays has ended it, so that it counts as played; nil: it has not.
    func playedToEnd(
        by target: Double, in player: WirePlaybackState, now state: WirePlaybackState
    ) async throws(Failure) -> WirePlaybackState? {
        if state.status == .finished, state.loadID == player.loadID { return state }
        guard player.duration > 0, target > player.duration - 0.5, state.status == .playing else { return nil }
        let ended = await following(state) { $0.loadID != player.loadID || $0.status != .playing }
        guard ended.loadID != player.loadID else { return ended.status == .finished ? ended : nil }
        // What is there now may have followed, or somebody has asked for it.
        return try await persistence.episodes(ids: [player.episode.id]).first?.state.played == true ? ended : nil
    }

    /// The player once what it plays is heard, or it is seen what keeps it from that.
    func sounding(_ state: WirePlaybackState) async -> WirePlaybackState {
        guard state.status == .playing, !state.anchor.running, !state.buffering else { return state }
        return await following(state) {
            $0.loadID != state.loadID || $0.status != .playing || $0.anchor.running || $0.buffering
        }
    }

    /// The player as it goes on from a state, when it is `done`, or after some seconds.
    private func following(
        _ state: WirePlaybackState, until done: @escaping @Sendable (WirePlaybackState) -> Bool
    ) async -> WirePlaybackState {
        let (view, _) = await follow(until: Self.soundLimit) { view in
            guard view.connection == .live, let player = view.player, player.revision >= state.revision else {
                return false
            }
            return done(player)
        }
        return view.player ?? state
    }

    /// Longer than it takes the player to see that it waits for data.
    private static let soundLimit = Duration.milliseconds(2_500)

    /// Says what the player does now.
    func report(_ state: WirePlaybackState?, to output: Output, already: Bool = false) throws {
        let state = state ?? WirePlaybackState()
        let snapshot = snapshot(state)
        let sentence: String
        switch snapshot.status {
        case .playing, .paused:
            sentence = Sentence.beginning(snapshot) + "."
        default: sentence = Sentence.status(snapshot)
        }
        let said = already ? "No change: \(sentence.prefix(1).lowercased())\(sentence.dropFirst())" : sentence
        try output.change(state.nowJSON, said)
    }
}
