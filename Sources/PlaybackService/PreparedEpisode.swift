import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The load that the queue has announced as next, whose audio is opened before the loaded episode ends.
struct PreparedEpisode: Sendable {
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

        func engineLoad(
            _ download: WireDownload, _ state: WireEpisodeState, speed: PlaybackSpeed, intro: Double
        ) -> EngineLoad {
            let length = EpisodeDuration(seconds: state.duration) ?? EpisodeDuration(seconds: request.episode.duration)
            let explicit = request.hasPosition ? PlaybackPosition(seconds: request.position) : nil
            return EngineLoad(
                id: loadID, source: download.source(insteadOf: enclosure) ?? enclosure,
                start: explicit ?? PlaybackSession.start(of: state, duration: length, intro: intro),
                paused: request.paused, speed: speed, podcast: request.episode.podcastID)
        }
    }

    private(set) var load: Load?
    /// The library’s reply about the episode; nil if there is none yet, or it is stale.
    private(set) var found: WireEpisode?
    /// The number of the current query to the library; other answers are stale.
    private var question: UInt64?
    private var isRechecked = false
    private var questions: UInt64 = 0

    /// Whether the library must be asked again when the end of the loaded episode is near.
    var needsRecheck: Bool { found != nil && !isRechecked }

    /// Returns the library’s answer about a load if it is the prepared load.
    func answer(to request: WireLoadEpisode) -> WireEpisode? { load?.request == request ? found : nil }

    /// Prepares a load.
    ///
    /// - Returns: the query to the library.
    mutating func prepare(_ load: Load) -> PlaybackMachine.Query {
        clear()
        self.load = load
        return ask()
    }

    /// Repeats the query: the episode may have been downloaded, or its file deleted, since.
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

    /// Handles a reply from the library.
    ///
    /// - Returns: whether the engine must open the result.
    mutating func handleAnswer(_ number: UInt64, _ episode: WireEpisode?) -> Bool {
        guard number == question, let episode else { return false }
        let known = found?.download
        found = episode
        // The opened file stays open unless the episode has another file now.
        return known?.state != episode.download.state || known?.path != episode.download.path
    }

    /// Discards the answer about an episode whose state has changed: the episode is looked up again when it is loaded.
    mutating func forgetAnswer(about episode: String) {
        guard load?.request.episode.id == episode else { return }
        found = nil
        question = nil
    }

    mutating func clear() {
        load = nil
        found = nil
        question = nil
        isRechecked = false
    }
}

extension WireDownload {
    /// The downloaded file, which plays instead of a stream; nil if there is none, or the enclosure is a file.
    func source(insteadOf source: AudioSource?) -> AudioSource? {
        guard state == .downloaded, !path.isEmpty, case .web? = source else { return nil }
        return .file(path: path)
    }
}

extension PlaybackMachine {
    /// Prepares the load that the queue says will follow.
    mutating func prepare(_ prepare: WirePrepareEpisode, _ command: Command) throws(Failure) {
        guard let session, session.loadID.text == prepare.afterLoad, session.status != .finished else {
            return answer(command, "Nothing is prepared")
        }
        guard prepare.hasLoad else {
            let isChanged = prepared.load != nil
            cancelPrepared()
            return answer(command, "Nothing is prepared", changed: isChanged)
        }
        let load = try PreparedEpisode.Load(prepare.load, after: session.loadID)
        let isChanged = prepared.load?.request != prepare.load
        if isChanged {
            cancelPrepared()
            let query = prepared.prepare(load)
            pending.lookUp([prepare.load.episode.id], for: query)
        }
        answer(command, "It is prepared", changed: isChanged)
    }

    mutating func cancelPrepared() {
        guard prepared.load != nil else { return }
        prepared.clear()
        pending.command(.prepare(nil))
    }

    /// Looks the prepared episode up again near the end of the loaded one.
    mutating func recheckPrepared() {
        guard let load = prepared.load, let query = prepared.recheck() else { return }
        pending.lookUp([load.request.episode.id], for: query)
    }

    /// Makes the engine open the prepared episode in advance, if its file is known and the episode before it is open.
    mutating func prepareEngine() {
        guard let session, session.engine.hasFile, let load = prepared.load, let found = prepared.found,
            load.after == session.loadID
        else { return }
        let podcast = load.request.episode.podcastID
        let engineLoad = load.engineLoad(
            found.download, state(of: found.id, found) ?? found.storedState, speed: settings.speed(of: podcast),
            intro: settings.number(.skipIntro, podcast: podcast))
        pending.command(.prepare(engineLoad))
    }
}
