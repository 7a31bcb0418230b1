import PodcastModel

/// The speed changes that aren’t heard yet.
///
/// The output has buffered some tenths of a second, which still play at their own speed, but libmpv computes its
/// position as if all of them played at the newest speed. The positions of the changes are enough to correct that.
struct SpeedTimeline: Sendable, Hashable {
    private struct Change: Hashable {
        /// The position in the file, in seconds.
        var position: Double
        let before: PlaybackSpeed
        let after: PlaybackSpeed
    }

    /// The last setting of the speed, with which later reports are compared.
    private struct Setting: Hashable {
        let at: Double
        /// The position that libmpv reported right afterwards.
        let shown: Double
        /// The estimated position of the change, which later reports correct.
        let position: Double
    }

    private(set) var speed: PlaybackSpeed
    /// The changes, in the order of the file.
    private var changes: [Change] = []
    private var setting: Setting?

    /// More than an output buffers, in seconds; a larger difference means that the position has jumped.
    private static let maximumBuffer = 3.0
    /// The maximum error of the buffer’s estimated length, in seconds.
    private static let maximumError = 0.15

    init(_ speed: PlaybackSpeed) {
        self.speed = speed
    }

    var hasChanges: Bool { !changes.isEmpty }

    /// Records a new speed.
    ///
    /// - Parameters:
    ///   - time: the time in seconds.
    ///   - shown: the position that libmpv reported right before.
    ///   - delay: the length of the output’s buffer, in seconds.
    mutating func change(to speed: PlaybackSpeed, at time: Double, shown: Double, delay: Double) {
        settle(shown, time)
        let position = max(shown + self.speed.factor * delay, changes.last?.position ?? 0)
        changes.append(Change(position: position, before: self.speed, after: speed))
        setting = Setting(at: time, shown: position - speed.factor * delay, position: position)
        self.speed = speed
    }

    /// The position that is heard while libmpv reports `shown`, its speed, and the number of seconds until that
    /// changes; nil if no change is buffered.
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

    /// Corrects the last change by a report of libmpv, and drops the changes that have been heard.
    ///
    /// - Returns: whether changes were dropped.
    mutating func update(shown: Double, at time: Double) -> Bool {
        settle(shown, time)
        let before = changes.count
        let position = isElsewhere(shown) ? .infinity : heard(shown: shown).position
        changes.removeAll { $0.position <= position }
        return changes.count < before
    }

    /// Discards the pending measurement: while paused, reports no longer show when the last speed change took effect.
    mutating func hold() {
        setting = nil
    }

    /// Corrects the position of the last speed change. Sound at the old speed that reaches the output after the change
    /// is computed at the new one, so the reported position jumps, and the change takes effect later. An underestimated
    /// buffer has the same effect.
    private mutating func settle(_ shown: Double, _ time: Double) {
        guard let setting, let last = changes.last else { return }
        let leap = shown - setting.shown - (time - setting.at) * last.after.factor
        let late = leap / (last.before.factor - last.after.factor)
        guard abs(late) < Self.maximumError else { return }
        let earliest = changes.dropLast().last?.position ?? 0
        changes[changes.count - 1].position = max(setting.position + late * last.before.factor, earliest)
    }

    private func isElsewhere(_ shown: Double) -> Bool {
        changes.last.map { ($0.position - shown) / speed.factor > Self.maximumBuffer } ?? false
    }
}
