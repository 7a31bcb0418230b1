import BusKit
import OwnerKit
import PodcastModel
import ProcessKit
import SwiftProtobuf
import WireMessages

/// An episode whose chapters are looked for, and who waits for that.
struct ChapterSearch: Sendable {
    var episode: String
    var podcast = ""
    var commands: [RequestID]
}

extension FeedsMachine {
    /// A file of chapters is not read again within this time, in milliseconds.
    private static let chaptersAge: Int64 = 24 * 3_600 * 1_000
    private static let chapterCall = "chapters/"

    /// Whether an answer of persistence is about chapters.
    static func isAboutChapters(_ call: CallID) -> Bool { call.text.hasPrefix(chapterCall) }

    mutating func fetchChapters(_ episode: String, _ command: Command) -> [Effect] {
        guard EpisodeID(episode) != nil else {
            return [.reply(command.id, .failure(Failure(.invalidArgument, "“\(episode)” isn’t a valid episode ID.")))]
        }
        if let number = searches.first(where: { $0.value.episode == episode })?.key {
            searches[number]?.commands.append(command.id)
            return []
        }
        searchCount += 1
        searches[searchCount] = ChapterSearch(episode: episode, commands: [command.id])
        var request = WirePersistenceRequest()
        request.episodesByID.ids = [episode]
        return [
            .call(
                Call(id: CallID("\(Self.chapterCall)\(searchCount)"), to: .persistence, payload: request.wireBytes))
        ]
    }

    /// Whether the episode has chapters to read is known.
    mutating func chaptersAnswered(_ call: CallID, _ result: Result<[UInt8], Failure>, now: Moment) -> [Effect] {
        guard let number = UInt64(call.text.dropFirst(Self.chapterCall.count)), let search = searches[number] else {
            return []
        }
        guard case .success(let bytes) = result, let page = try? WirePersistenceReply(wireBytes: bytes).episodes,
            let episode = page.episodes.first
        else {
            let failure: Failure =
                if case .failure(let failure) = result { failure } else {
                    Failure(.notFound, "There is no episode “\(search.episode)”.")
                }
            searches[number] = nil
            return search.commands.map { .reply($0, .failure(failure)) }
        }
        guard let address = WebAddress(episode.chaptersURL), !address.isFile,
            now.wall.milliseconds - episode.chaptersFetched >= Self.chaptersAge
        else { return endSearch(number) }
        searches[number]?.podcast = episode.podcastID
        let credentials = secrets.credentials(of: episode.podcastID)
        return [.perform(.fetchChapters(number, address, credentials))]
    }

    /// A file of chapters has been read, or not.
    mutating func chaptersFetched(
        _ number: UInt64, _ outcome: Result<[ChapterMark], Failure>, now: Moment
    ) -> [Effect] {
        guard let search = searches[number], let podcast = PodcastID(search.podcast) else { return [] }
        switch outcome {
        case .failure(let failure):
            return [.log(.info, "no chapters for \(search.episode): \(failure)")] + endSearch(number)
        case .success(let marks):
            guard podcasts.current[podcast] != nil else { return endSearch(number) }
            searches[number] = nil
            var record = WireChaptersRecord()
            record.chapters = marks.map(WireChapter.init)
            record.fetchedAt = now.wall.milliseconds
            var news = WireEpisodesChanged()
            news.podcast = search.podcast
            news.updated = [search.episode]
            return [
                commit(
                    [
                        .puttingDocument(
                            "chapters/\(search.podcast)", search.episode, record, at: record.fetchedAt)
                    ],
                    [Publication(.event, .episodes(of: search.podcast), news.wireBytes)],
                    Unsettled(chapterCommands: search.commands))
            ]
        }
    }

    private mutating func endSearch(_ number: UInt64) -> [Effect] {
        let search = searches.removeValue(forKey: number)
        return (search?.commands ?? []).map { .reply($0, .success(WireFeedsReply().wireBytes)) }
    }
}
