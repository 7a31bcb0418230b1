import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// Looking whether the files are still there: all at once, and one look at a time.

extension DownloadsMachine {
    /// What a look at files is for.
    enum Look: Sendable {
        /// Somebody asks for these episodes, of which some were downloaded.
        case add(Command, [String])
        /// Somebody asks why this episode is as it is.
        case why(Command, String)
    }

    /// A look under way.
    struct Looking: Sendable {
        var number: UInt64
        var since: MonotonicTime
        /// The files that it is at.
        var files: [String: DownloadedFile]
        /// Who is answered when it is done.
        var purposes: [Look]
    }

    /// A file as it was put.
    struct DownloadedFile: Sendable, Equatable {
        /// Relative to the folder.
        var path: String
        /// When, in ms since 1970.
        var finishedAt: Int64
    }

    /// How often it is looked whether the files are still there.
    private static let reviewsAfter = Duration.seconds(15)
    /// So long somebody waits for a look; a disk that hangs may never answer.
    private static let looksWithin = Duration.seconds(5)

    /// The files of what is downloaded, by episode.
    var downloaded: [String: DownloadedFile] {
        book.current.downloads.filter { $0.value.state == .downloaded }.compactMapValues { download in
            relative(download.path).map { DownloadedFile(path: $0, finishedAt: download.finishedAt) }
        }
    }

    /// Has the files looked at before somebody is answered, if one of these episodes is downloaded; nil: none is, or the
    /// disk does not answer.
    mutating func look(at episodes: [String], for purpose: Look, now: Moment) -> [Effect]? {
        guard episodes.contains(where: { book.current.downloads[$0]?.state == .downloaded }) else { return nil }
        guard let since = looking?.since else { return look([purpose], now: now) }
        guard now.monotonic.since(since) < Self.looksWithin else { return nil }
        // The look under way may have seen these already, as they were before.
        nextLook.append(purpose)
        return set(Self.limitTimer, to: since.advanced(by: Self.looksWithin))
    }

    /// Looks whether all files are still there, once the look under way is done.
    mutating func review(now: Moment) -> [Effect] {
        guard looking == nil else {
            isReviewDue = true
            return []
        }
        return look([], now: now)
    }

    private mutating func look(_ purposes: [Look], now: Moment) -> [Effect] {
        isReviewDue = false
        let files = downloaded
        guard !files.isEmpty || !book.current.folder.marker.isEmpty else { return [] }
        count += 1
        looking = Looking(number: count, since: now.monotonic, files: files, purposes: purposes)
        let limit = purposes.isEmpty ? nil : now.monotonic.advanced(by: Self.looksWithin)
        return [.perform(.look(count, files.mapValues(\.path)))] + set(Self.limitTimer, to: limit)
    }

    /// Looks again after a while as long as there are files, or the folder is away.
    mutating func scheduleReview(now: Moment) -> [Effect] {
        guard looking == nil else { return set(Self.reviewTimer, to: nil) }
        guard isAway || book.current.downloads.values.contains(where: { $0.state == .downloaded }) else {
            return set(Self.reviewTimer, to: nil)
        }
        return isSet(Self.reviewTimer)
            ? [] : set(Self.reviewTimer, to: now.monotonic.advanced(by: Self.reviewsAfter))
    }

    /// What was found where files were put; it says nothing of files that came, or came again, since it was asked for.
    mutating func looked(
        _ number: UInt64, _ found: [String: FoundFile], _ sight: FolderSight?, now: Moment
    ) -> [Effect] {
        guard let done = looking, done.number == number else { return [] }
        looking = nil
        var change = change
        var effects = set(Self.limitTimer, to: nil)
        if let sight {
            let (found, more) = believe(found, sight, asked: done.files, &change, now: now)
            effects += more
            for (episode, found) in found.sorted(by: { $0.key < $1.key }) {
                guard let download = book.current.downloads[episode], found != .file(download.totalBytes) else {
                    continue
                }
                leaveWithoutFile(download, isThere: found != .nothing, &change, now: now)
            }
        }
        effects = commit(change) + effects
        for purpose in done.purposes { effects += answer(purpose, now: now) }
        if !isAway, surveysWhenBack {
            surveysWhenBack = false
            effects.append(survey())
        }
        let next = nextLook
        nextLook = []
        return next.isEmpty && !isReviewDue ? effects : effects + look(next, now: now)
    }

    /// Whoever waits for a look is answered with what is known.
    mutating func looksTakeTooLong(now: Moment) -> [Effect] {
        let waiting = (looking?.purposes ?? []) + nextLook
        looking?.purposes = []
        nextLook = []
        return waiting.flatMap { answer($0, now: now) }
    }

    private mutating func answer(_ purpose: Look, now: Moment) -> [Effect] {
        switch purpose {
        case .why(let command, let episode): return Self.explain(why(episode, now: now), to: command)
        case .add(let command, let episodes):
            do throws(Failure) {
                return try addKnown(episodes, command, now: now)
            } catch {
                return [.reply(command.id, .failure(error))]
            }
        }
    }
}
