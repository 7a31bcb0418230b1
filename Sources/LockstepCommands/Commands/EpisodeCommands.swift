import ArgumentParser
import BusKit
import LockstepClient
import PodcastModel
import WireMessages

struct ShowEpisode: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "Show everything about an episode.")
    @Argument(help: "An ID, the beginning of one, or a part of a title.", completion: .episodes) var episode: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let found = try await session.findEpisode(episode)
            let details = EpisodeDetails(
                try await session.withChapters(found.id) ?? found,
                // What the queue and the player would add is left out while they are away.
                in: await session.presentView())
            try context.output.value(details.json, lines: details.lines(width: Output.terminalWidth))
        }
    }
}

extension Session {
    /// What the library has of an episode, chapters of a file that nobody has read yet included, if that can be read soon.
    func withChapters(_ id: String) async throws(Failure) -> WireEpisode? {
        // This answer has what is known of the file, too.
        let episode = try await persistence.episodes(ids: [id]).first
        guard let episode, episode.chapters.isEmpty || episode.chaptersOfFile, episode.chaptersFetched == 0,
            !episode.chaptersURL.isEmpty
        else { return episode }
        do {
            _ = try await feeds(within: .seconds(5)) { $0.fetchChapters.episode = id }
        } catch {
            // It is shown without.
            return episode
        }
        return try await persistence.episodes(ids: [id]).first
    }

    /// What is known now, without waiting for services that are away for longer than others take to answer.
    func presentView() async -> FleetView {
        await follow(until: Self.ownerLimit) { view in
            view.connection == .live
                && [.playback, .queue, .downloads].allSatisfy { (name: ServiceName) in
                    !view.isStale(name) || view.services[name]?.state != .starting
                }
        }.view
    }
}

/// An episode with all that the fleet knows of it.
struct EpisodeDetails: Sendable {
    /// A place in a queue.
    struct Place: Sendable, Hashable {
        var queue: String
        var entry: String
        var number: Int
        var isCurrent: Bool
        var reason: String
    }

    let episode: WireEpisode
    /// In the queues, the usual one first.
    let places: [Place]
    let bookmarks: [WireBookmark]
    let chapters: [WireChapter]
    let download: WireDownload
    let notes: ShowNotes
    /// Where it is: of what is loaded, where the player is now.
    let position: Double

    init(_ episode: WireEpisode, in view: FleetView) {
        self.episode = episode
        places = Self.places(of: episode.id, in: view)
        bookmarks = (view.bookmarks[episode.id]?.bookmarks ?? []).sorted { $0.position < $1.position }
        let isLoaded = view.player?.episode.id == episode.id
        // What has ended is at no place.
        let player = view.player.flatMap { isLoaded && $0.status != .finished ? $0 : nil }
        position =
            player?.position(at: SystemClocks.now(), bootID: SystemClocks.bootID) ?? episode.state.position
        chapters = isLoaded ? Self.chapters(of: episode, as: view.player?.chapters ?? []) : episode.chapters
        download = view.downloads[episode.id] ?? episode.download
        notes = ShowNotes(episode.description_p)
    }

    /// As the player has them, which knows those of the file and where that ends; with the library's addresses.
    private static func chapters(of episode: WireEpisode, as shown: [WireChapter]) -> [WireChapter] {
        guard !shown.isEmpty else { return episode.chapters }
        return shown.map { chapter in
            guard chapter.url.isEmpty else { return chapter }
            let known = episode.chapters.first { $0.start == chapter.start && $0.title == chapter.title }
            var chapter = chapter
            chapter.url = known?.url ?? ""
            return chapter
        }
    }

    /// `Published 2026-05-01, 25:03 long`, or that it is not known.
    private static func dates(_ episode: WireEpisode) -> String {
        let length = episode.knownDuration > 0 ? "\(ClockText.format(episode.knownDuration)) long" : nil
        guard episode.published > 0 else { return "No date" + (length.map { ", \($0)" } ?? " and no length are known") }
        return "Published \(TimeText.day(milliseconds: episode.published)), \(length ?? "of unknown length")"
    }

    /// `; it is at 25:03` of one that was played and has a place all the same, as while it is heard again.
    static func place(_ episode: WireEpisode, at position: Double) -> String {
        guard episode.state.played, position >= 1 else { return "" }
        return "; it is at \(ClockText.format(position))"
    }

    static func places(of episode: String, in view: FleetView) -> [Place] {
        view.queues.values.sorted { FleetView.isQueue($0.name, before: $1.name) }.flatMap { queue in
            queue.entries.enumerated().filter { $1.episode.id == episode }.map { index, entry in
                Place(
                    queue: queue.name, entry: entry.id, number: index + 1, isCurrent: entry.id == queue.current,
                    reason: entry.reason)
            }
        }
    }

