import LockstepClient
import PodcastModel

/// The list of the full-screen player: the queue, or the chapters of the loaded episode.
extension PlayerScreen {
    var listCount: Int { shownList == .chapters ? snapshot.chapters.count : snapshot.queue.entries.count }

    /// Adds the list, `height` lines high including its heading.
    func appendList(to image: inout ScreenImage, columns: Int, height: Int) {
        image.lines.append([.init(text: DisplayText.cut(heading, to: columns), style: .bold)])
        let (count, shown) = (listCount, max(0, height - 1))
        let selected = shownList == .chapters ? selectedChapter : selectedIndex
        // The selection stays in the middle if the list is longer than its part of the screen.
        let start = max(0, min((selected ?? 0) - shown / 2, count - shown))
        for row in 0..<shown {
            let index = start + row
            guard index < count else {
                image.lines.append([])
                continue
            }
            let isSelected = index == selected
            image.listRows[image.lines.count] = index
            if isSelected { image.cursor = .init(row: image.lines.count, column: 0) }
            let text = (isSelected ? ">" : " ") + rowText(index, columns: columns - 1)
            image.lines.append([.init(text: text, style: isSelected ? .selected : .plain)])
        }
    }

    /// The title of the selected line; nil if there is none.
    var selectedName: String? {
        guard hasList else { return nil }
        if shownList == .chapters { return selectedChapter.map { snapshot.chapters[$0].title } }
        return selectedIndex.map { snapshot.queue.entries[$0].episode.title }
    }

    private var heading: String {
        let queue = snapshot.queue.title
        if shownList == .chapters { return "Chapters (\(snapshot.chapters.count))  c \(queue)" }
        let count = snapshot.queue.entries.count
        let other = snapshot.chapters.isEmpty ? "" : "  c chapters (\(snapshot.chapters.count))"
        return (count == 0 ? "\(queue) is empty" : "\(queue) (\(count))") + other
    }

    /// An entry’s episode; that of the loaded one has the player’s position, and its length if it was measured.
    private func episode(_ entry: QueueState.Entry) -> EpisodeSummary {
        var episode = entry.episode
        guard snapshot.isLoaded(entry) else { return episode }
        episode.position = snapshot.position
        episode.duration = snapshot.player.duration ?? episode.duration
        return episode
    }

    /// The number, the title and the time of a line, after the mark of the current one.
    private func rowText(_ index: Int, columns: Int) -> String {
        let (name, time): (String, String)
        let isCurrent: Bool
        if shownList == .chapters {
            let chapter = snapshot.chapters[index]
            (name, time, isCurrent) = (chapter.title, TimeText.mark(chapter.start), snapshot.chapter == index)
        } else {
            let entry = snapshot.queue.entries[index]
            let episode = episode(entry)
            name = episode.podcast.isEmpty ? episode.title : "\(episode.title) — \(episode.podcast)"
            (time, isCurrent) = (Self.length(of: episode), entry.id == snapshot.queue.current)
        }
        let head = "\(isCurrent ? "▶" : " ")\(index + 1) "
        let room = columns - DisplayText.width(head) - DisplayText.width(time) - 1
        guard room >= 8 else { return DisplayText.cut(head + name, to: columns) }
        return head + DisplayText.fitted(name, to: room) + " " + time
    }

    /// `45:36 left`, or the whole length at position 0.
    private static func length(of episode: EpisodeSummary) -> String {
        guard let duration = episode.duration else { return "" }
        guard episode.position > 0 else { return ClockText.format(duration) }
        let left = ClockText.wholeSeconds(duration) - ClockText.wholeSeconds(episode.position)
        return "\(ClockText.format(Double(max(0, left)))) left"
    }
}
