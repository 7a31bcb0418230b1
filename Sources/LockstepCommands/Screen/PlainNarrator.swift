import LockstepClient
import PodcastModel

/// The plain form of a player: a line for each change, no bars, no ticking.
struct PlainNarrator: Sendable {
    private var last: PlayerSnapshot?
    private var expected: (position: Double, at: MonotonicTime)?

    /// The lines for what has changed since the last time; `now` is the moment of the snapshot.
    mutating func lines(for snapshot: PlayerSnapshot, now: MonotonicTime) -> [String] {
        defer {
            last = snapshot
            expected = (snapshot.position, now)
        }
        // The state is printed once there is one.
        guard let last, last.link != .connecting || snapshot.link == .connecting else { return first(snapshot) }
        var lines: [String] = []
        if last.link != snapshot.link || last.isStale != snapshot.isStale {
            lines.append(Self.connection(snapshot))
        }
        let status = Sentence.status(snapshot)
        // While an episode loads, its position doesn’t change.
        let isSame = snapshot.status == .loading && status == Sentence.status(last)
        if isChanged(from: last, to: snapshot, now: now), !isSame { lines.append(status) }
        if last.speed != snapshot.speed || last.volume != snapshot.volume || last.output != snapshot.output
            || last.isSilent != snapshot.isSilent || last.isLocal != snapshot.isLocal || last.sound != snapshot.sound
        {
            lines.append(Sentence.levels(snapshot))
        }
        if last.chapter != snapshot.chapter, let chapter = snapshot.chapter { lines.append(Sentence.chapter(chapter)) }
        if last.sleep?.kind != snapshot.sleep?.kind {
            lines.append(Sentence.capitalised(Sentence.sleep(snapshot.sleep)) + ".")
        }
        if last.entries.map(\.id) != snapshot.entries.map(\.id) { lines.append(Self.queue(snapshot)) }
        let open = Set(snapshot.alerts.map(\.id))
        let gone = last.alerts.filter { !open.contains($0.id) }
        lines += gone.map { "Alert gone: \(Sentence.stopped($0.title))" }
        // An alert that found no free digit at first is printed again with its digits.
        let known = Dictionary(last.alerts.map { ($0.id, $0.keys) }) { first, _ in first }
        return lines + snapshot.alerts.filter { known[$0.id] != $0.keys }.map(Sentence.alert)
    }

    private func first(_ snapshot: PlayerSnapshot) -> [String] {
        guard snapshot.link != .connecting else { return ["Connecting to the fleet."] }
        var lines = [Sentence.status(snapshot), Sentence.levels(snapshot)]
        if let chapter = snapshot.chapter { lines.append(Sentence.chapter(chapter)) }
        if let sleep = snapshot.sleep { lines.append(Sentence.capitalised(Sentence.sleep(sleep)) + ".") }
        return lines + [Self.queue(snapshot)] + snapshot.alerts.map(Sentence.alert)
    }

    /// Whether the playback state has changed, or the position has jumped.
    private func isChanged(from last: PlayerSnapshot, to snapshot: PlayerSnapshot, now: MonotonicTime) -> Bool {
        if last.status != snapshot.status || last.loadID != snapshot.loadID || last.episodeID != snapshot.episodeID {
            return true
        }
        // Each attempt is printed when its wait begins, and not while the wait passes.
        let begins = (last.retry?.wait ?? 0) == 0 && (snapshot.retry?.wait ?? 0) > 0
        return last.isBuffering != snapshot.isBuffering || last.pausedBy != snapshot.pausedBy
            || last.retry?.attempt != snapshot.retry?.attempt || begins
            || jumped(from: last, to: snapshot, now: now)
    }

    private func jumped(from last: PlayerSnapshot, to snapshot: PlayerSnapshot, now: MonotonicTime) -> Bool {
        guard let expected, snapshot.hasEpisode else { return false }
        let elapsed = last.isRunning ? now.since(expected.at) / .seconds(1) * (last.pace ?? last.speed) : 0
        return abs(snapshot.position - expected.position - elapsed) > 1
    }

    private static func connection(_ snapshot: PlayerSnapshot) -> String {
        switch snapshot.link {
        case .connecting: "Connecting to the fleet."
        case .reconnecting: "Reconnecting to the fleet; what was said before may be out of date."
        case .live:
            snapshot.isStale ? "Connected; waiting for \(awaited(snapshot))." : "Connected; everything is up to date."
        }
    }

    /// `queue (down) and playback (starting)`.
    private static func awaited(_ snapshot: PlayerSnapshot) -> String {
        let services = snapshot.unreadyServices.map { "\($0.name) (\($0.state))" }
        return services.isEmpty ? "the services" : Sentence.list(services)
    }

    private static func queue(_ snapshot: PlayerSnapshot) -> String {
        let count = NumberText.counted(snapshot.entries.count, "entry", "entries")
        let name = QueueName.shown(snapshot.queueName)
        let current = snapshot.entries.firstIndex { $0.id == snapshot.currentEntry }
        guard let next = snapshot.entries.dropFirst(current.map { $0 + 1 } ?? 0).first else {
            return snapshot.entries.isEmpty
                ? "\(name) is empty." : "\(name): \(count), nothing after the current one."
        }
        return "\(name): \(count), next \(Sentence.stopped(next.episode.title))"
    }
}

extension PlayerSnapshot.Sleep {
    /// The timer without its rest, which isn’t printed again as it passes.
    fileprivate var kind: Self {
        var kind = self
        if remaining != nil { kind.remaining = 0 }
        return kind
    }
}
