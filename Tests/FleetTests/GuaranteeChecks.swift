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

    private var ofPlayer: [RequestID: PlayerRequest] = [:]
    private var ofQueue: Set<RequestID> = []
    /// The alerts that have been answered.
    private var answered: Set<String> = []
    /// The loads that have been stored.
    private var loads: Set<String> = []
    private(set) var acknowledged = 0
    private(set) var refused = 0

    /// Whether a client waits for a reply.
    var isOpen: Bool { !ofPlayer.isEmpty || !ofQueue.isEmpty }

    mutating func askQueue(_ id: RequestID) { ofQueue.insert(id) }
    mutating func askPlayer(_ id: RequestID, _ request: WirePlaybackRequest) {
        ofPlayer[id] = PlayerRequest(request: request)
    }

    /// Drops the player’s requests: a killed process doesn’t reply.
    mutating func dropPlayerRequests() { ofPlayer = [:] }
    mutating func dropQueueRequests() { ofQueue = [] }

    /// Records that the queue has replied.
    ///
    /// - Returns: whether a client waited for the reply.
    mutating func answerQueue(_ id: RequestID) -> Bool { ofQueue.remove(id) != nil }

    /// Records the player’s state after a command.
    mutating func record(_ state: WirePlaybackState, after id: RequestID) { ofPlayer[id]?.after = state }

    /// Records the changed stored state.
    mutating func record(_ records: [String: StoredRecord]) {
        guard let record = records["session/current"], let session = try? WireSessionRecord(wireBytes: record.value)
        else { return }
        loads.insert(session.loadID)
    }

    /// Checks that the state that the player’s reply reports is stored.
    mutating func answerPlayer(
        _ id: RequestID, _ result: Result<[UInt8], Failure>, stored: [String: StoredRecord], shown: SimulatedScreen
    ) -> String? {
        guard let asked = ofPlayer.removeValue(forKey: id) else { return nil }
        guard case .success = result else {
            refused += 1
            return nil
        }
        acknowledged += 1
        switch asked.request.command {
        case .answerAlert(let answer)?:
            answered.insert(answer.alert)
            return judge(shown)
        case .setSleep?:
            return asked.after?.hasSleep == (stored["sleep/current"] != nil) ? nil : "a sleep timer is not stored"
        case .setPaused?, .stop?:
            return asked.after.flatMap { judge($0, by: stored["session/current"], isExact: $0.status != .playing) }
        case .seek?: return asked.after.flatMap { judge($0, by: stored["session/current"], isExact: true) }
        default: return nil
        }
    }

    /// - Parameter isExact: whether the position is reported, not estimated.
    private func judge(_ state: WirePlaybackState, by record: StoredRecord?, isExact: Bool) -> String? {
        // A load that is being looked up isn’t stored; it’s requested again.
        guard state.status != .finished, loads.contains(state.loadID) else { return nil }
        guard let record, let session = try? WireSessionRecord(wireBytes: record.value) else {
            return "\(state.loadID) is not stored"
        }
        let isMoved = isExact && !state.anchor.running && abs(session.position - state.anchor.position) > 0.01
        let isSame =
            session.loadID == state.loadID && (session.status == .playing) == state.isToPlay
            && (session.status == .failed) == (state.status == .failed) && !isMoved
        return isSame
            ? nil
            : "\(state.status) \(state.loadID) at \(state.anchor.position) was acknowledged, but \(session.status) \(session.loadID) at \(session.position) is stored"
    }

    /// Checks that the effects of acknowledged requests aren’t lost.
    func judge(_ shown: SimulatedScreen) -> String? {
        shown.alerts.values.first { answered.contains($0.id) }.map { "\($0.code) is active although it was answered" }
    }
}
