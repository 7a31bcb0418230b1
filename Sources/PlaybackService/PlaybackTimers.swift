package import BusKit
import OwnerKit
package import PodcastModel
package import WireMessages

/// A timer of the player.
package enum PlaybackTimer: Sendable, Hashable, CaseIterable {
    case sample
    case save
    case retry
    /// A failed stream is retried, or its server probed.
    case recovery
    case device
    case milestone
    case sleep
    /// The check whether the engine still carries out commands.
    case liveness
    case heldSeek
}

struct PlaybackTimers: Sendable {
    private static let sampleInterval = Duration.seconds(1)
    private static let sampleAfterChange = Duration.milliseconds(300)
    private static let saveInterval = Duration.seconds(10)
    private static let saveBackoff = Backoff.exponential(first: .seconds(2), longest: .seconds(30))

    private var due: [PlaybackTimer: MonotonicTime] = [:]

    subscript(timer: PlaybackTimer) -> MonotonicTime? {
        get { due[timer] }
        set { due[timer] = newValue }
    }

    /// Handles a fired timer; samples repeat.
    mutating func fired(_ timer: PlaybackTimer, now: MonotonicTime) {
        due[timer] = timer == .sample ? now.advanced(by: Self.sampleInterval) : nil
    }

    /// Schedules the retry of a save after a number of consecutive refusals; 0 if the save has succeeded.
    mutating func retrySaving(after refusals: Int, now: MonotonicTime) {
        due[.retry] = refusals == 0 ? nil : now.advanced(by: Self.saveBackoff.wait(after: refusals))
    }

    /// Samples and saves the position during playback.
    ///
    /// - Parameters:
    ///   - session: nil: the process is stopping, or nothing is loaded.
    ///   - isChanged: whether the published state has changed.
    mutating func follow(_ session: PlaybackSession?, isChanged: Bool, now: MonotonicTime) {
        let hasFile = session?.engine.hasFile == true
        let isPlaying = hasFile && session?.status == .playing
        let isWaiting = session?.engine == .open && session?.status == .loading(plays: true)
        if !isPlaying {
            due[.save] = nil
        } else if due[.save] == nil {
            due[.save] = now.advanced(by: Self.saveInterval)
        }
        if !isPlaying, !isWaiting {
            // After a pause the settled position is sampled once.
            due[.sample] = hasFile && session?.status == .paused ? session?.tracker.settlesAt : nil
        } else if isChanged || due[.sample] == nil {
            due[.sample] = now.advanced(by: Self.sampleAfterChange)
        }
    }
}

package enum PlaybackQuery: Sendable {
    case load(LoadID)
    /// A repeated lookup of a load, because the library hasn’t answered in time.
    case lateLoad(LoadID)
    case chapters(LoadID)
    /// The prepared episode; the number identifies the query.
    case next(UInt64)
    case marks(EpisodeMarking)
    case undoMarks(MarkUndoing)
    case bookmark(Command, WireBookmark)
}
