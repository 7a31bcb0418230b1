import WireMessages

/// The full-screen player: a snapshot and a selection in, an image out.
struct PlayerScreen: Sendable {
    /// What is shown.
    var snapshot: PlayerSnapshot
    /// The selected entry's id; nil: the current one, or the first.
    var selection: String?
    /// What the last key led to, or a description; nil: nothing to say.
    var notice: String?

    private static let help =
        "space pause  ←→ seek  [] speed  +- volume  n p next/prev  ↑↓ ⏎ play  x remove  u undo  i describe  q quit"

    /// The index of the selected entry; nil when there is none.
    var selectedIndex: Int? {
        if let selection, let index = snapshot.entries.firstIndex(where: { $0.id == selection }) { return index }
        return snapshot.entries.firstIndex { $0.isCurrent } ?? (snapshot.entries.isEmpty ? nil : 0)
    }

    /// The alerts' actions in the order of their digits, 1 to 9.
    var answers: [(alert: PlayerSnapshot.Alert, action: String)] {
        Array(snapshot.alerts.flatMap { alert in alert.actions.map { (alert, $0) } }.prefix(9))
    }

    /// A part of the screen. What matters less goes first where there is no room.
    private struct Section {
        var priority: Int
        var lines: [[ScreenImage.Span]]
        var isQueue = false
    }

    /// The screen at this size.
    func image(columns: Int, rows: Int) -> ScreenImage {
        guard columns > 0, rows > 0 else { return ScreenImage() }
        let sections = sections(columns: columns)
        var kept: Set<Int> = []
        var room = rows
        for index in sections.indices.sorted(by: { (sections[$0].priority, $0) < (sections[$1].priority, $1) }) {
            let needed = sections[index].isQueue ? min(2, snapshot.entries.count + 1) : sections[index].lines.count
            guard needed <= room else { continue }
            kept.insert(index)
            room -= needed
        }
        var image = ScreenImage()
        for index in sections.indices where kept.contains(index) {
            guard sections[index].isQueue else {
                image.lines += sections[index].lines
                continue
            }
            let height = min(2, snapshot.entries.count + 1) + room
            appendQueue(to: &image, columns: columns, height: height)
        }
        return image
    }

    private func sections(columns: Int) -> [Section] {
        func line(_ text: String, _ style: ScreenImage.Style = .plain) -> [ScreenImage.Span] {
            [.init(text: DisplayText.cut(text, to: columns), style: style)]
        }
        var sections = [Section(priority: 5, lines: [header(columns: columns)])]
        sections.append(Section(priority: 9, lines: [[]]))
        if snapshot.hasEpisode, snapshot.status != .idle {
            sections.append(Section(priority: 1, lines: [line(snapshot.shownTitle, .bold)]))
            if !snapshot.podcast.isEmpty { sections.append(Section(priority: 6, lines: [line(snapshot.podcast)])) }
            if let chapter = snapshot.chapter {
                let text = "Chapter \(chapter.number) of \(chapter.count): \(chapter.title)"
                sections.append(Section(priority: 8, lines: [line(text, .dim)]))
            }
            sections.append(Section(priority: 2, lines: [line(progress(columns: columns))]))
        } else {
            let idle = snapshot.link == .connecting ? "Waiting for the fleet." : "Nothing is loaded."
            sections.append(Section(priority: 1, lines: [line(idle, .bold)]))
        }
        sections.append(Section(priority: 3, lines: [line(levels)]))
        if let error = snapshot.error { sections.append(Section(priority: 4, lines: [line("✗ " + error, .bold)])) }
        sections += alertSections(columns: columns)
        sections.append(Section(priority: 9, lines: [[]]))
        sections.append(Section(priority: 5, lines: [], isQueue: true))
        if let notice {
            sections.append(Section(priority: 2, lines: wrapped(notice, columns: columns).map { line($0, .bold) }))
        }
        sections.append(Section(priority: 7, lines: [line(Self.help, .dim)]))
        return sections
    }

