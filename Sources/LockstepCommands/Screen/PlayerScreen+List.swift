import LockstepClient
import PodcastModel
import WireMessages

/// The list of the full-screen player: Up Next, or the chapters of what is loaded.
extension PlayerScreen {
    /// How many lines the list has.
    var listCount: Int { shownList == .chapters ? snapshot.parts.count : snapshot.entries.count }

    /// Adds the list, `height` lines high with its heading.
    func appendList(to image: inout ScreenImage, columns: Int, height: Int) {
        image.lines.append([.init(text: DisplayText.cut(heading, to: columns), style: .bold)])
        let (count, shown) = (listCount, max(0, height - 1))
        let selected = shownList == .chapters ? selectedChapter : selectedIndex
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
            let text =
                shownList == .chapters
                ? chapterRow(index, isSelected: isSelected, columns: columns)
                : Self.row(
                    entry(index), number: index + 1, isSelected: isSelected, columns: columns)
            image.lines.append([.init(text: text, style: isSelected ? .selected : .plain)])
        }
    }

    /// What is selected, by its name; nil: nothing is, or can be.
    var selectedName: String? {
        guard hasList else { return nil }
        if shownList == .chapters { return selectedChapter.map { snapshot.parts[$0].title } }
        return selectedIndex.map { snapshot.entries[$0].title }
    }

    private var heading: String {
        let queue = WireQueueState.shownName(snapshot.queueName)
        if shownList == .chapters { return "Chapters (\(snapshot.parts.count))  c \(queue)" }
        let count = snapshot.entries.count
        let other = snapshot.parts.isEmpty ? "" : "  c chapters (\(snapshot.parts.count))"
        return (count == 0 ? "\(queue) is empty" : "\(queue) (\(count))") + other
    }

    /// An entry as it is now: what is loaded is where the player is, and as long as that knows.
    private func entry(_ index: Int) -> PlayerSnapshot.Entry {
        var entry = snapshot.entries[index]
        guard entry.isLoaded else { return entry }
        entry.position = snapshot.position
        entry.duration = snapshot.duration ?? entry.duration
        return entry
    }

    private func chapterRow(_ index: Int, isSelected: Bool, columns: Int) -> String {
        let part = snapshot.parts[index]
        let isCurrent = snapshot.chapter?.number == index + 1
        let head = "\(isSelected ? ">" : " ")\(isCurrent ? "▶" : " ")\(index + 1) "
        let tail = TimeText.mark(part.start)
        let room = columns - DisplayText.width(head) - DisplayText.width(tail) - 1
        guard room >= 8 else { return DisplayText.cut(head + part.title, to: columns) }
        return head + DisplayText.fitted(part.title, to: room) + " " + tail
    }

    private static func row(
        _ entry: PlayerSnapshot.Entry, number: Int, isSelected: Bool, columns: Int
    ) -> String {
        let head = "\(isSelected ? ">" : " ")\(entry.isCurrent ? "▶" : " ")\(number) "
        let tail: String
        if let duration = entry.duration {
            tail =
                entry.position > 0
                ? "\(ClockText.format(Double(max(0, ClockText.wholeSeconds(duration) - ClockText.wholeSeconds(entry.position))))) left"
                : ClockText.format(duration)
        } else {
            tail = ""
        }
        let name = entry.podcast.isEmpty ? entry.title : "\(entry.title) — \(entry.podcast)"
        let room = columns - DisplayText.width(head) - DisplayText.width(tail) - 1
        guard room >= 8 else { return DisplayText.cut(head + name, to: columns) }
        return head + DisplayText.fitted(name, to: room) + " " + tail
    }
}
