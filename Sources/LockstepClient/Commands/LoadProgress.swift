import BusKit
import NIOConcurrencyHelpers
package import PodcastModel
import WireMessages

/// The outcome of a load, derived from the state of the queue and the player.
package enum LoadOutcome: Sendable, Hashable {
    /// The load is decided, or the player is opening it or waiting for its data.
    case pending
    /// The load plays, is paused, has failed or has ended.
    case settled
    /// The player has refused the load.
    case refused(Failure)
    /// A later request has replaced the load.
    case superseded

    /// - Parameters:
    ///   - load: the load’s ID.
    ///   - isLoaded: whether the player’s state has shown the load; otherwise the queue reports its acceptance.
    package init(of load: LoadID, isLoaded: Bool = false, in view: FleetView) {
        guard view.connection == .live, !view.isStale(.playback), let player = view.player else {
            self = .pending
            return
        }
        let loads = view.isStale(.queue) ? [] : view.next?.loads ?? []
        let decided = loads.first { $0.loadID == load.text }
        if player.loadID == load.text {
            let isAwaited = player.status == .loading || player.status == .playing && !player.anchor.running
            self = isAwaited ? .pending : .settled
        } else if player.loadID == LoadID.advance(after: load.text).text
            || loads.contains(where: { $0.loadID == player.loadID && $0.afterLoad == load.text })
        {
            // The load has ended, and its successor is loaded.
            self = .settled
        } else {
            switch decided?.outcome {
            case .refused?:
                self = .refused(
                    decided?.failure.failure.sanitised ?? Failure(.unavailable, "The episode couldn’t be loaded."))
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
    /// The timeout for the load that replaces a superseded one.
    private static let successorLimit = Duration.seconds(3)
    /// The timeout for audio; it exceeds the time in which the player detects that it waits for data.
    private static let soundLimit = Duration.milliseconds(2_500)

    /// Returns the player’s state when a load plays, is paused as requested, or has failed.
    ///
    /// - Parameters:
    ///   - load: the load’s ID, from the answer of a queue or the player.
    ///   - isLoaded: whether the player’s state has shown the load.
    ///   - retrying: called for each retry of a failing stream, with whether the failure is the previous one’s.
    /// - Throws: the player’s error; `revisionMismatch` if another request superseded the load;
    ///   `outcomeUnknown` if it is still loading after 30 s.
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
            if case .failed(let failure) = state.player.status { throw failure.naming(state.player.episode) }
            return state.player
        case .refused(let failure): throw failure
        case .superseded:
            throw Failure(
                .revisionMismatch,
                "Another request has replaced this one. \(await successor(of: load).sentenceWithQueue)")
        case .pending:
            let retry = state.player.retry().map { ", \(Sentence.retry($0))" } ?? ""
            throw Failure(
                .outcomeUnknown,
                "The episode is still loading after 30 seconds\(retry). `lockstep status` shows its progress.")
        }
    }

    /// Returns the state when no load is pending, after 30 s, or if the connection isn’t live.
    package func withoutPendingLoad() async -> FleetState {
        await first(within: Self.loadLimit) { state in
            guard state.connection == .live, !state.view.isStale(.playback), !state.view.isStale(.queue) else {
                return true
            }
            guard let newest = (state.view.next?.loads.last?.loadID).flatMap(LoadID.init) else {
                return state.view.player?.status != .loading
            }
            return LoadOutcome(of: newest, in: state.view) != .pending && state.view.player?.status != .loading
        }.state
    }

    /// Returns the player’s state when the newest decided load is settled.
    package func successor(of load: LoadID) async -> PlayerState {
        await first(within: Self.successorLimit) { state in
            guard let newest = (state.view.next?.loads.last?.loadID).flatMap(LoadID.init), newest != load else {
                return true
            }
            return LoadOutcome(of: newest, in: state.view) != .pending
        }.state.player
    }

    /// Returns the player’s state when playback is audible, or when the reason why it isn’t is known.
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

extension Failure {
    /// Returns the failure with a message that names the episode.
    package func naming(_ episode: EpisodeSummary?) -> Failure {
        guard let title = episode?.title, !title.isEmpty, !message.contains("“\(title)”") else { return self }
        var named = self
        named.message = "“\(title)”: \(message)"
        return named
    }
}

/// The retries of a stream that were reported.
private struct ReportedAttempts: Sendable {
    private var attempt: UInt32 = 0
    private var reason = ""

    /// Returns whether the retry repeats the previous failure; nil if there is nothing to report.
    mutating func handle(_ player: WirePlaybackState) -> Bool? {
        let attempt = player.hasRetry && player.status == .loading ? player.retry.attempt : 0
        defer { (self.attempt, reason) = (max(self.attempt, attempt), player.retry.error.message) }
        return attempt > self.attempt ? reason == player.retry.error.message : nil
    }
}

extension PlayerState {
    package var snapshot: PlayerSnapshot { PlayerSnapshot(self) }

    /// The status sentence, with the source queue unless that is Up Next.
    package var sentenceWithQueue: String { sentence + Sentence.sourceQueue(self) }
}
