import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// What will be loaded next, and what the library knows of it.
struct PreparedEpisode: Sendable {
    var after: LoadID
    var load: WireLoadEpisode
    var loadID: LoadID
    var enclosure: AudioSource
    /// The library's answer; nil: it has not come.
    var found: WireEpisode?
    /// The library has been asked with this.
    var call: CallID
    /// It has been asked again shortly before the end of what is loaded.
    var isLookedUpAgain = false
}

extension PlaybackMachine {
    /// The queue says what follows the loaded episode, so that its audio is opened before that has ended.
    mutating func prepare(_ prepare: WirePrepareEpisode, _ command: Command) throws(Failure) {
        guard let session, session.loadID.text == prepare.afterLoad, session.status != .finished else {
            return answer(command, "Nothing is prepared")
        }
        guard prepare.hasLoad else {
            forgetPrepared()
            return answer(command, "Nothing is prepared")
        }
        guard let loadID = LoadID(prepare.load.loadID), loadID != session.loadID else {
            throw Self.invalid("“\(prepare.load.loadID)” isn’t a valid load ID for the next episode.")
        }
        guard EpisodeID(prepare.load.episode.id) != nil else {
            throw Self.invalid("“\(prepare.load.episode.id)” isn’t a valid episode ID.")
        }
        guard prepared?.load != prepare.load else { return answer(command, "It is prepared") }
        let enclosure = try AudioSource(enclosure: prepare.load.episode.enclosureURL)
        forgetPrepared()
        let call = CallID("prepare/\(command.id)")
        prepared = PreparedEpisode(
            after: session.loadID, load: prepare.load, loadID: loadID, enclosure: enclosure, call: call)
        lookUp(prepare.load.episode.id, as: call)
        answer(command, "It is prepared")
    }

    /// What was prepared does not follow any more.
    mutating func forgetPrepared() {
        guard prepared != nil else { return }
        prepared = nil
        pending.perform(.engine(.prepare(nil)))
    }

    /// The library has answered about what follows.
    mutating func completePrepared(_ result: Result<[UInt8], Failure>) {
        guard let found = Self.episode(in: result) else { return }
        let known = prepared?.found?.download
        prepared?.found = found
        // What the engine has opened stays open, unless it is another file now.
        if let known, known.state == found.download.state, known.path == found.download.path { return }
        prepareEngine()
    }

    /// The end is near: what follows may have been downloaded, or its file deleted, since it was prepared.
    mutating func lookUpPreparedAgain() {
        guard let prepared else { return }
        count += 1
        let call = CallID("prepare/\(prepared.loadID.text)/\(count)")
        self.prepared?.call = call
        self.prepared?.isLookedUpAgain = true
        lookUp(prepared.load.episode.id, as: call)
    }

    /// An episode's state is another now: if it was looked up in advance it is looked up again when it is loaded.
    mutating func forgetLookup(of episode: String) {
        guard prepared?.load.episode.id == episode else { return }
        prepared?.found = nil
        // An answer that is under way is of before.
        prepared?.call = CallID("")
    }

    /// Lets the engine open what follows, if that is known and something is open before it.
    mutating func prepareEngine() {
        guard let session, session.engine == .open, let prepared, let found = prepared.found,
            prepared.after == session.loadID
        else { return }
        let next = upcoming(prepared, found)
        guard let source = next.source else { return }
        pending.perform(
            .engine(
                .prepare(
                    EngineLoad(
                        id: prepared.loadID, source: source, start: next.anchor.position, paused: prepared.load.paused,
                        speed: next.anchor.speed, volume: heardVolume, output: output,
                        sound: EngineSound(sound(of: next.episode.podcastID)), podcast: next.episode.podcastID))))
    }

    /// The session that the load will make, as far as it is known.
    private func upcoming(_ prepared: PreparedEpisode, _ found: WireEpisode) -> PlaybackSession {
        let register = book.registers[found.id] ?? Self.register(of: found)
        var next = PlaybackSession(
            episode: prepared.load.episode, enclosure: prepared.enclosure, loadID: prepared.loadID,
            status: .loading(plays: true),
            anchor: PlaybackAnchor(
                position: .zero, speed: speed(of: prepared.load.episode.podcastID), at: now.monotonic,
                bootID: context.bootID, running: false, wall: now.wall),
            register: register)
        if found.download.state == .downloaded, !found.download.path.isEmpty, next.isStream {
            next.localPath = found.download.path
        }
        next.recordedDuration = EpisodeDuration(seconds: register.duration)
        let explicit = prepared.load.hasPosition ? PlaybackPosition(seconds: prepared.load.position) : nil
        next.anchor.position = start(of: next, explicit: explicit)
        return next
    }

    /// Where a load begins: where it is told to, else where the episode was left, else at its beginning.
    func start(of session: PlaybackSession, explicit: PlaybackPosition?) -> PlaybackPosition {
        var start = explicit ?? PlaybackPosition(clamping: session.register.position)
        // In its last moment it begins anew. A place behind its length is no error of the place.
        if explicit == nil, session.register.duration > 0, abs(start.seconds - session.register.duration) < 1 {
            start = .zero
        }
        return start == .zero && explicit == nil ? afterIntro(of: session) : start
    }
}
