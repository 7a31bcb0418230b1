import FoundationEssentials
import GRDB
import PodcastModel
import SwiftProtobuf
import WireMessages

extension Store {
    /// The maximum number of candidates in the answer to an ambiguous name.
    static let candidateLimit = 10

    /// Finds the episode that `text` identifies by its ID, its exact title, a prefix of its ID, or a part of its title;
    /// else by the title or ID of its podcast, or a part of it, a colon, and a part of the episode’s title.
    ///
    /// - Throws: `notFound`, or `ambiguous` with the candidates.
    func find(_ query: WireFindEpisode) throws(Failure) -> WireEpisodesPage {
        let scope = query.podcast
        let search = NameSearch(
            what: "episode", table: "episode", text: query.text,
            filter: scope.isEmpty ? "" : "AND podcast = ?", scope: scope.isEmpty ? [] : [scope])
        return try read("looking for an episode") { db in
            let id = try search.run(db) { id in
                var reader = EpisodeReader(db: db, withDescription: false)
                let episode = try reader.episode(id)
                return episode.map { ("\($0.title) (\($0.podcastTitle))", $0.candidateDetail) } ?? (id, "")
            }
            var reader = EpisodeReader(db: db, withDescription: true)
            var page = WireEpisodesPage()
            page.episodes = try [reader.episode(id)].compactMap { $0 }
            page.total = 1
            return page
        }
    }

    /// Finds the podcast that `text` identifies by the same rules or its feed’s address; unsubscribed ones too.
    func find(_ query: WireFindPodcast) throws(Failure) -> WirePodcastsPage {
        let search = NameSearch(what: "podcast", table: "podcast", text: query.text, filter: "", scope: [])
        return try read("looking for a podcast") { db in
            let id =
                if let address = WebAddress(query.text) {
                    try Self.podcast(at: address, db)
                } else {
                    try search.run(db) { id in try Self.podcast(id, db).map { ($0.title, $0.url) } ?? (id, "") }
                }
            var page = WirePodcastsPage()
            page.podcasts = try [Self.podcast(id, db)].compactMap { $0 }
            return page
        }
    }

