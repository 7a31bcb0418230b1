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
        try report(reply.state, to: output)
    }

    /// What `play` alone does: resumes, else starts the current entry, else the first one.
    func resume(_ output: Output) async throws(Failure) -> WirePlaybackState? {
        let name = try await view(of: [.playback, .queue]).playingQueue.name
        return try await settled(load: try await queue(named: name) { $0.play.resume = true }.loadID, output: output)
    }

    /// The player once it plays, or has failed to play, what was asked for; empty: whatever is loaded.
    ///
    /// Each try of a stream that fails is told on standard error meanwhile.
    ///
    /// - Throws: the player's own error; `outcomeUnknown` when it is still loading after 30 s.
    func settled(load: String, output: Output? = nil) async throws(Failure) -> WirePlaybackState? {
        let told = NIOLockedValueBox(UInt32(0))
        let (view, isSettled) = await follow(until: Self.loadLimit) { view in
            guard view.connection == .live, !view.isStale(.playback), let player = view.player else { return false }
            guard load.isEmpty || player.loadID == load else { return false }
            let attempt = player.hasRetry && player.status == .loading ? player.retry.attempt : 0
            let isNew = told.withLockedValue { told in
                defer { told = max(told, attempt) }
                return attempt > told
            }
            if isNew { output?.progress(Sentence.status(snapshot(player))) }
            return player.status != .loading
        }
        guard let player = view.player, isSettled else {
            let retry = view.player.map { snapshot($0).retry.map { ", \(Sentence.retry($0))" } ?? "" } ?? ""
            throw Failure(
                .outcomeUnknown, "It is still loading after 30 seconds\(retry). `lockstep status` tells how it goes on."
            )
        }
        if player.status == .failed { throw player.error.failure }
        return player
    }

    /// Waits until the player has taken a load over, whether it plays yet or not.
    ///
    /// - Throws: `outcomeUnknown` after 30 s.
    func untilLoaded(_ load: String) async throws(Failure) {
        let (_, isLoaded) = await follow(until: Self.loadLimit) { view in
            view.connection == .live && !view.isStale(.playback) && view.player?.loadID == load
        }
        guard isLoaded else {
            throw Failure(
                .outcomeUnknown, "The player has not loaded it after 30 seconds. `lockstep status` tells more.")
        }
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
