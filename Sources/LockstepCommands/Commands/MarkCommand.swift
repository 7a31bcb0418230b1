import ArgumentParser
import BusKit
import LockstepClient
import PodcastModel
import WireMessages

struct Mark: LockstepCommand {
    enum Kind: String, ExpressibleByArgument, CaseIterable {
        case played
        case unplayed
    }

    static let configuration = CommandConfiguration(
        commandName: "mark", abstract: "Mark episodes as played or unplayed.")
    @Argument(help: "played or unplayed.") var kind: Kind
    @Argument(help: "IDs, beginnings of IDs, or parts of titles.", completion: .episodes) var episodes: [String]
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            // All are found before any is changed.
            let found = try await session.findEpisodes(episodes)
            var changed: [String] = []
            var same: [String] = []
            var values: [JSONValue] = []
            for part in found.parts(of: RequestSizes.episodes) {
                let reply = try await session.playback {
                    $0.setPlayed.episodes = part.map(\.id)
                    $0.setPlayed.played = kind == .played
                }.episodeStates
                for ((episode, state), isChanged) in zip(zip(part, reply.states), reply.changed) {
                    if isChanged { changed.append(episode.title) } else { same.append(episode.title) }
                    values.append(state.json.adding("changed", .bool(isChanged)))
                }
            }
            var parts: [String] = []
            if !changed.isEmpty { parts.append("Marked \(QueueAdd.names(changed)) as \(kind.rawValue)") }
            if !same.isEmpty {
                let verb = same.count == 1 ? "is" : "are"
                parts.append(
                    "\(changed.isEmpty ? "No change: " : "")\(QueueAdd.names(same)) \(verb) \(kind.rawValue) already")
            }
            try context.output.change(.array(values), Sentence.stopped(parts.joined(separator: "; ")))
        }
    }
}

extension Session {
    /// The episode that a text means: its id, the beginning of one, or a part of its title.
    ///
    /// - Throws: `notFound`, `ambiguous`.
    func findEpisode(_ text: String) async throws(Failure) -> WireEpisode {
        try await persistence.findEpisode(CommandLineWords.typed(text))
    }

    /// The podcast that a text means, likewise or by the address of its feed.
    ///
    /// - Throws: `notFound`, `ambiguous`.
    func findPodcast(_ text: String) async throws(Failure) -> WirePodcast {
        try await persistence.findPodcast(CommandLineWords.typed(text))
    }

    /// The episodes that arguments mean, each once, in order; of several without notes and chapters.
    ///
    /// - Throws: `notFound`, `ambiguous`.
    func findEpisodes(_ arguments: [String]) async throws(Failure) -> [WireEpisode] {
        let texts = CommandLineWords.episodes(arguments)
        // Whole ids are looked up together, which is quick however many there are.
        let ids = texts.filter { EpisodeID($0) != nil }
        var known: [String: WireEpisode] = [:]
        for part in ids.parts(of: RequestSizes.episodes) where ids.count > 1 {
            for episode in try await persistence.episodes(ids: part, brief: true) { known[episode.id] = episode }
        }
        var found: [WireEpisode] = []
        var seen: Set<String> = []
        for text in texts {
            let episode: WireEpisode
            if let there = known[text] { episode = there } else { episode = try await findEpisode(text) }
            if seen.insert(episode.id).inserted { found.append(episode) }
        }
        return found
    }
}
