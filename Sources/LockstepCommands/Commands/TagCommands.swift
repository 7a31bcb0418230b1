import ArgumentParser
import FoundationEssentials
import LockstepClient
import PodcastModel

struct TagCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tag", abstract: "Give podcasts tags, which rules and `podcasts --tag` select.",
        subcommands: [TagList.self, TagAdd.self, TagRemove.self], defaultSubcommand: TagList.self)
}

/// The tag of a command, and the podcasts that have it or get it.
struct TaggedPodcasts: ParsableArguments {
    @Argument(help: "The tag, such as news.") var tag: String
    @Argument(help: "IDs, addresses, or parts of titles.", completion: .podcasts) var podcasts: [String]

    func find(in library: LibraryClient) async throws(Failure) -> [Podcast] {
        var found: [Podcast] = []
        for text in podcasts {
            let podcast = try await library.findPodcast(CommandLineWords.typed(text))
            if !found.contains(where: { $0.id == podcast.id }) { found.append(podcast) }
        }
        return found
    }
}

struct TagAdd: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "add", abstract: "Give podcasts a tag.")
    @OptionGroup var tagged: TaggedPodcasts
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let tag = try PodcastTag.checked(CommandLineWords.typed(tagged.tag))
        let found = try await tagged.find(in: fleet.library)
        let results = try await fleet.feeds.tag(found.map(\.id), adding: [tag])
        try output.podcasts(results, { "Tagged \($0) “\(tag)”." }, else: "already tagged “\(tag)”")
    }
}

struct TagRemove: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "remove", abstract: "Take a tag from podcasts.")
    @OptionGroup var tagged: TaggedPodcasts
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let tag = CommandLineWords.typed(tagged.tag)
        let found = try await tagged.find(in: fleet.library)
        let results = try await fleet.feeds.tag(found.map(\.id), removing: [tag])
        try output.podcasts(results, { "Removed the tag “\(tag)” from \($0)." }, else: "not tagged “\(tag)”")
    }
}

struct TagList: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the tags with their podcasts, or the tags of a podcast.")
    @Argument(help: "The podcast; all by default.", completion: .podcasts) var podcast: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        var podcasts = try await fleet.library.podcasts(includesUnsubscribed: true)
        if let podcast {
            let id = try await fleet.library.findPodcast(CommandLineWords.typed(podcast)).id
            podcasts.removeAll { $0.id != id }
        }
        let tagged = Dictionary(
            grouping: podcasts.flatMap { podcast in podcast.tags.map { (tag: $0, podcast: podcast) } }
        ) { PodcastTag.key($0.tag) }
        let tags = tagged.sorted { $0.key < $1.key }.map { (name: $0.value[0].tag, podcasts: $0.value.map(\.podcast)) }
        let json = tags.map { tag in
            JSONValue.object([
                "tag": .string(tag.name), "podcasts": .array(tag.podcasts.map { .string($0.id.text) }),
            ])
        }
        let rows = tags.map { [$0.name, "\($0.podcasts.count)", $0.podcasts.map(\.title).joined(separator: ", ")] }
        let table = TextTable(["tag", .right("podcasts"), .flexible("")], rows)
        let none =
            podcast == nil
            ? "No podcast has a tag. Add one with `lockstep tag add TAG PODCAST`." : "The podcast has no tags."
        try output.value(.array(json), lines: rows.isEmpty ? [none] : table.printed())
    }
}

struct PodcastCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "podcast", abstract: "Change a podcast.", subcommands: [PodcastRename.self, PodcastAddress.self])
}

struct PodcastRename: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "rename", abstract: "Give a podcast another title, or its feed’s again.")
    @Argument(help: "The ID, address, or a part of the title.", completion: .podcasts) var podcast: String
    @Argument(help: "The new title.") var title: String?
    @Flag(name: .customLong("feed-title"), help: "Use the title in the feed.") var usesFeedTitle = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard (title != nil) != usesFeedTitle else {
            throw ValidationError("Give the new title, or --feed-title for the title in the feed.")
        }
    }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let title = try title.map { text throws(Failure) in try PodcastTitle.checked(CommandLineWords.typed(text)) }
        let found = try await fleet.library.findPodcast(CommandLineWords.typed(podcast))
        let results = try await fleet.feeds.rename(found.id, to: title ?? "")
        let old = DisplayText.quoted(found.title)
        try output.podcasts(results, { "\(old) is now \($0)." }, else: "already called that")
    }
}

struct PodcastAddress: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "address", abstract: "Read a podcast from another address, if a feed is there.",
        discussion: """
            The podcast keeps its episodes, positions, tags and settings. Episodes of the new feed that are the same by \
            their GUID, audio or title aren’t added again.
            """)
    @Argument(help: "The ID, address, or a part of the title.", completion: .podcasts) var podcast: String
    @Argument(help: "The new address: http, https, or a file.", completion: .file()) var address: String
    @Option(help: "The user name, if the feed requires one; the password is prompted for or read from standard input.")
    var user: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let url = try FeedAddress.url(CommandLineWords.typed(address), in: FileManager.default.currentDirectoryPath)
        let found = try await fleet.library.findPodcast(CommandLineWords.typed(podcast))
        let password = try user.map { name throws(Failure) in try PasswordPrompt.read(for: name) }
        let results = try await output.whileWaiting("Fetching 1 feed") {
            try await fleet.feeds.changeAddress(of: found.id, to: url, user: user ?? "", password: password ?? "")
        }
        if let result = results.first, result.kind == .failed, var failure = result.failure {
            // The commands that subscribe to a web page’s feeds would add other podcasts.
            let feeds = failure.candidates.map(\.id)
            if feeds.count > 1 { failure.message += " " + WordList.and(feeds) + "." }
            failure.detail = []
            failure.message = "\(found.title) wasn’t changed. \(result.url): \(failure.message)"
            throw failure
        }
        let shown = results.first?.podcast?.url ?? url
        try output.podcasts(results, { "\($0) is now read from \(shown)." }, else: "already read from there")
    }
}

extension Output {
    /// Prints the results of a change of podcasts.
    ///
    /// - Parameter sentence: the sentence about the titles of the changed podcasts.
    func podcasts(
        _ results: [FeedsClient.Result], _ sentence: (String) -> String, else unchanged: String
    ) throws {
        func titles(_ results: [FeedsClient.Result]) -> String {
            WordList.and(results.compactMap { $0.podcast.map { DisplayText.quoted($0.title) } })
        }
        let changed = results.filter { $0.kind == .updated }
        let same = results.filter { $0.kind == .unchanged }
        let lines =
            (changed.isEmpty ? [] : [sentence(titles(changed))])
            + (same.isEmpty ? [] : ["No change: \(titles(same)) \(same.count == 1 ? "is" : "are") \(unchanged)."])
        if !quiet { try value(.array(results.map(\.json)), lines: lines) }
        if let failure = results.lazy.compactMap(\.failure).first { throw failure }
    }
}
