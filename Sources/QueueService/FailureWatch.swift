import PodcastModel
import WireMessages

/// Decides whether a failing entry is skipped, from whether the loaded episode plays unattended and which entries
/// were skipped since an episode ended. It isn’t stored: an episode that a restarted queue finds failed may have
/// failed days ago, when no user expects the next one to play.
struct FailureWatch: Sendable {
    /// The maximum number of entries that are skipped in a row. More failures are due to the network,
    /// such as a login page in place of every episode.
    static let limit = 3

    private var load = ""
    private var status = WirePlaybackState.Status.unknown
    /// Whether the episode plays, or will, without a command for it.
    private(set) var isUnattended = false
    private(set) var passedOver: Set<String> = []

    /// - Parameters:
    ///   - isByItself: whether the queue decided this load when the one before it ended.
    ///   - isNew: whether the load was requested from the player since the queue started.
    mutating func observe(_ state: WirePlaybackState, isByItself: Bool, isNew: Bool) {
        if state.loadID != load {
            load = state.loadID
            isUnattended = isByItself && (isNew || state.status == .loading && state.willPlay)
            if !isByItself { passedOver = [] }
        } else if status == .failed, state.status == .loading {
            // A user has retried it, or its server is back.
            isUnattended = false
        }
        status = state.status
        switch state.status {
        case .playing: isUnattended = true
        case .paused, .idle: isUnattended = false
        // It was paused before its file was open, or by the end of the sleep timer.
        case .loading where !state.willPlay: isUnattended = false
        case .finished: passedOver = []
        default: break
        }
    }

    /// Whether a failed entry is skipped. This also holds if an earlier skip of the entry couldn’t be
    /// stored.
    func givesWay(_ entry: String, to next: String) -> Bool {
        isUnattended && passedOver.subtracting([entry]).count < Self.limit && !passedOver.contains(next)
    }

    mutating func passOver(_ entry: String) { passedOver.insert(entry) }

    /// Leaves a failed episode loaded: an entry that is added later doesn’t play automatically.
    mutating func stay() { isUnattended = false }
}

extension WireFailure {
    /// Whether another attempt would fail in the same way: the address is wrong, or its content is.
    var isLasting: Bool {
        switch FailureCode(rawValue: code) {
        case .episodeUnavailable, .badURL, .decoderFailed, .fileMissing: true
        case .streamFailed: !retry
        default: false
        }
    }
}
