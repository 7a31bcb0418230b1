import ArgumentParser
import LockstepClient
import PodcastModel

struct Mark: FleetCommand {
    enum Kind: String, ExpressibleByArgument, CaseIterable {
        case played, unplayed, undo
    }

    static let configuration = CommandConfiguration(
        commandName: "mark", abstract: "Mark episodes as played or unplayed; the loaded episode by default.",
        discussion: """
            `lockstep mark undo` undoes the last of these commands, also for many episodes and their positions. An \
            episode that has been marked or finished since keeps its state.
            """)
    @Argument(help: "played, unplayed or undo.") var kind: Kind
    @Argument(
        help: "IDs, beginnings of IDs, or parts of titles; the loaded episode by default.", completion: .episodes)
    var episodes: [String] = []
    @Option(name: .customLong("where"), help: "All episodes that meet this rule, such as “length > 1h”.")
    var rule: String?
    @OptionGroup var options: GlobalOptions
    var observation: Observation { episodes.isEmpty && rule == nil ? .player : .nothing }

    func validate() throws {
        try EpisodeArguments.refuseCombination(episodes, rule: rule)
        guard kind != .undo || episodes.isEmpty && rule == nil else {
            throw ValidationError("`mark undo` undoes the last `mark`, and takes no episodes.")
        }
    }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        if kind == .undo {
            let undone = try await fleet.undoMarks()
            return try output.change(
                undone?.json ?? .array([]), if: undone != nil, undone?.sentence ?? "", else: "there is no mark to undo")
        }
        // All episodes are resolved before any is changed.
        let isLoaded = episodes.isEmpty && rule == nil
        let found =
            isLoaded
            ? [try await fleet.episode(nil, of: "mark \(kind.rawValue) EPISODE")]
            : try await fleet.library.find(episodes, rule: rule)
        guard !found.isEmpty else { return try output.change(.array([]), if: false, "", else: "no episode matches") }
        let answers = try await fleet.player.setAllPlayed(kind == .played, found.map(\.id))
        try output.changes(
            zip(found, answers).map { ($0.title, $1.changed) }, done: { "Marked \($0) as \(kind.rawValue)" },
            already: "already \(kind.rawValue)",
            json: answers.map { $0.value.json.adding("changed", .bool($0.changed)) })
    }
}

extension Fleet {
    /// Undoes the newest marks.
    ///
    /// - Returns: a sentence about the effect, and its JSON; nil if there is no mark to undo.
    func undoMarks() async throws(Failure) -> (sentence: String, json: JSONValue)? {
        guard let undone = try await player.undoMarks() else { return nil }
        let episodes = undone.episodes.map(\.value.episode)
        let found = episodes.count > 3 ? [] : try await library.episodes(episodes)
        let titles = Dictionary(found.map { ($0.id, $0.title) }) { first, _ in first }
        let sentence = Output.sentence(
            undone.episodes.map { (titles[$0.value.episode] ?? $0.value.episode.text, $0.changed) },
            done: { "Undone: marked \($0) as \(undone.wasPlayed ? "" : "un")played" },
            already: "as changed since")
        return (sentence, .array(undone.episodes.map { $0.value.json.adding("changed", .bool($0.changed)) }))
    }
}

extension Failure {
    /// The failure of a command after a part of its episodes has been changed.
    func after(_ done: Int, of count: Int, _ verb: String) -> Failure {
        guard done > 0 else { return self }
        var failure = self
        failure.message =
            "\(Sentence.stopped(message)) \(done) of \(count) episodes were \(verb) before; repeat the command for the rest."
        return failure
    }
}

extension PlayerClient {
    /// A name for requests that are undone together.
    static var newGroup: String { String(UInt64.random(in: .min ... .max), radix: 16) }

    /// Marks any number of episodes, in several requests that `mark undo` undoes together.
    ///
    /// - Parameter group: a new name for the requests.
    func setAllPlayed(
        _ isPlayed: Bool, _ ids: [EpisodeID], group: String = Self.newGroup
    ) async throws(Failure) -> [Answer<EpisodeProgress>] {
        var answers: [Answer<EpisodeProgress>] = []
        for part in ids.parts(of: RequestSizes.episodes) {
            do throws(Failure) {
                answers += try await setPlayed(isPlayed, part, group: group)
            } catch {
                throw error.after(answers.count, of: ids.count, "marked")
            }
        }
        return answers
    }
}

enum Titles {
    /// Up to three titles, otherwise their number.
    static func shown(_ titles: [String], count: Int? = nil, _ what: String = "episodes") -> String {
        let count = count ?? titles.count
        return count > 3 ? "\(count) \(what)" : WordList.and(titles.map(DisplayText.quoted))
    }
}

extension Output {
    func changes(
        _ episodes: [(title: String, changed: Bool)], done: (String) -> String, already: String, notes: [String] = [],
        json: [JSONValue]
    ) throws {
        try change(.array(json), Self.sentence(episodes, done: done, already: already, notes: notes))
    }

    /// `Marked “…” as played; “…” is already played.`
    static func sentence(
        _ episodes: [(title: String, changed: Bool)], done: (String) -> String, already: String, notes: [String] = []
    ) -> String {
        let changed = episodes.filter(\.changed).map(\.title)
        let same = episodes.filter { !$0.changed }.map(\.title)
        var parts: [String] = []
        if !changed.isEmpty { parts.append(done(Titles.shown(changed))) }
        if !same.isEmpty {
            let verb = same.count == 1 ? "is" : "are"
            parts.append("\(changed.isEmpty ? "No change: " : "")\(Titles.shown(same)) \(verb) \(already)")
        }
        return ([Sentence.stopped(parts.joined(separator: "; "))] + notes).joined(separator: " ")
    }
}

// Lookups by an ID, the beginning of one, or a part of a title. They throw `notFound` and `ambiguous`.
extension LibraryClient {
    func findEpisode(typed text: String) async throws(Failure) -> Episode {
        try await findEpisode(CommandLineWords.typed(text))
    }

    /// The podcast that matches a text, which may also be the address of its feed.
    func findPodcast(typed text: String) async throws(Failure) -> Podcast {
        try await findPodcast(CommandLineWords.typed(text))
    }

    func findPodcasts(_ arguments: [String]) async throws(Failure) -> [Podcast] {
        var found: [Podcast] = []
        for text in arguments { found.append(try await findPodcast(typed: text)) }
        return found
    }

    /// The named episodes, or all that meet a rule, the oldest first.
    func find(_ arguments: [String], rule: String?) async throws(Failure) -> [Episode] {
        guard let rule else { return try await find(arguments) }
        return try await episodes(in: EpisodeList(matching: try await self.rule(rule), order: .oldest), limit: nil)
            .episodes
    }

    /// The matching episodes in order without duplicates; several are returned without notes and chapters.
    func find(_ arguments: [String]) async throws(Failure) -> [Episode] {
        let texts = CommandLineWords.episodes(arguments)
        // Complete IDs are fetched together, which is fast for any number.
        let ids = texts.compactMap(EpisodeID.init)
        let known = Dictionary(
            ids.count > 1 ? try await episodes(ids).map { ($0.id.text, $0) } : [],
            uniquingKeysWith: { first, _ in first })
        var found: [Episode] = []
        var seen: Set<EpisodeID> = []
        for text in texts {
            let episode: Episode
            if let there = known[text] { episode = there } else { episode = try await findEpisode(typed: text) }
            if seen.insert(episode.id).inserted { found.append(episode) }
        }
        return found
    }
}
