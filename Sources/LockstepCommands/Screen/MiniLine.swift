import WireMessages

/// The player on one line.
enum MiniLine {
    /// The line, at most `columns` wide.
    static func text(_ snapshot: PlayerSnapshot, columns: Int, notice: String? = nil) -> String {
        if let notice { return DisplayText.cut(notice, to: columns) }
        let mark = snapshot.link == .live ? (snapshot.isStale ? "~ " : "") : "(\(snapshot.health)) "
        guard snapshot.hasEpisode, snapshot.status != .idle else {
            let idle = snapshot.link == .connecting ? "" : "Nothing is loaded."
            return DisplayText.cut(mark + idle + alerts(snapshot), to: columns)
        }
        let time = "\(TimeText.clock(snapshot.position))/\(TimeText.clock(snapshot.duration))"
        let head = "\(mark)\(symbol(snapshot.status)) \(time)"
        var tail = snapshot.speed == 1 ? "" : " \(NumberText.short(snapshot.speed))×"
        tail += alerts(snapshot)
        let room = columns - DisplayText.width(head) - DisplayText.width(tail)
        let name = snapshot.podcast.isEmpty ? snapshot.shownTitle : "\(snapshot.shownTitle) — \(snapshot.podcast)"
        guard room > 4 else { return DisplayText.cut(head + tail, to: columns) }
        // A bar where there is more room than a title needs.
        let barWidth = min(20, room - 30)
        let bar =
            barWidth >= 8
            ? " " + ProgressBar.text(snapshot.duration.map { snapshot.position / $0 }, columns: barWidth) : ""
        return head + bar + " " + DisplayText.cut(name, to: room - DisplayText.width(bar) - 1) + tail
    }

    /// The sign for a state; the words are for plain screens.
    static func symbol(_ status: WirePlaybackState.Status) -> String {
        switch status {
        case .playing: "▶"
        case .loading: "…"
        case .finished: "■"
        case .failed: "✗"
        default: "‖"
        }
    }

    private static func alerts(_ snapshot: PlayerSnapshot) -> String {
        snapshot.alerts.isEmpty ? "" : " !\(snapshot.alerts.count)"
    }
}
