import LockstepClient
import PodcastModel

/// The full-screen player, which draws a snapshot and a selection.
struct PlayerScreen: Sendable {
    var snapshot: PlayerSnapshot
    /// The selected entry; nil for the current one, or the first.
    var selection: QueueEntryID?
    /// The effect of the last key, or a description.
    var notice: String?
    /// Distinguishes a notice from the next one with the same text.
    var noticeNumber = 0
    /// Whether the screen has a list to select from.
    var hasList = true
    /// The chosen list; without chapters the queue is shown.
    var list = List.queue
    /// The index of the selected chapter; nil for the current one.
    var chapterSelection: Int?
    /// The library’s pages; nil if the player has none.
    var library: LibraryPages?
    /// Completes the commands in its own texts.
    var advice = AdvisedCommands.plain

    enum List: Sendable, Hashable {
        case queue, chapters
    }

    var shownList: List { snapshot.chapters.isEmpty ? .queue : list }

    var selectedChapter: Int? {
        if let chapterSelection, snapshot.chapters.indices.contains(chapterSelection) { return chapterSelection }
        return snapshot.chapter
    }

    var selectedIndex: Int? {
        if let selection, let index = snapshot.queue.entries.firstIndex(where: { $0.id == selection }) { return index }
        return snapshot.queue.entries.firstIndex { $0.id == snapshot.queue.current }
            ?? (snapshot.queue.entries.isEmpty ? nil : 0)
    }

    /// The answer that a digit gives to an alert; nil if there is none.
    func answer(_ digit: Int) -> PlayerIntent? {
        for alert in snapshot.alerts {
            guard let index = alert.keys.firstIndex(of: digit), alert.actions.indices.contains(index) else { continue }
            return .answer(alert: alert.id, owner: alert.owner, action: alert.actions[index])
        }
        return nil
    }

    /// A part of the screen. If space is scarce, the parts with the highest numbers are omitted.
    private struct Section {
        var priority: Int
        var lines: [[ScreenImage.Span]]
        var isList = false
    }

    func image(columns: Int, rows: Int) -> ScreenImage {
        guard columns > 0, rows > 0 else { return ScreenImage() }
        if let library, library.isOpen {
            return library.image(snapshot, notice: notice, columns: columns, rows: rows)
        }
        let sections = sections(columns: columns, rows: rows)
        var kept: Set<Int> = []
        var room = rows
        for index in sections.indices.sorted(by: { (sections[$0].priority, $0) < (sections[$1].priority, $1) }) {
            let needed = sections[index].isList ? min(2, listCount + 1) : sections[index].lines.count
            guard needed <= room else { continue }
            kept.insert(index)
            room -= needed
        }
        var image = ScreenImage()
        for index in sections.indices where kept.contains(index) {
            guard sections[index].isList else {
                image.lines += sections[index].lines
                continue
            }
            appendList(to: &image, columns: columns, height: min(2, listCount + 1) + room)
        }
        return image
    }

