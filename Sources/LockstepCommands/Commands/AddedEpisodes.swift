import ArgumentParser
import LockstepClient
import PodcastModel

/// The episodes that a command adds to a queue or a playlist: named, of a podcast, or selected by a rule.
struct AddedEpisodes: ParsableArguments {
    @Option(help: "Add all episodes of this podcast, the oldest first.", completion: .podcasts) var podcast: String?
    @Flag(help: "With --podcast, add only unplayed episodes.") var unplayed = false
    @Option(help: "Add only episodes that fit into this time, such as 45m, at normal speed.") var fit: String?
    @Argument(help: "IDs, beginnings of IDs, or parts of titles.", completion: .episodes) var episodes: [String] = []
    @OptionGroup var list: EpisodeListOptions

    func validate() throws {
        let isList = podcast != nil || list.rule != nil
        guard episodes.isEmpty || podcast == nil else {
            throw ValidationError("Episodes and --podcast can’t be combined: --podcast adds all episodes of a podcast.")
        }
        try EpisodeArguments.refuseCombination(episodes, rule: list.rule)
        guard !episodes.isEmpty || isList else {
            throw ValidationError("Name the episodes to add, a podcast with --podcast, or a rule with --where.")
        }
        guard !unplayed || podcast != nil else { throw ValidationError("--unplayed needs --podcast.") }
        guard list.sort == nil || isList else { throw ValidationError("--sort needs --podcast or --where.") }
    }

    /// Returns the episodes to add and, if there are none, the reason.
    func find(in library: LibraryClient) async throws(Failure) -> (episodes: [Episode], reasonIfEmpty: String) {
        let room = try fit.map { text throws(Failure) in try Self.seconds(text) }
        let found = try await wanted(library)
        guard found.isEmpty else {
            guard let room else { return (found, "") }
            return (Self.fitting(found, into: room), "no episode fits into \(TimeText.span(room))")
        }
        return (
            [],
            list.rule != nil ? "no episode matches" : "this podcast has no \(unplayed ? "unplayed episode" : "episode")"
        )
    }

    private func wanted(_ library: LibraryClient) async throws(Failure) -> [Episode] {
        guard podcast != nil || list.rule != nil else { return try await library.find(episodes) }
        var wanted = try await list.list(library, order: .oldest)
        if let podcast { wanted.podcast = try await library.findPodcast(typed: podcast).id }
        wanted.isUnplayed = unplayed
        let limit = RequestSizes.queueEntries
        let found = try await library.episodes(in: wanted, limit: limit + 1).episodes
        guard found.count <= limit else {
            throw Failure(.limitReached, "More than \(limit) episodes match; a list holds at most \(limit).")
        }
        return found
    }

    private static func seconds(_ text: String) throws(Failure) -> Double {
        guard let seconds = DurationText.withUnit(text), seconds > 0 else {
            throw Failure(.invalidArgument, "\(DisplayText.quoted(text)) isn’t a time. Use 45m, 1h30m or 1:30:00.")
        }
        return seconds
    }

    /// The episodes whose remaining lengths together fit into a time: each that fits beside those before it. Episodes
    /// of unknown length are left out.
    static func fitting(_ episodes: [Episode], into seconds: Double) -> [Episode] {
        var left = seconds
        return episodes.filter { episode in
            // A played episode is played from its start.
            guard let remaining = episode.isPlayed ? episode.duration : episode.remaining, remaining <= left else {
                return false
            }
            left -= remaining
            return true
        }
    }
}
