import LockstepClient
import PodcastModel

// The tasks of the library’s pages, with the requests and sentences of the commands.

extension Fleet {
    func perform(_ task: LibraryTask) async -> Result<LibraryResult, Failure> {
        do throws(Failure) {
            switch task {
            case .load(let page, let request):
                let loaded = try await load(page, request)
                return .success(.pages(loaded.pages, total: loaded.total))
            case .notes(let id):
                guard let episode = try await library.episode(id, readsChapters: true) else {
                    throw Failure(.notFound, "The episode is no longer in the library.")
                }
                let lines = EpisodeDetails(episode, in: state).lines(width: nil)
                return .success(.notes(title: episode.title, lines: Array(lines.dropFirst())))
            case .command(let command):
                let effect = try await perform(command)
                return .success(.effect(effect.sentence, undo: effect.undo))
            }
        } catch {
            return .failure(error)
        }
    }

    // MARK: - Pages

    private func load(
        _ page: LibraryPage, _ request: PageRequest
    ) async throws(Failure) -> (pages: [PagedList<LibraryRow>.Page], total: Int?) {
        var pages: [PagedList<LibraryRow>.Page] = []
        var total: Int?
        var cursor = request.cursor
        repeat {
            let loaded = try await rows(of: page, after: cursor, withTotals: request.kind == .refresh && pages.isEmpty)
            pages.append(.init(cursor: cursor, rows: loaded.rows, next: loaded.next))
            total = total ?? loaded.total
            cursor = loaded.next
        } while !cursor.isEmpty && pages.count < request.pages
        return (pages, total)
    }

    private func rows(
        of page: LibraryPage, after cursor: String, withTotals: Bool
    ) async throws(Failure) -> (rows: [LibraryRow], next: String, total: Int?) {
        let limit = PageRequest.pageSize
        func episodes(_ list: EpisodeList) async throws(Failure) -> (rows: [LibraryRow], next: String, total: Int?) {
            let page = try await library.page(of: list, after: cursor, limit: limit, withTotals: withTotals)
            let rows = page.episodes.map { LibraryRow($0, withPodcast: list.podcast == nil) }
            return (rows, page.next, page.total)
        }
        switch page {
        case .inbox: return try await episodes(EpisodeList(matching: .inbox))
        case .episodes(let podcast, _): return try await episodes(EpisodeList(of: podcast))
        case .podcasts:
            let page = try await library.podcastPage(after: cursor)
            return (page.podcasts.map(LibraryRow.init), page.next, state.podcasts.count(where: \.isSubscribed))
        case .playlists:
            let playlists = try await current([.playlists]).playlists
            return (playlists.map(LibraryRow.init), "", playlists.count)
        case .items(let id, _):
            let offset = Int(cursor) ?? 0
            let page = try await playlists.items(id, from: offset)
            // A reply may hold more items than a page.
            let entries = page.entries.prefix(limit)
            let end = offset + entries.count
            let isLast = entries.isEmpty || end >= page.playlist.count
            return (entries.map(LibraryRow.init), isLast ? "" : "\(end)", page.playlist.count)
        case .search(let text):
            guard text.contains(where: { $0.isLetter || $0.isNumber }) else { return ([], "", 0) }
            let results = try await library.search(LibrarySearch(text))
            let rows = results.podcasts.map(LibraryRow.init) + results.hits.map { LibraryRow($0.episode) }
            return (rows, "", results.total + results.podcasts.count)
        case .history:
            let page = try await library.historyPage(after: cursor, limit: limit)
            return (page.sessions.map(LibraryRow.init), page.next, nil)
        }
    }

    // MARK: - Commands

    private typealias Effect = (sentence: String, undo: LibraryUndo?)

    private func perform(_ command: LibraryCommand) async throws(Failure) -> Effect {
        switch command {
        case .play(let id):
            let answer = try await queue.play(.episodeOfShownQueues(id))
            return (
                answer.changed ? "Playing \(answer.names)." : "It already plays.",
                LibraryUndo(answer)
            )
        case .add(let ids, let next):
            let answer = try await queue.add(ids, next: next)
            return (try await added(answer, ids), LibraryUndo(answer))
        case .download(let episodes): return (try await download(episodes), nil)
        case .mark(let episodes, let isPlayed):
            if let isPlayed { return try await mark(episodes, isPlayed) }
            let found = try await library.episodes(episodes.map(\.id))
            return try await mark(episodes, !found.allSatisfy(\.isPlayed))
        case .markAll(let podcast, let title):
            let found = try await library.episodes(in: EpisodeList(of: podcast, isUnplayed: true), limit: nil).episodes
            guard !found.isEmpty else {
                return ("All episodes of \(DisplayText.quoted(title)) are already played.", nil)
            }
            return try await mark(found.map { LibraryEpisode(id: $0.id, title: $0.title) }, true)
        case .favourite(let ids):
            let answer = try await playlists.add(ids, to: PlaylistName.favourites)
            guard answer.entries.isEmpty, answer.count == 0 else {
                return (try await added(answer, ids), LibraryUndo(answer))
            }
            return Self.removed(try await playlists.remove(ids, from: PlaylistName.favourites))
        case .createPlaylist(let text, let ids): return try await createPlaylist(text, adding: ids)
        case .addToPlaylist(let id, let ids):
            let answer = try await playlists.add(ids, to: id)
            return (try await added(answer, ids), LibraryUndo(answer))
        case .removeFromPlaylist(let id, let ids): return Self.removed(try await playlists.remove(ids, from: id))
        case .move(let id, let entry, let index):
            let answer = try await playlists.move(named: [entry], to: .index(index), in: id)
            let sentence = "Moved \(answer.names) to position \((answer.index ?? index) + 1)."
            return (answer.changed ? sentence : "It is already there.", LibraryUndo(answer))
        case .playPlaylist(let id, let text, let isShuffled):
            let answer = try await playlists.play(id, from: text, isShuffled: isShuffled)
            return (
                answer.changed ? "Playing \(answer.names)." : "It already plays.",
                LibraryUndo(answer)
            )
        case .undo(let undo): return (try await perform(undo), nil)
        }
    }

