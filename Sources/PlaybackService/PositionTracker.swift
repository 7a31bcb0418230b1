import PodcastModel
import WireMessages

/// Where an episode is: the published position, what the engine has said of it, and since when it has stood there.
struct PositionTracker: Sendable, Hashable {
    /// How much the engine may differ from the anchor before there is a new one, in seconds.
    private static let drift = 0.05
    /// How long the engine’s position changes after a pause, until its buffers have settled.
    private static let settlesAfterPause = Duration.milliseconds(250)

    /// The published position, and how it runs.
    private(set) var anchor: PlaybackAnchor
    /// From where the episode has been played without a seek.
    private(set) var playedFrom = PlaybackPosition.zero
    /// Where its listener has said that it is not played: no position before that makes it so.
    private(set) var unplayedFrom = PlaybackPosition.zero
    /// Whether it has been played up to where it is: it was not moved, nor loaded, since then.
    private(set) var isPlayedUpToHere = false
    /// When it was paused, if it still stands where it was then.
    private(set) var pausedAt: Timestamp?
    /// When it was left as it is, in an earlier life of the process; nil: it has moved in this one.
    private var leftAt: Timestamp?
    /// When the engine is asked where it came to rest, after a pause.
    private(set) var settlesAt: MonotonicTime?

    /// The numbers of the last opening, of the last seek that was asked for, and of the last that the engine has done.
    private var opened: UInt64 = 0
    private(set) var seekAsked: UInt64 = 0
    private var seekDone: UInt64 = 0
    /// Where the engine itself was last.
    private(set) var enginePosition = PlaybackPosition.zero
    /// The machine has slept since the engine said where it is.
    private var hasSlept = false

    /// An episode that stands at a position.
    init(at position: PlaybackPosition, speed: PlaybackSpeed, bootID: String, now: Moment) {
        anchor = PlaybackAnchor(
            position: position, speed: speed, at: now.monotonic, bootID: bootID, running: false, wall: now.wall)
    }

    /// An episode that stands where it was stored.
    init(_ record: WireSessionRecord, speed: PlaybackSpeed, bootID: String, now: Moment) {
        self.init(at: PlaybackPosition(clamping: record.position), speed: speed, bootID: bootID, now: now)
        unplayedFrom = PlaybackPosition(clamping: record.unplayedFrom)
        isPlayedUpToHere = !record.unheard
        if record.savedAt > 0 { leftAt = Timestamp(milliseconds: record.savedAt) }
        if record.pausedAt > 0 {
            pausedAt = Timestamp(milliseconds: record.pausedAt)
        } else if record.status == .playing {
            // It has been silent since.
            pausedAt = leftAt
        }
    }

    /// Fills in the stored session.
    func fill(_ record: inout WireSessionRecord, now: Timestamp) {
        record.savedAt = (anchor.running ? now : pausedAt ?? leftAt ?? now).milliseconds
        record.unheard = !isPlayedUpToHere
        record.pausedAt = pausedAt?.milliseconds ?? 0
        record.unplayedFrom = unplayedFrom.seconds
    }

    /// When a position is played, in seconds, if it runs on as it does.
    func time(of position: Double) -> MonotonicTime {
        anchor.at.advanced(by: .seconds((position - anchor.position.seconds) / anchor.speed.factor))
    }

    // MARK: Decisions

    /// Fixes the position.
    ///
    /// - Parameters:
    ///   - running: whether it runs from there, at `speed`.
    ///   - time: when it was there; nil: now.
    mutating func fix(
        _ position: PlaybackPosition, running: Bool, speed: PlaybackSpeed, at time: MonotonicTime?, now: Moment
    ) {
        if running || position != anchor.position { leftAt = nil }
        let time = time ?? now.monotonic
        let age = Int64(now.monotonic.since(time) / .milliseconds(1))
        anchor = PlaybackAnchor(
            position: position, speed: speed, at: time, bootID: anchor.bootID, running: running,
            wall: Timestamp(milliseconds: now.wall.milliseconds - age))
    }

    /// It was moved to a position by a command.
    mutating func moved(to position: PlaybackPosition) {
        pausedAt = nil
        playedFrom = position
        isPlayedUpToHere = false
    }

    /// Its listener has marked it as played or not.
    mutating func marked(played: Bool, at position: PlaybackPosition) { unplayedFrom = played ? .zero : position }

    /// It has stopped where it is.
    ///
    /// - Parameter settles: whether the engine has yet to say where it came to rest.
    mutating func paused(now: Moment, settles: Bool = false) {
        pausedAt = now.wall
        if settles { settlesAt = now.monotonic.advanced(by: Self.settlesAfterPause) }
    }

    /// Playback resumes.
    ///
    /// - Parameter isRestored: whether it was left by an earlier life of the process.
    mutating func resumed(isRestored: Bool = false) {
        pausedAt = nil
        if isRestored { leftAt = nil }
    }

    /// The engine is asked where it came to rest.
    mutating func settled() { settlesAt = nil }

    // MARK: The engine

    /// The engine opens the file where the episode is.
    mutating func opens(serial: UInt64) {
        playedFrom = anchor.position
        opened = serial
        seekAsked = serial
        seekDone = serial
    }

    /// The engine is told to seek.
    mutating func seeks(serial: UInt64) { seekAsked = serial }

    /// The machine has woken: positions computed meanwhile are wrong.
    mutating func woke() { hasSlept = true }

    /// Whether the engine’s report is of before the file was opened last.
    func isOutdated(_ progress: EngineProgress) -> Bool { progress.serial < opened }

    /// Whether the engine is where it was told to be last.
    var hasReachedSeek: Bool { seekDone >= seekAsked }

    /// Handles the engine’s progress.
    ///
    /// - Returns: whether it has reached the position that was sought last; before that, its own says nothing.
    mutating func reached(_ progress: EngineProgress) -> Bool {
        guard progress.serial >= seekAsked else { return false }
        seekDone = progress.serial
        enginePosition = progress.position
        if progress.running { isPlayedUpToHere = true }
        return true
    }

    /// Whether the engine differs from `position`, which was computed, or from how the anchor runs.
    mutating func isOff(_ progress: EngineProgress, from position: PlaybackPosition) -> Bool {
        defer { hasSlept = false }
        return hasSlept || progress.running != anchor.running
            || abs(progress.position.seconds - position.seconds) > Self.drift
            || (progress.running && (progress.speed ?? anchor.speed) != anchor.speed)
    }

    /// Whether the engine has paused at another position than the anchor says: one change for each pause.
    func hasComeToRest(elsewhere progress: EngineProgress, now: MonotonicTime) -> Bool {
        guard !progress.running, abs(progress.position.seconds - anchor.position.seconds) > Self.drift else {
            return false
        }
        return settlesAt.map { now >= $0 } ?? true
    }

    /// The last position that was certainly heard, when the engine stops answering.
    var lastHeard: PlaybackPosition {
        guard anchor.running, hasReachedSeek else { return anchor.position }
        return PlaybackPosition(clamping: max(0, enginePosition.seconds - DeviceLossMachine.overlap))
    }
}
