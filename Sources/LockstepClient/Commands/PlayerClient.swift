public import PodcastModel
import SwiftProtobuf
import WireMessages

/// Commands to the player. Each returns when its effect is in the state, and throws the player’s refusal. Relative
/// seeks and steps start from the player’s values when the command arrives.
public struct PlayerClient: Sendable {
    /// The target of a seek.
    public enum SeekTarget: Sendable, Hashable {
        /// A position, in seconds from the beginning.
        case to(Double)
        /// A distance in seconds, negative to seek back. The target is limited to a second before the end.
        case by(Double)
        /// A fraction of the length, 0 to 1. The target is limited to a second before the end.
        case fraction(Double)
        /// Skips forward by the setting `skipForward`, or by `unlessSet` seconds if it isn’t set.
        case skipForward(unlessSet: Double? = nil)
        /// Skips back by the setting `skipBack`, or by `unlessSet` seconds if it isn’t set.
        case skipBack(unlessSet: Double? = nil)
        /// The chapter with this number, from 1.
        case chapter(Int)
        /// The chapter after the current position.
        case nextChapter
        /// The chapter before the position, or the start of the current one.
        case previousChapter
    }

    /// The outcome of a seek.
    public struct SeekOutcome: Sendable, Hashable {
        /// The player’s state after the seek.
        public let player: PlayerState
        /// The episode that the seek ended, so that it counts as played; nil if none.
        public let ended: EpisodeSummary?
    }

    /// The outcome of a change of the speed.
    public struct SpeedOutcome: Sendable, Hashable {
        /// The player’s state after the change.
        public let player: PlayerState
        /// The speed of podcasts without their own, if only the loaded episode’s podcast was changed; nil if the change
        /// applies to all.
        public let forOthers: String?
    }

    /// A change of the speed or the volume.
    public enum LevelChange: Sendable, Hashable {
        /// Sets a value.
        case to(Double)
        /// Changes the value by a difference, within the range.
        case by(Double)
        /// Moves to the next multiple of a step this number of times; negative is down.
        case steps(Int, of: Double)
    }

    let fleet: Fleet

    // MARK: - Playing

    /// Pauses playback, or resumes the loaded episode, or starts Up Next if nothing is loaded. The player’s state when
    /// the command arrives decides.
    ///
    /// - Throws: `queueEmpty` if there is nothing to start.
    public func toggle() async throws(Failure) -> Answer<PlayerState> {
        let answer = try await fleet.queue.toggle()
        return Answer(changed: answer.changed, value: answer.player ?? fleet.state.player)
    }

    /// Pauses the loaded episode.
    ///
    /// - Throws: `nothingLoaded` if no episode is loaded.
    public func pause() async throws(Failure) -> Answer<PlayerState> { try await ask { $0.setPaused.paused = true } }

    /// Resumes the loaded episode.
    ///
    /// - Throws: `nothingLoaded` if no episode is loaded; `QueueClient.play` can start a queue.
    public func resume() async throws(Failure) -> Answer<PlayerState> { try await ask { $0.setPaused.paused = false } }

    /// Pauses and closes the sound device.
    public func stop() async throws(Failure) -> Answer<PlayerState> { try await ask { $0.stop = WireStopPlayback() } }

    /// Seeks in the loaded episode.
    ///
    /// - Parameter load: the `loadID` that must be loaded; nil for any.
    /// - Throws: `nothingLoaded`; `revisionMismatch` if another load is current; `notFound` and `atEdge` for chapters.
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

    /// Sets the playback speed; 1 is the original speed.
    ///
    /// - Throws: `invalidArgument`, with the range in its message.
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

    /// Sets the volume in percent.
    ///
    /// - Throws: `invalidArgument`, with the range in its message.
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

    /// Sets the sleep timer; nil turns it off.
    ///
    /// - Throws: `invalidArgument` outside the range; `notFound` for the end of a chapter if there are no chapters.
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

