import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The episode that follows the loaded one. The queue names it in advance, so that its audio is open before that one ends.
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

        /// The file that the engine is to open for it; nil: it has none.
        func engineLoad(
            _ found: WireEpisode, _ state: WireEpisodeState, speed: PlaybackSpeed, intro: Double,
            _ context: PlaybackContext, now: Moment
        ) -> EngineLoad? {
            var upcoming = PlaybackSession(
                episode: request.episode, enclosure: enclosure, loadID: loadID, status: .loading(plays: true),
                speed: speed, tracker: PositionTracker(at: .zero, speed: speed, bootID: context.bootID, now: now),
                recovery: StreamRecovery(limits: context.limits),
                audio: AudioIdentity(
                    announced: request.episode.duration, recorded: EpisodeDuration(seconds: state.duration)),
                episodeState: state)
            if found.download.state == .downloaded, !found.download.path.isEmpty, upcoming.isStream {
                upcoming.localPath = found.download.path
            }
            let explicit = request.hasPosition ? PlaybackPosition(seconds: request.position) : nil
            return upcoming.source.map { source in
                EngineLoad(
                    id: loadID, source: source, start: upcoming.start(explicit: explicit, intro: intro),
                    paused: request.paused, speed: speed, podcast: request.episode.podcastID)
            }
        }
    }

    private(set) var load: Load?
    /// The library’s answer about the episode; nil: there is none yet, or it is stale.
    private(set) var found: WireEpisode?
    /// The number of the question to the library whose answer counts.
    private var question: UInt64?
    private var isRechecked = false
    private var questions: UInt64 = 0

    /// Whether the library is to be asked again when the end of the loaded episode is near.
    var needsRecheck: Bool { found != nil && !isRechecked }

    /// The library’s answer about a load, if that is the one that was prepared.
    func answer(to request: WireLoadEpisode) -> WireEpisode? { load?.request == request ? found : nil }

    /// Prepares a load.
    ///
    /// - Returns: the question to the library.
    mutating func prepare(_ load: Load) -> PlaybackMachine.Query {
        clear()
        self.load = load
        return ask()
    }

    /// Asks again: the episode may have been downloaded, or its file deleted, since.
    mutating func recheck() -> PlaybackMachine.Query? {
        guard load != nil else { return nil }
        isRechecked = true
        return ask()
    }

    private mutating func ask() -> PlaybackMachine.Query {
        questions += 1
        question = questions
        return .next(questions)
    }

    /// Handles an answer of the library.
    ///
    /// - Returns: whether the engine is to open what was found.
    mutating func handleAnswer(_ number: UInt64, _ episode: WireEpisode?) -> Bool {
        guard number == question, let episode else { return false }
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
        question = nil
    }

    /// Drops the prepared load.
    mutating func clear() {
        load = nil
        found = nil
        question = nil
        isRechecked = false
    }
}

extension PlaybackMachine {
    /// Prepares the load that the queue says will follow.
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
            let query = next.prepare(load)
            pending.lookUp([prepare.load.episode.id], for: query)
        }
        answer(command, "It is prepared", changed: isChanged)
    }

    /// Cancels what was prepared.
    mutating func forgetNext() {
        guard next.load != nil else { return }
        next.clear()
        pending.command(.prepare(nil))
    }

    /// Looks the next episode up again, as the end of the loaded one is near.
    mutating func recheckNext() {
        guard let load = next.load, let query = next.recheck() else { return }
        pending.lookUp([load.request.episode.id], for: query)
    }

    /// Lets the engine open what follows, if that is known and something is open before it.
    mutating func prepareEngine() {
        guard let session, session.engine == .open, let load = next.load, let found = next.found,
            load.after == session.loadID
        else { return }
        let state = state(of: found.id, found) ?? found.storedState
        let podcast = load.request.episode.podcastID
        guard
            let engineLoad = load.engineLoad(
                found, state, speed: settings.speed(of: podcast),
                intro: settings.number(.skipIntro, podcast: podcast), context, now: now)
        else { return }
        pending.command(.prepare(engineLoad))
    }
}
