import OwnerKit
import PodcastModel
import WireMessages

/// Compares the replies to clients with the stored and published state.
struct GuaranteeChecks {
    private struct PlayerRequest {
        var request: WirePlaybackRequest
        /// The player’s state after the command.
        var after: WirePlaybackState?
    }

    private var playerRequests: [RequestID: PlayerRequest] = [:]
    private var queueRequests: Set<RequestID> = []
    /// The alerts that have been answered.
    private var answered: Set<String> = []
    /// The loads that have been stored.
    private var loads: Set<String> = []
    private(set) var acknowledged = 0
    private(set) var refused = 0

    /// Whether a client waits for a reply.
    var isWaiting: Bool { !playerRequests.isEmpty || !queueRequests.isEmpty }

    mutating func recordQueueRequest(_ id: RequestID) { queueRequests.insert(id) }
    mutating func recordPlayerRequest(_ id: RequestID, _ request: WirePlaybackRequest) {
        playerRequests[id] = PlayerRequest(request: request)
    }

    /// Drops the player’s requests: a killed process doesn’t reply.
    mutating func dropPlayerRequests() { playerRequests = [:] }
    mutating func dropQueueRequests() { queueRequests = [] }

    /// Records the queue’s reply.
    ///
    /// - Returns: whether a client was waiting for the reply.
    mutating func recordQueueReply(_ id: RequestID) -> Bool { queueRequests.remove(id) != nil }

    /// Records the player’s state after a command.
    mutating func record(_ state: WirePlaybackState, after id: RequestID) { playerRequests[id]?.after = state }

    /// Records the loads in the stored records.
    mutating func record(_ records: [String: StoredRecord]) {
        guard let record = records["session/current"], let session = try? WireSessionRecord(wireBytes: record.value)
        else { return }
        loads.insert(session.loadID)
    }

    /// Records the player’s reply, and checks that the state that it acknowledges is stored.
    mutating func checkPlayerReply(
        _ id: RequestID, _ result: Result<[UInt8], Failure>, stored: [String: StoredRecord], shown: SimulatedScreen
    ) -> String? {
        guard let pending = playerRequests.removeValue(forKey: id) else { return nil }
        guard case .success = result else {
            refused += 1
            return nil
        }
        acknowledged += 1
        switch pending.request.command {
        case .answerAlert(let answer)?:
            answered.insert(answer.alert)
            return checkAlerts(shown)
        case .setSleep?:
            return pending.after?.hasSleep == (stored["sleep/current"] != nil) ? nil : "a sleep timer is not stored"
        case .setPaused?, .stop?:
            return pending.after.flatMap {
                compare($0, with: stored["session/current"], isExact: $0.status != .playing)
            }
        case .seek?: return pending.after.flatMap { compare($0, with: stored["session/current"], isExact: true) }
        default: return nil
        }
    }

    /// - Parameter isExact: whether the position is reported, not estimated.
    private func compare(_ state: WirePlaybackState, with record: StoredRecord?, isExact: Bool) -> String? {
        // A load isn’t stored until its episode is looked up; after a crash it is requested again.
        guard state.status != .finished, loads.contains(state.loadID) else { return nil }
        guard let record, let session = try? WireSessionRecord(wireBytes: record.value) else {
            return "\(state.loadID) is not stored"
        }
        let isMoved = isExact && !state.anchor.running && abs(session.position - state.anchor.position) > 0.01
        let isSame =
            session.loadID == state.loadID && (session.status == .playing) == state.intendsToPlay
            && (session.status == .failed) == (state.status == .failed) && !isMoved
        return isSame
            ? nil
            : "\(state.status) \(state.loadID) at \(state.anchor.position) was acknowledged, but \(session.status) \(session.loadID) at \(session.position) is stored"
    }

    /// Checks that no answered alert is active.
    func checkAlerts(_ shown: SimulatedScreen) -> String? {
        shown.alerts.values.first { answered.contains($0.id) }.map { "\($0.code) is active although it was answered" }
    }
}
