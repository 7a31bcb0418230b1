import BusKit
import LockstepClient
import NIOConcurrencyHelpers
import PodcastModel
import WireMessages

// Waiting for what a command has loaded.

extension Session {
    /// How long `play` waits for the first sound.
    static let loadLimit = Duration.seconds(30)

    /// How long it is looked whether what was asked for comes all the same, when something else is there in its place, and
    /// how long the other is waited for. The queue asks for what is decided as soon as the player has taken what was on
    /// its way before.
    static let doubtLimit = Duration.seconds(3)

    /// What `play` alone does: resumes, else starts the current entry, else the first one.
    func resume(_ output: Output) async throws(Failure) -> WirePlaybackState? {
        let view = try await view(of: [.playback, .queue])
        let name = view.playingQueue.name
        let reply = try await queue(named: name) { $0.play.resume = true }
        return try await settled(AwaitedLoad(reply, in: name, after: view.player), output: output)
    }

    /// The player once it plays, or has failed to play, what was asked for.
    ///
    /// Each try of a stream that fails is told on standard error meanwhile, what it failed of once.
    ///
    /// - Throws: the player's own error; `revisionMismatch` when something else was asked for in the meantime;
    ///   `outcomeUnknown` when it is still loading after 30 s.
    func settled(_ awaited: AwaitedLoad, output: Output? = nil) async throws(Failure) -> WirePlaybackState? {
        let end = SystemClocks.now().monotonic.advanced(by: Self.loadLimit)
        let tries = NIOLockedValueBox(ToldTries())
        var (view, isDecided) = (FleetView(), true)
        while isDecided {
            (view, isDecided) = await follow(until: end.since(SystemClocks.now().monotonic)) { view in
                if let player = view.player, awaited.isMeant(player.loadID),
                    let isSame = tries.withLockedValue({ $0.take(player) })
                {
                    output?.progress(Sentence.attempt(snapshot(player), isSame: isSame))
                }
                return awaited.outlook(in: view) != .coming
            }
            if isDecided, awaited.outlook(in: view) != .settled { view = await lookAgain(awaited) }
            switch awaited.outlook(in: view) {
            case .settled: return try await begun(view.player)
            case .overtaken, .doubtful: throw overtaken(view)
            case .coming: continue
            }
        }
        throw stillLoading(view)
    }

    /// Something else is in the place of what was asked for: what there is when the one or the other is settled.
    private func lookAgain(_ awaited: AwaitedLoad) async -> FleetView {
        await follow(until: Self.doubtLimit) { view in
            switch awaited.outlook(in: view) {
            case .settled: true
            case .overtaken: view.player?.loadID != awaited.before && view.player?.status != .loading
            // It has come after all.
            case .coming: view.player.map { awaited.isMeant($0.loadID) } ?? false
            case .doubtful: false
            }
        }.view
    }

    private func begun(_ player: WirePlaybackState?) async throws(Failure) -> WirePlaybackState? {
        guard let player else { return nil }
        let sounding = await sounding(player)
        if sounding.status == .failed { throw sounding.error.failure }
        return sounding
    }

    private func overtaken(_ view: FleetView) -> Failure {
        let now = snapshot(view.player ?? WirePlaybackState())
        return Failure(
            .revisionMismatch,
            "Something else was requested in the meantime. \(Sentence.status(now))\(Sentence.home(now))")
    }

    private func stillLoading(_ view: FleetView) -> Failure {
        let retry = view.player.map { snapshot($0).retry.map { ", \(Sentence.retry($0))" } ?? "" } ?? ""
        return Failure(
            .outcomeUnknown, "It is still loading after 30 seconds\(retry). `lockstep status` shows its progress.")
    }
}

/// Which tries of a stream have been told.
private struct ToldTries: Sendable {
    private var attempt: UInt32 = 0
    private var reason = ""

    /// Whether a try is to be told, and failed of the same as the one before; nil: nothing is to be told.
    mutating func take(_ player: WirePlaybackState) -> Bool? {
        let attempt = player.hasRetry && player.status == .loading ? player.retry.attempt : 0
        defer { (self.attempt, reason) = (max(self.attempt, attempt), player.retry.error.message) }
        return attempt > self.attempt ? reason == player.retry.error.message : nil
    }
}