    var json: JSONValue {
        episode.detailJSON
            .adding("playedReason", .text(episode.state.reason))
            .adding("notes", .text(notes.text(width: nil).joined(separator: "\n")))
            .adding(
                "links",
                .array(
                    notes.links.map {
                        .object(["number": .integer(Int64($0.number)), "text": .text($0.text), "url": .string($0.url)])
                    })
            )
            .adding("chapters", .array(chapters.map(\.json)))
            .adding("download", download.episode.isEmpty ? .null : download.json)
            .adding("bookmarks", .array(bookmarks.map(\.json)))
            .adding("queues", .array(places.map(\.json)))
    }

    /// For people; the notes at the end, on lines of at most `width` columns.
    func lines(width: Int?) -> [String] {
        var lines = [
            DisplayText.sanitised(episode.title), DisplayText.sanitised(episode.podcastTitle),
            Self.dates(episode),
        ]
        let reason = episode.state.reason.isEmpty ? "" : ": \(DisplayText.sanitised(episode.state.reason))"
        if episode.state.played {
            lines.append("Played\(reason)\(Self.place(episode, at: position))")
        } else if position >= 1 {
            lines.append("At \(ClockText.format(position))")
        }
        if !download.episode.isEmpty, download.state != .notDownloaded {
            lines.append(Sentence.capitalised(DownloadText.state(download)))
        }
        lines += places.map(\.sentence)
        lines.append("Id \(episode.id)")
        for (name, value) in [("Page", episode.link), ("Audio", episode.enclosureURL), ("File", download.path)]
        where !value.isEmpty {
            lines.append("\(name) \(DisplayText.sanitised(value))")
        }
        if !bookmarks.isEmpty {
            lines += ["", "Bookmarks"]
            var table = TextTable([
                .init(heading: "", right: true), .init(heading: "", flexible: true), .init(heading: ""),
            ])
            for bookmark in bookmarks { table.add([ClockText.format(bookmark.position), bookmark.note, bookmark.id]) }
            lines += table.lines(width: width.map { max(0, $0 - 2) }).dropFirst().map { "  " + $0 }
        }
        if !chapters.isEmpty {
            lines += ["", "Chapters"]
            var table = TextTable([.init(heading: "", right: true), .init(heading: "", flexible: true)])
            for chapter in chapters { table.add([TimeText.mark(chapter.start), chapter.title]) }
            lines += table.lines(width: width.map { max(0, $0 - 2) }).dropFirst().map { "  " + $0 }
        }
        let text = notes.text(width: width)
        return text.isEmpty ? lines : lines + [""] + text
    }
}

extension EpisodeDetails.Place {
    /// `Number 3 in Up Next: added by hand`.
    var sentence: String {
        let text = DisplayText.sanitised(reason)
        let why = text.isEmpty ? "" : ": \(text.prefix(1).lowercased())\(text.dropFirst())"
        return "Number \(number) in \(WireQueueState.shownName(queue))\(isCurrent ? ", the current entry" : "")\(why)"
    }

    var json: JSONValue {
        .object([
            "queue": .string(queue), "entry": .string(entry), "place": .integer(Int64(number)),
            "current": .bool(isCurrent), "reason": .text(reason),
        ])
    }
}

struct Why: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "why",
        abstract: "Explain why an episode is downloaded, played or in a queue, or why it isn’t.")
    @Argument(help: "An ID, the beginning of one, or a part of a title.", completion: .episodes) var episode: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            // One that has a download alone can be asked about, too.
            let found = try await session.findDownloads([episode]).first ?? WireEpisode()
            var file: [String] = []
            var failure: Failure?
            do throws(Failure) {
                file = try await session.downloads { $0.why.episode = found.id }.why
            } catch {
                // The rest is worth saying all the same.
                failure = error
            }
            let places = EpisodeDetails.places(of: found.id, in: await session.presentView())
            let lines = Self.lines(found, file: file, failure: failure, places: places)
            try context.output.value(
                .object([
                    "episode": .string(found.id), "title": .string(found.title),
                    "download": .array(file.map { .string($0) }), "played": .bool(found.state.played),
                    "playedReason": .text(found.state.reason), "queues": .array(places.map(\.json)),
                    "error": failure.map { $0.json["error"] ?? .null } ?? .null,
                ]), lines: lines)
        }
    }

    static func lines(
        _ episode: WireEpisode, file: [String], failure: Failure?, places: [EpisodeDetails.Place]
    ) -> [String] {
        var lines = [DisplayText.sanitised(episode.title)]
        lines += file.map { Sentence.stopped(DisplayText.sanitised($0)) }
        if let failure { lines.append("Couldn’t check its file: \(DisplayText.sanitised(failure.message))") }
        let played = episode.state.played ? "Played" : "Not played"
        let reason = episode.state.reason.isEmpty ? "" : ": \(DisplayText.sanitised(episode.state.reason))"
        lines.append(Sentence.stopped(played + reason + EpisodeDetails.place(episode, at: episode.state.position)))
        lines += places.isEmpty ? ["In no queue."] : places.map { Sentence.stopped($0.sentence) }
        return lines
    }
}