    /// The podcast with this ID, with its counts; nil if there is none.
    static func podcast(_ id: String, _ db: Database) throws -> WirePodcast? {
        let row = try Row.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT podcast.value, episodes, played FROM podcast
                    JOIN podcast_count ON podcast_count.podcast = podcast.id WHERE id = ?
                    """), arguments: [id])
        return try row.map(podcast)
    }

    /// Finds the ID of the podcast whose feed is, or was, at an address: the ID derived from it, or a podcast whose
    /// feed moved to or from it. The feeds service finds subscriptions by the same rule.
    private static func podcast(at address: WebAddress, _ db: Database) throws -> String {
        let derived = PodcastID.feed(at: address).text
        if try Int.fetchOne(db, sql: "SELECT 1 FROM podcast WHERE id = ?", arguments: [derived]) != nil {
            return derived
        }
        let known = try String.fetchOne(
            db.cachedStatement(sql: "SELECT podcast FROM podcast_address WHERE address = ?"),
            arguments: [address.identity])
        if let known { return known }
        throw Failure(.notFound, "No podcast has the address \(WebAddress.quotable(address.textWithoutCredentials)).")
    }
}

/// Finds an episode or podcast by a user’s text: both tables have the columns `id` and `title` (folded).
private struct NameSearch {
    let what: String
    let table: String
    let text: String
    /// A condition that narrows the search, and its argument.
    let filter: String
    let scope: [String]

    /// - Parameter label: the title of a candidate, and a text that distinguishes it from others of that title.
    func run(_ db: Database, label: (String) throws -> (String, String)) throws -> String {
        let wanted = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        guard !wanted.isEmpty else {
            throw Failure(.invalidArgument, "Enter the ID or a part of the title of the \(what).")
        }
        if let id = try ids(db, "id = ?", [text]).first { return id }
        let title = LibraryWriter.folded(wanted)
        let exact = try ids(db, "title = ?", [title])
        if exact.count == 1 { return try onlyMeaning(exact[0], db, wanted, label) }
        if exact.count > 1 { throw try ambiguous(exact, label) }
        let prefix = try ids(db, "id >= ? AND id < ?", [title, title + "\u{7F}"])
        if prefix.count == 1 { return prefix[0] }
        var matches = prefix
        for id in try ids(db, "instr(title, ?) > 0", [title]) where !matches.contains(id) { matches.append(id) }
        if matches.count == 1 { return try onlyMeaning(matches[0], db, wanted, label) }
        guard matches.isEmpty else { throw try ambiguous(matches, label) }
        var refusal = Failure(
            .notFound, "No \(what) has an ID that begins with “\(text)” or a title that contains it.")
        do {
            if let qualified = try qualified(db, wanted, label) { return qualified }
        } catch let failure as Failure where failure.known == .notFound { refusal = failure }
        let similar = try similar(db, to: wanted)
        guard let first = similar.first else { throw refusal }
        guard similar.count == 1 else { throw try ambiguous(similar, label) }
        return first
    }

    /// Returns the first IDs whose titles contain the words of a text in its order, regardless of accents and
    /// punctuation, as in a search; the last word may be the beginning of one. A title without other words is the only
    /// result.
    private func similar(_ db: Database, to text: String) throws -> [String] {
        let words = try SearchWords(db)
        let wanted = try words(text)
        guard !wanted.isEmpty else { return [] }
        let found: [Row]
        if table == "episode" {
            let term = SearchText.Term(text: text, isQuoted: true, isPrefix: true)
            guard let query = SearchText.query([term], podcast: nil, columns: "title") else { return [] }
            found = try rows(db, "place IN (SELECT rowid FROM episode_search WHERE episode_search MATCH ?)", [query])
        } else {
            found = try Row.fetchAll(db.cachedStatement(sql: "SELECT id, title FROM \(table)")).filter {
                try SearchWords.occurs(wanted, in: words($0[1]), isPrefix: true)
            }
        }
        let exact = try found.filter { try words($0[1]) == wanted }
        return (exact.count == 1 ? exact : found).map { $0[0] }
    }

    /// Returns an ID whose title contains the text, unless the text also means an episode of another podcast, as
    /// `Podcast: part of its title`: a feed’s titles can’t take over the names of other podcasts’ episodes.
    private func onlyMeaning(
        _ id: String, _ db: Database, _ text: String, _ label: (String) throws -> (String, String)
    ) throws -> String {
        var other: String?
        do { other = try qualified(db, text, label) } catch let failure as Failure
            where [.notFound, .ambiguous].contains(failure.known)
        {}
        guard let other else { return id }
        let podcasts = try String.fetchSet(
            db, sql: "SELECT podcast FROM episode WHERE id IN (?, ?)", arguments: [id, other])
        guard podcasts.count < 2 else { throw try ambiguous([id, other], label) }
        return id
    }

    /// Finds an episode by `Podcast: part of its title`; nil if no podcast has the first part.
    private func qualified(_ db: Database, _ text: String, _ label: (String) throws -> (String, String)) throws
        -> String?
    {
        guard table == "episode", scope.isEmpty else { return nil }
        var failure: Failure?
        for colon in text.indices.filter({ text[$0] == ":" }).prefix(Self.colonLimit) {
            let name = LibraryWriter.folded(String(text[..<colon]).singleSpaced)
            let part = String(text[text.index(after: colon)...]).singleSpaced
            guard !name.isEmpty, !part.isEmpty else { continue }
            for condition in ["title = ?", "id = ?", "instr(title, ?) > 0"] {
                let podcasts = "SELECT id FROM podcast WHERE \(condition)"
                guard try String.fetchOne(db, sql: podcasts + " LIMIT 1", arguments: [name]) != nil else { continue }
                let search = NameSearch(
                    what: what, table: table, text: part, filter: "AND podcast IN (\(podcasts))", scope: [name])
                do { return try search.run(db, label: label) } catch let error as Failure {
                    guard error.known == .notFound else { throw error }
                    failure = failure ?? error
                }
            }
            guard failure == nil else { continue }
            let podcasts = try NameSearch(what: "podcast", table: "podcast", text: name, filter: "", scope: [])
                .similar(db, to: name)
            guard !podcasts.isEmpty else { continue }
            let marks = podcasts.map { _ in "?" }.joined(separator: ", ")
            let search = NameSearch(
                what: what, table: table, text: part, filter: "AND podcast IN (\(marks))", scope: podcasts)
            do { return try search.run(db, label: label) } catch let error as Failure {
                guard error.known == .notFound else { throw error }
                failure = error
            }
        }
        if failure != nil {
            throw Failure(.notFound, "No episode of the podcast in “\(self.text)” has a title that contains the rest.")
        }
        return nil
    }

    /// The maximum number of colons at which a name is divided.
    private static let colonLimit = 4

    /// Returns the first IDs that meet a condition, one more than the candidates that are shown.
    private func ids(_ db: Database, _ condition: String, _ arguments: [String]) throws -> [String] {
        try rows(db, condition, arguments).map { $0[0] }
    }

    /// Returns the IDs and titles of these rows.
    private func rows(_ db: Database, _ condition: String, _ arguments: [String]) throws -> [Row] {
        try Row.fetchAll(
            db.cachedStatement(
                sql: "SELECT id, title FROM \(table) WHERE \(condition) \(filter) LIMIT \(Store.candidateLimit + 1)"),
            arguments: StatementArguments(arguments + scope))
    }

    private func ambiguous(_ ids: [String], _ label: (String) throws -> (String, String)) throws -> Failure {
        let candidates = try ids.prefix(Store.candidateLimit).map { id in
            let (title, detail) = try label(id)
            return (id: id, title: title, detail: detail)
        }
        let more = ids.count > Store.candidateLimit ? ", and these are not all" : ""
        return Failure(
            ambiguous: "“\(text)” fits more than one \(what)\(more).", advice: "Use an ID or more of the title.",
            candidates, detailed: what == "episode")
    }
}

extension WireEpisode {
    /// The local date of publication, which distinguishes episodes of the same title; the address if it is unknown.
    fileprivate var candidateDetail: String {
        published == 0 ? enclosureURL : LocalTime.calendar(Timestamp(milliseconds: published)).minuteText
    }
}

extension String {
    fileprivate var singleSpaced: String {
        split(separator: " ").joined(separator: " ")
    }
}
