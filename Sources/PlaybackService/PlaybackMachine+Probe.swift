public import PodcastModel
import WireMessages

/// What a web server says when it is asked for a stream beside the engine, whose library does not tell.
public enum ProbeAnswer: Sendable, Hashable {
    /// It has the audio of this tag.
    case audio(AudioTag)
    /// It answers with this status, which is not one of success.
    case refused(Int)
    /// What it has is no audio, which is said in the failure; the engine may be able to play it all the same.
    case notAudio(Failure)
    /// It gives no answer; why, where the engine meets the same.
    case unanswered(Failure?)
}

/// A question to the server of a stream.
struct ServerProbe: Sendable, Hashable {
    /// Its answer carries this number.
    let serial: UInt64
    /// A decision waits for the answer until then.
    let answersBy: MonotonicTime
    /// Nil: there is none yet.
    var answer: ProbeAnswer?
}

// Why a stream fails is for its server to say: the engine's library tells an answer of 404 from one of 503, or from none,
// in lines of its log alone, if at all.
extension PlaybackMachine {
    /// Asks the server of the loaded stream; what it was asked before counts for nothing any more.
    mutating func askServer() {
        guard let session, case .web(let url)? = session.source else { return }
        let serial = nextSerial()
        self.session?.probe = ServerProbe(serial: serial, answersBy: now.monotonic.advanced(by: context.limits.probe))
        pending.perform(.probe(session.loadID, url: url, podcast: session.episode.podcastID, serial: serial))
    }

    /// Takes in what the server says.
    mutating func handleProbe(_ load: LoadID, _ serial: UInt64, _ answer: ProbeAnswer) {
        guard let session, session.loadID == load, session.probe?.serial == serial else { return }
        self.session?.probe?.answer = answer
        if session.undecided != nil { return decide() }
        if session.engine == .open {
            if case .audio(let tag) = answer { identify(tag) }
            if session.wasLetIn { doubtProbe() }
        } else if session.comeback?.nextAt != nil {
            comeBack(answer)
        } else if let retry = session.retry, retry.nextAt != nil {
            // It has taken longer than the decision has waited.
            let failure = judged(retry.failure)
            if !failure.retry { fail(failure) }
        }
    }

    /// A server that lets the audio be opened refuses nothing: one that answers otherwise beside it is not believed.
    mutating func doubtProbe() {
        if case .refused? = session?.probe?.answer { session?.ignoresProbes = true }
    }

    /// What becomes of a stream that has failed is decided when its server has answered, or has had its time.
    mutating func recoverStream(from failure: Failure) {
        session?.undecided = failure
        guard session?.ignoresProbes == false else { return decide() }
        // What it said before it let the audio be opened is past.
        if session?.wasLetIn == true || session?.probe == nil { askServer() }
        guard let session, session.probe?.answer == nil else { return decide() }
        closeFile()
        setAnchor(session.position(at: now.monotonic), running: false)
        self.session?.status = .loading(plays: session.wantsToPlay)
        markPosition()
        pending.commit = true
    }

    /// The server has answered, or it is waited for no longer.
    mutating func decide() {
        guard let failure = session?.undecided else { return }
        session?.undecided = nil
        tryAgain(after: judged(failure))
    }

    /// A failure of the engine's in the light of what the server says.
    private func judged(_ failure: Failure) -> Failure {
        guard let session, !session.ignoresProbes, let source = session.source else { return failure }
        // The engine's own reason is a guess, but for an end that comes too early.
        let isGuess = failure.known == .streamFailed
        switch session.probe?.answer {
        case .refused(let status)?:
            let refusal = Failure(refusedWith: status, by: source.host, asking: .audio)
            return isGuess || !refusal.retry ? refusal : failure
        case .notAudio(let reason)?: return isGuess || failure.known == .decoderFailed ? reason : failure
        // What stays so is what the engine has met.
        case .unanswered(let reason?)?: return isGuess || !reason.retry ? reason : failure
        case .audio?, .unanswered(nil)?, nil: return failure
        }
    }
}
