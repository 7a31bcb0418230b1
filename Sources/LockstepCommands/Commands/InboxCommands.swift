import ArgumentParser
import LockstepClient
import PodcastModel

struct InboxCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inbox", abstract: "List the new episodes, or remove them from the inbox.",
        discussion: """
            The inbox contains the episodes that refreshes have found and that are neither played, started nor in a \
            queue. The episodes that exist when you subscribe aren’t new.
            """,
        subcommands: [InboxList.self, InboxClear.self], defaultSubcommand: InboxList.self)
}

struct InboxList: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the new episodes.")
    @Option(parsing: .unconditional, help: "The maximum number of episodes; 20 by default.") var limit: Int?
    @Flag(help: "List all new episodes.") var all = false
    @OptionGroup var options: GlobalOptions

    func validate() throws { try ListLength.validate(limit: limit, all: all) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let listing = try await fleet.library.episodes(
            in: EpisodeList(matching: EpisodeRule.inbox), limit: all ? nil : limit ?? ListLength.defaultLimit)
        try output.list(
            listing.episodes.map(\.id), .array(listing.episodes.map(\.json)),
            lines: listing.episodes.isEmpty ? ["The inbox is empty."] : Episodes.lines(listing))
    }
}

struct InboxClear: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear",
        abstract: "Remove episodes from the inbox; without arguments, all. They stay in the library.")
    @Argument(help: "IDs, beginnings of IDs, or parts of titles.", completion: .episodes) var episodes: [String] = []
    @Option(name: .customLong("where"), help: "Remove new episodes that meet this rule, such as “length > 2h”.")
    var rule: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws { try EpisodeArguments.refuseCombination(episodes, rule: rule) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let found = try await removed(fleet.library)
        let new = found.filter(\.isNew)
        // What arrives after the list was read stays in the inbox.
        for part in new.parts(of: RequestSizes.episodes) { try await fleet.feeds.clearInbox(part.map(\.id)) }
        if episodes.isEmpty && rule == nil { try await fleet.feeds.clearInbox([], unlisted: true) }
        let json = JSONValue.array(new.map(\.json))
        guard !new.isEmpty else {
            let reason =
                found.isEmpty
                ? rule == nil ? "the inbox is empty" : "no new episode matches"
                : "\(Titles.shown(found.map(\.title))) \(found.count == 1 ? "isn’t" : "aren’t") in the inbox"
            return try output.change(json, if: false, "", else: reason)
        }
        try output.change(json, "Removed \(Titles.shown(new.map(\.title))) from the inbox.")
    }

    private func removed(_ library: LibraryClient) async throws(Failure) -> [Episode] {
        guard episodes.isEmpty else { return try await library.find(episodes) }
        var list = EpisodeList(matching: EpisodeRule.inbox, order: .oldest)
        if let rule {
            list.rule = EpisodeRule(.all([EpisodeRule.inbox.condition, try await library.rule(rule).condition]))
        }
        return try await library.episodes(in: list, limit: nil).episodes
    }
}

extension EpisodeRule {
    /// The rule of the inbox.
    static let inbox = EpisodeRule(.mark(.new))
}

/// The maximum number of rows that a list prints.
enum ListLength {
    static let defaultLimit = 20

    static func validate(limit: Int?, all: Bool) throws {
        guard !all || limit == nil else { throw ValidationError("--all and --limit can’t be used together.") }
        guard limit ?? 1 > 0 else { throw ValidationError("--limit must be a number above 0.") }
    }
}
