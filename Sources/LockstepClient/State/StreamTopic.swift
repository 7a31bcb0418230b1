import WireMessages

/// The kind of a topic’s message. IDs and names are parsed from the topic.
enum StreamTopic: Sendable, Hashable {
    case player, output, episode, episodeStates, playSession, bookmarks(String)
    case queue(String), next, playlist(String)
    case podcast(String), episodes, inbox, job(String)
    case download(String), downloadProgress
    case settings, alert
    case service(String), database

    /// Returns nil for a topic of another kind.
    init?(_ topic: Topic) {
        let parts = topic.parts
        guard let first = parts.first, let last = parts.last, first == "stream" else {
            guard parts.count == 3, parts[0] == "live", parts[1] == "downloads" else { return nil }
            self = .downloadProgress
            return
        }
        switch (parts.count, parts.dropFirst().first, parts.dropFirst(2).first) {
        case (3, "playback", "state"): self = .player
        case (3, "playback", "output"): self = .output
        case (4, "playback", "episode"): self = .episode
        case (3, "playback", "states"): self = .episodeStates
        case (3, "playback", "session"): self = .playSession
        case (4, "playback", "bookmarks"): self = .bookmarks(String(last))
        case (4, "queue", "queue"): self = .queue(String(last))
        case (3, "queue", "next"): self = .next
        case (4, "queue", "playlist"): self = .playlist(String(last))
        case (4, "feeds", "podcast"): self = .podcast(String(last))
        case (4, "feeds", "episodes"): self = .episodes
        case (3, "feeds", "inbox"): self = .inbox
        case (4, "feeds", "job"): self = .job(String(last))
        case (4, "downloads", "download"): self = .download(String(last))
        case (4, "bus", "service"): self = .service(String(last))
        case (3, "persistence", "status"): self = .database
        case (4, _, "alert"): self = .alert
        case (4, _, "settings"): self = .settings
        default: return nil
        }
    }
}
