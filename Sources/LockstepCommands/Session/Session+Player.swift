import BusKit
import NIOConcurrencyHelpers
import PodcastModel
import WireMessages

extension Session {
    /// How long `play` waits for the first sound.
    static let loadLimit = Duration.seconds(30)

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
        let isEnd = player.duration > 0 && target.seconds > player.duration - 0.5
        guard isEnd, reply.state.status == .playing else {
            return try report(await sounding(reply.state), to: output)
        }
        let ended = await following(reply.state) { $0.loadID != player.loadID || $0.status != .playing }
        guard ended.loadID != player.loadID || ended.status == .finished else { return try report(ended, to: output) }
        let title = DisplayText.sanitised(player.episode.title)
        try output.change(ended.nowJSON, "That is the end of “\(title)”, which counts as played.")
    }

    /// The player once what it plays is heard, or it is seen what keeps it from that.
    private func sounding(_ state: WirePlaybackState) async -> WirePlaybackState {
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

    /// What `play` alone does: resumes, else starts the current entry, else the first one.
    func resume(_ output: Output) async throws(Failure) -> WirePlaybackState? {
        let name = try await view(of: [.playback, .queue]).playingQueue.name
        return try await settled(load: try await queue(named: name) { $0.play.resume = true }.loadID, output: output)
    }

    /// The player once it plays, or has failed to play, what was asked for; empty: whatever is loaded.
    ///
    /// Each try of a stream that fails is told on standard error meanwhile, what it failed of once.
    ///
    /// - Throws: the player's own error; `outcomeUnknown` when it is still loading after 30 s.
    func settled(load: String, output: Output? = nil) async throws(Failure) -> WirePlaybackState? {
        let told = NIOLockedValueBox((attempt: UInt32(0), reason: ""))
        let (view, isSettled) = await follow(until: Self.loadLimit) { view in
            guard view.connection == .live, !view.isStale(.playback), let player = view.player else { return false }
            guard load.isEmpty || player.loadID == load else { return false }
            let attempt = player.hasRetry && player.status == .loading ? player.retry.attempt : 0
            let (isNew, isSame) = told.withLockedValue { told in
                let before = told
                told = (max(told.attempt, attempt), player.retry.error.message)
                return (attempt > before.attempt, told.reason == before.reason)
            }
            if isNew { output?.progress(Sentence.attempt(snapshot(player), isSame: isSame)) }
            return player.status != .loading
        }
        guard let loaded = view.player, isSettled else {
            let retry = view.player.map { snapshot($0).retry.map { ", \(Sentence.retry($0))" } ?? "" } ?? ""
            throw Failure(
                .outcomeUnknown, "It is still loading after 30 seconds\(retry). `lockstep status` tells how it goes on."
            )
        }
        let player = await sounding(loaded)
        if player.status == .failed { throw player.error.failure }
        return player
    }

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
