import ArgumentParser
import FeedParsing
import LockstepClient
import PodcastModel

extension PlaylistFile.Format: ExpressibleByArgument {}

struct PlaylistExport: PlaylistCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Write a playlist into a file (M3U or XSPF), which other players read.",
        discussion: "The file contains the addresses, titles and lengths of the episodes; no passwords.")
    @OptionGroup var playlist: PlaylistArgument
    @Argument(
        help: "The file, which is replaced; standard output by default, or for -.",
        completion: .file(extensions: ["m3u", "m3u8", "xspf"]))
    var file: String?
    @Option(help: "m3u or xspf; by default the one that the file’s name ends with, else m3u.")
    var format: PlaylistFile.Format?
    @OptionGroup var options: GlobalOptions

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        let path = file.map(CommandLineWords.typed) ?? "-"
        let contents = try await fleet.playlists.items(id)
        let known = try await fleet.library.episodes(contents.entries.map(\.episode.id))
        let audio = Dictionary(known.map { ($0.id, $0.audio) }) { first, _ in first }
        var list = PlaylistFile()
        list.title = contents.playlist.title
        list.entries = contents.entries.map { item in
            var entry = PlaylistFile.Entry()
            (entry.episode, entry.title, entry.podcast) = (item.episode.id, item.episode.title, item.episode.podcast)
            (entry.location, entry.seconds) = (audio[item.episode.id] ?? "", item.episode.duration)
            return entry
        }
        let isPrinted = path == "-"
        let format = format ?? (path.lowercased().hasSuffix(".xspf") ? .xspf : .m3u)
        let text = list.text(as: format)
        let json = JSONValue.object([
            "path": isPrinted ? .null : .text(path), "playlist": .string(id), "format": .string(format.rawValue),
            "episodes": .unsigned(UInt64(list.entries.count)), "text": isPrinted ? .text(text) : .null,
        ])
        guard !isPrinted || output.json else { return try UserFile.write(text, to: path) }
        if !isPrinted { try UserFile.write(text, to: path) }
        let count = NumberText.counted(list.entries.count, "episode")
        try output.change(json, "Exported \(count) of \(DisplayText.quoted(contents.playlist.title)) to \(path).")
    }
}

struct PlaylistImport: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Make a playlist of the episodes that a file (M3U or XSPF) names.",
        discussion: """
            Entries are found in the library by their audio’s address, or by the titles of podcast and episode; the \
            others are listed. No file that an entry names is opened.
            """)
    @Argument(help: "The file; - is standard input.", completion: .file(extensions: ["m3u", "m3u8", "xspf"]))
    var file: String
    @Option(help: "The title of the new playlist; by default the file’s.") var title: String?
    @Option(help: "Add the episodes to this playlist instead.", completion: .playlists) var into: String?
    @Option(help: "m3u or xspf; recognised by default.") var format: PlaylistFile.Format?
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .parts([.playlists]) }

    func validate() throws {
        guard title == nil || into == nil else { throw ValidationError("--title and --into exclude each other.") }
    }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let path = CommandLineWords.typed(file)
        let name = UserFile.name(path)
        guard let bytes = try UserFile.read(path, limit: PlaylistFile.Limits().bytes) else {
            throw PlaylistFile.tooLong(name)
        }
        let list = try PlaylistFile.parse(bytes, named: name, as: format)
        // The target is determined first: without one, nothing is searched.
        let target = try await target(of: list, path, fleet)
        let matches = try await output.whileWaiting("Searching the library") {
            try await EntryMatches(list.entries, in: fleet.library)
        }
        let episodes = matches.episodes
        guard !episodes.isEmpty else {
            throw Failure(
                .notFound,
                "None of the \(list.entries.count) entries of \(name) is in the library; no playlist was changed. Subscribe to their podcasts first."
            )
        }
        guard episodes.count <= RequestSizes.queueEntries else {
            throw Failure(
                .limitReached,
                "\(name) names \(episodes.count) episodes; a playlist holds at most \(RequestSizes.queueEntries). Nothing was imported."
            )
        }
        if let title = target.title { _ = try await fleet.playlists.create(target.id, title: title) }
        let answer = try await fleet.playlists.add(episodes, to: target.id)
        try report(answer, matches.missing(in: list), count: list.entries.count, name, output)
    }

    /// The ID of the playlist, and its title if it doesn’t exist yet.
    private func target(
        of list: PlaylistFile, _ path: String, _ fleet: Fleet
    ) async throws(Failure) -> (id: String, title: String?) {
        if let into { return (try await PlaylistArgument.id(of: CommandLineWords.typed(into), in: fleet), nil) }
        let stem = path.split(separator: "/").last.map { $0.split(separator: ".").first ?? $0 } ?? ""
        let given = title.map(CommandLineWords.typed) ?? (list.title.isEmpty ? String(stem) : list.title)
        let shortened = String(DisplayText.sanitised(given).prefix(PlaylistName.titleLimit))
        let title = try PlaylistName.checked(title: title == nil ? shortened : given)
        let existing = try await fleet.current([.playlists]).playlists
        if let same = existing.first(where: { $0.hasTitle(title) }) {
            // An import that failed has left an empty playlist.
            if same.count == 0, same.smart == nil { return (same.id, nil) }
            throw Failure(
                .notApplicable,
                "There is a playlist \(DisplayText.quoted(same.title)) already. Add to it with --into \(same.id), or give another title with --title."
            )
        }
        return (PlaylistCreate.id(for: title, among: existing), title)
    }

    private func report(
        _ answer: QueueAnswer, _ missing: [PlaylistFile.Entry], count: Int, _ name: String, _ output: Output
    ) throws {
        let json = answer.json.adding("named", .unsigned(UInt64(count))).adding(
            "missing",
            .array(
                missing.map { entry in
                    .object([
                        "line": .integer(Int64(entry.line)), "location": .text(entry.location),
                        "title": .text(entry.title), "podcast": .text(entry.podcast),
                    ])
                }))
        let added = NumberText.counted(answer.count, "episode")
        let there = answer.alreadyThere.isEmpty ? "" : "; \(answer.alreadyThere.count) were there already"
        try output.change(json, "Added \(added) to \(answer.title)\(there).")
        guard !missing.isEmpty, !output.json else { return }
        let lines = missing.prefix(20).map { "  line \($0.line): \($0.shown)" }
        let more = missing.count > 20 ? "\n  … and \(missing.count - 20) more" : ""
        output.progress(
            "\(missing.count) of the \(count) entries of \(name) aren’t in the library:\n\(lines.joined(separator: "\n"))\(more)"
        )
    }
}

