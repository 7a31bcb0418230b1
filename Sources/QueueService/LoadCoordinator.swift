import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Follows the loads that the queue decides until the player has accepted or refused them.
///
/// The player is asked for one load at a time: two requests under way could overtake each other, and the older load would win.
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
    private var asked: String?
    /// The newest load that the player has accepted in this life of the queue; the stream may not show it yet.
    private var accepted: String?
    /// The newest loads that were decided, with their outcomes, in order.
    private(set) var decided: [WireDecidedLoad] = []
    /// What the player was told last to prepare, and the call while it has not answered.
    private var prepared: WirePrepareEpisode?
    private var preparing: CallID?

    /// Whether the player is being asked for a load.
    var isAsking: Bool { asked != nil }

    /// The loads that the player was asked for last, the older first; the stream may show neither of them yet.
    var latest: [String] { [accepted, asked].compactMap(\.self) }

    // MARK: Asking

    /// Asks the player for a load.
    mutating func ask(for pending: PendingLoad, of entry: WireQueueEntry, in queue: String) -> Call {
        var request = WirePlaybackRequest()
        request.load = Self.load(entry, of: queue, as: pending.loadID, paused: pending.paused)
        if pending.hasPosition { request.load.position = pending.position }
        asked = pending.loadID
        return Call(
            id: Self.call(for: pending.loadID), to: .playback, payload: request.wireBytes,
            request: RequestID(pending.requestID), limit: .seconds(5))
    }

    /// The player has answered, or could not be reached in time. Nil: the call was another one.
    mutating func answered(_ result: Result<[UInt8], Failure>, to call: CallID) -> (load: String, answer: Answer)? {
        guard let load = asked, call == Self.call(for: load) else { return nil }
        asked = nil
        switch result {
        case .success(let reply):
            accepted = load
            settle(load, .accepted)
            let state = try? WirePlaybackReply(wireBytes: reply).state
            return (load, .accepted(state.flatMap { $0.loadID == load ? $0 : nil }))
        case .failure(let failure) where failure.retry:
            return (load, .retry(failure))
        case .failure(let failure):
            settle(load, .refused, failure)
            return (load, .refused(failure))
        }
    }

    /// A load as the player is asked for it.
    private static func load(
        _ entry: WireQueueEntry, of queue: String, as loadID: String, paused: Bool
    ) -> WireLoadEpisode {
        var load = WireLoadEpisode()
        load.episode = entry.episode
        load.loadID = loadID
        load.paused = paused
        load.queueEntry = entry.id
        load.queue = queue
        return load
    }

    private static func call(for load: String) -> CallID { CallID("load/\(load)") }

    // MARK: Preparing

    /// Tells the player which entry follows the loaded one (nil: none), unless it was told so already. One such request is
    /// under way at most, and none is repeated: preparing only saves time.
    mutating func prepare(
        _ next: WireQueueEntry?, of queue: String, after load: String, as call: CallID
    ) -> Call? {
        guard preparing == nil else { return nil }
        var wanted = WirePrepareEpisode()
        wanted.afterLoad = load
        if let next { wanted.load = Self.load(next, of: queue, as: LoadID.advance(after: load).text, paused: false) }
        guard wanted != prepared else { return nil }
        prepared = wanted
        preparing = call
        var message = WirePlaybackRequest()
        message.prepare = wanted
        return Call(id: call, to: .playback, payload: message.wireBytes, limit: .seconds(5))
    }

    /// The player has answered what it was told to prepare. False: the call was another one.
    mutating func isPrepared(_ call: CallID) -> Bool {
        guard call == preparing else { return false }
        preparing = nil
        return true
    }

    /// The player has gone, and with it what it has prepared.
    mutating func playerIsGone() { prepared = nil }

    // MARK: Outcomes

    /// Takes over which loads are pending now, in order of their decision; of those that no longer are, and that the player
    /// was never seen to accept, something else has taken the place.
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
