import OwnerKit
import PodcastModel

/// Decides what becomes of playback when the sound device is lost: pausing, looking for a device, playing on.
struct DeviceLossMachine: Sendable, Hashable {
    /// How well playback is heard.
    enum Audibility: Int, Sendable, Hashable, Comparable {
        /// Nothing: there is no real device.
        case silent
        /// It sounds, on another device than the chosen one.
        case onOther
        /// It sounds on the chosen device, or on the system's default where none is chosen.
        case onChosen

        static func < (a: Audibility, b: Audibility) -> Bool { a.rawValue < b.rawValue }
    }

    /// A device that was lost while it played.
    struct Loss: Sendable, Hashable {
        /// Where playing goes on when it is back.
        var position: PlaybackPosition
        /// When it was lost.
        var at: MonotonicTime
        /// How well playback was heard before.
        var before: Audibility
    }

    /// When the output is opened anew.
    struct Reload: Sendable, Hashable {
        var attempt = 0
        var at: MonotonicTime
    }

    /// How far it is.
    enum Phase: Sendable, Hashable {
        /// Nothing is waited for. Exits: searching, waiting.
        case idle
        /// It plays, but not on the device that it should. Exits: idle, waiting.
        case searching(Reload)
        /// The loss has paused playback. Exits: checking, idle.
        case waiting(Loss, Reload)
        /// Playback has resumed at the position of the loss and must move by a deadline; nil while the audio is being opened.
        /// Exits: idle, waiting.
        case checking(Loss, deadline: MonotonicTime?)
    }

    /// An action that follows from an event.
    enum Action: Sendable, Hashable {
        /// Pause, and go back to this position.
        case pause(PlaybackPosition)
        /// Open the output anew.
        case reload
        case resume
        /// Say that playback has resumed.
        case recovered
        /// Say that there is a device, but playback couldn't go on with it.
        case failed
        /// Stay paused, whatever comes back.
        case giveUp
    }

    /// How long before the position of the loss playback resumes, in seconds: sound that had left the player by then may
    /// not have been heard.
    static let overlap = 0.5
    /// Resumed sound has moved at least so far, in seconds.
    private static let moves = 0.2
    /// The number of attempts from which on the wait for the next one is the longest.
    private static let longestWaitFrom = 100

    let limits: PlaybackLimits
    private(set) var phase = Phase.idle
    /// How well playback is heard; nil: unknown for the loaded episode.
    private(set) var audibility: Audibility?

    init(limits: PlaybackLimits) {
        self.limits = limits
    }

    /// Whether playback is paused by a loss, or has just gone on after it.
    var isLost: Bool {
        switch phase {
        case .waiting, .checking: true
        case .idle, .searching: false
        }
    }

    /// When `tick` has something to do.
    var nextAt: MonotonicTime? {
        switch phase {
        case .idle: nil
        case .searching(let reload): reload.at
        case .waiting(let loss, let reload): min(reload.at, end(of: loss))
        case .checking(_, let deadline): deadline
        }
    }

    private func end(of loss: Loss) -> MonotonicTime { loss.at.advanced(by: limits.deviceWait) }

    // MARK: Events

    /// The engine has said what is heard.
    mutating func outputChanged(
        to audibility: Audibility, isPlaying: Bool, position: PlaybackPosition, now: MonotonicTime
    ) -> [Action] {
        let before = self.audibility
        self.audibility = audibility
        switch phase {
        case .waiting(let loss, _) where audibility >= loss.before:
            phase = .checking(loss, deadline: now.advanced(by: limits.deviceCheck))
            return [.resume]
        case .checking(let loss, _) where audibility < loss.before:
            phase = .waiting(loss, first(limits.deviceReloads, now))
            return [.pause(loss.position)]
        case .waiting, .checking: return []
        case .idle, .searching:
            guard isPlaying, let before, audibility < before else { return [] }
            let place = PlaybackPosition(clamping: max(0, position.seconds - Self.overlap))
            phase = .waiting(Loss(position: place, at: now, before: before), first(limits.deviceReloads, now))
            return [.pause(place)]
        }
    }

    /// The engine doesn’t answer any more: whatever was heard isn’t, and the output can’t be opened anew.
    mutating func stopsAnswering(isPlaying: Bool, at position: PlaybackPosition, now: MonotonicTime) -> [Action] {
        let before = audibility ?? .onChosen
        audibility = .silent
        switch phase {
        case .waiting: return []
        case .checking(let loss, _):
            phase = .waiting(loss, first(limits.deviceReloads, now))
            return [.pause(loss.position)]
        case .idle, .searching:
            guard isPlaying else { return [] }
            phase = .waiting(Loss(position: position, at: now, before: before), first(limits.deviceReloads, now))
            return [.pause(position)]
        }
    }

