package import BusKit

/// What a connection follows.
public enum Observation: Sendable, Hashable {
    /// All state.
    case everything
    /// All state but the queues, the podcasts, the downloads and the bookmarks.
    case player
    /// Nothing: the connection only carries commands, and `state` stays empty.
    case nothing

    var selection: TopicSelection? {
        switch self {
        case .everything: .all
        case .player: .player
        case .nothing: nil
        }
    }
}

extension TopicSelection {
    /// What commands about the player read: everything but the queues and what grows with the library.
    package static let player = TopicSelection.all(except: growing + ["stream/queue/queue/"])
    /// What `toggle` reads, which starts a queue when nothing is loaded: everything but what grows with the library.
    package static let playerAndQueues = TopicSelection.all(except: growing)

    private static let growing = [
        "stream/feeds/podcast/", "stream/downloads/download/", "stream/playback/bookmarks/",
    ]
}
