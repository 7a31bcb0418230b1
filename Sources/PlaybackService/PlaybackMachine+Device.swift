import BusKit
import PodcastModel
import WireMessages

/// A sound device that was lost while it played, and what has been done about it since.
struct LostDevice: Sendable, Hashable {
    /// How far its return has come.
    enum Stage: Sendable, Hashable {
        /// It is not there. Exits: returned.
        case gone
        /// Something has come back; sound systems announce devices before they can be opened. Exits: checking.
        case returned
        /// It plays again, if it does; this is the `attempt`th try, from `position`. Exits: over, checking, gone.
        case checking(attempt: Int, from: PlaybackPosition)
        /// A device has come while it plays without sound. Exits: over.
        case appeared
    }

    var stage = Stage.gone
    /// When the stage ends.
    var nextAt: MonotonicTime?
}

extension PlaybackMachine {
    /// Resumed sound has moved at least so far, in seconds.
    private static let moves = 0.2
    private static let attempts = 2

    /// There is a device that was not there before, or sound where there was none.
    mutating func deviceMayBeBack() {
        let stage: LostDevice.Stage
        if lostDevice?.stage == .gone {
            stage = .returned
        } else if lostDevice == nil, silent == true, session?.engine == .open {
            stage = .appeared
        } else {
            return
        }
        lostDevice = LostDevice(stage: stage, nextAt: now.monotonic.advanced(by: context.limits.deviceSettling))
    }

    /// A stage of a lost device's return is over.
    mutating func deviceIsDue() {
        switch lostDevice?.stage {
        case .returned?: tryDevice(attempt: 1)
        case .checking(let attempt, let position)?: checkDevice(attempt, from: position)
        case .appeared?:
            forgetDevice()
            if silent == true, session?.engine == .open { pending.perform(.engine(.reloadOutput)) }
        case .gone?, nil: lostDevice?.nextAt = nil
        }
    }

    /// Nothing waits for a device any longer. If there is one, nothing tells that there is none.
    mutating func forgetDevice() {
        lostDevice = nil
        if silent == false { endAlerts(code: FailureCode.noSoundDevice.rawValue) }
    }

    private mutating func tryDevice(attempt: Int) {
        guard let session, session.status == .paused || attempt > 1 else {
            forgetDevice()
            return
        }
        pending.perform(.engine(.reloadOutput))
        if session.status == .paused { play() }
        lostDevice = LostDevice(
            stage: .checking(attempt: attempt, from: session.position(at: now.monotonic)),
            nextAt: now.monotonic.advanced(by: context.limits.deviceCheck))
    }

    private mutating func checkDevice(_ attempt: Int, from position: PlaybackPosition) {
        guard let session else {
            forgetDevice()
            return
        }
        if silent != true, session.status == .playing, session.heard.seconds >= position.seconds + Self.moves {
            forgetDevice()
            pending.logs.append((.info, "The sound device is back, and playback has gone on."))
        } else if attempt < Self.attempts {
            tryDevice(attempt: attempt + 1)
        } else {
            pending.logs.append((.warning, "A sound device has come back, but playback could not go on; it is paused."))
            hold()
            lostDevice = LostDevice()
        }
    }
}
