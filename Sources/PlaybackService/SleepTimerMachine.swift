import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// Decides when the sleep timer ends playback and how the sound fades. A timer persists across restarts and advances.
struct SleepTimerMachine: Sendable, Hashable {
    enum Phase: Sendable, Hashable {
        /// No timer is set. Exits: timed, episodes, endOfChapter.
        case off
        /// Playback ends at a time, given on this boot’s clock and in UTC. Exit: off.
        case timed(MonotonicTime, wall: Timestamp, isFading: Bool)
        /// Playback ends after a number of episodes, including the loaded one. Exits: over, off.
        case episodes(Int)
        /// Playback ends with the chapter, or with the episode. Exits: over, off.
        case endOfChapter
        /// The last episode has ended: an automatic advance is loaded paused. Exit: off.
        case over
    }

    enum Action: Sendable, Hashable {
        /// Save and publish the timer.
        case save
        case publish
        case setVolume
        /// Pause, and turn the timer off, for this reason.
        case expire(String)
        case reportEnd(String)
    }

    /// The interval between volume changes of the fade.
    private static let fadeStep = Duration.milliseconds(250)

    private(set) var phase = Phase.off

    init() {}

    /// Restores a timer. If its time has passed, the timer is due at once, so that playback doesn’t continue.
    init(_ stored: WireSleepState, now: Moment, bootID: String) {
        if stored.endsAtWall > 0 {
            let wall = Timestamp(milliseconds: stored.endsAtWall)
            let endsAt =
                stored.bootID == bootID
                ? MonotonicTime(nanoseconds: stored.endsAt)
                : now.monotonic.advanced(by: .seconds(wall.seconds - now.wall.seconds))
            phase = .timed(endsAt, wall: wall, isFading: false)
        } else if stored.episodes > 0 {
            phase = .episodes(Int(stored.episodes))
        } else {
            phase = stored.endOfChapter ? .endOfChapter : .over
        }
    }

    /// The timer as it is stored and published; nil if it is off.
    func wire(bootID: String) -> WireSleepState? {
        var wire = WireSleepState()
        switch phase {
        case .off: return nil
        case .timed(let endsAt, let wall, let isFading):
            wire.endsAt = endsAt.nanoseconds
            wire.bootID = bootID
            wire.endsAtWall = wall.milliseconds
            wire.fading = isFading
        case .episodes(let count): wire.episodes = UInt32(count)
        case .endOfChapter: wire.endOfChapter = true
        case .over: break
        }
        return wire
    }

    func change(bootID: String) -> WireChange {
        wire(bootID: bootID).map { .putting("sleep", "current", $0) } ?? .deleting("sleep", "current")
    }

    // MARK: Events

    mutating func set(_ request: WireSetSleep, now: Moment) throws(Failure) -> [Action] {
        switch request.until {
        case .seconds(let seconds)?:
            guard seconds > 0, seconds <= SleepLimits.seconds else {
                throw Failure(.invalidArgument, "The sleep timer takes up to 24 hours, not \(seconds) s.")
            }
            return start(seconds, now: now)
        case .episodes(let count)?:
            guard (1...SleepLimits.episodes).contains(count) else {
                throw Failure(
                    .invalidArgument, "The sleep timer takes 1 to \(SleepLimits.episodes) episodes, not \(count).")
            }
            return change(to: .episodes(Int(count)))
        case .endOfChapter(true)?: return change(to: .endOfChapter)
        case .endOfChapter(false)?, nil: return turnOff()
        }
    }

    mutating func extend(by seconds: Double, now: Moment) throws(Failure) -> [Action] {
        guard seconds.isFinite, seconds > 0 else {
            throw Failure(.invalidArgument, "The sleep timer can’t be extended by \(seconds) s.")
        }
        let advice = "Set a time with `lockstep sleep 10`."
        let endsAt: MonotonicTime
        switch phase {
        case .timed(let time, _, _): endsAt = time
        case .off, .over: throw Failure(.notApplicable, "There is no sleep timer to extend. \(advice)")
        case .endOfChapter:
            throw Failure(
                .notApplicable, "The sleep timer ends with the chapter and has no time to extend. \(advice)")
        case .episodes(let count):
            let end = count == 1 ? "with the episode" : "after \(count) episodes"
            throw Failure(.notApplicable, "The sleep timer ends \(end) and has no time to extend. \(advice)")
        }
        let total = max(0, endsAt.since(now.monotonic) / .seconds(1)) + seconds
        guard total <= SleepLimits.seconds else {
            throw Failure(.invalidArgument, "The sleep timer can’t be extended by more than a day.")
        }
        return start(total, now: now)
    }

