import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The seeks whose answers wait for a report of the engine.
struct HeldSeeks: Sendable {
    struct Seek: Sendable {
        let command: Command
        let condition: Condition
        fileprivate let until: MonotonicTime
    }

    enum Condition: Sendable {
        /// The file is open, and its chapters are known.
        case chapters(WireSeekRelative)
        /// The engine has reported whether the seek ended this load.
        case end(of: LoadID)

        fileprivate var limit: Duration {
            switch self {
            case .chapters: .seconds(5)
            case .end: .milliseconds(2_500)
            }
        }
    }

    private var seeks: [Seek] = []

    mutating func hold(_ command: Command, until condition: Condition, now: MonotonicTime) {
        seeks.append(Seek(command: command, condition: condition, until: now.advanced(by: condition.limit)))
    }

    /// Removes the first seek whose condition holds or whose deadline has passed.
    mutating func nextDue(_ session: PlaybackSession?, hasChapters: Bool, now: MonotonicTime) -> Seek? {
        seeks.firstIndex { isDue($0, session, hasChapters: hasChapters, now: now) }.map { seeks.remove(at: $0) }
    }

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

extension PlaybackMachine {
    /// The distance from the end, in seconds, within which a seek may end the episode.
    private static let endRange = 0.5

    mutating func seek(_ seek: WireSeek, _ command: Command) throws(Failure) {
        let session = try loaded()
        move(session, to: try session.target(of: seek), command)
    }

    mutating func seek(_ seek: WireSeekRelative, _ command: Command, mayWait: Bool = true) throws(Failure) {
        let session = try loaded()
        // The file may have chapters, which are known once it is open.
        if case .chapter? = seek.to, mayWait, session.isOpening, chapters.chapters.isEmpty {
            return heldSeeks.hold(command, until: .chapters(seek), now: now.monotonic)
        }
        let target = try session.target(of: seek, chapters: chapters.chapters, settings, now: now.monotonic)
        move(session, to: target, command)
    }

    private mutating func move(_ session: PlaybackSession, to position: PlaybackPosition, _ command: Command) {
        let distance = abs(position.seconds - session.position(at: now.monotonic).seconds)
        guard session.status != .paused || session.isBeingLookedUp || distance >= 0.01 else {
            return answer(command, position.movedFact)
        }
        self.session?.move(to: position, &pending)
        if session.status == .playing, let duration = session.duration,
            position.seconds > duration.seconds - Self.endRange
        {
            return heldSeeks.hold(command, until: .end(of: session.loadID), now: now.monotonic)
        }
        answer(command, position.movedFact)
    }

    /// Answers the next held seek that is due. An event answers one seek at most, because each answer may be committed.
    mutating func answerHeldSeek() {
        let (time, hasChapters) = (now.monotonic, !chapters.chapters.isEmpty)
        guard pending.answer == nil, !pending.isStopping,
            let seek = heldSeeks.nextDue(session, hasChapters: hasChapters, now: time)
        else { return }
        switch seek.condition {
        case .chapters(let target):
            do throws(Failure) {
                try self.seek(target, seek.command, mayWait: false)
            } catch {
                pending.refuse(seek.command.id, error)
            }
        case .end(let load):
            if let session, session.loadID == load {
                answer(seek.command, session.position(at: now.monotonic).movedFact, changed: true)
                if session.status == .finished { pending.answer?.ended = session.episode }
            } else {
                answer(seek.command, "Moved", changed: true)
            }
            pending.writes.mark(.session)
            pending.commit = true
        }
    }
}

extension PlaybackPosition {
    fileprivate var movedFact: String { "Moved to \(ClockText.format(seconds))" }
}
