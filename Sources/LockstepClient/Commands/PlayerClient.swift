public import PodcastModel
import WireMessages

/// Commands to the player. Each returns when its effect is in the state, and throws the player’s refusal.
public struct PlayerClient: Sendable {
    let fleet: Fleet

    /// Pauses what plays, else resumes what is loaded; where nothing is, starts Up Next. What counts is what the player does
    /// when the command arrives.
    ///
    /// - Throws: `queueEmpty` when there is nothing to start.
    public func toggle() async throws(Failure) -> Answer<PlayerState> {
        var request = WireQueueRequest()
        request.toggle = WireTogglePlayback()
        let reply = try await fleet.ask(.queue, request, reply: WireQueueReply.self)
        let state = reply.hasPlayer ? PlayerState(reply.player) : fleet.state.player
        return Answer(changed: reply.changed, value: state)
    }

    /// Pauses.
    ///
    /// - Throws: `nothingLoaded`.
    public func pause() async throws(Failure) -> Answer<PlayerState> { try await ask { $0.setPaused.paused = true } }

    /// Resumes what is loaded.
    ///
    /// - Throws: `nothingLoaded`; `QueueClient.play` starts a queue then.
    public func resume() async throws(Failure) -> Answer<PlayerState> { try await ask { $0.setPaused.paused = false } }

    /// Pauses and frees the sound device.
    public func stop() async throws(Failure) -> Answer<PlayerState> { try await ask { $0.stop = WireStopPlayback() } }

    /// Goes to a place in the loaded episode, in seconds from its beginning.
    ///
    /// - Parameter load: the load that is meant, as the state’s `loadID` named it; nil: whatever is loaded when it arrives.
    /// - Throws: `nothingLoaded`; `revisionMismatch` when something else is loaded.
    public func seek(to position: Double, of load: String? = nil) async throws(Failure) -> Answer<PlayerState> {
        try await ask {
            $0.seek.loadID = load ?? ""
            $0.seek.position = position
        }
    }

    /// Sets the speed, 1 is as it was recorded.
    ///
    /// - Throws: `invalidArgument` naming the range.
    public func setSpeed(_ speed: Double) async throws(Failure) -> Answer<PlayerState> {
        try await ask { $0.setSpeed.speed = speed }
    }

    /// Sets the volume in per cent.
    ///
    /// - Throws: `invalidArgument` naming the range.
    public func setVolume(_ percent: Double) async throws(Failure) -> Answer<PlayerState> {
        try await ask { $0.setVolume.volume = percent }
    }

    /// Sets the sleep timer, or with nil turns it off.
    ///
    /// - Throws: `invalidArgument` naming the range.
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

    /// Chooses a sound device by its name; nil: the system’s default.
    ///
    /// - Throws: `notFound` for a device that isn’t there.
    public func setOutput(_ device: String?) async throws(Failure) -> Answer<PlayerState> {
        try await ask { $0.setOutput.device = device ?? "" }
    }

    /// Marks episodes as played, or as not played, all or none; 500 at most.
    ///
    /// - Returns: for each in order, whether it has changed.
    /// - Throws: `notFound`.
    public func setPlayed(_ isPlayed: Bool, _ episodes: [EpisodeID]) async throws(Failure) -> [Bool] {
        var request = WirePlaybackRequest()
        request.setPlayed.played = isPlayed
        request.setPlayed.episodes = episodes.map(\.text)
        return try await fleet.ask(.playback, request, reply: WirePlaybackReply.self).episodeStates.changed
    }

    private func ask(_ fill: (inout WirePlaybackRequest) -> Void) async throws(Failure) -> Answer<PlayerState> {
        var request = WirePlaybackRequest()
        fill(&request)
        let reply = try await fleet.ask(.playback, request, reply: WirePlaybackReply.self)
        return Answer(changed: reply.changed, value: PlayerState(reply.state))
    }
}