    private func sections(columns: Int, rows: Int) -> [Section] {
        func line(_ text: String, _ style: ScreenImage.Style = .plain) -> [ScreenImage.Span] {
            [.init(text: DisplayText.cut(text, to: columns), style: style)]
        }
        var sections = [Section(priority: 5, lines: [header(columns: columns)])]
        sections.append(Section(priority: 9, lines: [[]]))
        if let episode = snapshot.episode {
            sections.append(Section(priority: 1, lines: [line(snapshot.shownTitle, .bold)]))
            if !episode.podcast.isEmpty { sections.append(Section(priority: 6, lines: [line(episode.podcast)])) }
            if let chapter = snapshot.chapterName {
                sections.append(Section(priority: 8, lines: [line(chapter, .dim)]))
            }
            sections.append(Section(priority: 2, lines: [line(progress(columns: columns))]))
        } else {
            let idle = snapshot.connection == .connecting ? "Waiting for the fleet." : "Nothing is loaded."
            sections.append(Section(priority: 1, lines: [line(idle, .bold)]))
        }
        sections.append(Section(priority: 3, lines: [line(levels)]))
        if let retry = snapshot.retry {
            sections.append(Section(priority: 3, lines: [line("… \(Sentence.retry(retry))\(retry.reason)", .bold)]))
        }
        if snapshot.sleep != nil {
            sections.append(Section(priority: 4, lines: [line("☾ \(Sentence.sleep(snapshot))")]))
        }
        if let error = snapshot.error, !snapshot.alerts.contains(where: snapshot.isReported) {
            sections.append(Section(priority: 4, lines: [line("✗ " + error, .bold)]))
        }
        sections += alertSections(columns: columns)
        sections.append(Section(priority: 9, lines: [[]]))
        sections.append(Section(priority: 5, lines: [], isList: true))
        if let notice {
            let lines = Self.wrapped(notice, columns: columns, rows: max(3, rows / 2))
            sections.append(Section(priority: 2, lines: lines.map { line($0, .bold) }))
        }
        sections.append(Section(priority: 7, lines: [line(PlayerHelp.line(columns: columns), .dim)]))
        return sections
    }

    private func header(columns: Int) -> [ScreenImage.Span] {
        let stale = snapshot.isStale && snapshot.connection != .connecting ? "(old) " : ""
        let health = stale + snapshot.health
        let name = "Lockstep"
        let room = columns - DisplayText.width(name) - 2
        guard room >= 8 else { return [.init(text: DisplayText.cut(health, to: columns), style: .dim)] }
        return [
            .init(text: name + "  ", style: .bold),
            .init(text: DisplayText.fitted(health, to: room, right: true), style: snapshot.isStale ? .bold : .dim),
        ]
    }

    private func progress(columns: Int) -> String {
        let left = "\(SingleLineText.symbol(snapshot.player.status)) \(ClockText.format(snapshot.position)) "
        let right = " " + (snapshot.remaining.map { "-" + ClockText.format($0) } ?? "--:--")
        let room = columns - DisplayText.width(left) - DisplayText.width(right)
        guard room >= 4 else { return left + right.dropFirst() }
        return left + ProgressBar.text(snapshot.player.duration.map { snapshot.position / $0 }, columns: room) + right
    }

    private var levels: String {
        var parts = [
            snapshot.stateWord, "\(NumberText.short(snapshot.speed))×", "vol \(NumberText.short(snapshot.volume))",
        ]
        if let duration = snapshot.player.duration, snapshot.episode != nil {
            parts.append("of \(ClockText.format(duration))")
        }
        if snapshot.player.isSilent {
            parts.append("silent: no sound device")
        } else if let output = snapshot.player.output {
            parts.append(output)
        }
        if snapshot.player.isLocal { parts.append("downloaded file") }
        return (parts + snapshot.player.soundWords).joined(separator: " · ")
    }

    private func alertSections(columns: Int) -> [Section] {
        let command = advice.completed("  `lockstep alerts answer` answers alerts without a digit.")
        let rest = ScreenImage.Span(text: DisplayText.cut(command, to: columns), style: .dim)
        let all = snapshot.alerts.allSatisfy(\.hasDigitForEachAnswer)
        return snapshot.alerts.map { alert in
            let keys = alert.answers.map { "  \($0)" }.joined()
            let message = alert.message.isEmpty ? alert.title : "\(alert.title): \(alert.message)"
            let text = DisplayText.cut("! " + message, to: max(4, columns - DisplayText.width(keys)))
            let span = ScreenImage.Span(text: DisplayText.cut(text + keys, to: columns), style: .bold)
            return Section(priority: 4, lines: [[span]])
        } + (all ? [] : [Section(priority: 4, lines: [[rest]])])
    }

    private static func wrapped(_ text: String, columns: Int, rows: Int) -> [String] {
        let lines = DisplayText.wrapped(text, to: columns)
        guard lines.count > rows else { return lines }
        return Array(lines.prefix(rows - 1)) + [lines.dropFirst(rows - 1).joined(separator: " ")]
    }
}
