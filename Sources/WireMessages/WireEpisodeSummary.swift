extension WireEpisodeSummary {
    /// Creates the summary of an episode for a queue entry and the player.
    package init(_ episode: WireEpisode) {
        self.init()
        id = episode.id
        title = episode.title
        podcastID = episode.podcastID
        podcastTitle = episode.podcastTitle
        duration = episode.state.duration > 0 ? episode.state.duration : episode.duration
        position = episode.state.position
        enclosureURL = episode.enclosureURL
        enclosureType = episode.enclosureType
        imageURL = episode.imageURL
        played = episode.state.played
        published = episode.published
    }
}
