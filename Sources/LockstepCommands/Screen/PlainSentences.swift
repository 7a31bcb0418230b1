import LockstepClient
import PodcastModel

/// Reports a player as plain text: a line for each change.
struct PlainSentences: Sendable {
    private var last: PlayerSnapshot?
    private var expected: (position: Double, at: MonotonicTime)?

    /// Returns the lines for the changes since the last snapshot; `now` is the time of this one.
    mutating func lines(for snapshot: PlayerSnapshot, now: MonotonicTime) -> [String] {
        defer {
            last = snapshot
            expected = (snapshot.position, now)
        }
        // The whole state is printed when it is first known.
        guard let last, last.connection != .connecting || snapshot.connection == .connecting else {
            return first(snapshot)
        }
        var lines: [String] = []
        if last.connection != snapshot.connection || last.isStale != snapshot.isStale {
            lines.append(Self.connection(snapshot))
        }
        let status = Sentence.status(snapshot)
        // While an episode loads, its position doesn’t change.
        let isSame = snapshot.player.isLoading && status == Sentence.status(last)
        if isChanged(from: last, to: snapshot, now: now), !isSame { lines.append(status) }
        if last.speed != snapshot.speed || last.volume != snapshot.volume
            || last.player.output != snapshot.player.output
            || last.player.isSilent != snapshot.player.isSilent || last.player.isLocal != snapshot.player.isLocal
            || last.player.soundWords != snapshot.player.soundWords
        {
            lines.append(Sentence.levels(snapshot))
        }
        if last.chapterName != snapshot.chapterName { lines += chapter(snapshot) }
        // The remaining time isn’t printed while it counts down.
        if !last.player.hasSleepTimer(of: snapshot.player) { lines.append(sleep(snapshot)) }
        if last.queue.entries.map(\.id) != snapshot.queue.entries.map(\.id) { lines.append(Self.queue(snapshot)) }
        let open = Set(snapshot.alerts.map(\.id))
        let gone = last.alerts.filter { !open.contains($0.id) }
        lines += gone.map { "Alert closed: \(Sentence.stopped($0.title))" }
        // An alert that got no digit at first is printed again with its digits.
        let known = Dictionary(last.alerts.map { ($0.id, $0.keys) }) { first, _ in first }
        return lines + snapshot.alerts.filter { known[$0.id] != $0.keys }.map(Sentence.alert)
    }

    private func first(_ snapshot: PlayerSnapshot) -> [String] {
        guard snapshot.connection != .connecting else { return ["Connecting to the fleet."] }
        var lines = [Sentence.status(snapshot), Sentence.levels(snapshot)]
        lines += chapter(snapshot)
        if snapshot.sleep != nil { lines.append(sleep(snapshot)) }
        return lines + [Self.queue(snapshot)] + snapshot.alerts.map(Sentence.alert)
    }

    private func chapter(_ snapshot: PlayerSnapshot) -> [String] {
        snapshot.chapterName.map { [Sentence.stopped($0)] } ?? []
    }

    private func sleep(_ snapshot: PlayerSnapshot) -> String { Sentence.capitalised(Sentence.sleep(snapshot)) + "." }

    /// Whether the playback state has changed, or the position has jumped.
    private func isChanged(from last: PlayerSnapshot, to snapshot: PlayerSnapshot, now: MonotonicTime) -> Bool {
        if last.stateWord != snapshot.stateWord || last.player.loadID != snapshot.player.loadID
            || last.episode?.id != snapshot.episode?.id
        {
            return true
        }
        // Each retry is printed when its wait begins, and not during the wait.
        let begins = (last.retry?.wait ?? 0) == 0 && (snapshot.retry?.wait ?? 0) > 0
        return last.retry?.attempt != snapshot.retry?.attempt || begins
            || jumped(from: last, to: snapshot, now: now)
    }

    private func jumped(from last: PlayerSnapshot, to snapshot: PlayerSnapshot, now: MonotonicTime) -> Bool {
        guard let expected, snapshot.episode != nil else { return false }
        let elapsed = last.player.isRunning ? now.since(expected.at) / .seconds(1) * last.player.pace : 0
        return abs(snapshot.position - expected.position - elapsed) > 1
    }

    private static func connection(_ snapshot: PlayerSnapshot) -> String {
        switch snapshot.connection {
        case .connecting: "Connecting to the fleet."
        case .reconnecting, .ended: "Reconnecting to the fleet; the last state may be out of date."
        case .live:
            snapshot.isStale ? "Connected; waiting for \(awaited(snapshot))." : "Connected; everything is up to date."
        }
    }

    /// `queue (down) and playback (starting)`.
    private static func awaited(_ snapshot: PlayerSnapshot) -> String {
        let services = snapshot.unreadyServices.map { "\($0.name) (\($0.word))" }
        return services.isEmpty ? "the services" : WordList.and(services)
    }

    private static func queue(_ snapshot: PlayerSnapshot) -> String {
        let count = NumberText.counted(snapshot.queue.entries.count, "entry", "entries")
        let name = snapshot.queue.title
        let current = snapshot.queue.entries.firstIndex { $0.id == snapshot.queue.current }
        guard let next = snapshot.queue.entries.dropFirst(current.map { $0 + 1 } ?? 0).first else {
            return snapshot.queue.entries.isEmpty
                ? "\(name) is empty." : "\(name): \(count), nothing after the current one."
        }
        return "\(name): \(count), next \(Sentence.stopped(next.episode.title))"
    }
}