    mutating func turnOff() -> [Action] { change(to: .off) }

    private mutating func start(_ seconds: Double, now: Moment) -> [Action] {
        let wall = Timestamp(milliseconds: now.wall.milliseconds + Int64(seconds * 1_000))
        return change(to: .timed(now.monotonic.advanced(by: .seconds(seconds)), wall: wall, isFading: false))
    }

    private mutating func change(to next: Phase) -> [Action] {
        guard next != phase else { return [] }
        defer { phase = next }
        if case .timed(_, _, isFading: true) = phase { return [.save, .setVolume] }
        return [.save]
    }

    mutating func tick(isPlaying: Bool, now: MonotonicTime) -> [Action] {
        guard case .timed(let endsAt, let wall, let isFading) = phase else { return [] }
        guard now < endsAt else { return [.expire("its time is over")] }
        guard isPlaying else { return [] }
        phase = .timed(endsAt, wall: wall, isFading: true)
        return isFading ? [.setVolume] : [.publish, .setVolume]
    }

    func chapterEnded() -> [Action] { phase == .endOfChapter ? [.expire("the chapter has ended")] : [] }

    mutating func episodeEnded() -> [Action] {
        switch phase {
        case .episodes(let count) where count > 1: return change(to: .episodes(count - 1))
        case .episodes, .endOfChapter: return change(to: .over) + [.reportEnd("the episode has ended")]
        case .off, .timed, .over: return []
        }
    }

    /// Handles another load.
    ///
    /// - Returns: whether a timer was over and is now off.
    mutating func loaded() -> Bool {
        guard phase == .over else { return false }
        phase = .off
        return true
    }

    // MARK: Time

    /// - Parameter fade: the duration of the fade, in seconds.
    func nextAt(isPlaying: Bool, fade: Double, now: MonotonicTime) -> MonotonicTime? {
        guard case .timed(let endsAt, _, let isFading) = phase else { return nil }
        guard isPlaying else { return endsAt }
        if isFading { return min(endsAt, now.advanced(by: Self.fadeStep)) }
        return fade > 0 ? max(now, endsAt.advanced(by: .seconds(-fade))) : endsAt
    }

    /// Returns the engine’s volume for the chosen `volume`.
    func volume(of volume: Volume, fade: Double, now: MonotonicTime) -> Volume {
        guard case .timed(let endsAt, _, isFading: true) = phase else { return volume }
        let left = max(0, endsAt.since(now) / .seconds(1))
        guard fade > 0, left < fade else { return volume }
        return Volume(percent: volume.percent * left / fade) ?? volume
    }
}

extension PlaybackMachine {
    var heardVolume: Volume {
        sleepTimer.volume(of: volume, fade: settings.number(.sleepFade), now: now.monotonic)
    }

    mutating func setSleep(_ set: WireSetSleep, _ command: Command) throws(Failure) {
        if set.endOfChapter {
            guard let session, session.status != .finished else {
                throw Failure(.nothingLoaded, "Nothing is loaded, so there is no chapter to end.")
            }
            guard !chapters.chapters.isEmpty else {
                throw Failure(
                    .notFound,
                    "“\(session.episode.title)” has no chapters; `sleep episode` ends with the episode.")
            }
        }
        perform(try sleepTimer.set(set, now: now))
        answer(command, sleepTimer.phase == .off ? "The sleep timer is off" : "The sleep timer is set")
    }

    mutating func extendSleep(_ seconds: Double, _ command: Command) throws(Failure) {
        perform(try sleepTimer.extend(by: seconds, now: now))
        answer(command, "The sleep timer is extended")
    }

    mutating func perform(_ actions: [SleepTimerMachine.Action]) {
        for action in actions {
            switch action {
            case .save:
                pending.writes.mark(.sleep)
                pending.state = true
                pending.commit = true
            case .publish: pending.state = true
            case .setVolume: if engineHasFile { pending.command(.setVolume(heardVolume)) }
            case .expire(let reason):
                perform([SleepTimerMachine.Action.reportEnd(reason)])
                expireSleepTimer()
            case .reportEnd(let reason): pending.log(.info, "The sleep timer has ended: \(reason).")
            }
        }
    }

    private mutating func expireSleepTimer() {
        let wasPlaying = session?.status.willPlay ?? false
        session?.pause(&pending)
        if wasPlaying { session?.pausedBy = .sleepTimer }
        // An answer to an alert, a device or a server must not resume playback later.
        overruleAnswers()
        stopAwaitingDevice()
        session?.stopProbing(&pending)
        perform(sleepTimer.turnOff())
    }
}
