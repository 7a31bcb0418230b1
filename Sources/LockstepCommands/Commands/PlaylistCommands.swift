import ArgumentParser
import LockstepClient
import PodcastModel

struct PlaylistCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "playlist", abstract: "Show, change and play playlists.",
        discussion: """
            A playlist is a list of episodes that is played on request: its episodes are added to Up Next. The \
            playlist “favourites” always exists. A smart playlist has a rule, and always contains the episodes that \
            meet it.
            """,
        subcommands: [
            PlaylistList.self, PlaylistFind.self, PlaylistCreate.self, PlaylistEdit.self, PlaylistTemplates.self,
            PlaylistRename.self,
            PlaylistDelete.self, PlaylistShow.self,
            PlaylistAdd.self, PlaylistRemove.self, PlaylistMove.self, PlaylistClear.self, PlaylistSort.self,
            PlaylistDedupe.self, PlaylistPlay.self, PlaylistSet.self, PlaylistUndo.self, PlaylistRedo.self,
            PlaylistHistory.self, PlaylistRestore.self, PlaylistExport.self, PlaylistImport.self,
        ],
        defaultSubcommand: PlaylistList.self)
}

/// The playlist of a command.
struct PlaylistArgument: ParsableArguments {
    @Argument(help: "The playlist’s ID, its title, or the beginning of it.", completion: .playlists) var playlist:
        String

    /// Returns the playlist’s ID.
    ///
    /// - Throws: `notFound`, with the nearest title; `ambiguous` for the beginning of several titles.
    func id(in fleet: Fleet) async throws(Failure) -> String {
        try await Self.id(of: CommandLineWords.typed(playlist), in: fleet)
    }

    static func id(of text: String, in fleet: Fleet) async throws(Failure) -> String {
        let playlists = try await fleet.current([.playlists]).playlists
        if let exact = playlists.first(where: { $0.id == text }) { return exact.id }
        let wanted = text.lowercased()
        let equal = playlists.filter { $0.hasTitle(text) }
        let found = equal.isEmpty ? playlists.filter { $0.title.lowercased().hasPrefix(wanted) } : equal
        guard let first = found.first else {
            let names = playlists.flatMap { [$0.id, $0.title] }
            let advice = NearestWord.among(names, to: text).map { "Did you mean \(DisplayText.quoted($0))? " } ?? ""
            throw Failure(
                .notFound,
                "There is no playlist \(DisplayText.quoted(text)). \(advice)`lockstep playlist` lists them.")
        }
        guard found.count == 1 else {
            throw Failure(
                .ambiguous,
                "\(DisplayText.quoted(text)) could be \(found.count) playlists. Use an ID: \(found.map(\.id).joined(separator: ", "))."
            )
        }
        return first.id
    }
}

extension PlaylistState {
    /// Whether its title is this text, regardless of case.
    func hasTitle(_ text: String) -> Bool { title.lowercased() == text.lowercased() }
}

/// A command about one playlist.
protocol PlaylistCommand: FleetCommand {
    var playlist: PlaylistArgument { get }
    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws
}

extension PlaylistCommand {
    var observation: Observation { .parts([.playlists]) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        try await perform(try await playlist.id(in: fleet), fleet, output)
    }
}

struct PlaylistList: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the playlists.")
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .parts([.playlists]) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        try output.playlists(try await fleet.current([.playlists]).playlists)
    }
}

struct PlaylistFind: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "find", abstract: "List the playlists whose title contains a text.")
    @Argument(help: "A part of the title, regardless of case.") var text: String
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .parts([.playlists]) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let text = CommandLineWords.typed(text)
        let found = try await fleet.current([.playlists]).playlists.filter {
            $0.title.lowercased().contains(text.lowercased())
        }
        guard !found.isEmpty else {
            return try output.value(
                .array([]), lines: ["No playlist’s title contains \(DisplayText.quoted(text))."])
        }
        try output.playlists(found)
    }
}

extension Output {
    /// Prints a table of playlists.
    fileprivate func playlists(_ playlists: [PlaylistState]) throws {
        let rows = playlists.map { playlist in
            [
                playlist.title, "\(playlist.count)", ClockText.format(playlist.duration),
                playlist.updatedAt.milliseconds == 0
                    ? "" : TimeText.minute(milliseconds: playlist.updatedAt.milliseconds),
                [playlist.isShuffled ? "shuffled" : "", playlist.isContinuous ? "" : "one at a time"]
                    .filter { !$0.isEmpty }.joined(separator: ", "),
                playlist.smart?.rule ?? "", playlist.id,
            ]
        }
        let table = TextTable(
            [
                .flexible("playlist"), .right("episodes"), .right("length"), "changed", "plays", .flexible("rule"),
                "id",
            ], rows)
        try value(.array(playlists.map(\.json)), lines: table.printed())
    }
}

