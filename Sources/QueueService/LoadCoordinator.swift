import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Follows the loads that the queue decides until the player has accepted or refused them.
///
/// The player is asked for one load at a time: two requests under way could arrive in the wrong order, and the older load would win.
struct LoadCoordinator: Sendable {
    /// A load that is part of a queue's durable state until the player has accepted it.
    typealias PendingLoad = WireQueueHeaderRecord.PendingLoad

    /// The answer to a load that the player was asked for.
    enum Answer: Sendable {
        /// The player has it; its state, if that shows the load.
        case accepted(WirePlaybackState?)
        case refused(Failure)
        /// The player could not be reached, or can accept it later.
        case retry(Failure)
    }

    /// The maximum number of loads whose outcomes are remembered.
    static let decidedLimit = 8

    /// The load that the player is being asked for.
    private var requested: String?
    /// The newest load that the player has accepted since the queue started; the stream may not show it yet.
    private var accepted: String?
    /// The newest loads that were decided, with their outcomes, in order.
    private(set) var decided: [WireDecidedLoad] = []
    /// The newest load that the player was asked to prepare, and whether it has yet to answer.
    private var preparation: WirePrepareEpisode?
    private var isPreparing = false

    /// Whether the player is being asked for a load.
    var isRequesting: Bool { requested != nil }

    /// The loads that the player was asked for last, the older first; the stream may show neither of them yet.
    var latest: [String] { [accepted, requested].compactMap(\.self) }

    // MARK: Requesting

    /// Asks the player for a load.
    mutating func request(_ load: DecidedLoad) -> QueueMachine.Call {
        let pending = load.pending
        var request = WirePlaybackRequest()
        request.load = Self.load(load.entry, of: load.queue, as: pending.loadID, paused: pending.paused)
        if pending.hasPosition { request.load.position = pending.position }
        requested = pending.loadID
        return QueueMachine.Call(
            .load(pending.loadID), to: .playback, payload: request.wireBytes, request: RequestID(pending.requestID),
            limit: .seconds(5))
    }

    /// The player has answered, or could not be reached in time. Nil: it isn’t asked for this load any more.
    mutating func answered(_ result: Result<[UInt8], Failure>, to load: String) -> Answer? {
        guard load == requested else { return nil }
        requested = nil
        switch result {
        case .success(let reply):
            accepted = load
            settle(load, .accepted)
            let state = try? WirePlaybackReply(wireBytes: reply).state
            return .accepted(state.flatMap { $0.loadID == load ? $0 : nil })
        case .failure(let failure) where failure.retry:
            return .retry(failure)
        case .failure(let failure):
            settle(load, .refused, failure)
            return .refused(failure)
        }
    }

    /// A load as the player is asked for it.
    private static func load(
        _ entry: WireQueueEntry, of queue: String, as loadID: String, paused: Bool
    ) -> WireLoadEpisode {
        .with {
            $0.episode = entry.episode
            $0.loadID = loadID
            $0.paused = paused
            $0.queueEntry = entry.id
            $0.queue = queue
        }
    }

    // MARK: Preparing

    /// Announces to the player which entry follows the loaded one (nil: none), unless it knows. At most one such request is
    /// under way, and none is retried: preparing only saves time.
    mutating func prepare(_ next: WireQueueEntry?, of queue: String, after load: String) -> QueueMachine.Call? {
        guard !isPreparing else { return nil }
        var wanted = WirePrepareEpisode()
        wanted.afterLoad = load
        if let next { wanted.load = Self.load(next, of: queue, as: LoadID.advance(after: load).text, paused: false) }
        guard wanted != preparation else { return nil }
        preparation = wanted
        isPreparing = true
        let message = WirePlaybackRequest.with { $0.prepare = wanted }
        return QueueMachine.Call(.preparation, to: .playback, payload: message.wireBytes, limit: .seconds(5))
    }

    /// The player has answered the request to prepare.
    mutating func prepared() { isPreparing = false }

    /// The player has ended, and has lost what it had prepared.
    mutating func playerIsGone() { preparation = nil }

    // MARK: Outcomes

    /// Follows which loads are pending now, in order of their decision. One that no longer is, and that the player was never
    /// seen to accept, has been superseded.
    mutating func follow(_ pending: [(queue: String, load: PendingLoad)]) {
        for index in decided.indices where decided[index].outcome == .pending {
            if !pending.contains(where: { $0.load.loadID == decided[index].loadID }) {
                decided[index].outcome = .superseded
            }
        }
        for (queue, load) in pending {
            if let index = decided.firstIndex(where: { $0.loadID == load.loadID }) {
                // Its commit was refused, and it has been decided once more.
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

/// A load that is decided and that the player has not accepted, with its entry.
struct DecidedLoad {
    var queue: String
    var pending: LoadCoordinator.PendingLoad
    var entry: WireQueueEntry
}
