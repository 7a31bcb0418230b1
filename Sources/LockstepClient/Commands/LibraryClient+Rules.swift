public import PodcastModel

extension LibraryClient {
    /// The rule of a text that a user typed. Lists and podcasts have their IDs and exact titles in it.
    ///
    /// A name that doesn’t exist would silently match nothing, and `not in NAME` everything.
    ///
    /// - Throws: `invalidArgument` for an invalid rule; `notFound` for a queue, a playlist, a podcast or a tag that
    ///   doesn’t exist; `notApplicable` for a smart playlist; `ambiguous` for a title of several lists.
    public func rule(_ text: String) async throws(Failure) -> EpisodeRule {
        var rule = try EpisodeRule(text)
        if !rule.podcasts.isEmpty || !rule.tags.isEmpty {
            try RulePodcasts(try await podcasts(includesUnsubscribed: true)).check(rule)
        }
        if !rule.lists.isEmpty { rule = try await fleet.playlists.resolved(rule) }
        return rule
    }
}

/// The podcasts and tags that a rule may contain.
struct RulePodcasts {
    private let titles: [String]
    private let ids: Set<String>
    private let tags: [String]

    init(_ podcasts: [Podcast]) {
        titles = podcasts.map(\.title)
        ids = Set(podcasts.map(\.id.text))
        tags = Set(podcasts.flatMap(\.tags)).sorted()
    }

    /// - Throws: `notFound` for the first name that doesn’t exist.
    func check(_ rule: EpisodeRule) throws(Failure) {
        let known = Set(titles.map { $0.lowercased() })
        for name in rule.podcasts where !ids.contains(name) && !known.contains(name.lowercased()) {
            throw Failure(
                .notFound,
                "No podcast has the title \(DisplayText.quoted(name)), which the rule contains. "
                    + "\(advice(titles, name))`lockstep podcasts` lists them.")
        }
        let keys = Set(tags.map(PodcastTag.key))
        for tag in rule.tags where !keys.contains(PodcastTag.key(tag)) {
            throw Failure(
                .notFound,
                "No podcast has the tag \(DisplayText.quoted(tag)), which the rule contains. "
                    + "\(advice(tags, tag))`lockstep tag list` lists them.")
        }
    }

    /// Proposes the only title that contains the text, or a similar one.
    private func advice(_ names: [String], _ text: String) -> String {
        let wanted = text.lowercased()
        let containing = names.filter { $0.lowercased().contains(wanted) }
        let name = containing.count == 1 ? containing[0] : NearestWord.among(names, to: text)
        return name.map { "Did you mean \(DisplayText.quoted($0))? " } ?? ""
    }
}