    private func header(columns: Int) -> [ScreenImage.Span] {
        let stale = snapshot.isStale && snapshot.link != .connecting ? "(old) " : ""
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
        let left = "\(MiniLine.symbol(snapshot.status)) \(TimeText.clock(snapshot.position)) "
        let right = " " + (snapshot.remaining.map { "-" + TimeText.clock($0) } ?? "--:--")
        let room = columns - DisplayText.width(left) - DisplayText.width(right)
        guard room >= 4 else { return left + right.dropFirst() }
        return left + ProgressBar.text(snapshot.duration.map { snapshot.position / $0 }, columns: room) + right
    }

    private var levels: String {
        var parts = [
            snapshot.stateWord, "\(NumberText.short(snapshot.speed))×", "vol \(NumberText.short(snapshot.volume))",
        ]
        if let duration = snapshot.duration, snapshot.hasEpisode { parts.append("of \(TimeText.clock(duration))") }
        if snapshot.isSilent {
            parts.append("silent: no sound device")
        } else if !snapshot.output.isEmpty {
            parts.append(snapshot.output)
        }
        return parts.joined(separator: " · ")
    }

    private func alertSections(columns: Int) -> [Section] {
        var digit = 0
        return snapshot.alerts.map { alert in
            var keys = ""
            for action in alert.actions where digit < 9 {
                digit += 1
                keys += "  \(digit) \(action)"
            }
            let message = alert.message.isEmpty ? alert.title : "\(alert.title): \(alert.message)"
            let text = DisplayText.cut("! " + message, to: max(4, columns - DisplayText.width(keys)))
            let span = ScreenImage.Span(text: DisplayText.cut(text + keys, to: columns), style: .bold)
            return Section(priority: 4, lines: [[span]])
        }
    }

    private func appendQueue(to image: inout ScreenImage, columns: Int, height: Int) {
        let count = snapshot.entries.count
        let heading = count == 0 ? "Up Next is empty" : "Up Next (\(count))"
        image.lines.append([.init(text: DisplayText.cut(heading, to: columns), style: .bold)])
        let shown = max(0, height - 1)
        let selected = selectedIndex
        // The selection stays in the middle where the list is longer than its part of the screen.
        let start = max(0, min((selected ?? 0) - shown / 2, count - shown))
        for row in 0..<shown {
            let index = start + row
            guard index < count else {
                image.lines.append([])
                continue
            }
            let isSelected = index == selected
            if isSelected { image.cursor = .init(row: image.lines.count, column: 0) }
            let text = Self.row(snapshot.entries[index], number: index + 1, isSelected: isSelected, columns: columns)
            image.lines.append([.init(text: text, style: isSelected ? .selected : .plain)])
        }
    }

    private static func row(
        _ entry: PlayerSnapshot.Entry, number: Int, isSelected: Bool, columns: Int
    ) -> String {
        let head = "\(isSelected ? ">" : " ")\(entry.isCurrent ? "▶" : " ")\(number) "
        let tail: String
        if let duration = entry.duration {
            tail =
                entry.position > 0
                ? "\(TimeText.clock(max(0, duration - entry.position))) left" : TimeText.clock(duration)
        } else {
            tail = ""
        }
        let name = entry.podcast.isEmpty ? entry.title : "\(entry.title) — \(entry.podcast)"
        let room = columns - DisplayText.width(head) - DisplayText.width(tail) - 1
        guard room >= 8 else { return DisplayText.cut(head + name, to: columns) }
        return head + DisplayText.fitted(name, to: room) + " " + tail
    }

    /// Words on as many lines as they need, three at most.
    private func wrapped(_ text: String, columns: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            let longer = line.isEmpty ? String(word) : "\(line) \(word)"
            if DisplayText.width(longer) <= columns || line.isEmpty {
                line = longer
            } else {
                lines.append(line)
                line = String(word)
            }
        }
        lines.append(line)
        guard lines.count > 3 else { return lines }
        return Array(lines.prefix(2)) + [lines.dropFirst(2).joined(separator: " ")]
    }
}