struct PlaylistCreate: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Create a playlist; an existing one isn’t changed.",
        discussion: """
            With --where or --template it is a smart playlist: it always contains the first episodes that meet the \
            rule, in the order of --sort. `lockstep playlist templates` lists the templates.
            """)
    @Argument(help: "Its title.") var title: String
    @Option(help: "Its ID, for rules (“in ID”) and commands; made from the title by default.") var id: String?
    @Option(help: "Start with the rule and order of this template.") var template: SmartTemplate?
    @OptionGroup var smart: SmartPlaylistOptions
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .parts([.playlists]) }

    func validate() throws {
        if template == nil, smart.rule == nil, smart.isGiven {
            throw ValidationError("--sort, --limit and --add-to need a rule: add --where RULE or --template NAME.")
        }
    }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let title = try PlaylistName.checked(title: CommandLineWords.typed(title))
        let existing = try await fleet.current([.playlists]).playlists
        let created = id ?? Self.id(for: title, among: existing)
        let list = try await smart.list(from: template, fleet.library)
        let answer = try await fleet.playlists.create(created, title: title, smart: list)
        let rule = answer.playlist?.smart.map { ", with the rule: \($0.rule)" } ?? ""
        try output.change(
            answer, "Created the playlist \(answer.title) (\(created))\(rule).",
            else: "the playlist \(created) already exists, with the title \(answer.title)")
    }

    /// The ID for a title: that of the playlist with the same title, otherwise one that no playlist has.
    static func id(for title: String, among playlists: [PlaylistState]) -> String {
        if let same = playlists.first(where: { $0.hasTitle(title) }) { return same.id }
        let base = PlaylistName.id(for: title)
        let taken = Set(playlists.map(\.id))
        let numbered = sequence(first: 2) { $0 + 1 }.lazy.map { "\(base.prefix(36))-\($0)" }
        return taken.contains(base) ? numbered.first { !taken.contains($0) } ?? base : base
    }
}

/// The rule of a smart playlist, as options.
struct SmartPlaylistOptions: ParsableArguments {
    @Option(name: .customLong("where"), help: "The rule that episodes meet, such as “unplayed and length < 20m”.")
    var rule: String?
    @Option(help: "The order of the episodes: newest, oldest, shortest, longest, title, heard or added.")
    var sort: EpisodeOrder?
    @Option(help: "The maximum number of episodes, 1 to 1000; by default 100.") var limit: Int?
    @Option(name: .customLong("add-to"), help: "Add an episode to this queue once it meets the rule.")
    var queue: String?

    var isGiven: Bool { rule != nil || sort != nil || limit != nil || queue != nil }

    func validate() throws {
        if let limit, !(1...1_000).contains(limit) {
            throw ValidationError("A smart playlist has 1 to 1000 episodes, not \(limit).")
        }
    }

    /// The canonical text of the rule; nil if there is none.
    func checkedRule(_ library: LibraryClient) async throws(Failure) -> String? {
        guard let rule else { return nil }
        return try await library.rule(CommandLineWords.typed(rule)).description
    }

    /// The smart playlist that the options describe; nil if they describe none.
    ///
    /// - Throws: `invalidArgument` for an invalid rule; `notFound` for an unknown name in it.
    func list(from template: SmartTemplate?, _ library: LibraryClient) async throws(Failure) -> SmartPlaylist? {
        guard let rule = try await checkedRule(library) ?? template?.list.rule else { return nil }
        return SmartPlaylist(
            rule: rule, order: sort ?? template?.list.order ?? .newest, limit: limit ?? 0, queue: queue)
    }
}

/// The rule and order of a common smart playlist.
enum SmartTemplate: String, ExpressibleByArgument, CaseIterable {
    case shortThisWeek = "short-this-week"
    case inProgress = "in-progress"
    case downloaded

    var list: SmartPlaylist {
        switch self {
        case .shortThisWeek: SmartPlaylist(rule: "unplayed and published < 7d", order: .shortest)
        case .inProgress: SmartPlaylist(rule: "started", order: .heard)
        case .downloaded: SmartPlaylist(rule: "downloaded and unplayed", order: .oldest)
        }
    }

    var summary: String {
        switch self {
        case .shortThisWeek: "unplayed episodes of this week, the shortest first"
        case .inProgress: "episodes that you have begun, the last one first"
        case .downloaded: "unplayed episodes on this machine, the oldest first"
        }
    }
}

