import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// When playing is to end by itself. The last one that was set holds, through restarts and advances, until its own end.
struct SleepTimer: Sendable, Hashable {
    /// By the clock.
    var endsAt: MonotonicTime?
    /// The same in UTC, for another boot.
    var endsAtWall = Timestamp(milliseconds: 0)
    /// Episodes that will still end, the loaded one included; 0: not by those.
    var episodes = 0
    var endOfChapter = false
    /// The sound is dying away.
    var fading = false

    /// Its last episode has ended: what follows by itself is loaded paused, and then this is gone.
    var isOver: Bool { endsAt == nil && episodes == 0 && !endOfChapter }

    init() {}

    /// A stored one. If its time has passed meanwhile it is due at once: what was playing must not play on.
    init(_ wire: WireSleepState, now: Moment, context: PlaybackContext) {
        episodes = Int(wire.episodes)
        endOfChapter = wire.endOfChapter
        guard wire.endsAtWall > 0 else { return }
        endsAtWall = Timestamp(milliseconds: wire.endsAtWall)
        let isSameBoot = wire.bootID == context.bootID
        endsAt =
            isSameBoot
            ? MonotonicTime(nanoseconds: wire.endsAt)
            : now.monotonic.advanced(by: .seconds(endsAtWall.seconds - now.wall.seconds))
    }

    func wire(_ context: PlaybackContext) -> WireSleepState {
        var wire = WireSleepState()
        if let endsAt {
            wire.endsAt = endsAt.nanoseconds
            wire.bootID = context.bootID
            wire.endsAtWall = endsAtWall.milliseconds
        }
        wire.episodes = UInt32(episodes)
        wire.endOfChapter = endOfChapter
        wire.fading = fading
        return wire
    }
}

extension PlaybackMachine {
    /// How often the volume changes while the sound dies away.
    private static let fadeStep = Duration.milliseconds(250)

    /// The volume that the engine is given: less than the chosen one while the sound dies away.
    var heardVolume: Volume {
        guard let sleep, sleep.fading, let endsAt = sleep.endsAt else { return volume }
        let fade = settings.number(.sleepFade)
        let left = max(0, endsAt.since(now.monotonic) / .seconds(1))
        guard fade > 0, left < fade else { return volume }
        return Volume(percent: volume.percent * left / fade) ?? volume
    }

    mutating func setSleep(_ set: WireSetSleep, _ command: Command) throws(Failure) {
        var timer = SleepTimer()
        switch set.until {
        case .seconds(let seconds)?:
            guard seconds > 0, seconds <= SleepLimits.seconds else {
                throw Self.invalid("The sleep timer takes up to 24 hours, not \(seconds) s.")
            }
            timer.endsAt = now.monotonic.advanced(by: .seconds(seconds))
            timer.endsAtWall = Timestamp(milliseconds: now.wall.milliseconds + Int64(seconds * 1_000))
        case .episodes(let count)?:
            guard (1...SleepLimits.episodes).contains(count) else {
                throw Self.invalid("The sleep timer takes 1 to \(SleepLimits.episodes) episodes, not \(count).")
            }
            timer.episodes = Int(count)
        case .endOfChapter(true)?:
            guard let session, session.status != .finished else {
                throw Failure(.nothingLoaded, "Nothing is loaded whose chapter could end.")
            }
            guard !session.chapters.isEmpty else {
                throw Self.invalid("“\(session.episode.title)” has no chapters; `sleep episode` ends with the episode.")
            }
            timer.endOfChapter = true
        case .endOfChapter(false)?, nil:
            endSleep()
            return answer(command, "The sleep timer is off")
        }
        let wasFading = sleep?.fading == true
        sleep = timer
        if wasFading { giveVolume() }
        book.mark(.sleep)
        pending.state = true
        pending.commit = true
        answer(command, "The sleep timer is set")
    }

    /// When something is to be done about it.
    var sleepDue: MonotonicTime? {
        guard let sleep, let endsAt = sleep.endsAt else { return nil }
        guard session?.status == .playing else { return endsAt }
        if sleep.fading { return min(endsAt, now.monotonic.advanced(by: Self.fadeStep)) }
        let fade = settings.number(.sleepFade)
        return fade > 0 ? max(now.monotonic, endsAt.advanced(by: .seconds(-fade))) : endsAt
    }

    mutating func sleepIsDue() {
        guard let sleep, let endsAt = sleep.endsAt else { return }
        guard now.monotonic < endsAt else { return fallAsleep("its time is over") }
        guard session?.status == .playing else { return }
        if !sleep.fading {
            self.sleep?.fading = true
            pending.state = true
        }
        giveVolume()
    }

    /// Pauses, and the timer is done.
    mutating func fallAsleep(_ reason: String) {
        guard sleep != nil else { return }
        pending.logs.append((.info, "The sleep timer has ended: \(reason)."))
        let wasPlaying = session?.wantsToPlay ?? false
        hold()
        if wasPlaying { session?.pausedBy = .sleepTimer }
        // A device or a server that comes back in the morning wakes nobody.
        forgetDevice()
        endComeback()
        endSleep()
    }

    private mutating func endSleep() {
        guard let sleep else { return }
        self.sleep = nil
        if sleep.fading { giveVolume() }
        book.mark(.sleep)
        pending.state = true
        pending.commit = true
    }

    private mutating func giveVolume() {
        if session?.engine == .open { pending.perform(.engine(.setVolume(heardVolume))) }
    }

    /// An episode has ended; with the last one playing does.
    mutating func sleepAfterEpisode() {
        guard let sleep, sleep.episodes > 0 || sleep.endOfChapter else { return }
        self.sleep?.episodes = max(0, sleep.episodes - 1)
        self.sleep?.endOfChapter = false
        book.mark(.sleep)
        if self.sleep?.isOver == true {
            pending.logs.append((.info, "The sleep timer has ended: the episode has ended."))
        }
    }

    /// Whether a load follows by itself on an episode with which the sleep timer ended: it is loaded paused. Whatever
    /// else is loaded is somebody's wish. Either way the timer is done.
    mutating func sleepsThrough(_ load: LoadID) -> Bool {
        guard sleep?.isOver == true else { return false }
        let follows = session.map { $0.status == .finished && load == .advance(after: $0.loadID.text) } ?? false
        sleep = nil
        book.mark(.sleep)
        return follows
    }
}
