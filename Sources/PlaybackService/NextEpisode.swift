import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// What follows the loaded episode. The queue names it in advance, so that its audio is open before that has ended.
struct NextEpisode: Sendable {
    /// A load that is to come.
    struct Load: Sendable {
        let after: LoadID
        let request: WireLoadEpisode
        let loadID: LoadID
        let enclosure: AudioSource

        init(_ request: WireLoadEpisode, after: LoadID) throws(Failure) {
            guard let loadID = LoadID(request.loadID), loadID != after else {
                throw Failure(
                    .invalidArgument, "“\(request.loadID)” isn’t a valid load ID for the next episode.")
            }
            guard EpisodeID(request.episode.id) != nil else {
                throw Failure(.invalidArgument, "“\(request.episode.id)” isn’t a valid episode ID.")
            }
            self.after = after
            self.request = request
            self.loadID = loadID
            enclosure = try AudioSource(enclosure: request.episode.enclosureURL)
        }
    }

    private(set) var load: Load?
    /// What the library knows of the episode; nil: it has not answered, or the answer is out of date.
    private(set) var found: WireEpisode?
    /// The question to the library whose answer counts.
    private var call: CallID?
    private var isRechecked = false
    private var serial: UInt64 = 0

    /// Whether the library is to be asked again when the end of the loaded episode is near.
    var needsRecheck: Bool { found != nil && !isRechecked }

    /// What the library has said about a load, if that is the one that was prepared.
    func answer(to request: WireLoadEpisode) -> WireEpisode? { load?.request == request ? found : nil }

    /// Prepares a load.
    ///
    /// - Returns: the question to the library.
    mutating func prepare(_ load: Load) -> CallID {
        clear()
        self.load = load
        return ask(load)
    }

    /// Asks again: the episode may have been downloaded, or its file deleted, since.
    mutating func recheck() -> CallID? {
        guard let load else { return nil }
        isRechecked = true
        return ask(load)
    }

    private mutating func ask(_ load: Load) -> CallID {
        serial += 1
        let call = CallID("prepare/\(load.loadID.text)/\(serial)")
        self.call = call
        return call
    }

    /// Takes in an answer of the library.
    ///
    /// - Returns: whether the engine is to open what was found; nil: the answer is to another question.
    mutating func answered(_ call: CallID, _ episode: WireEpisode?) -> Bool? {
        guard call == self.call else { return nil }
        guard let episode else { return false }
        let known = found?.download
        found = episode
        // What the engine has opened stays open, unless it is another file now.
        return known?.state != episode.download.state || known?.path != episode.download.path
    }

    /// An episode's state has changed: if it was looked up in advance it is looked up again when it is loaded.
    mutating func forgetAnswer(about episode: String) {
        guard load?.request.episode.id == episode else { return }
        found = nil
        // An answer that is under way is out of date.
        call = nil
    }

    /// Nothing follows any more.
    mutating func clear() {
        load = nil
        found = nil
        call = nil
        isRechecked = false
    }
}

extension PlaybackMachine {
    /// The queue says what follows the loaded episode.
    mutating func prepare(_ prepare: WirePrepareEpisode, _ command: Command) throws(Failure) {
        guard let session, session.loadID.text == prepare.afterLoad, session.status != .finished else {
            return answer(command, "Nothing is prepared")
        }
        guard prepare.hasLoad else {
            let isChanged = next.load != nil
            forgetNext()
            return answer(command, "Nothing is prepared", changed: isChanged)
        }
        let load = try NextEpisode.Load(prepare.load, after: session.loadID)
        let isChanged = next.load?.request != prepare.load
        if isChanged {
            forgetNext()
            pending.lookUp(prepare.load.episode.id, as: next.prepare(load))
        }
        answer(command, "It is prepared", changed: isChanged)
    }

    /// What was prepared does not follow any more.
    mutating func forgetNext() {
        guard next.load != nil else { return }
        next.clear()
        pending.tell(.prepare(nil))
    }

    /// The end of the loaded episode is near.
    mutating func recheckNext() {
        guard let load = next.load, let call = next.recheck() else { return }
        pending.lookUp(load.request.episode.id, as: call)
    }

    /// Lets the engine open what follows, if that is known and something is open before it.
    mutating func prepareEngine() {
        guard let session, session.engine == .open, let load = next.load, let found = next.found,
            load.after == session.loadID
        else { return }
        let upcoming = upcoming(load, found)
        guard let source = upcoming.source else { return }
        let explicit = load.request.hasPosition ? PlaybackPosition(seconds: load.request.position) : nil
        let start = upcoming.start(
            explicit: explicit, intro: settings.number(.skipIntro, podcast: upcoming.episode.podcastID))
        pending.perform(
            .engine(
                .prepare(
                    EngineLoad(
                        id: load.loadID, source: source, start: start, paused: load.request.paused,
                        speed: upcoming.tracker.anchor.speed, volume: heardVolume, output: output.chosen,
                        sound: EngineSound(sound(of: upcoming.episode.podcastID)),
                        podcast: upcoming.episode.podcastID))))
    }

    /// The session that a load will make, as far as it is known.
    private func upcoming(_ load: NextEpisode.Load, _ found: WireEpisode) -> PlaybackSession {
        let episodeState = state(of: found.id, found) ?? found.storedState
        var upcoming = PlaybackSession(
            episode: load.request.episode, enclosure: load.enclosure, loadID: load.loadID,
            status: .loading(plays: true), speed: speed(of: load.request.episode.podcastID),
            tracker: PositionTracker(
                at: .zero, speed: speed(of: load.request.episode.podcastID), bootID: context.bootID, now: now),
            recovery: StreamRecovery(limits: context.limits),
            audio: AudioIdentity(
                announced: load.request.episode.duration, recorded: EpisodeDuration(seconds: episodeState.duration)),
            episodeState: episodeState)
        if found.download.state == .downloaded, !found.download.path.isEmpty, upcoming.isStream {
            upcoming.localPath = found.download.path
        }
        return upcoming
    }
}
