import OwnerKit
import PodcastModel

/// Decides what happens when the sound device is lost: pausing, searching for a device, resuming.
struct DeviceLossMachine: Sendable, Hashable {
    enum Audibility: Int, Sendable, Hashable, Comparable {
        /// There is no real device.
        case silent
        /// The sound plays on a device other than the chosen one.
        case onOther
        /// The sound plays on the chosen device, or on the system’s default if none is chosen.
        case onChosen

        static func < (a: Audibility, b: Audibility) -> Bool { a.rawValue < b.rawValue }
    }

    /// The loss of a device during playback.
    struct Loss: Sendable, Hashable {
        /// The position at which playback resumes.
        var position: PlaybackPosition
        var at: MonotonicTime
        var before: Audibility
    }

    /// The next attempt to reopen the output.
    struct Reload: Sendable, Hashable {
        var attempt = 0
        var at: MonotonicTime
    }

    enum Phase: Sendable, Hashable {
        /// Exits: searching, waiting.
        case idle
        /// Playback continues silently or on another device than the chosen one. Exits: idle, waiting.
        case searching(Reload)
        /// Playback is paused by the loss. Exits: checking, idle.
        case waiting(Loss, Reload)
        /// Playback has resumed and must advance by a deadline; nil if the audio is being opened. Exits: idle, waiting.
        case checking(Loss, deadline: MonotonicTime?)
    }

    enum Action: Sendable, Hashable {
        case pause(PlaybackPosition)
        case reload
        case resume
        case recovered
        /// There is a device, but playback couldn’t resume.
        case failed
        case stopWaiting
    }

    /// The distance before the loss at which playback resumes, in seconds: buffered sound may not have been heard.
    static let overlap = 0.5
    /// The progress that proves a successful resumption, in seconds.
    private static let moves = 0.2
    private static let longestWaitFrom = 100

    let limits: PlaybackLimits
    private(set) var phase = Phase.idle
    private(set) var audibility: Audibility?

    init(limits: PlaybackLimits) {
        self.limits = limits
    }

    /// Whether playback is paused by a loss, or has just resumed after it.
    var isLost: Bool {
        switch phase {
        case .waiting, .checking: true
        case .idle, .searching: false
        }
    }

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

    mutating func outputChanged(
        to audibility: Audibility, isPlaying: Bool, position: PlaybackPosition, now: MonotonicTime
    ) -> [Action] {
        let before = self.audibility
        self.audibility = audibility
        switch phase {
        case .waiting(let loss, _) where audibility >= loss.before:
            phase = .checking(loss, deadline: now.advanced(by: limits.deviceCheck))
            return [.resume]
        case .checking(let loss, _) where audibility < loss.before: return wait(after: loss, now)
        case .waiting, .checking: return []
        case .idle, .searching:
            guard isPlaying, let before, audibility < before else { return [] }
            let position = PlaybackPosition(clamping: max(0, position.seconds - Self.overlap))
            return wait(after: Loss(position: position, at: now, before: before), now)
        }
    }

    /// Handles an engine that no longer answers: nothing is heard, and the output can’t be reopened.
    mutating func stopsAnswering(isPlaying: Bool, at position: PlaybackPosition, now: MonotonicTime) -> [Action] {
        let before = audibility ?? .onChosen
        audibility = .silent
        switch phase {
        case .waiting: return []
        case .checking(let loss, _): return wait(after: loss, now)
        case .idle, .searching:
            return isPlaying ? wait(after: Loss(position: position, at: now, before: before), now) : []
        }
    }

    private mutating func wait(after loss: Loss, _ now: MonotonicTime) -> [Action] {
        phase = .waiting(loss, first(limits.deviceReloadBackoff, now))
        return [.pause(loss.position)]
    }

    /// Continues an earlier process’s wait for the chosen device, or for the default if none is chosen.
    mutating func restore(at position: PlaybackPosition, now: MonotonicTime) {
        phase = .waiting(Loss(position: position, at: now, before: .onChosen), Reload(at: now))
    }

