import PodcastModel
import WireMessages

/// Tracks the position of an episode: the published anchor, the engine’s last report, and the last pause.
struct PositionTracker: Sendable, Hashable {
    /// The maximum difference between the engine and the anchor before a new anchor is published, in seconds.
    private static let drift = 0.05
    /// The time after a pause until the engine’s position has settled.
    private static let settlesAfterPause = Duration.milliseconds(250)

    private(set) var anchor: PlaybackAnchor
    /// The position from which the episode has been played without a seek.
    private(set) var playedFrom = PlaybackPosition.zero
    /// The position at which the listener has marked the episode as not played; earlier positions don’t make it played.
    private(set) var unplayedFrom = PlaybackPosition.zero
    /// Whether the current position was reached by playing, not by a seek or a load.
    private(set) var isPlayedUpToHere = false
    private(set) var pausedAt: Timestamp?
    /// The time at which an earlier process left the episode at this position; nil if the position has changed since.
    private var leftAt: Timestamp?
    /// The time at which the engine is asked for its settled position after a pause.
    var settlesAt: MonotonicTime?

    /// The serial numbers of the last opening, of the last requested seek, and of the last completed one.
    private var opened: UInt64 = 0
    var requestedSeek: UInt64 = 0
    private var completedSeek: UInt64 = 0
    private(set) var enginePosition = PlaybackPosition.zero
    /// Whether the computer has slept since the engine’s last report, so that positions computed since are wrong.
    var hasSlept = false

    init(at position: PlaybackPosition, speed: PlaybackSpeed, bootID: String, now: Moment) {
        anchor = PlaybackAnchor(
            position: position, speed: speed, at: now.monotonic, bootID: bootID, running: false, wall: now.wall)
    }

    init(_ record: WireSessionRecord, speed: PlaybackSpeed, bootID: String, now: Moment) {
        self.init(at: PlaybackPosition(clamping: record.position), speed: speed, bootID: bootID, now: now)
        unplayedFrom = PlaybackPosition(clamping: record.unplayedFrom)
        isPlayedUpToHere = !record.unheard
        if record.savedAt > 0 { leftAt = Timestamp(milliseconds: record.savedAt) }
        if record.pausedAt > 0 {
            pausedAt = Timestamp(milliseconds: record.pausedAt)
        } else if record.status == .playing {
            pausedAt = leftAt
        }
    }

    func fill(_ record: inout WireSessionRecord, now: Timestamp) {
        record.savedAt = (anchor.running ? now : pausedAt ?? leftAt ?? now).milliseconds
        record.unheard = !isPlayedUpToHere
        record.pausedAt = pausedAt?.milliseconds ?? 0
        record.unplayedFrom = unplayedFrom.seconds
    }

    /// Returns the time at which a position, in seconds, will be reached.
    func time(of position: Double) -> MonotonicTime {
        anchor.at.advanced(by: .seconds((position - anchor.position.seconds) / anchor.speed.factor))
    }

    // MARK: Decisions

    /// Sets the anchor.
    ///
    /// - Parameter time: the time at which the position was reached; nil means now.
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

    mutating func moved(to position: PlaybackPosition) {
        pausedAt = nil
        playedFrom = position
        isPlayedUpToHere = false
    }

    mutating func marked(played: Bool, at position: PlaybackPosition) { unplayedFrom = played ? .zero : position }

    /// - Parameter settles: whether the engine’s position has yet to settle.
    mutating func paused(now: Moment, settles: Bool = false) {
        pausedAt = now.wall
        if settles { settlesAt = now.monotonic.advanced(by: Self.settlesAfterPause) }
    }

    /// - Parameter isRestored: whether the playback of an earlier process is resumed.
    mutating func resumed(isRestored: Bool = false) {
        pausedAt = nil
        if isRestored { leftAt = nil }
    }

    // MARK: The engine

    mutating func opens(serial: UInt64) {
        playedFrom = anchor.position
        opened = serial
        requestedSeek = serial
        completedSeek = serial
    }

    /// Whether the engine’s report precedes the last opening.
    func isOutdated(_ progress: EngineProgress) -> Bool { progress.serial < opened }

    /// Whether the engine has completed the last requested seek.
    var hasReachedSeek: Bool { completedSeek >= requestedSeek }

    /// Handles the engine’s progress.
    ///
    /// - Returns: whether the last requested seek is completed; before that, the position is stale.
    mutating func reached(_ progress: EngineProgress) -> Bool {
        guard progress.serial >= requestedSeek else { return false }
        completedSeek = progress.serial
        enginePosition = progress.position
        if progress.running { isPlayedUpToHere = true }
        return true
    }

    /// Whether the engine’s report differs from the computed position or the anchor’s speed.
    mutating func differs(_ progress: EngineProgress, from position: PlaybackPosition) -> Bool {
        defer { hasSlept = false }
        return hasSlept || progress.running != anchor.running
            || abs(progress.position.seconds - position.seconds) > Self.drift
            || (progress.running && (progress.speed ?? anchor.speed) != anchor.speed)
    }

    /// Whether the engine has settled at another position than the anchor’s after a pause.
    func hasSettledElsewhere(_ progress: EngineProgress, now: MonotonicTime) -> Bool {
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
