import BusKit
import PodcastModel
import WireMessages

// The folder, compared with the book.

extension DownloadsMachine {
    /// Has the folder surveyed.
    mutating func survey() -> Effect {
        surveying = Set(book.current.downloads.values.filter { $0.state == .downloaded }.map(\.episode))
        return .perform(.survey)
    }

    /// The folder is compared with the book. Files that nobody knows are left alone.
    mutating func surveyed(_ files: [String: UInt64], now: Moment) -> [Effect] {
        var change = change
        var known: Set<String> = Set(book.current.past.values.map(\.path))
        var whole: [String] = []
        for var download in book.current.downloads.values.sorted(by: { $0.episode < $1.episode }) {
            guard let path = relative(download.path) else { continue }
            known.insert(path)
            let size = files[path]
            switch download.state {
            case .downloaded where size != download.totalBytes && surveying.contains(download.episode):
                leaveWithoutFile(download, isThere: size != nil, &change, now: now)
            case .queued, .paused, .downloading:
                // It was whole, and there was no time to say so.
                guard let size, size > 0, download.totalBytes == 0 || size == download.totalBytes else { continue }
                download.complete(size, at: download.path, now.wall)
                change.put(download)
                whole.append(download.episode)
            default: break
            }
        }
        let unknown = files.keys.filter { !known.contains($0) }.sorted()
        let alert = unknownFiles(unknown, now: now)
        change.endAlerts { $0.code == "unknownFiles" && (unknown.isEmpty || $0.id != alert.id) }
        // Of the same files nobody is told twice.
        if !unknown.isEmpty, book.current.alerts[alert.id] == nil, book.current.answers[alert.id] == nil {
            change.raise(alert)
        }
        return commit(change) + whole.map { .perform(.discard(episode: $0)) }
            + unknown.prefix(20).map { .log(.info, "unknown file in the folder of downloads: \($0)") }
    }

    // MARK: Looking again

    /// What a look at files is for.
    enum Look: Sendable {
        /// Somebody asks for these episodes, of which some were downloaded.
        case add(Command, [String])
        /// Somebody asks why this episode is as it is.
        case why(Command, String)
        /// Whether they are still there.
        case review
    }

    /// How often it is looked whether the files are still there.
    private static let reviewsAfter = Duration.seconds(15)

    /// Has the files looked at of those of these episodes that are downloaded; nil: none is.
    mutating func look(at episodes: [String], for purpose: Look) -> [Effect]? {
        var paths: [String: String] = [:]
        for episode in episodes {
            guard let download = book.current.downloads[episode], download.state == .downloaded else { continue }
            paths[episode] = relative(download.path)
        }
        guard !paths.isEmpty else { return nil }
        count += 1
        looks[count] = purpose
        return [.perform(.look(count, paths))]
    }

    /// Looks whether all files are still there.
    mutating func review() -> [Effect] { look(at: Array(book.current.downloads.keys), for: .review) ?? [] }

    /// Looks again after a while as long as there are files.
    mutating func scheduleReview(now: Moment) -> [Effect] {
        guard book.current.downloads.values.contains(where: { $0.state == .downloaded }) else {
            return set(Self.reviewTimer, to: nil)
        }
        return isSet(Self.reviewTimer)
            ? [] : set(Self.reviewTimer, to: now.monotonic.advanced(by: Self.reviewsAfter))
    }

    /// What was found where files were put; reports come in the order in which things happen, so that it holds for what
    /// is downloaded now.
    mutating func looked(_ number: UInt64, _ found: [String: FoundFile], now: Moment) -> [Effect] {
        guard let purpose = looks.removeValue(forKey: number) else { return [] }
        var change = change
        for (episode, found) in found.sorted(by: { $0.key < $1.key }) {
            guard let download = book.current.downloads[episode], download.state == .downloaded,
                found != .file(download.totalBytes)
            else { continue }
            leaveWithoutFile(download, isThere: found != .nothing, &change, now: now)
        }
        let effects = commit(change)
        switch purpose {
        case .review: return effects
        case .why(let command, let episode): return effects + Self.explain(why(episode, now: now), to: command)
        case .add(let command, let episodes):
            do throws(Failure) {
                return effects + (try addKnown(episodes, command, now: now))
            } catch {
                return effects + [.reply(command.id, .failure(error))]
            }
        }
    }

    /// Nothing is deleted: what is there now is not as we left it.
    private func leaveWithoutFile(
        _ download: WireDownload, isThere: Bool, _ change: inout BookChange, now: Moment
    ) {
        let reason = isThere ? "its file was not the one that was downloaded" : "its file was not there any more"
        change.note(download.episode, reason, at: now.wall)
        var gone = download
        gone.state = .notDownloaded
        change.put(gone)
    }

    // MARK: Other files

    private func unknownFiles(_ files: [String], now: Moment) -> WireAlert {
        var alert = WireAlert()
        alert.id = AlertID.derived(from: "unknownFiles/\(files.joined(separator: "/"))").text
        alert.code = "unknownFiles"
        alert.title = "Unknown files among the downloads"
        let names = files.prefix(3).joined(separator: ", ")
        let more = files.count > 3 ? " and \(files.count - 3) more" : ""
        alert.message = "\(root) holds what was not downloaded by Lockstep: \(names)\(more). It is left alone."
        alert.severity = .info
        alert.actions = ["dismiss"]
        alert.raisedAt = now.wall.milliseconds
        alert.owner = Self.owner.text
        return alert
    }

    mutating func deleted(_ episode: String, _ failure: Failure?) -> [Effect] {
        var change = change
        // What could not be deleted is deleted after the next start; what is not ours never.
        if failure?.retry != true { change.settle(episode) }
        let log = failure.map { Effect.log(.warning, "the file of \(episode) was not deleted: \($0)") }
        return commit(change) + (log.map { [$0] } ?? [])
    }
}
