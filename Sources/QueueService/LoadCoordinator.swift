import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Follows the loads that the queue decides until the player has accepted or refused them.
///
/// The player receives one load request at a time, because two could arrive in the wrong order.
struct LoadCoordinator: Sendable {
    /// A load that is part of a queue’s durable state until the player has accepted it.
    typealias PendingLoad = WireQueueHeaderRecord.PendingLoad

    /// The maximum number of loads whose outcomes are kept.
    static let decidedLimit = 8

    /// The load in the pending request to the player.
    private var requested: String?
    /// The newest load that the player has accepted since the queue started; the stream may not show it yet.
    private var accepted: String?
    /// The newest decided loads with their outcomes, in order.
    private(set) var decided: [WireDecidedLoad] = []
    /// The newest load whose preparation was requested from the player, and whether the reply is pending.
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

    /// Returns the player’s state after it has accepted a load, if it shows the load; nil: no such request is pending.
    mutating func answered(
        _ result: Result<[UInt8], Failure>, to load: String
    ) -> Result<WirePlaybackState?, Failure>? {
        guard load == requested else { return nil }
        requested = nil
        switch result {
        case .success:
            accepted = load
            settle(load, .accepted)
        case .failure(let failure):
            if !failure.retry { settle(load, .refused, failure) }
        }
        return result.map { reply in
            let state = try? WirePlaybackReply(wireBytes: reply).state
            return state?.loadID == load ? state : nil
        }
    }

    /// Returns the request that names the entry after the loaded one (nil: none) to the player, if it has changed. At most
    /// one such request is pending, and none is retried, because preparation only saves time.
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
    mutating func playerIsGone() { preparation = nil }

    /// Tracks the pending loads, in order of their decision. A load that is no longer pending, and whose
    /// acceptance by the player isn’t known, was superseded.
    mutating func follow(_ pending: [(queue: String, load: PendingLoad)]) {
        for index in decided.indices where decided[index].outcome == .pending {
            if !pending.contains(where: { $0.load.loadID == decided[index].loadID }) {
                decided[index].outcome = .superseded
            }
        }
        for (queue, load) in pending {
            if let index = decided.firstIndex(where: { $0.loadID == load.loadID }) {
                // The commit of its first decision was refused.
                if decided[index].outcome == .superseded { decided[index].outcome = .pending }
                continue
            }
            decided.append(
                .with {
                    $0.loadID = load.loadID
                    $0.queue = queue
                    $0.entry = load.entry
                    $0.outcome = .pending
                    let isByItself = LoadID.advance(after: load.replacesLoad).text == load.loadID
                    if isByItself { $0.afterLoad = load.replacesLoad }
                })
        }
        decided.removeFirst(max(0, decided.count - Self.decidedLimit))
    }

    private mutating func settle(_ load: String, _ outcome: WireDecidedLoad.Outcome, _ failure: Failure? = nil) {
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