struct PlaylistTemplates: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "templates", abstract: "List the templates of smart playlists.")
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let rows = SmartTemplate.allCases.map { template in
            [template.rawValue, template.summary, template.list.rule]
        }
        let json = SmartTemplate.allCases.map { template in
            JSONValue.object([
                "name": .string(template.rawValue), "summary": .string(template.summary),
                "rule": .string(template.list.rule), "sort": .string(template.list.order.rawValue),
            ])
        }
        let table = TextTable(["template", .flexible("what it contains"), "rule"], rows)
        try context.output.value(.array(json), lines: table.printed())
    }
}

struct PlaylistEdit: PlaylistCommand {
    static let configuration = CommandConfiguration(
        commandName: "edit", abstract: "Change the rule, the order or the limit of a smart playlist.")
    @OptionGroup var playlist: PlaylistArgument
    @OptionGroup var smart: SmartPlaylistOptions
    @Flag(name: .customLong("no-add"), help: "Add no more episodes to a queue.") var isEndingAddition = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard smart.isGiven || isEndingAddition else {
            throw ValidationError("Give what to change: --where, --sort, --limit, --add-to or --no-add.")
        }
        guard smart.queue == nil || !isEndingAddition else {
            throw ValidationError("--add-to and --no-add exclude each other.")
        }
    }

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        let answer = try await fleet.playlists.edit(
            id, rule: try await smart.checkedRule(fleet.library), order: smart.sort, limit: smart.limit,
            queue: isEndingAddition ? "" : smart.queue)
        let list = answer.playlist?.smart
        let addition = list?.queue.map { "; new ones are added to \(QueueName.shown($0))" } ?? ""
        try output.change(
            answer,
            "\(answer.title) contains at most \(list?.limit ?? 0) episodes, \((list?.order ?? .newest).phrase), with the rule: \(list?.rule ?? "")\(addition).",
            else: "\(answer.title) is already like that")
    }
}

struct PlaylistRename: PlaylistCommand {
    static let configuration = CommandConfiguration(
        commandName: "rename", abstract: "Change a playlist’s title; its ID stays.")
    @OptionGroup var playlist: PlaylistArgument
    @Argument(help: "The new title.") var title: String
    @OptionGroup var options: GlobalOptions

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        let title = try PlaylistName.checked(title: CommandLineWords.typed(title))
        let others = try await fleet.current([.playlists]).playlists.filter { $0.id != id }
        guard !others.contains(where: { $0.hasTitle(title) }) else {
            throw Failure(
                .notApplicable,
                "Another playlist has the title \(DisplayText.quoted(title)) already; nothing was renamed.")
        }
        let answer = try await fleet.playlists.change(id, title: title)
        try output.change(answer, "Renamed \(id) to \(answer.title).", else: "its title is already \(answer.title)")
    }
}

struct PlaylistDelete: PlaylistCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete a playlist; `playlist undo` restores it for a day.",
        discussion: "Its episodes stay in the library.")
    @OptionGroup var playlist: PlaylistArgument
    @Flag(help: "Also delete a playlist that contains episodes.") var force = false
    @OptionGroup var options: GlobalOptions

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        let answer = try await fleet.playlists.delete(id, withItems: force)
        try output.change(
            answer, "Deleted the playlist \(id). `lockstep playlist undo \(id)` restores it for a day.",
            else: "there was nothing to delete")
    }
}

struct PlaylistShow: PlaylistCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "List a playlist’s episodes.")
    @OptionGroup var playlist: PlaylistArgument
    @OptionGroup var options: GlobalOptions

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        try await output.playlist(id, fleet)
    }
}

extension Output {
    /// Prints the episodes of a playlist.
    func playlist(_ id: String, _ fleet: Fleet) async throws {
        let contents = try await fleet.playlists.items(id)
        let (playlist, items, json) = (contents.playlist, contents.entries, contents.json)
        guard !items.isEmpty else {
            let title = DisplayText.quoted(playlist.title)
            let reason =
                playlist.smart.map { "No episode meets the rule of \(title): \($0.rule)." }
                ?? "\(title) is empty. Add an episode with `lockstep playlist add \(id) EPISODE`."
            return try value(json, lines: [reason])
        }
        let rows = items.enumerated().map { index, item in
            let episode = item.episode
            return [
                "\(index + 1)", episode.title, episode.podcast, ClockText.format(episode.duration),
                episode.isPlayed ? "played" : episode.position >= 1 ? ClockText.format(episode.position) : "",
                episode.id.text,
            ]
        }
        let table = TextTable(
            [.right(""), .flexible("episode"), .flexible("podcast"), .right("length"), .right("at"), .id("id")], rows)
        let count = items.count == 1 ? "1 episode" : "\(items.count) episodes"
        let rule = playlist.smart.map { " Rule: \($0.rule); \($0.order.phrase)." } ?? ""
        try list(
            items.map(\.episode.id), json,
            lines: table.printed() + ["\(count), \(TimeText.span(playlist.duration)).\(rule)"])
    }
}

