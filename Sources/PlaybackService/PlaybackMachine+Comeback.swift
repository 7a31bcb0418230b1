import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// A stream that has failed of what may pass: its server is asked now and then whether it has the audio again.
struct StreamComeback: Sendable, Hashable {
    /// Where it failed.
    let position: PlaybackPosition
    /// From then on it is not asked any more, by whichever clock it comes first: the first does not run while the machine
    /// sleeps.
    let endsAt: MonotonicTime
    let endsAtWall: Timestamp
    /// How often it has been asked.
    var asked = 0
    /// When it is asked next; nil: what it has is being opened.
    var nextAt: MonotonicTime?
}

// A stream that has failed goes on by itself when its server is back, if nobody has done anything about it.
extension PlaybackMachine {
    /// Its retries are over.
    ///
    /// - Parameter former: what was waited for before, where it has failed at the same place again.
    mutating func awaitComeback(_ former: StreamComeback?) {
        guard let session else { return }
        let window = context.limits.comebackWindow
        self.session?.comeback =
            former
            ?? StreamComeback(
                position: session.position(at: now.monotonic), endsAt: now.monotonic.advanced(by: window),
                endsAtWall: Timestamp(milliseconds: now.wall.milliseconds + Int64(window / .milliseconds(1))))
        scheduleComeback()
    }

    private mutating func scheduleComeback() {
        let waits = context.limits.comeback
        guard let asked = session?.comeback?.asked, !waits.isEmpty else { return }
        session?.comeback?.nextAt = now.monotonic.advanced(by: waits[min(asked, waits.count - 1)])
        session?.comeback?.asked += 1
    }

    /// The server is asked, unless it has been away for too long.
    mutating func comebackIsDue() {
        guard let session, let comeback = session.comeback, session.status.isFailed else { return }
        guard now.monotonic < comeback.endsAt, now.wall < comeback.endsAtWall else {
            pending.logs.append(
                (.info, "\(session.episode.id): its server has been away for too long; it stays stopped"))
            return endComeback()
        }
        scheduleComeback()
        askServer()
    }

    /// The server is asked no more, which its alert then doesn’t promise either.
    mutating func endComeback() {
        guard session?.comeback != nil else { return }
        session?.comeback = nil
        withdrawPromises()
    }

    /// What a failure’s alert says while its server is asked.
    var comebackPromise: String {
        let minutes = Int(context.limits.comebackWindow / .seconds(60))
        return " It plays on by itself if its server is back within \(minutes) min."
    }

    /// No alert says any more that it plays on by itself.
    mutating func withdrawPromises() {
        for (id, record) in alerts.sorted(by: { $0.key < $1.key }) where record.alert.message.hasSuffix(comebackPromise)
        {
            reword(id, String(record.alert.message.dropLast(comebackPromise.count)))
        }
    }

    /// The machine has slept: the network may be another one.
    mutating func askAfterSleep() {
        guard session?.comeback?.nextAt != nil else { return }
        session?.comeback?.asked = 0
        comebackIsDue()
    }

    /// The server that is waited for has answered.
    mutating func comeBack(_ answer: ProbeAnswer) {
        guard let session, session.comeback != nil, session.status.isFailed else { return }
        switch answer {
        // What it refuses for good it won’t have in half an hour, nor be found where it leads in circles.
        case .unanswered(let reason):
            if let reason, !reason.retry { fail(reason) }
            return
        case .notAudio: return
        case .refused(let status) where !session.ignoresProbes:
            let refusal = Failure(refusedWith: status, by: session.source?.host ?? "The server", asking: .audio)
            if !refusal.retry { fail(refusal) }
            return
        case .audio, .refused: break
        }
        pending.logs.append((.info, "\(session.episode.id): its server is back; it plays on"))
        self.session?.comeback?.nextAt = nil
        self.session?.status = .loading(plays: true)
        self.session?.tracker.resumed()
        // Its alert ends when it plays.
        lookUpAgain(at: session.tracker.anchor.position)
        book.mark(.session)
        pending.state = true
        pending.commit = true
    }
}

extension WirePlaybackRequest {
    /// Whether somebody does something about what is loaded: what has failed does not go on by itself after that.
    var isAboutLoaded: Bool {
        switch command {
        case .load, .setPaused, .seek, .stop, .unload, .answerAlert, .setPlayed: true
        default: false
        }
    }
}
