import PodcastModel

/// The changes of speed that are on their way to the ear.
///
/// libmpv gives its output some tenths of a second in advance, which are still heard at the speed that they were made
/// with, but reckons its position as if all of them were played at the speed that was set last. Where in the file the
/// speed changes is enough to put that right.
struct SpeedTimeline: Sendable, Hashable {
    private struct Change: Hashable {
        /// Where in the file it is, in seconds.
        var position: Double
        let before: PlaybackSpeed
        let after: PlaybackSpeed
    }

    /// The situation when the speed was set last.
    private struct Setting: Hashable {
        /// When that was, in seconds.
        let at: Double
        /// The position that libmpv showed right afterwards.
        let shown: Double
        /// Where the change was, if nothing was on its way to the output.
        let position: Double
    }

    /// The speed that was set last.
    private(set) var speed: PlaybackSpeed
    /// The changes that aren’t heard yet, in the order of the file.
    private var changes: [Change] = []
    private var setting: Setting?

    /// More than an output ever has in advance, in seconds: beyond that libmpv has gone elsewhere by itself.
    private static let longest = 3.0
    /// More sound of the old speed, in seconds, is never on its way when the new one is set.
    private static let mostLate = 0.15

    /// Everything is heard at one speed.
    init(_ speed: PlaybackSpeed) {
        self.speed = speed
    }

    /// Whether a change isn’t heard yet.
    var hasChanges: Bool { !changes.isEmpty }

    /// The speed has been set.
    ///
    /// - Parameters:
    ///   - time: when that was, in seconds.
    ///   - shown: what libmpv showed right before.
    ///   - delay: how much the output had in advance, in seconds.
    mutating func change(to speed: PlaybackSpeed, at time: Double, shown: Double, delay: Double) {
        settle(shown, time)
        let position = max(shown + self.speed.factor * delay, changes.last?.position ?? 0)
        changes.append(Change(position: position, before: self.speed, after: speed))
        setting = Setting(at: time, shown: position - speed.factor * delay, position: position)
        self.speed = speed
    }

    /// The position that is heard while libmpv shows `shown`, the speed it is heard at, and in how many seconds another
    /// is heard; nil: none is on its way.
    func heard(shown: Double) -> (position: Double, speed: PlaybackSpeed, changesIn: Double?) {
        var (position, speed) = (shown, self.speed)
        var next: Change?
        for change in changes.reversed() where !isElsewhere(shown) && position < change.position {
            position = change.position - (change.position - position) / change.after.factor * change.before.factor
            speed = change.before
            next = change
        }
        return (position, speed, next.map { ($0.position - position) / $0.before.factor })
    }

    /// Learns from what libmpv shows at a moment, and drops the changes that have been heard.
    ///
    /// - Returns: whether there were any.
    mutating func update(shown: Double, at time: Double) -> Bool {
        settle(shown, time)
        let before = changes.count
        let position = isElsewhere(shown) ? .infinity : heard(shown: shown).position
        changes.removeAll { $0.position <= position }
        return changes.count < before
    }

    /// Nothing is heard for a while: what is shown from now on says no more about the last change.
    mutating func hold() {
        setting = nil
    }

    /// What is heard runs on at its speed whatever comes to the output. Sound that was made at the old speed, but came there
    /// after the new one was set, is reckoned by the new one, too: what is shown leaps by that, and the change is as much
    /// later. The same goes for an output that has had more in advance than was thought.
    private mutating func settle(_ shown: Double, _ time: Double) {
        guard let setting, let last = changes.last else { return }
        let leap = shown - setting.shown - (time - setting.at) * last.after.factor
        let late = leap / (last.before.factor - last.after.factor)
        guard abs(late) < Self.mostLate else { return }
        let earliest = changes.dropLast().last?.position ?? 0
        changes[changes.count - 1].position = max(setting.position + late * last.before.factor, earliest)
    }

    private func isElsewhere(_ shown: Double) -> Bool {
        changes.last.map { ($0.position - shown) / speed.factor > Self.longest } ?? false
    }
}
