public import PodcastModel
import SwiftProtobuf
import WireMessages

/// Commands to the player. Each returns when its effect is in the state, and throws the player’s refusal. What a command starts
/// from (the position of a relative seek, the speed of a step) is the player’s own when the command arrives.
public struct PlayerClient: Sendable {
    /// The target of a seek.
    public enum SeekTarget: Sendable, Hashable {
        /// A position, in seconds from the beginning.
        case to(Double)
        /// A distance in seconds; below 0: back. It stops a second before the end.
        case by(Double)
        /// A part of the length, 0 to 1. It stops a second before the end.
        case fraction(Double)
        /// Forward by the setting `skipForward`, or by `unlessSet` seconds where neither the podcast nor all have one.
        case skipForward(unlessSet: Double? = nil)
        /// Back by the setting `skipBack`, or by `unlessSet` seconds where neither the podcast nor all have one.
        case skipBack(unlessSet: Double? = nil)
        /// The chapter of this number, from 1.
        case chapter(Int)
        /// The chapter after the position.
        case nextChapter
        /// The chapter before the position, or the beginning of the one that it is in.
        case previousChapter
    }

    /// The outcome of a seek.
    public struct SeekOutcome: Sendable, Hashable {
        /// The player after it.
        public let player: PlayerState
        /// The episode that the seek has ended, so that it counts as played; nil: it has ended none.
        public let ended: EpisodeSummary?
    }

    /// The outcome of a change of the speed.
    public struct SpeedOutcome: Sendable, Hashable {
        /// The player after it.
        public let player: PlayerState
        /// The speed of podcasts without one of their own, where the change is for the loaded episode’s podcast alone; nil: it is
        /// for all.
        public let forOthers: String?
    }

    /// A change of the speed or the volume.
    public enum LevelChange: Sendable, Hashable {
        /// To a value.
        case to(Double)
        /// By a difference; it stops at the ends of the range.
        case by(Double)
        /// This number of times to the next multiple of a step; below 0: down.
        case steps(Int, of: Double)
    }

    let fleet: Fleet

    // MARK: - Playing

    /// Pauses what plays, else resumes what is loaded; where nothing is, starts Up Next. What counts is what the player does
    /// when the command arrives.
    ///
    /// - Throws: `queueEmpty` when there is nothing to start.
    public func toggle() async throws(Failure) -> Answer<PlayerState> {
        let answer = try await fleet.queue.toggle()
        return Answer(changed: answer.changed, value: answer.player ?? fleet.state.player)
    }

    /// Pauses the loaded episode.
    ///
    /// - Throws: `nothingLoaded`.
    public func pause() async throws(Failure) -> Answer<PlayerState> { try await ask { $0.setPaused.paused = true } }

    /// Resumes what is loaded.
    ///
    /// - Throws: `nothingLoaded`; `QueueClient.play` starts a queue then.
    public func resume() async throws(Failure) -> Answer<PlayerState> { try await ask { $0.setPaused.paused = false } }

    /// Pauses and frees the sound device.
    public func stop() async throws(Failure) -> Answer<PlayerState> { try await ask { $0.stop = WireStopPlayback() } }

    /// Seeks in the loaded episode.
    ///
    /// - Parameter load: the load that is meant, as the state’s `loadID`; nil: whatever is loaded when it arrives.
    /// - Throws: `nothingLoaded`; `revisionMismatch` when something else is loaded; `notFound` and `atEdge` for chapters.
    public func seek(_ target: SeekTarget, of load: LoadID? = nil) async throws(Failure) -> Answer<SeekOutcome> {
        let reply = try await reply { request in
            switch target {
            case .to(let position): request.seek.position = position
            case .by(let distance): request.seekRelative.by = distance
            case .fraction(let part): request.seekRelative.fraction = part
            case .skipForward(let seconds): request.seekRelative.skip.secondsIfUnset = seconds ?? 0
            case .skipBack(let seconds):
                request.seekRelative.skip.back = true
                request.seekRelative.skip.secondsIfUnset = seconds ?? 0
            case .chapter(let number): request.seekRelative.chapter.number = UInt32(clamping: number)
            case .nextChapter: request.seekRelative.chapter.neighbour = .next
            case .previousChapter: request.seekRelative.chapter.neighbour = .previous
            }
            if case .to = target {
                request.seek.loadID = load?.text ?? ""
            } else {
                request.seekRelative.loadID = load?.text ?? ""
            }
        }
        let ended = reply.hasEnded ? EpisodeSummary(reply.ended) : nil
        return Answer(changed: reply.changed, value: SeekOutcome(player: PlayerState(reply.state), ended: ended))
    }

    /// Sets the speed, 1 is as it was recorded.
    ///
    /// - Throws: `invalidArgument` naming the range.
    public func setSpeed(_ change: LevelChange) async throws(Failure) -> Answer<SpeedOutcome> {
        let reply = try await reply { request in
            switch change {
            case .to(let speed): request.setSpeed.speed = speed
            case .by(let difference): request.changeSpeed.by = difference
            case .steps(let count, let size):
                (request.changeSpeed.steps, request.changeSpeed.step) = (Int32(clamping: count), size)
            }
        }
        let forOthers = reply.setting.source == .podcast ? DisplayText.sanitised(reply.setting.valueForAll) : nil
        return Answer(
            changed: reply.changed, value: SpeedOutcome(player: PlayerState(reply.state), forOthers: forOthers))
    }

