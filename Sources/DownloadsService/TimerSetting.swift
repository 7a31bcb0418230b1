import OwnerKit
import PodcastModel

/// A timer as it is set; an effect is appended only where its time changes.
struct TimerSetting: Sendable {
    let timer: TimerName
    private(set) var time: MonotonicTime?

    init(_ timer: TimerName) { self.timer = timer }

    mutating func set(to time: MonotonicTime?, _ effects: inout Effects) {
        guard time != self.time else { return }
        self.time = time
        effects.append(.timer(timer, at: time))
    }

    /// Sets the timer unless it is set already, for a time or earlier.
    mutating func setUnlessRunning(to time: MonotonicTime, _ effects: inout Effects) {
        if self.time == nil { set(to: time, &effects) }
    }

    /// The timer has fired, and isn’t set any more.
    mutating func fired() { time = nil }
}
