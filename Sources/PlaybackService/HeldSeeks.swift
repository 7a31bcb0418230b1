import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The seeks whose answers wait for something that the engine has yet to report.
struct HeldSeeks: Sendable {
    /// A seek whose answer waits.
    struct Seek: Sendable {
        let command: Command
        let condition: Condition
        /// When it is answered in any case.
        fileprivate let until: MonotonicTime
    }

    /// The condition that an answer waits for.
    enum Condition: Sendable {
        /// The chapters of the file that is being opened.
        case chapters(WireSeekRelative)
        /// Whether this load has been ended by the seek.
        case end(of: LoadID)

        /// How long it waits.
        fileprivate var limit: Duration {
            switch self {
            case .chapters: .seconds(5)
            case .end: .milliseconds(2_500)
            }
        }
    }

    private var seeks: [Seek] = []

    /// Holds the answer to a seek back.
    mutating func hold(_ command: Command, until condition: Condition, now: MonotonicTime) {
        seeks.append(Seek(command: command, condition: condition, until: now.advanced(by: condition.limit)))
    }

    /// The first seek whose condition holds, or whose time is over, which is held no longer.
    mutating func nextDue(_ session: PlaybackSession?, hasChapters: Bool, now: MonotonicTime) -> Seek? {
        seeks.firstIndex { isDue($0, session, hasChapters: hasChapters, now: now) }.map { seeks.remove(at: $0) }
    }

    /// When the next one is due.
    func nextAt(_ session: PlaybackSession?, hasChapters: Bool, now: MonotonicTime) -> MonotonicTime? {
        seeks.map { isDue($0, session, hasChapters: hasChapters, now: now) ? now : $0.until }.min()
    }

    private func isDue(_ seek: Seek, _ session: PlaybackSession?, hasChapters: Bool, now: MonotonicTime) -> Bool {
        if now >= seek.until { return true }
        switch seek.condition {
        case .chapters: return hasChapters || session?.isOpening != true
        case .end(let load): return session?.loadID != load || session?.status != .playing
        }
    }
}
