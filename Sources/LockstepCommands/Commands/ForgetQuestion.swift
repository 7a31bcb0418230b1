import LibC
import LockstepClient
import PodcastModel

/// What forgetting podcasts deletes, and the question on a terminal whether to do that.
struct ForgetQuestion: Sendable {
    private var titles: [String] = []
    private var counts: [(count: Int, one: String, several: String)] = []
    private var isFinal: Bool

    /// Whether a user can be asked.
    static var isPossible: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

    /// Creates the question with numbers.
    ///
    /// - Parameters:
    ///   - titles: the podcasts.
    ///   - counts: what is deleted; zeros are left out.
    ///   - isFinal: whether it is deleted at once.
    init(_ titles: [String], _ counts: [(count: Int, one: String, several: String)], isFinal: Bool) {
        (self.titles, self.counts, self.isFinal) = (titles, counts, isFinal)
    }

    /// Counts what belongs to podcasts.
    static func about(_ podcasts: [Podcast], isFinal: Bool, _ fleet: Fleet) async throws -> ForgetQuestion {
        let ids = Set(podcasts.map(\.id))
        let state = await fleet.availableState()
        var (heard, marked, favourites) = (0, 0, 0)
        for id in ids {
            func count(_ rule: String) async throws -> Int {
                let list = EpisodeList(of: id, matching: try EpisodeRule(rule))
                return try await fleet.library.page(of: list, limit: 1, withTotals: true).total ?? 0
            }
            heard += try await count("played or started")
            marked += try await count("bookmarked")
            favourites += try await count("favourite")
        }
        let entries = state.queues.reduce(0) { sum, queue in
            sum + queue.entries.count { $0.episode.podcastID.map(ids.contains) ?? false }
        }
        let downloads = state.downloads.filter { $0.podcastID.map(ids.contains) ?? false }
        return ForgetQuestion(
            podcasts.map { $0.title.isEmpty ? $0.url : $0.title },
            [
                (podcasts.reduce(0) { $0 + $1.episodeCount }, "episode", "episodes"),
                (heard, "position or played mark", "positions and played marks"),
                (marked, "episode’s bookmarks", "episodes’ bookmarks"), (favourites, "favourite", "favourites"),
                (entries, "queue entry", "queue entries"),
                (downloads.count { $0.status == .downloaded }, "downloaded file", "downloaded files"),
            ], isFinal: isFinal)
    }

    /// `Forgetting “Waves” deletes 3 episodes and 1 queue entry a day later.`, and how to undo that.
    var sentence: String {
        let what = counts.filter { $0.count > 0 }.map { NumberText.counted($0.count, $0.one, $0.several) }
        let names = titles.count > 3 ? "\(titles.count) podcasts" : WordList.and(titles.map(DisplayText.quoted))
        let list = what.isEmpty ? "\(titles.count == 1 ? "its" : "their") settings" : WordList.and(what)
        return isFinal
            ? "Forgetting \(names) deletes \(list) now. It can’t be undone; without --now, it can be for a day."
            : "Forgetting \(names) deletes \(list) a day later. Until then, `lockstep unsubscribe --undo` undoes it."
    }

    /// Asks on the terminal.
    ///
    /// - Returns: whether the answer is yes.
    func ask() -> Bool {
        try? Output.write("\(sentence)\nForget \(titles.count == 1 ? "it" : "them")? [y/N] ", to: STDERR_FILENO)
        let answer = (readLine() ?? "").lowercased()
        return answer == "y" || answer == "yes"
    }
}