struct PlaylistAdd: PlaylistCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Add episodes to the end of a playlist.")
    @OptionGroup var playlist: PlaylistArgument
    @Flag(help: "Add them at the front.") var front = false
    @OptionGroup var added: AddedEpisodes
    @OptionGroup var options: GlobalOptions

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        let found = try await added.find(in: fleet.library)
        let answer =
            found.episodes.isEmpty
            ? try await fleet.playlists.history(of: id, limit: 1)
            : try await fleet.playlists.add(found.episodes.map(\.id), to: id, atFront: front)
        try output.added(answer, found.episodes, else: found.reasonIfEmpty)
    }
}

struct PlaylistRemove: PlaylistCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove episodes from a playlist; `playlist undo` restores them.")
    @OptionGroup var playlist: PlaylistArgument
    @Argument(help: "Numbers, IDs, beginnings of IDs, or parts of titles.") var entries: [String] = []
    @Option(name: .customLong("where"), help: "Remove the episodes that meet this rule, such as “played”.")
    var rule: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        try EpisodeArguments.require("episodes to remove", entries, orRule: rule)
    }

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        let answer = try await remove(from: id, fleet)
        try output.change(
            answer, answer.removed, else: rule == nil ? "there was nothing to remove" : "no episode matches")
    }

    private func remove(from id: String, _ fleet: Fleet) async throws(Failure) -> QueueAnswer {
        guard let rule else {
            return try await fleet.playlists.remove(named: CommandLineWords.distinct(entries), from: id)
        }
        let list = EpisodeList(matching: EpisodeRule(.all([.list(id), try await fleet.library.rule(rule).condition])))
        let found = try await fleet.library.episodes(in: list, limit: nil).episodes
        guard !found.isEmpty else { return try await fleet.playlists.history(of: id, limit: 1) }
        return try await fleet.playlists.remove(found.map(\.id), from: id)
    }
}

struct PlaylistMove: PlaylistCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Move episodes of a playlist to another position, keeping their order.")
    @OptionGroup var playlist: PlaylistArgument
    @Argument(help: "Numbers, IDs, beginnings of IDs, or parts of titles.") var entries: [String]
    @Option(help: "The episode to put them before.") var before: String?
    @Option(help: "The episode to put them after.") var after: String?
    @Option(help: "The number of the first moved episode afterwards.") var to: Int?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard [to != nil, before != nil, after != nil].count(where: { $0 }) == 1 else {
            throw ValidationError("Give the new position: one of --before, --after and --to.")
        }
        if let to, to < 1 { throw ValidationError("Positions count from 1.") }
    }

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        let target =
            before.map { QueueClient.MoveTarget.before(CommandLineWords.typed($0)) }
            ?? after.map { .after(CommandLineWords.typed($0)) } ?? .index((to ?? 1) - 1)
        try output.moved(
            try await fleet.playlists.move(named: entries.map(CommandLineWords.typed), to: target, in: id))
    }
}

struct PlaylistClear: PlaylistCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Remove all episodes from a playlist; `playlist undo` restores them.")
    @OptionGroup var playlist: PlaylistArgument
    @OptionGroup var options: GlobalOptions

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        let answer = try await fleet.playlists.clear(id)
        try output.change(
            answer, "Removed \(answer.summary) from \(answer.title). \(answer.undoAdvice)",
            else: "\(answer.title) is empty")
    }
}

struct PlaylistSort: PlaylistCommand {
    static let configuration = CommandConfiguration(
        commandName: "sort", abstract: "Sort a playlist; `playlist undo` restores the old order.")
    @OptionGroup var playlist: PlaylistArgument
    @Argument(help: "title, podcast, published, length, added or remaining.") var key: QueueClient.SortKey
    @Flag(help: "In descending order.") var descending = false
    @OptionGroup var options: GlobalOptions

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        let answer = try await fleet.playlists.sort(id, by: key, descending: descending)
        try output.sorted(answer, by: key, descending: descending)
    }
}

struct PlaylistDedupe: PlaylistCommand {
    static let configuration = CommandConfiguration(
        commandName: "dedupe", abstract: "Remove duplicate episodes; `playlist undo` restores them.")
    @OptionGroup var playlist: PlaylistArgument
    @OptionGroup var options: GlobalOptions

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        try output.deduplicated(try await fleet.playlists.deduplicate(id))
    }
}

