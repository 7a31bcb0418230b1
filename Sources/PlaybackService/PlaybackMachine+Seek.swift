import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// A seek whose answer waits for something that the engine has yet to report.
struct HeldSeek: Sendable {
    /// What an answer waits for.
    enum Condition: Sendable {
        /// The chapters of the file that is being opened.
        case chapters(WireSeekRelative)
        /// Whether this load has been ended by the seek.
        case end(of: LoadID)
    }

    let command: Command
    let condition: Condition
    /// When it is answered in any case.
    let until: MonotonicTime
}

extension PlaybackMachine {
    /// How long a seek to a chapter waits for the file to be opened.
    private static let chapterWait = Duration.seconds(5)
    /// How long a seek to the end waits for the end.
    private static let endWait = Duration.milliseconds(2_500)
    /// What is sought within this many seconds of the end may end the episode.
    private static let endRange = 0.5

    /// What is loaded, if it can be moved in.
    private func seekable() throws(Failure) -> PlaybackSession {
        let session = try loaded()
        guard session.status != .finished else { throw Self.playedToEnd(session) }
        return session
    }

    mutating func seek(_ seek: WireSeek, _ command: Command) throws(Failure) {
        let session = try seekable()
        guard seek.loadID.isEmpty || seek.loadID == session.loadID.text else {
            throw Failure(.nothingLoaded, "That episode is no longer loaded.")
        }
        guard let position = PlaybackPosition(seconds: seek.position) else {
            throw Self.invalid("\(seek.position) s isn’t a valid position.")
        }
        if let duration = session.duration, position.seconds > duration.seconds {
            throw Self.invalid(
                "\(ClockText.format(position.seconds)) is beyond the end at \(ClockText.format(duration.seconds)).")
        }
        move(session, to: position, command)
    }

    mutating func seek(_ seek: WireSeekRelative, _ command: Command, mayWait: Bool = true) throws(Failure) {
        let session = try seekable()
        guard seek.loadID.isEmpty || seek.loadID == session.loadID.text else {
            throw Failure(.revisionMismatch, "That episode is no longer loaded.")
        }
        let target = SeekTarget(
            title: session.episode.title, position: session.position(at: now.monotonic).seconds,
            duration: session.duration?.seconds, chapters: chapters.chapters)
        switch seek.to {
        case .by(let seconds)?: move(session, to: try target.position(by: seconds), command)
        case .skip(let skip)?: move(session, to: try target.position(by: distance(of: skip, in: session)), command)
        case .fraction(let fraction)?: move(session, to: try target.position(at: fraction), command)
        case .chapter(let chapter)?:
            guard !mayWait || !isOpeningWithoutChapters else { return hold(command, until: .chapters(seek)) }
            move(session, to: try target.start(of: chapter), command)
        case nil: throw Self.invalid("The request doesn’t say where to seek to.")
        }
    }

    /// How far a skip goes, in seconds; below 0: back.
    private func distance(of skip: WireSkip, in session: PlaybackSession) throws(Failure) -> Double {
        guard skip.secondsIfUnset.isFinite, skip.secondsIfUnset >= 0 else {
            throw Self.invalid("\(skip.secondsIfUnset) s isn’t a distance to skip.")
        }
        let key = skip.back ? SettingKey.skipBack : .skipForward
        let podcast = session.episode.podcastID
        let isSet = settings.own(key, podcast: podcast) != nil || settings.own(key, podcast: "") != nil
        let distance =
            isSet || skip.secondsIfUnset == 0 ? settings.number(key, podcast: podcast) : skip.secondsIfUnset
        return skip.back ? -distance : distance
    }

    /// Whether the file is being opened, which may have chapters.
    private var isOpeningWithoutChapters: Bool {
        guard case .loading? = session?.status else { return false }
        return chapters.chapters.isEmpty
    }

    private mutating func move(_ session: PlaybackSession, to position: PlaybackPosition, _ command: Command) {
        let distance = abs(position.seconds - session.position(at: now.monotonic).seconds)
        guard session.status != .paused || session.isBeingLookedUp || distance >= 0.01 else {
            return answer(command, Self.moved(to: position))
        }
        self.session?.move(to: position, &pending)
        if session.status == .playing, let duration = session.duration,
            position.seconds > duration.seconds - Self.endRange
        {
            return hold(command, until: .end(of: session.loadID))
        }
        answer(command, Self.moved(to: position))
    }

    private static func moved(to position: PlaybackPosition) -> String {
        "Moved to \(ClockText.format(position.seconds))"
    }

    // MARK: Held answers

    private mutating func hold(_ command: Command, until condition: HeldSeek.Condition) {
        let wait =
            switch condition {
            case .chapters: Self.chapterWait
            case .end: Self.endWait
            }
        heldSeeks.append(
            HeldSeek(command: command, condition: condition, until: now.monotonic.advanced(by: wait)))
    }

    /// Answers a seek whose condition holds, or whose time is over; one with each event, as each may be committed.
    mutating func answerHeldSeek() {
        guard pending.answer == nil, !pending.isStopping, let index = heldSeeks.firstIndex(where: isDue) else { return }
        let seek = heldSeeks.remove(at: index)
        switch seek.condition {
        case .chapters(let target):
            do throws(Failure) {
                try self.seek(target, seek.command, mayWait: false)
            } catch {
                pending.refuse(seek.command.id, error)
            }
        case .end(let load):
            if let session, session.loadID == load {
                answer(seek.command, Self.moved(to: session.position(at: now.monotonic)), changed: true)
                if session.status == .finished { pending.answer?.ended = session.episode }
            } else {
                answer(seek.command, "Moved", changed: true)
            }
            pending.writes.mark(.session)
            pending.commit = true
        }
    }

    private func isDue(_ seek: HeldSeek) -> Bool {
        guard now.monotonic < seek.until else { return true }
        switch seek.condition {
        case .chapters: return !isOpeningWithoutChapters
        case .end(let load): return session?.loadID != load || session?.status != .playing
        }
    }

    /// When the next held seek is to be answered.
    var nextHeldSeek: MonotonicTime? {
        heldSeeks.map { isDue($0) ? now.monotonic : $0.until }.min()
    }
}
