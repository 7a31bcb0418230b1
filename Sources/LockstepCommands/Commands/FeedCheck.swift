import ArgumentParser
import FeedFetching
import FeedParsing
import FleetHome
import FoundationEssentials
import LockstepClient
import PodcastModel
import WebClient

struct FeedCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feed", abstract: "Check feeds without subscribing.", subcommands: [FeedCheck.self])
}

struct FeedCheck: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Read a feed and report its content and problems, without a fleet.")
    @Argument(help: "An http or https address, or a file.", completion: .file()) var feed: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let text = try FeedAddress.url(feed, in: FileManager.default.currentDirectoryPath)
        guard let address = WebAddress(text) else { throw Failure.unusableAddress(text) }
        var request = FeedRequest(address)
        request.followsNewAddress = false
        // A podcast’s ID is derived from the address of its feed, unless the feed has moved since.
        let podcast = PodcastID.feed(at: address).text
        request.credentials = SecretsReader(context.home.secretsFile).credentials(of: podcast)
        let client = WebClient()
        let answer = await FeedLoader(client: client).load(request)
        await client.shutdown()
        let url = address.textWithoutCredentials
        switch answer {
        case .feed(let loaded):
            let report = Self.report(on: loaded, from: address)
            try context.output.value(Self.json(report, url: url), lines: Self.lines(report))
        case .unchanged: throw Failure(.fetchFailed, "\(url): The server didn’t send a feed.")
        case .page(let feeds):
            var failure = Failure.webPage(feeds.map { ($0.address.text, $0.title) })
            failure.message = "\(url): \(failure.message)"
            throw failure
        case .failed(var failure, _):
            // The message must name the feed.
            let names = [url, address.filePath ?? url]
            if !names.contains(where: failure.message.contains) { failure.message = "\(url): \(failure.message)" }
            throw failure
        }
    }

    /// The report of the feeds service on a new subscription.
    static func report(on feed: LoadedFeed, from address: WebAddress) -> FeedReport {
        var document = ResolvedFeed(feed.document, base: feed.base, address: feed.address).document
        if address.webCredentials != nil, let warning = FeedWarning.unencryptedPassword(to: address) {
            document.warnings.append(warning)
        }
        return FeedReport(document)
    }

    static func json(_ report: FeedReport, url: String) -> JSONValue {
        .object([
            "url": .string(url), "title": .string(report.channel.title), "author": .text(report.channel.author),
            "language": .text(report.channel.language), "episodes": .integer(Int64(report.episodes)),
            "newest": .moment(milliseconds: report.newest?.milliseconds ?? 0),
            "oldest": .moment(milliseconds: report.oldest?.milliseconds ?? 0),
            "withGuid": .integer(Int64(report.withGUID)), "withDuration": .integer(Int64(report.withDuration)),
            "withChapters": .integer(Int64(report.withChapters)),
            "newestEpisodes": .array(report.newestItems.map(json)),
            "oldestEpisode": report.oldestItem.map(json) ?? .null,
            "warnings": .array(report.warnings.map(warningJSON)),
        ])
    }

    private static func warningJSON(_ warning: FeedWarning) -> JSONValue {
        .object([
            "code": .string(warning.code), "message": .string(warning.message),
            "count": .integer(Int64(warning.count)), "items": .array(warning.items.map { .string($0) }),
        ])
    }

    private static func json(_ item: FeedEpisode) -> JSONValue {
        .object([
            "title": .string(item.title), "guid": .text(WebAddress.withoutCredentials(in: item.guid)),
            "audioURL": .string(WebAddress.withoutCredentials(in: item.enclosureURL)),
            "published": .moment(milliseconds: item.published?.milliseconds ?? 0),
            "duration": item.duration.map { .seconds($0.seconds) } ?? .null,
        ])
    }

    static func lines(_ report: FeedReport) -> [String] {
        let days = [report.oldest, report.newest].map { TimeText.day(milliseconds: $0?.milliseconds ?? 0) }
        let title = DisplayText.sanitised(report.channel.title)
        var lines = [
            title.isEmpty ? "(no title)" : title,
            NumberText.counted(report.episodes, "episode")
                + (report.newest == nil ? "" : " from \(days[0]) to \(days[1])"),
            "\(report.withGUID) with a GUID, \(report.withDuration) with a length, \(report.withChapters) with chapters",
        ]
        if !report.newestItems.isEmpty { lines += ["Newest:"] + report.newestItems.map(line) }
        if let oldest = report.oldestItem { lines += ["Oldest:", line(oldest)] }
        guard !report.warnings.isEmpty else { return lines + ["No problems found."] }
        return lines + ["Warnings:"] + report.warnings.map(line)
    }

    private static func line(_ item: FeedEpisode) -> String {
        let day = TimeText.day(milliseconds: item.published?.milliseconds ?? 0)
        let title = DisplayText.sanitised(item.title)
        return "  \(day)  \(ClockText.format(item.duration?.seconds))  \(title.isEmpty ? "(no title)" : title)"
    }

    private static func line(_ warning: FeedWarning) -> String {
        let more = warning.items.count < warning.count && !warning.items.isEmpty ? " …" : ""
        let names = warning.items.map { "“\(DisplayText.cut(DisplayText.sanitised($0), to: 60))”" }
        let items = names.joined(separator: ", ")
        return "  \(DisplayText.sanitised(warning.description))" + (items.isEmpty ? "" : ": \(items)\(more)")
    }
}