    /// Sets the volume in per cent.
    ///
    /// - Throws: `invalidArgument` naming the range.
    public func setVolume(_ change: LevelChange) async throws(Failure) -> Answer<PlayerState> {
        try await ask { request in
            switch change {
            case .to(let percent): request.setVolume.volume = percent
            case .by(let difference): request.changeVolume.by = difference
            case .steps(let count, let size):
                (request.changeVolume.steps, request.changeVolume.step) = (Int32(clamping: count), size)
            }
        }
    }

    /// Sets the sleep timer, or with nil turns it off.
    ///
    /// - Throws: `invalidArgument` naming the range; `notFound` for the end of a chapter where there are none.
    public func setSleepTimer(_ timer: SleepTimerState?) async throws(Failure) -> Answer<PlayerState> {
        try await ask { request in
            request.setSleep = WireSetSleep()
            switch timer {
            case .time(let remaining): request.setSleep.seconds = remaining
            case .episodes(let count): request.setSleep.episodes = UInt32(clamping: count)
            case .endOfChapter: request.setSleep.endOfChapter = true
            case nil: break
            }
        }
    }

    /// Lets the sleep timer run for longer, in seconds.
    ///
    /// - Throws: `invalidArgument` where no timer runs that ends by time, and for more than a day.
    public func extendSleepTimer(by seconds: Double) async throws(Failure) -> Answer<PlayerState> {
        try await ask { $0.extendSleep.seconds = seconds }
    }

    // MARK: - Sound devices

    /// Lists the sound devices anew.
    public func outputs() async throws(Failure) -> OutputState {
        OutputState(try await reply { $0.listOutputs = WireListOutputs() }.output)
    }

    /// Chooses a sound device by its name; nil: the system’s default.
    ///
    /// - Throws: `notFound` for a device that isn’t there.
    public func setOutput(_ device: String?) async throws(Failure) -> Answer<OutputState> {
        let reply = try await reply { $0.setOutput.device = device ?? "" }
        return Answer(changed: reply.changed, value: OutputState(reply.output))
    }

    // MARK: - Episodes

    /// Marks episodes as played, or as not played, all or none; 500 at most.
    ///
    /// - Returns: for each, once and in order, whether it has changed.
    /// - Throws: `notFound`.
    public func setPlayed(
        _ isPlayed: Bool, _ episodes: [EpisodeID]
    ) async throws(Failure) -> [Answer<EpisodeProgress>] {
        let states = try await reply {
            $0.setPlayed.played = isPlayed
            $0.setPlayed.episodes = episodes.map(\.text)
        }.episodeStates
        return zip(states.states, states.changed).compactMap { state, changed in
            EpisodeProgress(state).map { Answer(changed: changed, value: $0) }
        }
    }

    /// Adds a bookmark.
    ///
    /// - Parameters:
    ///   - episode: its episode; nil: the loaded one.
    ///   - position: its position in seconds; nil: where the episode is.
    /// - Throws: `nothingLoaded`, `notFound`, `invalidArgument` beyond the end.
    public func addBookmark(
        to episode: EpisodeID? = nil, at position: Double? = nil, note: String = ""
    ) async throws(Failure) -> Answer<Bookmark> {
        try await bookmark {
            $0.setBookmark.episode = episode?.text ?? ""
            if let position { $0.setBookmark.position = position }
            $0.setBookmark.note = note
        }
    }

    /// Replaces a bookmark’s note.
    ///
    /// - Throws: `notFound`.
    public func setNote(_ note: String, of bookmark: BookmarkID) async throws(Failure) -> Answer<Bookmark> {
        try await self.bookmark {
            $0.setBookmark.id = bookmark.text
            $0.setBookmark.note = note
        }
    }

    /// Removes a bookmark.
    ///
    /// - Throws: `notFound`.
    public func removeBookmark(_ bookmark: BookmarkID) async throws(Failure) -> Answer<Bookmark> {
        try await self.bookmark { $0.removeBookmark.id = bookmark.text }
    }

    // MARK: - Asking

    private func bookmark(_ fill: (inout WirePlaybackRequest) -> Void) async throws(Failure) -> Answer<Bookmark> {
        let reply = try await reply(fill)
        guard let bookmark = reply.bookmarks.bookmarks.first.flatMap(Bookmark.init) else {
            throw Failure(.malformed, "Couldn’t read the playback service’s answer.")
        }
        return Answer(changed: reply.changed, value: bookmark)
    }

    private func ask(_ fill: (inout WirePlaybackRequest) -> Void) async throws(Failure) -> Answer<PlayerState> {
        let reply = try await reply(fill)
        return Answer(changed: reply.changed, value: PlayerState(reply.state))
    }

    private func reply(_ fill: (inout WirePlaybackRequest) -> Void) async throws(Failure) -> WirePlaybackReply {
        var request = WirePlaybackRequest()
        fill(&request)
        return try await fleet.ask(.playback, request, reply: WirePlaybackReply.self)
    }
}