    /// Extends the sleep timer by a number of seconds.
    ///
    /// - Throws: `notApplicable` if no timer with a time is running; `invalidArgument` for more than a day.
    public func extendSleepTimer(by seconds: Double) async throws(Failure) -> Answer<PlayerState> {
        try await ask { $0.extendSleep.seconds = seconds }
    }

    // MARK: - Sound devices

    /// Queries the sound devices again.
    public func outputs() async throws(Failure) -> OutputState {
        OutputState(try await reply { $0.listOutputs = WireListOutputs() }.output)
    }

    /// Selects a sound device by its name; nil selects the system’s default.
    ///
    /// - Throws: `notFound` for an unknown device.
    public func setOutput(_ device: String?) async throws(Failure) -> Answer<OutputState> {
        let reply = try await reply { $0.setOutput.device = device ?? "" }
        return Answer(changed: reply.changed, value: OutputState(reply.output))
    }

    // MARK: - Episodes

    /// Marks up to 500 episodes as played or unplayed, all or none.
    ///
    /// - Parameter group: a name for calls that `undoMarks` undoes together; empty for this call alone.
    /// - Returns: whether each episode has changed, in order and without duplicates.
    /// - Throws: `notFound` if an episode is unknown.
    public func setPlayed(
        _ isPlayed: Bool, _ episodes: [EpisodeID], group: String = ""
    ) async throws(Failure) -> [Answer<EpisodeProgress>] {
        let states = try await reply {
            $0.setPlayed.group = group
            $0.setPlayed.played = isPlayed
            $0.setPlayed.episodes = episodes.map(\.text)
        }.episodeStates
        return Self.answers(states)
    }

    /// Undoes the newest marks that `setPlayed` changed, with all calls of their group.
    ///
    /// - Parameter group: undoes only the marks of this group; empty for the newest of any.
    /// - Returns: whether the episodes had been marked as played, and whether each has changed: one that has been
    ///   marked or finished since keeps its state; nil if there is nothing to undo.
    public func undoMarks(
        group: String = ""
    ) async throws(Failure) -> (wasPlayed: Bool, episodes: [Answer<EpisodeProgress>])? {
        var episodes: [Answer<EpisodeProgress>] = []
        var group = group
        while true {
            let reply = try await reply { $0.undoMarks.group = group }
            guard case .marksUndone(let undone)? = reply.result else {
                throw Failure(.malformed, "Couldn’t read the playback service’s answer.")
            }
            guard reply.changed else { return episodes.isEmpty ? nil : (undone.played, episodes) }
            episodes += Self.answers(undone.states)
            // Other clients may have marked episodes in the meantime.
            group = undone.group
            if !undone.more { return (undone.played, episodes) }
        }
    }

    private static func answers(_ states: WireEpisodeStates) -> [Answer<EpisodeProgress>] {
        zip(states.states, states.changed).compactMap { state, changed in
            EpisodeProgress(state).map { Answer(changed: changed, value: $0) }
        }
    }

    /// Adds a bookmark.
    ///
    /// - Parameters:
    ///   - episode: the episode; nil for the loaded one.
    ///   - position: the position in seconds; nil for the episode’s current position.
    /// - Throws: `nothingLoaded`, `notFound`; `notApplicable` beyond the end.
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
    /// - Throws: `notFound` if the bookmark doesn’t exist.
    public func setNote(_ note: String, of bookmark: BookmarkID) async throws(Failure) -> Answer<Bookmark> {
        try await self.bookmark {
            $0.setBookmark.id = bookmark.text
            $0.setBookmark.note = note
        }
    }

    /// Removes a bookmark.
    ///
    /// - Throws: `notFound` if the bookmark doesn’t exist.
    public func removeBookmark(_ bookmark: BookmarkID) async throws(Failure) -> Answer<Bookmark> {
        try await self.bookmark { $0.removeBookmark.id = bookmark.text }
    }

    // MARK: - Requests

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