    /// - Parameter isThere: whether the awaited device is listed while nothing is open.
    mutating func devicesAnswered(isThere: Bool, now: MonotonicTime) -> [Action] {
        guard case .waiting(let loss, _) = phase, isThere else { return [] }
        phase = .checking(loss, deadline: now.advanced(by: limits.deviceCheck))
        return [.resume]
    }

    /// - Parameter isChosen: whether the new device is the chosen one.
    mutating func deviceListed(isChosen: Bool, isPlaying: Bool, now: MonotonicTime) {
        let reload = Reload(at: now.advanced(by: limits.deviceSettling))
        switch phase {
        case .waiting(let loss, _): phase = .waiting(loss, reload)
        case .searching: phase = .searching(reload)
        // In other cases, reopening the output would interrupt playback needlessly.
        case .idle where isPlaying && isChosen && audibility == .onOther: phase = .searching(reload)
        case .idle, .checking: break
        }
    }

    /// Tracks whether anything plays: devices are searched for only during silent playback.
    mutating func follow(isPlaying: Bool, now: MonotonicTime) {
        switch phase {
        case .idle where isPlaying && audibility == .silent, .waiting where isPlaying:
            phase = audibility == .silent ? .searching(first(limits.silentReloadBackoff, now)) : .idle
        case .searching where !isPlaying || audibility == .onChosen, .checking where !isPlaying: phase = .idle
        // The deadline starts when the audio is open.
        case .checking(let loss, nil): phase = .checking(loss, deadline: now.advanced(by: limits.deviceCheck))
        case .idle, .searching, .waiting, .checking: break
        }
    }

    /// Suspends the deadline while the audio is being opened to resume after a loss: the position can’t advance yet.
    mutating func opensToResume() {
        if case .checking(let loss, _) = phase { phase = .checking(loss, deadline: nil) }
    }

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

    /// Stops waiting for a device.
    mutating func release() { phase = .idle }

    /// Handles the opening of a file: it isn’t known yet whether the file is audible.
    mutating func opens() {
        if !isLost { audibility = nil }
    }

    /// Resets the machine because another episode is loaded or another device chosen.
    mutating func reset() {
        phase = .idle
        audibility = nil
    }

    /// - Parameter heard: the position of the engine.
    mutating func tick(isPlaying: Bool, heard: PlaybackPosition, now: MonotonicTime) -> [Action] {
        guard let nextAt, now >= nextAt else { return [] }
        switch phase {
        case .idle: return []
        case .searching(let reload):
            // Playback on another device is interrupted again only when a new device is listed.
            phase = audibility == .onOther ? .idle : .searching(next(reload, limits.silentReloadBackoff, now))
            return [.reload]
        case .waiting(let loss, let reload):
            if now >= end(of: loss) {
                phase = .idle
                return [.stopWaiting]
            }
            phase = .waiting(loss, next(reload, limits.deviceReloadBackoff, now))
            return [.reload]
        case .checking(let loss, _):
            if isPlaying, heard.seconds >= loss.position.seconds + Self.moves {
                phase = .idle
                return [.recovered]
            }
            let reload = Reload(attempt: Self.longestWaitFrom, at: now)
            phase = .waiting(loss, next(reload, limits.deviceReloadBackoff, now))
            return [.pause(loss.position), .failed]
        }
    }

    // MARK: Reopening the output

    private func first(_ backoff: Backoff, _ now: MonotonicTime) -> Reload {
        Reload(at: now.advanced(by: backoff.wait()))
    }

    private func next(_ reload: Reload, _ backoff: Backoff, _ now: MonotonicTime) -> Reload {
        let attempt = reload.attempt + 1
        return Reload(attempt: attempt, at: now.advanced(by: backoff.wait(after: attempt + 1)))
    }
}

extension DeviceLossMachine.Action {
    var log: (LogLevel, String)? {
        switch self {
        case .recovered: (.info, "The sound device is available again, and playback has resumed.")
        case .failed: (.warning, "A sound device is available again, but playback couldn’t resume; retrying.")
        case .stopWaiting: (.info, "The sound device has been unavailable for too long; playback stays paused.")
        case .pause, .reload, .resume: nil
        }
    }
}