    private static func removed(_ answer: QueueAnswer) -> Effect {
        guard answer.changed else { return ("There was nothing to remove.", nil) }
        return (
            "Removed \(answer.names)\(answer.suffix("from")); u restores \(answer.count == 1 ? "it" : "them").",
            LibraryUndo(answer)
        )
    }

    private func added(_ answer: QueueAnswer, _ ids: [EpisodeID]) async throws(Failure) -> String {
        // The answer has only the titles of new entries.
        let isNew = answer.alreadyThere.isEmpty && answer.moved.isEmpty
        return Output.sentence(answer, isNew ? [] : try await library.episodes(ids))
    }

    private func mark(_ episodes: [LibraryEpisode], _ isPlayed: Bool) async throws(Failure) -> Effect {
        let group = PlayerClient.newGroup
        let answers = try await player.setAllPlayed(isPlayed, episodes.map(\.id), group: group)
        let word = (isPlayed ? Mark.Kind.played : .unplayed).rawValue
        let changed = zip(episodes, answers).filter(\.1.changed).map(\.0)
        let sentence = Output.sentence(
            zip(episodes, answers).map { ($0.title, $1.changed) }, done: { "Marked \($0) as \(word)" },
            already: "already \(word)")
        return (sentence, changed.isEmpty ? nil : .marks(group: group))
    }

    private func download(_ episodes: [LibraryEpisode]) async throws(Failure) -> String {
        let answers = try await downloads.add(episodes.map(\.id))
        return Output.sentence(
            zip(episodes, answers).map { ($0.title, $1.changed) }, done: { "\(DownloadAdd.words.done) \($0)" },
            already: DownloadAdd.already(answers.filter { !$0.changed }.map(\.value)))
    }

    private func createPlaylist(_ text: String, adding ids: [EpisodeID]) async throws(Failure) -> Effect {
        let title = try PlaylistName.checked(title: text)
        let id = PlaylistCreate.id(for: title, among: try await current([.playlists]).playlists)
        let answer = try await playlists.create(id, title: title)
        let sentence =
            answer.changed
            ? "Created the playlist \(answer.title) (\(id))." : "The playlist \(answer.title) (\(id)) already exists."
        guard !ids.isEmpty else { return (sentence, nil) }
        let result = try await playlists.add(ids, to: id)
        return (
            "\(sentence) \(try await added(result, ids))",
            LibraryUndo(result)
        )
    }

    private func perform(_ undo: LibraryUndo) async throws(Failure) -> String {
        let answer: QueueAnswer
        switch undo {
        case .queue(let name, let change): answer = try await queue.undo(in: name, change: change)
        case .playlist(let id, let change): answer = try await playlists.undo(in: id, change: change)
        case .marks(let group):
            guard let undone = try await player.undoMarks(group: group) else {
                return "There is nothing to undo."
            }
            let count = NumberText.counted(undone.episodes.count { $0.changed }, "episode")
            let word = (undone.wasPlayed ? Mark.Kind.played : .unplayed).rawValue
            return "Undone: Marked \(count) as \(word)."
        }
        return answer.changed ? "Undone: \(Sentence.stopped(answer.summary))" : "There is nothing to undo."
    }
}

extension LibraryRow {
    init(_ episode: Episode, withPodcast: Bool = true) {
        let left = episode.position >= 1 && !episode.isPlayed ? episode.remaining : nil
        self.init(
            id: episode.id.text, subject: .episode(episode.id), title: episode.title,
            detail: withPodcast ? episode.podcast : "",
            note: left.map { "\(ClockText.format($0)) left" } ?? episode.duration.map(ClockText.format) ?? "",
            isPlayed: episode.isPlayed, isNew: episode.isNew)
    }

    init(_ podcast: Podcast) {
        self.init(
            id: podcast.id.text, subject: .podcast(podcast.id),
            title: podcast.title.isEmpty ? podcast.url : podcast.title,
            note: podcast.unplayedCount > 0
                ? "\(podcast.unplayedCount) of \(NumberText.counted(podcast.episodeCount, "episode")) unplayed"
                : NumberText.counted(podcast.episodeCount, "episode"))
    }

    init(_ playlist: PlaylistState) {
        self.init(
            id: playlist.id, subject: .playlist(playlist.id), title: playlist.title,
            note: NumberText.counted(playlist.count, "episode")
                + (playlist.duration > 0 ? ", \(TimeText.span(playlist.duration))" : ""))
    }

    init(_ entry: QueueState.Entry) {
        let episode = entry.episode
        self.init(
            id: entry.id.text, subject: .episode(episode.id), title: episode.title, detail: episode.podcast,
            note: episode.duration.map(ClockText.format) ?? "", isPlayed: episode.isPlayed)
    }

    init(_ session: PlaySession) {
        let start = LocalTime.calendar(session.started).minuteText
        self.init(
            id: session.id.text, subject: .episode(session.episode),
            title: session.title.isEmpty ? "(removed episode)" : session.title, detail: session.podcast,
            note: "\(start), \(session.isPlaying ? "playing" : TimeText.span(session.heard))")
    }
}
