import PodcastModel
import WireMessages

/// Follows whether somebody attends to what is loaded, and which entries were passed over since something ended well.
///
/// Nothing of it is stored: what a later life of the queue finds failed may have been so for days, and nobody waits for
/// what follows it.
struct FailureWatch: Sendable {
    /// The maximum number of entries that are passed over in a row. That more of them can't be had is the network's doing,
    /// as with a login page in place of every episode.
    static let limit = 3

    private var load = ""
    /// Whether it plays, or will, without anybody's having asked for it just now.
    private(set) var isUnattended = false
    private(set) var passedOver: Set<String> = []

    /// The player has another state.
    ///
    /// - Parameters:
    ///   - isByItself: the queue has decided this load when the one before it ended.
    ///   - isNew: the player was asked for it in this life of the queue.
    mutating func observe(_ state: WirePlaybackState, isByItself: Bool, isNew: Bool) {
        if state.loadID != load {
            load = state.loadID
            isUnattended = isByItself && (isNew || state.status == .loading && state.willPlay)
            if !isByItself { passedOver = [] }
        }
        switch state.status {
        case .playing: isUnattended = true
        case .paused, .idle: isUnattended = false
        case .finished: passedOver = []
        default: break
        }
    }

    /// Whether what has failed gives way to an entry.
    func givesWay(to next: String) -> Bool {
        isUnattended && passedOver.count < Self.limit && !passedOver.contains(next)
    }

    mutating func passOver(_ entry: String) { passedOver.insert(entry) }
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
