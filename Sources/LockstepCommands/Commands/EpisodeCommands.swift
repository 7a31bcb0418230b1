import ArgumentParser
import LockstepClient
import PodcastModel

struct ShowEpisode: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "Show an episode’s details.")
    @Argument(help: EpisodeArguments.orLoaded, completion: .episodes) var episode: String?
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .parts([.player, .queues, .bookmarks, .downloads]) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let found = try await fleet.episode(episode, of: "show EPISODE")
        let details = EpisodeDetails(
            try await fleet.library.episode(found.id, readsChapters: true) ?? found,
            // The members from the queue and the player are omitted while these services aren’t available.
            in: await fleet.availableState(), playlists: (try? await fleet.playlists.positions(of: found.id)) ?? [])
        try output.value(details.json, lines: details.lines(width: Output.terminalWidth))
    }
}

/// An episode with all data that the fleet has about it.
struct EpisodeDetails: Sendable {
    /// The position of the episode in a queue.
    struct QueuePosition: Sendable, Hashable {
        var queue: String
        var entry: String
        var number: Int
        var isCurrent: Bool
        var reason: String

        /// `Number 3 in Up Next: added by hand`.
        var sentence: String {
            let why = reason.isEmpty ? "" : ": \(reason.prefix(1).lowercased())\(reason.dropFirst())"
            return "Number \(number) in \(QueueName.shown(queue))\(isCurrent ? ", the current entry" : "")\(why)"
        }

        var json: JSONValue {
            .object([
                "queue": .string(queue), "entry": .string(entry), "place": .integer(Int64(number)),
                "current": .bool(isCurrent), "reason": .text(reason),
            ])
        }
    }

    let episode: Episode
    /// The positions in queues, those in Up Next first.
    let queuePositions: [QueuePosition]
    let playlists: [PlaylistPosition]
    let bookmarks: [Bookmark]
    let chapters: [ChapterState]
    let download: DownloadState?
    let notes: ShowNotes
    /// The player’s position if the episode is loaded, else the saved one.
    let position: Double

    init(_ episode: Episode, in state: FleetState, playlists: [PlaylistPosition] = []) {
        self.episode = episode
        self.playlists = playlists
        queuePositions = Self.queuePositions(of: episode.id, in: state)
        bookmarks = state.bookmarks(of: episode.id)
        let player = state.player.episode?.id == episode.id ? state.player : nil
        // A finished episode has no position.
        position = player.flatMap { $0.status == .finished ? nil : $0.position() } ?? episode.position
        chapters = player.map { Self.chapters(of: episode, as: $0.chapters) } ?? episode.chapters
        download = state.download(of: episode.id) ?? episode.download
        notes = ShowNotes(episode.notes)
    }

    /// The player’s chapters with the ends of the file’s chapters and the addresses from the library.
    private static func chapters(of episode: Episode, as shown: [ChapterState]) -> [ChapterState] {
        guard !shown.isEmpty else { return episode.chapters }
        return shown.map { chapter in
            guard chapter.url.isEmpty else { return chapter }
            return episode.chapters.first { $0.start == chapter.start && $0.title == chapter.title } ?? chapter
        }
    }

    /// `Published 2026-05-01, 25:03 long`, or the part that isn’t known.
    private static func dates(_ episode: Episode) -> String {
        let length = episode.duration.map { "\(ClockText.format($0)) long" }
        guard let published = episode.published else {
            return "No date" + (length.map { ", \($0)" } ?? " and no length are known")
        }
        return "Published \(TimeText.day(milliseconds: published.milliseconds)), \(length ?? "of unknown length")"
    }

    /// `; it is at 25:03` if a played episode has a position, such as during a replay.
    static func positionSuffix(_ episode: Episode, at position: Double) -> String {
        guard episode.isPlayed, position >= 1 else { return "" }
        return "; it is at \(ClockText.format(position))"
    }

    static func queuePositions(of episode: EpisodeID, in state: FleetState) -> [QueuePosition] {
        state.queues.flatMap { queue in
            queue.entries.enumerated().filter { $1.episode.id == episode }.map { index, entry in
                QueuePosition(
                    queue: queue.name, entry: entry.id.text, number: index + 1, isCurrent: entry.id == queue.current,
                    reason: entry.reason)
            }
        }
    }

    var json: JSONValue {
        let links = notes.links.map {
            JSONValue.object(["number": .integer(Int64($0.number)), "text": .text($0.text), "url": .string($0.url)])
        }
        let chapters = chapters.map {
            JSONValue.object([
                "start": .seconds($0.start), "end": .knownSeconds($0.end ?? 0), "title": .string($0.title),
                "url": .text($0.url),
            ])
        }
        return episode.detailJSON
            .adding("playedReason", .text(episode.playedReason))
            .adding("notes", .text(notes.text(width: nil).joined(separator: "\n")))
            .adding("links", .array(links))
            .adding("chapters", .array(chapters))
            .adding("download", download?.json ?? .null)
            .adding("bookmarks", .array(bookmarks.map(\.json)))
            .adding("queues", .array(queuePositions.map(\.json)))
            .adding("playlists", .array(playlists.map(\.json)))
    }

