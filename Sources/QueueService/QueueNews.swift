import WireMessages

/// A change of another service’s state that concerns the queue.
enum QueueNews: Sendable {
    case player(WirePlaybackState)
    case playerIsReady(Bool)
    case feedsIsReady(Bool)
    /// An episode's position or played mark.
    case episodeState(WireEpisodeState)
    /// Many episodes' positions or played marks.
    case episodeStates([String])
    /// A podcast; nil: it is unreadable, or gone.
    case podcast(String, WirePodcast?)
    case episodes(WireEpisodesChanged)

    /// Nil for an event that the queue doesn’t use, or can’t read.
    init?(_ event: StreamEvent) {
        func read<Message>(_ make: ([UInt8]) throws -> Message) -> Message? {
            event.header.kind == .delete ? nil : try? make(event.payload)
        }
        func isReady() -> Bool { read(WireServiceStatus.init(wireBytes:))?.state == .ready }
        let parts = event.topic.parts.map(String.init)
        switch (parts.dropFirst().first, parts.dropFirst(2).first, parts.count) {
        case ("playback", "state", 3):
            guard event.header.kind == .put, let state = read(WirePlaybackState.init(wireBytes:)) else { return nil }
            self = .player(state)
        case ("playback", "states", 3):
            guard let news = read(WireEpisodeStatesChanged.init(wireBytes:)) else { return nil }
            self = .episodeStates(news.episodes)
        case ("playback", "episode", 4):
            guard event.header.kind == .event, let state = read(WireEpisodeState.init(wireBytes:)) else { return nil }
            self = .episodeState(state)
        case ("bus", "service", 4) where parts[3] == "playback": self = .playerIsReady(isReady())
        case ("bus", "service", 4) where parts[3] == "feeds": self = .feedsIsReady(isReady())
        case ("feeds", "podcast", 4):
            self = .podcast(parts[3], event.header.kind == .put ? read(WirePodcast.init(wireBytes:)) : nil)
        case ("feeds", "episodes", 4):
            guard event.header.kind == .event, let news = read(WireEpisodesChanged.init(wireBytes:)) else { return nil }
            self = .episodes(news)
        default: return nil
        }
    }
}
