import BusKit
import NIOConcurrencyHelpers
package import PodcastModel
import WireMessages

/// The outcome of a load, as the queue and the player show it. Pure.
package enum LoadOutcome: Sendable, Hashable {
    /// It is decided, or the player opens it.
    case pending
    /// It plays, is paused, has failed or ended.
    case settled
    /// The player has refused it.
    case refused(Failure)
    /// Something else was asked for, and has taken its place.
    case superseded

    /// - Parameters:
    ///   - load: the load’s ID.
    ///   - isLoaded: whether the player has shown it already; else the queue says when the player has accepted it.
    package init(of load: LoadID, isLoaded: Bool = false, in view: FleetView) {
        guard view.connection == .live, !view.isStale(.playback), let player = view.player else {
            self = .pending
            return
        }
        let loads = view.isStale(.queue) ? [] : view.next?.loads ?? []
        let decided = loads.first { $0.loadID == load.text }
        if player.loadID == load.text {
            self = player.status == .loading ? .pending : .settled
        } else if player.loadID == LoadID.advance(after: load.text).text
            || loads.contains(where: { $0.loadID == player.loadID && $0.afterLoad == load.text })
        {
            // It has ended, and what follows it is there.
            self = .settled
        } else {
            switch decided?.outcome {
            case .refused?:
                self = .refused(decided?.failure.failure.sanitised ?? Failure(.unavailable, "It couldn’t be loaded."))
            case .superseded?: self = .superseded
            case .accepted?: self = .superseded
            case .pending?, .unknown?, .UNRECOGNIZED?: self = .pending
            case nil: self = isLoaded ? .superseded : .pending
            }
        }
    }
}

extension Fleet {
    private static let loadLimit = Duration.seconds(30)
    /// The maximum time for the load that has taken another one’s place.
    private static let successorLimit = Duration.seconds(3)
    /// Longer than it takes the player to see that it waits for data.
    private static let soundLimit = Duration.milliseconds(2_500)

    /// The player once it plays a load, has paused it as it should, or has failed to play it.
    ///
    /// - Parameters:
    ///   - load: the load’s ID, as a queue or the player has answered.
    ///   - isLoaded: whether the player has shown it already.
    ///   - retrying: is told of each attempt at a stream that fails, and whether it failed of the same as the one before.
    /// - Throws: the player’s own error; `revisionMismatch` when something else was asked for in the meantime;
    ///   `outcomeUnknown` when it is still loading after 30 s.
    package func settled(
        _ load: LoadID, isLoaded: Bool = false,
        retrying: @escaping @Sendable (_ player: PlayerState, _ isSame: Bool) -> Void = { _, _ in }
    ) async throws(Failure) -> PlayerState {
        let attempts = NIOLockedValueBox(ReportedAttempts())
        let (state, _) = await first(within: Self.loadLimit) { state in
            if let player = state.view.player, player.loadID == load.text,
                let isSame = attempts.withLockedValue({ $0.handle(player) })
            {
                retrying(PlayerState(player), isSame)
            }
            return LoadOutcome(of: load, isLoaded: isLoaded, in: state.view) != .pending
        }
        switch LoadOutcome(of: load, isLoaded: isLoaded, in: state.view) {
        case .settled:
            let player = await audible(state.player)
            if case .failed(let failure) = player.status { throw failure }
            return player
        case .refused(let failure): throw failure
        case .superseded:
            throw Failure(
                .revisionMismatch,
                "Something else was requested in the meantime. \(await successor(of: load).sentenceWithQueue)")
        case .pending:
            let retry = state.player.retry().map { ", \(Sentence.retry($0))" } ?? ""
            throw Failure(
                .outcomeUnknown, "It is still loading after 30 seconds\(retry). `lockstep status` shows its progress.")
        }
    }

    /// The player once the newest load that was decided is settled.
    package func successor(of load: LoadID) async -> PlayerState {
        await first(within: Self.successorLimit) { state in
            guard let newest = (state.view.next?.loads.last?.loadID).flatMap(LoadID.init), newest != load else {
                return true
            }
            return LoadOutcome(of: newest, in: state.view) != .pending
        }.state.player
    }

    /// The player once what it plays is heard, or it is seen what keeps it from that.
    package func audible(_ player: PlayerState) async -> PlayerState {
        let wire = player.wire
        guard wire.status == .playing, !wire.anchor.running, !wire.buffering else { return player }
        let (state, _) = await first(within: Self.soundLimit) { state in
            guard state.connection == .live, let now = state.view.player, now.revision >= wire.revision else {
                return false
            }
            return now.loadID != wire.loadID || now.status != .playing || now.anchor.running || now.buffering
        }
        return state.view.player.map(PlayerState.init) ?? player
    }
}

/// The attempts at a stream that were reported.
private struct ReportedAttempts: Sendable {
    private var attempt: UInt32 = 0
    private var reason = ""

    /// Whether an attempt is to be reported, and follows one that failed of the same; nil: nothing is to be reported.
    mutating func handle(_ player: WirePlaybackState) -> Bool? {
        let attempt = player.hasRetry && player.status == .loading ? player.retry.attempt : 0
        defer { (self.attempt, reason) = (max(self.attempt, attempt), player.retry.error.message) }
        return attempt > self.attempt ? reason == player.retry.error.message : nil
    }
}

extension PlayerState {
    package var snapshot: PlayerSnapshot { PlayerSnapshot(self) }

    /// Its sentence, and the queue that it was loaded from where that isn’t Up Next.
    package var sentenceWithQueue: String { sentence + Sentence.sourceQueue(self) }
}
