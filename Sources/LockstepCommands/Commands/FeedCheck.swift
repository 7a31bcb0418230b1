import ArgumentParser
import AsyncHTTPClient
import FeedParsing
import FoundationEssentials
import NIOCore
import NIOHTTP1
import NIOPosix
import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

struct FeedCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feed", abstract: "Look at feeds without subscribing.", subcommands: [FeedCheck.self])
}

struct FeedCheck: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Read a feed and report on it. Changes nothing and needs no fleet.")
    @Argument(help: "An http or https address, or a file.", completion: .file()) var feed: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let url = try FeedAddress.url(feed, in: FileManager.default.currentDirectoryPath)
        let document: FeedDocument
        do {
            document = try FeedParser.parse(try await Self.bytes(of: url))
        } catch let failure as Failure {
            throw Failure(
                code: failure.code,
                message: failure.message.contains(url) ? failure.message : "\(url): \(failure.message)",
                retry: failure.retry)
        }
        let report = FeedReport(document)
        try context.output.value(Self.json(report, url: url), lines: Self.lines(report))
    }

    /// The feed as it comes, up to what the parser accepts.
    private static func bytes(of url: String) async throws -> [UInt8] {
        let limit = FeedLimits().bytes
        if let path = WebAddress(url)?.filePath {
            // A named pipe would be waited for, a device have no end.
            let type = try? FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
            guard type == .typeRegular || type == .typeSymbolicLink else {
                throw Failure(.notAFeed, "\(path) is no file that can hold a feed.")
            }
            guard let data = FileManager.default.contents(atPath: path) else {
                throw Failure(.fetchFailed, "The file \(path) cannot be read: \(String(cString: strerror(errno))).")
            }
            return [UInt8](data.prefix(limit + 1))
        }
        // A connection that is refused is not tried again until the time is over.
        var configuration = HTTPClient.Configuration.singletonConfiguration
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.timeout = .init(connect: .seconds(10), read: .seconds(20))
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        do throws(Failure) {
            let bytes = try await bytes(of: url, client, limit)
            try? await client.shutdown()
            return bytes
        } catch {
            try? await client.shutdown()
            throw error
        }
    }

    private static func bytes(
        of url: String, _ client: HTTPClient, _ limit: Int
    ) async throws(Failure) -> [UInt8] {
        do {
            var request = HTTPClientRequest(url: url)
            request.headers.add(name: "User-Agent", value: "Lockstep/0.1")
            let response = try await client.execute(request, timeout: .seconds(30))
            guard (200..<300).contains(response.status.code) else {
                throw Failure(
                    .fetchFailed, "\(url): the server answered \(response.status.code) \(response.status.reasonPhrase)."
                )
            }
            var bytes: [UInt8] = []
            for try await chunk in response.body {
                bytes += chunk.readableBytesView
                guard bytes.count <= limit else { break }
            }
            return bytes
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(.fetchFailed, "\(url) cannot be fetched: \(reason(error)).")
        }
    }

    private static func reason(_ error: any Error) -> String {
        switch error {
        case let error as IOError: String(cString: strerror(error.errnoCode))
        case let error as NIOConnectionError:
            error.connectionErrors.first.map { reason($0.error) } ?? "its server’s name is not known"
        case let error as HTTPClientError: error.shortDescription
        default: String(describing: error).split(separator: "\n").first.map { String($0.prefix(200)) } ?? "it failed"
        }
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
            "warnings": .array(
                report.warnings.map { warning in
                    .object([
                        "code": .string(warning.code), "message": .string(warning.message),
                        "count": .integer(Int64(warning.count)), "items": .array(warning.items.map { .string($0) }),
                    ])
                }),
        ])
    }

    private static func json(_ item: FeedItem) -> JSONValue {
        .object([
            "title": .string(item.title), "guid": .text(item.guid), "audioURL": .string(item.enclosureURL),
            "published": .moment(milliseconds: item.published?.milliseconds ?? 0),
            "duration": item.duration.map { .seconds($0.seconds) } ?? .null,
        ])
    }

    static func lines(_ report: FeedReport) -> [String] {
        let days = [report.oldest, report.newest].map { TimeText.day(milliseconds: $0?.milliseconds ?? 0) }
        let title = DisplayText.sanitised(report.channel.title)
        var lines = [
            title.isEmpty ? "(no title)" : title,
            "\(NumberText.counted(report.episodes, "episode")) from \(days[0]) to \(days[1])",
            "\(report.withGUID) with a GUID, \(report.withDuration) with a length, \(report.withChapters) with chapters",
        ]
        if !report.newestItems.isEmpty { lines += ["Newest:"] + report.newestItems.map(line) }
        if let oldest = report.oldestItem { lines += ["Oldest:", line(oldest)] }
        guard !report.warnings.isEmpty else { return lines + ["No problems found."] }
        return lines + ["Warnings:"] + report.warnings.map(line)
    }

    private static func line(_ item: FeedItem) -> String {
        let length = TimeText.clock(item.duration?.seconds)
        let title = DisplayText.sanitised(item.title)
        return
            "  \(TimeText.day(milliseconds: item.published?.milliseconds ?? 0))  \(length)  \(title.isEmpty ? "(no title)" : title)"
    }

    /// What is wrong, how often, and with which episodes.
    private static func line(_ warning: FeedWarning) -> String {
        let more = warning.items.count < warning.count && !warning.items.isEmpty ? " …" : ""
        let items = warning.items.map { "“\(DisplayText.cut(DisplayText.sanitised($0), to: 60))”" }.joined(
            separator: ", ")
        return "  \(DisplayText.sanitised(warning.description))" + (items.isEmpty ? "" : ": \(items)\(more)")
    }
}
