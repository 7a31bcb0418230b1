import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Tracks the loads that the queue decides until the player has accepted or refused them.
///
/// The player receives one load request at a time: two could arrive in the wrong order, and the older load would
/// replace the newer one.
struct LoadCoordinator: Sendable {
    /// A load that is part of a queue’s durable state until the player has accepted it.
    typealias PendingLoad = WireQueueHeaderRecord.PendingLoad

    /// The maximum number of loads in `decided`.
    static let decidedLimit = 8

    /// The ID of the load in the pending request to the player.
    private var requested: String?
    /// The newest load that the player has accepted since the queue started; the stream may not show it yet.
    private var accepted: String?
    /// The newest decided loads with their outcomes, in order.
    private(set) var decided: [WireDecidedLoad] = []
    /// The last preparation that was requested from the player, and whether its reply is pending.
    private var preparation: WirePrepareEpisode?
    private var isPreparing = false

    var isRequesting: Bool { requested != nil }

    /// The last loads that were requested from the player, the older first; the stream may show neither of them yet.
    var latest: [String] { [accepted, requested].compactMap(\.self) }

    mutating func request(_ load: DecidedLoad) -> QueueMachine.Call {
        let pending = load.pending
        var request = WirePlaybackRequest()
        request.load = .init(load.entry, of: load.queue, as: pending.loadID, paused: pending.paused)
        if pending.hasPosition { request.load.position = pending.position }
        requested = pending.loadID
        return QueueMachine.Call(
            .load(pending.loadID), to: .playback, payload: request.wireBytes, request: RequestID(pending.requestID),
            limit: .seconds(5))
    }

    /// Handles the reply to a load request. Returns the player’s state, if the reply contains one with the load; nil if
    /// no such request is pending.
    mutating func answered(
        _ result: Result<[UInt8], Failure>, to load: String
    ) -> Result<WirePlaybackState?, Failure>? {
        guard load == requested else { return nil }
        requested = nil
        switch result {
        case .success:
            accepted = load
            recordOutcome(load, .accepted)
        case .failure(let failure):
            if !failure.retry { recordOutcome(load, .refused, failure) }
        }
        return result.map { reply in
            let state = try? WirePlaybackReply(wireBytes: reply).state
            return state?.loadID == load ? state : nil
        }
    }

    /// Returns the request to prepare the entry after the loaded one, or none if `next` is nil; returns nil if it
    /// hasn’t changed. At most one such request is pending, and none is retried, because preparation only saves time.
    mutating func prepare(_ next: WireQueueEntry?, of queue: String, after load: String) -> QueueMachine.Call? {
        guard !isPreparing else { return nil }
        var wanted = WirePrepareEpisode()
        wanted.afterLoad = load
        if let next { wanted.load = .init(next, of: queue, as: LoadID.advance(after: load).text, paused: false) }
        guard wanted != preparation else { return nil }
        preparation = wanted
        isPreparing = true
        let message = WirePlaybackRequest.with { $0.prepare = wanted }
        return QueueMachine.Call(.preparation, to: .playback, payload: message.wireBytes, limit: .seconds(5))
    }

    mutating func prepared() { isPreparing = false }

    /// Discards the preparation when the player has stopped.
    mutating func playerStopped() { preparation = nil }

    /// Updates `decided` with the pending loads. A load that is no longer pending, although the player isn’t known to
    /// have accepted or refused it, was superseded.
    mutating func track(_ pending: [(queue: String, load: PendingLoad)]) {
        for index in decided.indices where decided[index].outcome == .pending {
            if !pending.contains(where: { $0.load.loadID == decided[index].loadID }) {
                decided[index].outcome = .superseded
            }
        }
        for (queue, load) in pending {
            if let index = decided.firstIndex(where: { $0.loadID == load.loadID }) {
                // Its first commit was refused, and the load was decided again.
                if decided[index].outcome == .superseded { decided[index].outcome = .pending }
                continue
            }
            decided.append(
                .with {
                    $0.loadID = load.loadID
                    $0.queue = queue
                    $0.entry = load.entry
                    $0.outcome = .pending
                    let isAdvance = LoadID.advance(after: load.replacesLoad).text == load.loadID
                    if isAdvance { $0.afterLoad = load.replacesLoad }
                })
        }
        decided.removeFirst(max(0, decided.count - Self.decidedLimit))
    }

    private mutating func recordOutcome(_ load: String, _ outcome: WireDecidedLoad.Outcome, _ failure: Failure? = nil) {
        guard let index = decided.firstIndex(where: { $0.loadID == load }) else { return }
        decided[index].outcome = outcome
        if let failure { decided[index].failure = WireFailure(failure) }
    }
}

extension WireLoadEpisode {
    fileprivate init(_ entry: WireQueueEntry, of queue: String, as loadID: String, paused: Bool) {
        self.init()
        episode = entry.episode
        self.loadID = loadID
        self.paused = paused
        queueEntry = entry.id
        self.queue = queue
    }
}

/// A load that is decided but not accepted by the player, with its entry.
struct DecidedLoad {
    var queue: String
    var pending: LoadCoordinator.PendingLoad
    var entry: WireQueueEntry
}
