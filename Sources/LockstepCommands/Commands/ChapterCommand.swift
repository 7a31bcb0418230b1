import ArgumentParser
import BusKit
import LockstepClient
import PodcastModel
import WireMessages

struct ChapterCommand: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "chapter", abstract: "List the chapters of what is loaded, or go to one.",
        discussion: "`previous` goes to the start of the chapter first, and from its first seconds to the one before.")
    @Argument(
        help: "next, previous or a chapter’s number; without it, they are listed.",
        completion: .list(["next", "previous", "list"]))
    var target: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let target = try target.map { text throws(Failure) in
            guard let target = ChapterTarget(text) else {
                throw Failure(.invalidArgument, "“\(text)” isn’t a chapter. Give next, previous or a number.")
            }
            return target
        }
        try await context.withSession { session in
            let player = try await session.playerWithChapters()
            guard player.hasEpisode, player.status != .idle else {
                throw Failure(.nothingLoaded, "Nothing is loaded. Start something with `lockstep play EPISODE`.")
            }
            let now = player.position(at: SystemClocks.now(), bootID: SystemClocks.bootID)
            guard let target, target != .list else {
                return try context.output.value(
                    player.chaptersJSON(at: now), lines: Self.lines(player, position: now))
            }
            let number = try target.number(in: player, at: now)
            let start = player.chapters[number - 1].start
            if player.status == .paused, abs(start - now) < 0.01 {
                return try session.report(player, to: context.output, already: true)
            }
            let reply = try await session.playback {
                $0.seek.loadID = player.loadID
                $0.seek.position = start
            }
            if let ended = try await session.playedToEnd(by: start, in: player, now: reply.state) {
                return try context.output.change(ended.nowJSON, Sentence.playedToEnd(player))
            }
            let title = DisplayText.sanitised(player.chapters[number - 1].title)
            // Where the chapter begins, as it is listed.
            var snapshot = session.snapshot(reply.state)
            if abs(snapshot.position - start) < 0.5 { snapshot.position = start.rounded() }
            let place = snapshot.place
            let name = title.isEmpty ? "" : ": \(title)"
            try context.output.change(
                reply.state.nowJSON,
                Sentence.stopped("Chapter \(number) of \(player.chapters.count), at \(place)\(name)"))
        }
    }

    static func lines(_ player: WirePlaybackState, position: Double) -> [String] {
        guard !player.chapters.isEmpty else { return ["This episode has no chapters."] }
        let current = player.chapters.number(at: position)
        var table = TextTable([
            .init(heading: "", right: true), .init(heading: ""), .init(heading: "start", right: true),
            .init(heading: "length", right: true), .init(heading: "chapter", flexible: true),
        ])
        for (index, chapter) in player.chapters.enumerated() {
            let end = player.chapters.end(of: index, duration: player.duration)
            table.add([
                "\(index + 1)", index + 1 == current ? "*" : "", TimeText.mark(chapter.start),
                // From one shown start to the next.
                TimeText.mark(end.map { $0.rounded() - chapter.start.rounded() }), chapter.title,
            ])
        }
        return table.lines(width: Output.terminalWidth)
    }
}

extension Session {
    /// The player, with the chapters of what it has: while that opens, once it is open, for the file may have some; and where
    /// it has none, once the feed's have been looked for. All of that for some seconds at most.
    fileprivate func playerWithChapters() async throws(Failure) -> WirePlaybackState {
        var player = try await view(of: [.playback]).player ?? WirePlaybackState()
        if player.status == .loading, player.chapters.isEmpty {
            player = await following(within: .seconds(5)) { $0.status != .loading || !$0.chapters.isEmpty } ?? player
        }
        guard player.chapters.isEmpty, player.hasEpisode, player.status != .idle else { return player }
        let known: WireEpisode?
        // What the library cannot say is left out.
        do throws(Failure) { known = try await withChapters(player.episode.id) } catch { known = nil }
        guard let known, !known.chapters.isEmpty, !known.chaptersOfFile else { return player }
        let load = player.loadID
        return await following(within: .seconds(2)) { $0.loadID != load || !$0.chapters.isEmpty } ?? player
    }

    /// The player when it is `done`, or after so long.
    private func following(
        within limit: Duration, until done: @escaping @Sendable (WirePlaybackState) -> Bool
    ) async -> WirePlaybackState? {
        await follow(until: limit) { view in view.connection == .live && view.player.map(done) ?? false }.view.player
    }
}

/// Which chapter to go to.
enum ChapterTarget: Sendable, Hashable {
    case list, next, previous
    case number(Int)

    /// Seconds into a chapter within which `previous` means the one before.
    static let grace = 3.0

    /// Nil unless `text` is one of the words or a number.
    init?(_ text: String) {
        switch text {
        case "list": self = .list
        case "next": self = .next
        case "previous", "prev": self = .previous
        default:
            guard text.utf8.count <= 6, let number = UInt32(text) else { return nil }
            self = .number(Int(number))
        }
    }

    /// The number, from 1, of the chapter that is meant at `position`.
    ///
    /// - Throws: `notFound` where there is no such chapter, `atEdge` behind the last one.
    func number(in player: WirePlaybackState, at position: Double) throws(Failure) -> Int {
        let chapters = player.chapters
        guard !chapters.isEmpty else {
            throw Failure(.notFound, "“\(DisplayText.sanitised(player.episode.title))” has no chapters.")
        }
        switch self {
        case .number(let number):
            guard chapters.indices.contains(number - 1) else {
                let count = NumberText.counted(chapters.count, "chapter")
                throw Failure(.notFound, "There is no chapter \(number); this episode has \(count).")
            }
            return number
        case .next, .list:
            guard let index = chapters.next(after: position) else {
                throw Failure(.atEdge, "This is the last chapter.")
            }
            return index + 1
        case .previous:
            guard let index = chapters.previous(before: position) else {
                let isFirst = chapters.number(at: position) > 0
                throw Failure(
                    .atEdge,
                    isFirst ? "This is the beginning of the first chapter." : "There is no chapter before this place.")
            }
            return index + 1
        }
    }
}

extension [WireChapter] {
    /// The index of the first chapter that begins behind a place.
    func next(after position: Double) -> Int? { firstIndex { $0.start > position + 0.05 } }

    /// The index of the chapter whose start lies far enough before a place, so that repeating it leads on.
    func previous(before position: Double) -> Int? {
        lastIndex { $0.start < position - ChapterTarget.grace } ?? (isEmpty || position <= self[0].start ? nil : 0)
    }
}