    func lines(width: Int?) -> [String] {
        var lines = [episode.title, episode.podcast, Self.dates(episode)]
        if episode.isPlayed {
            lines.append("Played\(episode.reasonSuffix)\(Self.positionSuffix(episode, at: position))")
        } else if position >= 1 {
            lines.append("At \(ClockText.format(position))")
        }
        if let download, download.status != .notDownloaded {
            lines.append(Sentence.capitalised(DownloadText.state(download)))
        }
        lines += queuePositions.map(\.sentence)
        lines += playlists.map(\.sentence)
        lines.append("ID \(episode.id)")
        for (name, value) in [
            ("Page", episode.link), ("Audio", episode.audio), ("File", download?.path ?? ""),
            ("Transcript", episode.transcript),
        ] where !value.isEmpty {
            lines.append("\(name) \(value)")
        }
        let notes = notes.text(width: width)
        return lines
            + Self.section("Bookmarks", bookmarks.map { [ClockText.format($0.position), $0.note, $0.id.text] }, width)
            + Self.section("Chapters", chapters.map { [TimeText.mark($0.start), $0.title] }, width) { chapters[$0].url }
            + (notes.isEmpty ? [] : [""] + notes)
    }

    /// Returns an indented table, with the address of each row that has one below the row.
    private static func section(
        _ heading: String, _ rows: [[String]], _ width: Int?, address: (Int) -> String = { _ in "" }
    ) -> [String] {
        guard let first = rows.first else { return [] }
        let columns = [TextTable.Column.right(""), .flexible(""), ""].prefix(first.count)
        let table = TextTable(Array(columns), rows).lines(width: width.map { max(0, $0 - 2) })
        return ["", heading]
            + table.dropFirst().enumerated().flatMap { index, line in
                ["  " + line] + (address(index).isEmpty ? [] : ["        " + DisplayText.sanitised(address(index))])
            }
    }
}

struct Why: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "why",
        abstract: "Explain why an episode is downloaded, played or in a queue, or why it isn’t.")
    @Argument(help: EpisodeArguments.orLoaded, completion: .episodes) var episode: String?
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .parts([.player, .queues, .downloads, .alerts]) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        // The explanation also covers an episode that only has a download.
        let text =
            if let episode { episode } else { try await fleet.loadedEpisode(orName: "why EPISODE").id.text }
        let named = try await fleet.findDownloads([text])[0]
        let found = try await fleet.library.episodes([named.id]).first
        var file: [String] = []
        var failure: Failure?
        do throws(Failure) { file = try await fleet.downloads.reasons(for: named.id) } catch {
            // The other reasons are shown without it.
            failure = error
        }
        let state = await fleet.availableState()
        let queuePositions = EpisodeDetails.queuePositions(of: named.id, in: state)
        let playlists = (try? await fleet.playlists.positions(of: named.id)) ?? []
        let alerts = state.alerts.filter { $0.episode == named.id }
        let lines = Self.lines(
            named.title, found, file: file, failure: failure, queuePositions: queuePositions, playlists: playlists,
            alerts: alerts)
        try output.value(
            .object([
                "episode": .string(named.id.text), "title": .string(named.title),
                "download": .array(file.map { .string($0) }), "played": .bool(found?.isPlayed ?? false),
                "playedReason": .text(found?.playedReason ?? ""), "queues": .array(queuePositions.map(\.json)),
                "playlists": .array(playlists.map(\.json)),
                "error": failure.map { $0.json["error"] ?? .null } ?? .null, "alerts": .array(alerts.map(\.json)),
            ]), lines: lines)
    }

    static func lines(
        _ title: String, _ episode: Episode?, file: [String], failure: Failure?,
        queuePositions: [EpisodeDetails.QueuePosition], playlists: [PlaylistPosition] = [], alerts: [AlertState] = []
    ) -> [String] {
        var lines = [title] + file.map(Sentence.stopped)
        if let failure { lines.append("Couldn’t check its file: \(failure.message)") }
        let played = episode?.isPlayed == true ? "Played" : "Not played"
        let suffix = episode.map { EpisodeDetails.positionSuffix($0, at: $0.position) } ?? ""
        lines.append(Sentence.stopped(played + (episode?.reasonSuffix ?? "") + suffix))
        return lines
            + (queuePositions.isEmpty ? ["It isn’t in a queue."] : queuePositions.map { Sentence.stopped($0.sentence) })
            + playlists.map { Sentence.stopped($0.sentence) } + alerts.map { "\($0.title): \($0.message)" }
    }
}

extension PlaylistPosition {
    /// `Number 3 in the playlist “Long drives”`
    fileprivate var sentence: String { "Number \(number) in the playlist \(DisplayText.quoted(title))" }
}

extension Episode {
    /// `: marked by hand`, the reason for the played mark; empty if the mark never changed.
    fileprivate var reasonSuffix: String { playedReason.isEmpty ? "" : ": \(playedReason)" }
}