    /// An earlier life of the process waited for a device, which may have been the chosen one.
    mutating func restore(at position: PlaybackPosition, now: MonotonicTime) {
        phase = .waiting(Loss(position: position, at: now, before: .onChosen), Reload(at: now))
    }

    /// The devices are listed while nothing is open: whether the one that is waited for is there.
    mutating func devicesAnswered(isThere: Bool, now: MonotonicTime) -> [Action] {
        guard case .waiting(let loss, _) = phase, isThere else { return [] }
        phase = .checking(loss, deadline: now.advanced(by: limits.deviceCheck))
        return [.resume]
    }

    /// A device is listed that was not: the chosen one, or any.
    mutating func deviceListed(isChosen: Bool, isPlaying: Bool, now: MonotonicTime) {
        let reload = Reload(at: now.advanced(by: limits.deviceSettling))
        switch phase {
        case .waiting(let loss, _): phase = .waiting(loss, reload)
        case .searching: phase = .searching(reload)
        // Opening the output anew interrupts what sounds.
        case .idle where isPlaying && isChosen && audibility == .onOther: phase = .searching(reload)
        case .idle, .checking: break
        }
    }

    /// Follows whether anything plays: without sound a device is looked for, and only then.
    mutating func follow(isPlaying: Bool, now: MonotonicTime) {
        switch phase {
        case .idle where isPlaying && audibility == .silent, .waiting where isPlaying:
            phase = audibility == .silent ? .searching(first(limits.silentReloads, now)) : .idle
        case .searching where !isPlaying || audibility == .onChosen, .checking where !isPlaying: phase = .idle
        // The audio is open: its time to move begins now.
        case .checking(let loss, nil): phase = .checking(loss, deadline: now.advanced(by: limits.deviceCheck))
        case .idle, .searching, .waiting, .checking: break
        }
    }

    /// The audio is being opened to resume after a loss: it can’t move yet.
    mutating func opensToResume() {
        if case .checking(let loss, _) = phase { phase = .checking(loss, deadline: nil) }
    }

    /// Somebody has moved to another position.
    mutating func moved(to position: PlaybackPosition) {
        switch phase {
        case .waiting(var loss, let reload):
            loss.position = position
            phase = .waiting(loss, reload)
        case .checking(var loss, let deadline):
            loss.position = position
            phase = .checking(loss, deadline: deadline)
        case .idle, .searching: break
        }
    }

    /// Somebody has decided what is to be: nothing is waited for any longer.
    mutating func release() { phase = .idle }

    /// The engine opens a file: what is heard of it isn't known, and may be nothing from the beginning.
    mutating func opens() {
        if !isLost { audibility = nil }
    }

    /// Something else is loaded, or nothing: what is heard of it isn't known.
    mutating func reset() {
        phase = .idle
        audibility = nil
    }

    /// `nextAt` has come. `heard` is where the engine itself is.
    ///
    mutating func tick(isPlaying: Bool, heard: PlaybackPosition, now: MonotonicTime) -> [Action] {
        guard let nextAt, now >= nextAt else { return [] }
        switch phase {
        case .idle: return []
        case .searching(let reload):
            // What sounds is not interrupted again unless a device is listed.
            phase = audibility == .onOther ? .idle : .searching(next(reload, limits.silentReloads, now))
            return [.reload]
        case .waiting(let loss, let reload):
            if now >= end(of: loss) {
                phase = .idle
                return [.giveUp]
            }
            phase = .waiting(loss, next(reload, limits.deviceReloads, now))
            return [.reload]
        case .checking(let loss, _):
            if isPlaying, heard.seconds >= loss.position.seconds + Self.moves {
                phase = .idle
                return [.recovered]
            }
            let reload = Reload(attempt: Self.longestWaitFrom, at: now)
            phase = .waiting(loss, next(reload, limits.deviceReloads, now))
            return [.pause(loss.position), .failed]
        }
    }

    // MARK: Opening the output anew

    private func first(_ backoff: Backoff, _ now: MonotonicTime) -> Reload {
        Reload(at: now.advanced(by: backoff.wait()))
    }

    private func next(_ reload: Reload, _ backoff: Backoff, _ now: MonotonicTime) -> Reload {
        let attempt = reload.attempt + 1
        return Reload(attempt: attempt, at: now.advanced(by: backoff.wait(after: attempt + 1)))
    }
}

extension DeviceLossMachine.Action {
    /// The line for the log; nil: none.
    var log: (LogLevel, String)? {
        switch self {
        case .recovered: (.info, "The sound device is back, and playback has resumed.")
        case .failed: (.warning, "A sound device has come back, but playback couldn’t resume; trying again.")
        case .giveUp: (.info, "The sound device has been gone for too long; playback stays paused.")
        case .pause, .reload, .resume: nil
        }
    }
}
