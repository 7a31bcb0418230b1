import PodcastModel
import WireMessages

/// Decides whether a failing entry is skipped, from whether the loaded episode plays unattended and which entries
/// were skipped since an episode ended. This isn’t stored: an episode that had failed before the queue
/// restarted may have failed days ago, and no user expects the next one to play now.
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
    ///   - isByItself: whether the queue decided this load at the end of the previous one.
    ///   - isNew: whether the load was requested from the player since the queue started.
    mutating func observe(_ state: WirePlaybackState, isByItself: Bool, isNew: Bool) {
        if state.loadID != load {
            load = state.loadID
            isUnattended = isByItself && (isNew || state.status == .loading && state.willPlay)
            if !isByItself { skipped = [] }
        } else if status == .failed, state.status == .loading {
            // A user has retried it, or its server is reachable again.
            isUnattended = false
        }
        status = state.status
        switch state.status {
        case .playing: isUnattended = true
        case .paused, .idle: isUnattended = false
        // It was paused before its file was open, or by the end of the sleep timer.
        case .loading where !state.willPlay: isUnattended = false
        case .finished: skipped = []
        default: break
        }
    }

    /// Whether a failed entry is skipped; also if an earlier attempt to skip it couldn’t be stored.
    func shouldSkip(_ entry: String, for next: String) -> Bool {
        isUnattended && skipped.subtracting([entry]).count < Self.limit && !skipped.contains(next)
    }

    mutating func recordSkip(of entry: String) { skipped.insert(entry) }

    /// Leaves a failed episode loaded: an entry that is added later doesn’t play automatically.
    mutating func keepLoaded() { isUnattended = false }
}

extension WireFailure {
    /// Whether a retry would fail in the same way, because the address or its content is invalid.
    var isLasting: Bool {
        switch FailureCode(rawValue: code) {
        case .episodeUnavailable, .badURL, .decoderFailed, .fileMissing: true
        case .streamFailed: !retry
        default: false
        }
    }
}
