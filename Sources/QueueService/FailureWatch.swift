import PodcastModel
import WireMessages

/// Decides whether an entry that fails is passed over, by whether the loaded episode plays unattended and which entries were
/// passed over since an episode ended. It is not stored: an episode that a restarted queue finds failed may have failed days
/// ago, when nobody expects the next one to play.
struct FailureWatch: Sendable {
    /// The maximum number of entries that are passed over in a row. More failures are due to the network,
    /// such as a login page in place of every episode.
    static let limit = 3

    private var load = ""
    private var status = WirePlaybackState.Status.unknown
    /// Whether it plays, or will, without a command for it.
    private(set) var isUnattended = false
    private(set) var passedOver: Set<String> = []

    /// - Parameters:
    ///   - isByItself: the queue has decided this load when the one before it ended.
    ///   - isNew: the player was asked for it since the queue started.
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
        // Paused before its file is open, or by the end of the sleep timer.
        case .loading where !state.willPlay: isUnattended = false
        case .finished: passedOver = []
        default: break
        }
    }

    /// Whether an entry that has failed gives way to another. One that was to be passed over already, which could not be
    /// stored, still does.
    func givesWay(_ entry: String, to next: String) -> Bool {
        isUnattended && passedOver.subtracting([entry]).count < Self.limit && !passedOver.contains(next)
    }

    mutating func passOver(_ entry: String) { passedOver.insert(entry) }

    /// Leaves a failed episode loaded: an entry that is added later doesn't play by itself.
    mutating func stay() { isUnattended = false }
}

extension WireFailure {
    /// Whether an episode that failed of this will fail of it again: its address is wrong, or leads to something else.
    var isLasting: Bool {
        switch FailureCode(rawValue: code) {
        case .episodeUnavailable, .badURL, .decoderFailed, .fileMissing: true
        case .streamFailed: !retry
        default: false
        }
    }
}