struct PlaylistPlay: PlaylistCommand {
    static let configuration = CommandConfiguration(
        commandName: "play", abstract: "Play a playlist: add its episodes to Up Next after the current entry.",
        discussion: "The other entries of Up Next stay; `lockstep queue undo` removes the added ones.")
    @OptionGroup var playlist: PlaylistArgument
    @Option(help: "The episode to start with; the first one by default.") var from: String?
    @Flag(inversion: .prefixedNo, help: "In random order; --no-shuffle in the playlist’s.") var shuffle: Bool?
    @Flag(inversion: .prefixedNo, help: "Also add the episodes that follow; --no-continuous only the first one.")
    var continuous: Bool?
    @Option(help: "The seed of the random order; equal seeds give equal orders.") var seed: UInt64 = 0
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .parts([.playlists, .player, .next]) }

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        let answer = try await fleet.playlists.play(
            id, from: from.map(CommandLineWords.typed), isShuffled: shuffle, isContinuous: continuous, seed: seed)
        let isPlaying = answer.player?.isPlaying == true
        if !answer.changed && isPlaying { return try output.change(answer, "", else: "it already plays") }
        _ = try await fleet.settled(answer, reportingTo: output)
        try output.change(answer.json, "Playing \(answer.names).")
    }
}

struct PlaylistSet: PlaylistCommand {
    enum Setting: String, ExpressibleByArgument, CaseIterable {
        case shuffle, continuous
    }

    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Set how a playlist plays.",
        discussion: """
            shuffle: in random order. continuous: with the episodes after the first one; off plays one at a time.
            """)
    @OptionGroup var playlist: PlaylistArgument
    @Argument(help: "shuffle or continuous.") var setting: Setting
    @Argument(help: "on or off.") var value: Switch
    @OptionGroup var options: GlobalOptions

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        let isOn = value == .on
        let answer =
            switch setting {
            case .shuffle: try await fleet.playlists.change(id, isShuffled: isOn)
            case .continuous: try await fleet.playlists.change(id, isContinuous: isOn)
            }
        let mode =
            switch setting {
            case .shuffle: isOn ? "plays in random order" : "plays in its own order"
            case .continuous: isOn ? "plays to its end" : "plays one episode at a time"
            }
        try output.change(answer, "\(answer.title) \(mode).", else: "\(answer.title) already \(mode)")
    }
}

struct PlaylistUndo: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "undo", abstract: "Undo the last change of a playlist’s episodes, or its deletion.")
    @OptionGroup var playlist: PlaylistArgument
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .parts([.playlists]) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let text = CommandLineWords.typed(playlist.playlist)
        // A deleted playlist has precedence over one whose title only begins with the text.
        let playlists = try await fleet.current([.playlists]).playlists
        let isWhole = playlists.contains { $0.id == text || $0.hasTitle(text) }
        if !isWhole, let restored = try await undeleted(text, fleet) { return try output.undone(restored) }
        try output.undone(try await fleet.playlists.undo(in: try await playlist.id(in: fleet)))
    }

    /// Restores a deleted playlist; nil if there is none.
    private func undeleted(_ text: String, _ fleet: Fleet) async throws(Failure) -> QueueAnswer? {
        do throws(Failure) { return try await fleet.playlists.undelete(text) } catch {
            guard error.known == .notFound else { throw error }
            return nil
        }
    }
}

struct PlaylistRedo: PlaylistCommand {
    static let configuration = CommandConfiguration(commandName: "redo", abstract: "Redo the last undone change.")
    @OptionGroup var playlist: PlaylistArgument
    @OptionGroup var options: GlobalOptions

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        try output.redone(try await fleet.playlists.redo(in: id))
    }
}

struct PlaylistHistory: PlaylistCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Show the last changes of a playlist’s episodes, the newest first.")
    @OptionGroup var playlist: PlaylistArgument
    @Option(parsing: .unconditional, help: "The maximum number of changes.") var limit: UInt32 = 20
    @OptionGroup var options: GlobalOptions

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        try output.history(try await fleet.playlists.history(of: id, limit: limit).history)
    }
}

struct PlaylistRestore: PlaylistCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Restore an earlier revision of a playlist; this can be undone.")
    @OptionGroup var playlist: PlaylistArgument
    @Argument(help: "A revision from `lockstep playlist history`.") var revision: UInt64
    @OptionGroup var options: GlobalOptions

    func perform(_ id: String, _ fleet: Fleet, _ output: Output) async throws {
        try output.restored(try await fleet.playlists.restore(id, revision: revision), revision: revision)
    }
}
