import PodcastModel
import WireMessages

/// Decides whether a failed entry is skipped: only if the episode plays unattended, and few entries have been skipped
/// since the last episode that ended. This state isn’t stored, because an episode that failed before a restart may have
/// failed days ago, and no user expects the next one to play now.
struct FailureWatch: Sendable {
    /// The maximum number of entries that are skipped in a row. More failures are due to the network,
    /// such as a login page in place of every episode.
    static let limit = 3

    private var load = ""
    private var status = WirePlaybackState.Status.unknown
    /// Whether the episode plays, or will play, without a user’s command.
    private(set) var isUnattended = false
    private(set) var skipped: Set<String> = []

    /// - Parameters:
    ///   - isAdvance: Whether the queue decided this load when the previous one ended.
    ///   - isNew: Whether the load was requested since the queue service started.
    mutating func observe(_ state: WirePlaybackState, isAdvance: Bool, isNew: Bool) {
        if state.loadID != load {
            load = state.loadID
            isUnattended = isAdvance && (isNew || state.status == .loading && state.willPlay)
            if !isAdvance { skipped = [] }
        } else if status == .failed, state.status == .loading {
            // A user has retried the episode, or its server is reachable again.
            isUnattended = false
        }
        status = state.status
        switch state.status {
        case .playing: isUnattended = true
        case .paused, .idle: isUnattended = false
        // The episode was paused before its file was opened, or when the sleep timer ended.
        case .loading where !state.willPlay: isUnattended = false
        case .finished: skipped = []
        default: break
        }
    }

    /// Whether to skip a failed entry, so that `next` plays. If the skip can’t be stored, the same entry may be skipped
    /// again.
    func shouldSkip(_ entry: String, for next: String) -> Bool {
        isUnattended && skipped.subtracting([entry]).count < Self.limit && !skipped.contains(next)
    }

    mutating func recordSkip(of entry: String) { skipped.insert(entry) }

    /// Leaves a failed episode loaded: an entry that is added later doesn’t play automatically.
    mutating func keepLoaded() { isUnattended = false }
}

extension WireFailure {
    /// Whether a retry would fail in the same way, because the address or its content is invalid.
    var isPermanent: Bool {
        switch FailureCode(rawValue: code) {
        case .episodeUnavailable, .badURL, .decoderFailed, .fileMissing: true
        case .streamFailed: !retry
        default: false
        }
    }
}
