import PodcastModel
import WireMessages

/// Records what is heard of the loaded episode as play sessions.
///
/// A session begins with the first sound of a load. It lasts while the episode plays or will play as soon as it can, so
/// that seeks and waiting for data don’t end it; a pause, a stop, the end, a failure and another load do. If the same
/// load is heard again within `longestPause`, the session continues.
struct PlaySessionRecorder: Sendable {
    /// The player after an event.
    struct Player: Sendable {
        var load: LoadID
        var episode: String
        var podcast: String
        /// Whether the episode plays, or will as soon as possible.
        var willPlay: Bool
        var anchor: PlaybackAnchor
        /// The present position.
        var position: PlaybackPosition
        /// The speed that is set; the anchor’s is higher while silence is shortened.
        var speed: PlaybackSpeed
        var trimsSilence: Bool
        /// Whether the event was a seek.
        var hasSought = false
        /// The position up to which the episode was certainly heard, if the engine no longer answers: the positions
        /// after its last report were computed.
        var heardUpTo: PlaybackPosition?
    }

    /// Sound that began, or was last measured, at a position.
    private struct Sound {
        var position: Double
        var at: MonotonicTime
        var pace: Double
        /// The speed without shortened silence.
        var speed: Double
    }

    /// The longest interruption after which a session continues.
    static let longestPause = Duration.seconds(60)
    /// The least audio, in seconds, of a session that is stored.
    static let shortest = 1.0
    /// The greatest correction of a position that isn’t a jump, in seconds.
    private static let tolerance = 2.0

    private let device: String
    /// The session that goes on, or the last one.
    private var session = WirePlaySession()
    /// The load of `session`; nil if it can’t continue.
    private var load: LoadID?
    private var isOpen = false
    private var startedAt = MonotonicTime(nanoseconds: 0)
    /// The time at which sound was last measured.
    private var soundedAt = MonotonicTime(nanoseconds: 0)
    /// The present sound; nil if nothing is heard.
    private var sound: Sound?
    private var isInterrupted = false
    private var isUnsaved = false

    init(device: String) {
        self.device = device
    }

    /// The ID of the session that goes on; empty if there is none.
    var currentID: String { isOpen ? session.id : "" }

    /// The session that goes on, if it is long enough to be stored.
    var current: WirePlaySession? { isOpen && isStored ? session : nil }

    private var isStored: Bool { session.heard >= Self.shortest }

    /// Returns the session that goes on if it has changed since the last call.
    mutating func takeUnsaved() -> WirePlaySession? {
        guard isUnsaved, let current else { return nil }
        isUnsaved = false
        return current
    }

    /// Ends the session with the next event, because the computer has slept.
    mutating func interrupt() { isInterrupted = true }

    /// Handles the state of the player after an event.
    ///
    /// - Parameter player: nil if nothing is loaded, or the process is ending.
    /// - Returns: the session that has ended, if it is long enough to be stored.
    mutating func follow(_ player: Player?, now: Moment) -> WirePlaySession? {
        let runs = player.map { $0.willPlay && $0.anchor.running } ?? false
        let continued = player.flatMap { $0.load == load ? $0 : nil }
        if isOpen { measure(continued, now: now.monotonic) }
        let hasPaused = runs && sound == nil && now.monotonic.since(soundedAt) > Self.longestPause
        var ended: WirePlaySession?
        if isOpen, continued?.willPlay != true || isInterrupted || hasPaused {
            isOpen = false
            isUnsaved = false
            if isStored { ended = session }
        }
        // A pause during which the computer slept ends the session, too.
        if isInterrupted || hasPaused { load = nil }
        isInterrupted = false
        guard let player, runs else {
            sound = nil
            return ended
        }
        let isNew = sound == nil || !isOpen
        let at = isNew ? min(now.monotonic, max(player.anchor.at, soundedAt)) : now.monotonic
        if !isOpen { begin(player, at: at, now: now) }
        let position = isNew ? player.anchor.position(at: at) : player.position
        let pace = player.anchor.speed.factor
        sound = Sound(
            position: position.seconds, at: at, pace: pace,
            speed: player.trimsSilence ? min(pace, player.speed.factor) : pace)
        soundedAt = at
        return ended
    }

    /// Continues the last session after a short pause, or begins another one.
    private mutating func begin(_ player: Player, at time: MonotonicTime, now: Moment) {
        isOpen = true
        if player.load == load, time.since(soundedAt) <= Self.longestPause { return }
        load = player.load
        startedAt = time
        let age = Int64(now.monotonic.since(time) / .milliseconds(1))
        session = WirePlaySession()
        session.id =
            PlaySessionID.derived(from: "\(player.load)/\(now.wall.milliseconds)/\(time.nanoseconds)/\(device)").text
        session.episode = player.episode
        session.podcast = player.podcast
        session.started = max(0, now.wall.milliseconds - age)
        session.ended = session.started
        session.began = player.anchor.position(at: time).seconds
        session.leftAt = session.began
        session.device = device
    }

    /// Adds the sound since the last event.
    ///
    /// - Parameter player: nil if the session’s load has been replaced.
    private mutating func measure(_ player: Player?, now: MonotonicTime) {
        guard let sound else {
            if let player, player.willPlay { session.leftAt = player.position.seconds }
            return
        }
        var elapsed = max(0, now.since(sound.at) / .seconds(1))
        let expected = elapsed * sound.pace
        // The engine’s corrections of the position count, jumps don’t.
        var heard = expected
        if let player, !player.hasSought, abs(player.position.seconds - sound.position - expected) <= Self.tolerance {
            heard = player.position.seconds - sound.position
        }
        var soundedAt = now
        if let end = player?.heardUpTo {
            heard = min(heard, max(end.seconds - sound.position, -session.heard))
            elapsed = max(heard / sound.pace, -session.wall)
            soundedAt = sound.at.advanced(by: .seconds(elapsed))
        }
        session.heard = max(0, session.heard + heard)
        session.wall += elapsed
        session.silence = max(0, session.silence + elapsed * (sound.pace / sound.speed - 1))
        let isSeek = player.map { $0.hasSought || $0.willPlay } ?? false
        session.leftAt = isSeek ? player?.position.seconds ?? 0 : max(0, sound.position + heard)
        self.soundedAt = soundedAt
        session.ended = session.started + Int64(max(0, soundedAt.since(startedAt) / .milliseconds(1)))
        isUnsaved = true
    }
}

extension PlaybackMachine {
    /// Records what has been heard up to this event. It is saved with the next position.
    mutating func recordPlaySession() {
        let id = playSessions.currentID
        var player: PlaySessionRecorder.Player?
        if let session, !pending.isStopping {
            player = PlaySessionRecorder.Player(
                load: session.loadID, episode: session.episode.id, podcast: session.episode.podcastID,
                willPlay: session.status.willPlay, anchor: session.tracker.anchor,
                position: session.position(at: now.monotonic), speed: session.speed,
                trimsSilence: sound.trimSilence, hasSought: pending.movedTo != nil,
                heardUpTo: liveness.hasHung ? session.tracker.anchor.position : nil)
        }
        if let ended = playSessions.follow(player, now: now) { pending.writes.mark(ended, hasEnded: true) }
        // A session that replaces another one is published with the anchor of its sound.
        if playSessions.currentID.isEmpty != id.isEmpty { pending.state = true }
    }
}
