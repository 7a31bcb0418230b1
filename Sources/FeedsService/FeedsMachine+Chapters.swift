import BusKit
import OwnerKit
import PodcastModel
import ProcessKit
import SwiftProtobuf
import WireMessages

/// A search for the chapters of an episode, and the commands that wait for it.
struct ChapterSearch: Sendable {
    var episode: String
    var podcast = ""
    var commands: [RequestID]
}

extension FeedsMachine {
    /// The minimum time between two fetches of a chapters file, in milliseconds.
    private static let chaptersAge: Int64 = 24 * 3_600 * 1_000

    mutating func fetchChapters(_ episode: String, _ command: Command, _ effects: inout [Effect]) throws(Failure) {
        guard EpisodeID(episode) != nil else {
            throw Failure(.invalidArgument, "“\(episode)” isn’t a valid episode ID.")
        }
        if let number = searches.first(where: { $0.value.episode == episode })?.key {
            searches[number]?.commands.append(command.id)
            return
        }
        searchCount += 1
        searches[searchCount] = ChapterSearch(episode: episode, commands: [command.id])
        effects.append(.ask(.chapters(search: searchCount)) { $0.episodesByID.ids = [episode] })
    }

    /// Fetches the chapters file that an episode names, unless it was fetched recently.
    mutating func chaptersAnswered(
        _ number: UInt64, _ result: Result<WirePersistenceReply, Failure>, now: Moment, _ effects: inout [Effect]
    ) {
        guard let search = searches[number] else { return }
        let episode: WireEpisode
        do throws(Failure) {
            guard let found = try result.get().episodes.episodes.first else {
                throw Failure(.notFound, "There is no episode “\(search.episode)”.")
            }
            episode = found
        } catch {
            searches[number] = nil
            effects += search.commands.map { .reply($0, .failure(error)) }
            return
        }
        guard let address = WebAddress(episode.chaptersURL), !address.isFile,
            now.wall.milliseconds - episode.chaptersFetched >= Self.chaptersAge
        else { return endSearch(number, &effects) }
        searches[number]?.podcast = episode.podcastID
        let credentials = secrets.credentials(of: episode.podcastID)
        effects.append(.perform(.fetchChapters(number, address, credentials)))
    }

    mutating func chaptersFetched(
        _ number: UInt64, _ outcome: Result<[ChapterMark], Failure>, now: Moment, _ effects: inout [Effect]
    ) {
        guard let search = searches[number], let podcast = PodcastID(search.podcast) else { return }
        switch outcome {
        case .failure(let failure):
            effects.append(.log(.info, "no chapters for \(search.episode): \(failure)"))
            endSearch(number, &effects)
        case .success(let marks):
            guard library.current[podcast] != nil else { return endSearch(number, &effects) }
            searches[number] = nil
            let record = WireChaptersRecord.with {
                ($0.chapters, $0.fetchedAt) = (marks.map(WireChapter.init), now.wall.milliseconds)
            }
            let news = WireEpisodesChanged.with { ($0.podcast, $0.updated) = (search.podcast, [search.episode]) }
            commit(
                [.puttingDocument("chapters/\(search.podcast)", search.episode, record, at: record.fetchedAt)],
                [Publication(.event, .episodes(of: search.podcast), news.wireBytes)],
                for: Purpose(chapterCommands: search.commands), &effects)
        }
    }

    private mutating func endSearch(_ number: UInt64, _ effects: inout [Effect]) {
        let search = searches.removeValue(forKey: number)
        effects += (search?.commands ?? []).map { .reply($0, .success(WireFeedsReply().wireBytes)) }
    }
}
