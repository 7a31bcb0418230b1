import PodcastModel
import WireMessages

/// What commands and plain screens say, in sentences.
enum Sentence {
    /// What is loaded and how: `Paused at 12:34 of 58:10: A title, A podcast.`
    static func status(_ snapshot: PlayerSnapshot) -> String {
        guard snapshot.hasEpisode, snapshot.status != .idle else { return "Nothing is loaded." }
        let what = snapshot.podcast.isEmpty ? snapshot.shownTitle : "\(snapshot.shownTitle), \(snapshot.podcast)"
        let beginning: String
        switch snapshot.status {
        case .loading: beginning = "Loading"
        case .finished: beginning = "Finished"
        case .failed: beginning = "Failed at \(snapshot.place)"
        case .playing: beginning = "\(snapshot.isBuffering ? "Buffering" : "Playing") at \(snapshot.place)"
        default: beginning = "Paused at \(snapshot.place)"
        }
        let reason = snapshot.error.map { " \(stopped($0))" } ?? ""
        return "\(beginning): \(stopped(what))\(reason)"
    }

    /// How fast and how loud, and where to: `Speed 1.5, volume 80 %.`
    static func levels(_ snapshot: PlayerSnapshot) -> String {
        var text = "Speed \(NumberText.short(snapshot.speed)), volume \(NumberText.short(snapshot.volume)) %"
        if snapshot.isSilent {
            text += ", no sound device: it plays silently"
        } else if !snapshot.output.isEmpty {
            text += ", output \(snapshot.output)"
        }
        return text + "."
    }

    /// Everything in one sentence, for those who listen to the screen.
    static func everything(_ snapshot: PlayerSnapshot, selection: PlayerSnapshot.Entry?) -> String {
        var parts = [String(status(snapshot).dropLast())]
        if let remaining = snapshot.remaining, snapshot.hasEpisode { parts.append("\(TimeText.clock(remaining)) left") }
        if let chapter = snapshot.chapter {
            parts.append("chapter \(chapter.number) of \(chapter.count), \(chapter.title)")
        }
        parts.append("speed \(NumberText.short(snapshot.speed))")
        parts.append("volume \(NumberText.short(snapshot.volume)) per cent")
        parts.append(snapshot.entries.isEmpty ? "Up Next is empty" : "\(snapshot.entries.count) in Up Next")
        if let selection { parts.append("selected \(selection.title)") }
        if !snapshot.alerts.isEmpty {
            parts.append("\(NumberText.counted(snapshot.alerts.count, "alert")), first \(snapshot.alerts[0].title)")
        }
        parts.append(snapshot.health)
        return parts.joined(separator: "; ") + "."
    }

    /// An alert and how to answer it.
    static func alert(_ alert: PlayerSnapshot.Alert) -> String {
        let actions = alert.actions.isEmpty ? "" : " Answers: \(alert.actions.joined(separator: ", "))."
        let message = alert.message.isEmpty ? "" : " \(stopped(alert.message))"
        return "Alert (\(alert.severity)): \(stopped(alert.title))\(message)\(actions)"
    }

    /// Ends `text` with a full stop unless it ends a sentence already.
    static func stopped(_ text: String) -> String {
        guard let last = text.last else { return text }
        return ".!?…".contains(last) ? text : text + "."
    }
}

/// The plain form of a player: a line for each change, no bars, no ticking.
struct PlainNarrator: Sendable {
    private var last: PlayerSnapshot?
    private var expected: (position: Double, at: MonotonicTime)?

    /// Has said nothing yet.
    init() {}

    /// The lines for what has changed since the last time; `now` is the moment of the snapshot.
    mutating func lines(for snapshot: PlayerSnapshot, now: MonotonicTime) -> [String] {
        defer {
            last = snapshot
            expected = (snapshot.position, now)
        }
        // The state is told once there is one.
        guard let last, last.link != .connecting || snapshot.link == .connecting else { return first(snapshot) }
        var lines: [String] = []
        if last.link != snapshot.link || last.isStale != snapshot.isStale {
            lines.append(Self.connection(snapshot))
        }
        if last.status != snapshot.status || last.loadID != snapshot.loadID || last.episodeID != snapshot.episodeID
            || last.isBuffering != snapshot.isBuffering || jumped(from: last, to: snapshot, now: now)
        {
            lines.append(Sentence.status(snapshot))
        }
        if last.speed != snapshot.speed || last.volume != snapshot.volume || last.output != snapshot.output
            || last.isSilent != snapshot.isSilent
        {
            lines.append(Sentence.levels(snapshot))
        }
        if last.entries.map(\.id) != snapshot.entries.map(\.id) { lines.append(Self.queue(snapshot)) }
        let known = Set(last.alerts.map(\.id))
        lines += snapshot.alerts.filter { !known.contains($0.id) }.map(Sentence.alert)
        let open = Set(snapshot.alerts.map(\.id))
        lines += last.alerts.filter { !open.contains($0.id) }.map { "Alert gone: \(Sentence.stopped($0.title))" }
        return lines
    }

    private func first(_ snapshot: PlayerSnapshot) -> [String] {
        guard snapshot.link != .connecting else { return ["Connecting to the fleet."] }
        return [Sentence.status(snapshot), Sentence.levels(snapshot), Self.queue(snapshot)]
            + snapshot.alerts.map(Sentence.alert)
    }

    private func jumped(from last: PlayerSnapshot, to snapshot: PlayerSnapshot, now: MonotonicTime) -> Bool {
        guard let expected, snapshot.hasEpisode else { return false }
        let elapsed = last.isRunning ? now.since(expected.at) / .seconds(1) * last.speed : 0
        return abs(snapshot.position - expected.position - elapsed) > 1
    }

    private static func connection(_ snapshot: PlayerSnapshot) -> String {
        switch snapshot.link {
        case .connecting: "Connecting to the fleet."
        case .reconnecting: "Reconnecting to the fleet; what was said before may be out of date."
        case .live:
            snapshot.isStale ? "Connected; waiting for \(snapshot.health)." : "Connected; everything is up to date."
        }
    }

    private static func queue(_ snapshot: PlayerSnapshot) -> String {
        let count = NumberText.counted(snapshot.entries.count, "entry", "entries")
        let current = snapshot.entries.firstIndex(where: \.isCurrent)
        guard let next = snapshot.entries.dropFirst(current.map { $0 + 1 } ?? 0).first else {
            return snapshot.entries.isEmpty
                ? "Up Next is empty." : "Up Next: \(count), nothing behind the current one."
        }
        return "Up Next: \(count), next \(Sentence.stopped(next.title))"
    }
}