extension PlaylistFile.Entry {
    /// The entry in messages.
    fileprivate var shown: String {
        let place = DisplayText.cut(DisplayText.sanitised(location), to: 100)
        let titles = [podcast, title].filter { !$0.isEmpty }.map { DisplayText.sanitised($0) }.joined(separator: ": ")
        let isPlaylist = [".m3u", ".m3u8", ".pls", ".xspf"].contains { location.lowercased().hasSuffix($0) }
        let note = isPlaylist ? " (a playlist, which isn’t followed; import it by itself)" : ""
        return [titles, place].filter { !$0.isEmpty }.joined(separator: ", ") + note
    }
}

/// The episodes of the library that the entries of a file name.
struct EntryMatches {
    private var found: [EpisodeID?]
    /// The entries without an episode, by what they say about it.
    private var addresses: [String: [Int]] = [:]
    private var titles: [String: [Int]] = [:]
    /// The episodes with the titles of entries, used if none has the address.
    private var titled: [Int: EpisodeID] = [:]

    /// - Parameter known: the episodes of the library among those with an ID in the file.
    init(_ entries: [PlaylistFile.Entry], known: Set<EpisodeID>) {
        found = entries.map { entry in entry.episode.flatMap { known.contains($0) ? $0 : nil } }
        for (index, entry) in entries.enumerated() where found[index] == nil {
            if !entry.location.isEmpty { addresses[entry.location, default: []].append(index) }
            let title = entry.podcast.isEmpty ? entry.title : "\(entry.podcast) - \(entry.title)"
            if !title.isEmpty { titles[title.lowercased(), default: []].append(index) }
        }
    }

    /// Reads the library once, unless every entry has the ID of an episode.
    init(_ entries: [PlaylistFile.Entry], in library: LibraryClient) async throws(Failure) {
        let ids = entries.compactMap(\.episode)
        self.init(entries, known: Set(try await library.episodes(ids).map(\.id)))
        guard found.contains(nil) else { return }
        var pages = library.episodes().makeAsyncIterator()
        while let episode = try await pages.next() { add(episode.id, episode.audio, episode.podcast, episode.title) }
    }

    /// Compares an episode of the library with the entries.
    mutating func add(_ episode: EpisodeID, _ address: String, _ podcast: String, _ title: String) {
        // The first match counts; further episodes with the address or the titles cost nothing.
        for index in addresses.removeValue(forKey: address) ?? [] { found[index] = episode }
        for index in titles.removeValue(forKey: "\(podcast) - \(title)".lowercased()) ?? [] { titled[index] = episode }
    }

    /// The episodes in the file’s order, each once.
    var episodes: [EpisodeID] {
        var seen: Set<EpisodeID> = []
        return found.indices.compactMap(episode).filter { seen.insert($0).inserted }
    }

    /// The entries without an episode.
    func missing(in list: PlaylistFile) -> [PlaylistFile.Entry] {
        list.entries.indices.filter { episode($0) == nil }.map { list.entries[$0] }
    }

    private func episode(_ index: Int) -> EpisodeID? { found[index] ?? titled[index] }
}
