import OwnerKit
import PodcastModel

/// A timer of the player.
package enum PlaybackTimer: Sendable, Hashable, CaseIterable {
    /// The engine is asked where it is.
    case sample
    /// The position is saved.
    case save
    /// A failed save is retried.
    case retry
    /// A failed stream is tried again, or its server asked.
    case recovery
    /// The sound device is looked for.
    case device
    /// A position is reached that means something.
    case milestone
    case sleep
    /// The engine is asked whether it carries out what it is told.
    case liveness
    /// A seek whose answer is held is answered.
    case heldSeek
}

/// The timers that are set.
struct PlaybackTimers: Sendable {
    private static let sampleInterval = Duration.seconds(1)
    private static let sampleAfterChange = Duration.milliseconds(300)
    private static let saveInterval = Duration.seconds(10)
    private static let saveRetries = Backoff.exponential(first: .seconds(2), longest: .seconds(30))

    private var due: [PlaybackTimer: MonotonicTime] = [:]

    subscript(timer: PlaybackTimer) -> MonotonicTime? {
        get { due[timer] }
        set { due[timer] = newValue }
    }

    /// A timer has gone off. Where the engine is is asked at intervals.
    mutating func fired(_ timer: PlaybackTimer, now: MonotonicTime) {
        due[timer] = timer == .sample ? now.advanced(by: Self.sampleInterval) : nil
    }

    /// Retries a save that has failed so many times in a row; 0: it has succeeded.
    mutating func retrySaving(after refusals: Int, now: MonotonicTime) {
        due[.retry] = refusals == 0 ? nil : now.advanced(by: Self.saveRetries.wait(after: refusals))
    }

    /// Samples and saves the position while the episode plays.
    ///
    /// - Parameters:
    ///   - session: what is loaded; nil: nothing goes on with it.
    ///   - isChanged: whether the published state has changed.
    mutating func follow(_ session: PlaybackSession?, isChanged: Bool, now: MonotonicTime) {
        let isOpen = session?.engine == .open
        let isPlaying = isOpen && session?.status == .playing
        let isWaiting = isOpen && session?.status == .loading(plays: true) && session?.isOpened == true
        if !isPlaying {
            due[.save] = nil
        } else if due[.save] == nil {
            due[.save] = now.advanced(by: Self.saveInterval)
        }
        if !isPlaying, !isWaiting {
            // Where a pause has left it is asked once.
            due[.sample] = isOpen && session?.status == .paused ? session?.tracker.settlesAt : nil
        } else if isChanged || due[.sample] == nil {
            due[.sample] = now.advanced(by: Self.sampleAfterChange)
        }
    }
}
