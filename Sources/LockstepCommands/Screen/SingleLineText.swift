import LockstepClient
import PodcastModel

enum SingleLineText {
    /// The line, at most `columns` wide. A notice replaces it if it fits.
    static func text(_ snapshot: PlayerSnapshot, columns: Int, notice: String? = nil) -> String {
        if let notice, DisplayText.width(notice) <= columns { return notice }
        let mark = snapshot.connection == .live ? (snapshot.isStale ? "~ " : "") : "(\(snapshot.health)) "
        guard let episode = snapshot.episode else {
            let idle = snapshot.connection == .connecting ? "" : "Nothing is loaded."
            let room = columns - DisplayText.width(mark + idle)
            return DisplayText.cut(mark + idle + alert(snapshot, room: room), to: columns)
        }
        let time = "\(ClockText.format(snapshot.position))/\(ClockText.format(snapshot.player.duration))"
        let head = "\(mark)\(symbol(snapshot.player.status)) \(time)\(trouble(snapshot))"
        let tail = tail(snapshot)
        var room = columns - DisplayText.width(head) - DisplayText.width(tail)
        guard room > 4 else { return DisplayText.cut(head + tail, to: columns) }
        // Alerts precede the title, which always has some space.
        let alert = alert(snapshot, room: room - 12)
        room -= DisplayText.width(alert)
        // A bar fills the space after the title.
        let barWidth = min(20, room - 30)
        let bar =
            barWidth >= 8
            ? " " + ProgressBar.text(snapshot.player.duration.map { snapshot.position / $0 }, columns: barWidth) : ""
        return head + bar + " " + DisplayText.cut(name(episode, snapshot), to: room - DisplayText.width(bar) - 1) + tail
            + alert
    }

    private static func name(_ episode: EpisodeSummary, _ snapshot: PlayerSnapshot) -> String {
        let chapter = snapshot.chapter.map { snapshot.chapters[$0].title } ?? ""
        let title = snapshot.shownTitle + (chapter.isEmpty ? "" : " › \(chapter)")
        return episode.podcast.isEmpty ? title : "\(title) — \(episode.podcast)"
    }

    private static func trouble(_ snapshot: PlayerSnapshot) -> String {
        if let retry = snapshot.retry { return " " + Sentence.retry(retry) }
        return snapshot.player.status == .playing(isBuffering: true) ? " buffering" : ""
    }

    private static func tail(_ snapshot: PlayerSnapshot) -> String {
        var tail = snapshot.speed == 1 ? "" : " \(NumberText.short(snapshot.speed))×"
        if snapshot.player.isLocal { tail += " ↓" }
        if snapshot.sleep != nil { tail += " ☾\(Sentence.sleepTime(snapshot.sleep))" }
        return tail
    }

    static func symbol(_ status: PlayerState.Status) -> String {
        switch status {
        case .playing: "▶"
        case .loading: "…"
        case .finished: "■"
        case .failed: "✗"
        default: "‖"
        }
    }

    /// The alerts with their answers if at least one fits, otherwise their number and the answers that fit.
    private static func alert(_ snapshot: PlayerSnapshot, room: Int) -> String {
        var text = ""
        for (index, alert) in snapshot.alerts.enumerated() {
            let more = snapshot.alerts.count - index
            let rest = more > 1 ? "  and \(more - 1) more" : ""
            let answers = alert.answers.map { "  \($0)" }.joined()
            let left = room - DisplayText.width(text) - DisplayText.width(answers) - 3
            // The number of omitted alerts must be shown.
            guard left >= 8 + DisplayText.width(rest) else {
                return index == 0 ? " !\(more)" + keys(snapshot.alerts, room: room - 3) : text + "  and \(more) more"
            }
            text += " ! " + DisplayText.cut(alert.title, to: left - DisplayText.width(rest)) + answers
        }
        return text
    }

    /// The first answers that fit, each with its digit.
    private static func keys(_ alerts: [PlayerSnapshot.Alert], room: Int) -> String {
        var text = ""
        for answer in alerts.flatMap(\.answers) {
            guard DisplayText.width(text) + DisplayText.width(answer) + 2 <= room else { break }
            text += "  " + answer
        }
        return text
    }
}
