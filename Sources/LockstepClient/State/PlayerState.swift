public import PodcastModel
package import WireMessages

/// What is loaded and how it plays, as the player has announced it.
public struct PlayerState: Sendable, Hashable {
    /// What the player does.
    public enum Status: Sendable, Hashable {
        /// Nothing is loaded.
        case idle
        /// The episode is being opened; then it plays, or is paused.
        case loading(willPlay: Bool)
        /// It plays; while it buffers, nothing is heard.
        case playing(isBuffering: Bool)
        /// It is paused.
        case paused(by: Pause)
        /// It has ended, and nothing followed.
        case finished
        /// It couldn’t be played.
        case failed(Failure)
    }

    /// What has paused an episode.
    public enum Pause: Sendable, Hashable {
        /// Somebody, or a start that begins paused.
        case user
        /// The sleep timer.
        case sleepTimer
        /// `stop`.
        case stop
        /// The sound device, which is gone.
        case soundDevice
    }

    package let wire: WirePlaybackState

    package init(_ wire: WirePlaybackState) {
        self.wire = wire
    }

    /// What the player does.
    public var status: Status {
        switch wire.status {
        case .idle, .unknown, .UNRECOGNIZED: .idle
        case .loading: .loading(willPlay: wire.willPlay)
        case .playing: .playing(isBuffering: wire.buffering)
        case .finished: .finished
        case .failed: .failed(wire.error.failure)
        case .paused:
            switch wire.pausedBy {
            case .somebody, .UNRECOGNIZED: .paused(by: .user)
            case .sleepTimer: .paused(by: .sleepTimer)
            case .stop: .paused(by: .stop)
            case .soundDevice: .paused(by: .soundDevice)
            }
        }
    }

    /// Whether it plays, whether or not anything is heard just now.
    public var isPlaying: Bool { wire.status == .playing }

    /// The loaded episode; nil: none is.
    public var episode: EpisodeSummary? {
        wire.hasEpisode && wire.status != .idle ? EpisodeSummary(wire.episode) : nil
    }

    /// Where it is, in seconds from the beginning.
    public func position(at moment: Moment = .now) -> Double {
        wire.position(at: moment, bootID: SystemClocks.bootID)
    }

    /// The episode’s length in seconds; nil: unknown.
    public var duration: Double? { wire.duration > 0 ? wire.duration : nil }

    /// The speed, 1 is as it was recorded.
    public var speed: Double { wire.speed > 0 ? wire.speed : 1 }

    /// The volume in per cent.
    public var volume: Double { wire.volume }

    /// The name of the sound device in use; nil: the system’s default.
    public var output: String? { wire.output.isEmpty ? nil : DisplayText.sanitised(wire.output) }

    /// Whether there is no sound device, so that it plays silently.
    public var isSilent: Bool { wire.nullOutput }

    /// Whether the downloaded file plays rather than the stream.
    public var isLocal: Bool { wire.local }

    /// The name of the queue that it was loaded from; nil: none.
    public var queue: String? { wire.queue.isEmpty ? nil : wire.queue }

    /// The episode’s chapters, in order.
    public var chapters: [ChapterMark] {
        wire.chapters.indices.map { index in
            ChapterMark(
                title: DisplayText.sanitised(wire.chapters[index].title), start: wire.chapters[index].start,
                end: wire.chapters.end(of: index, duration: wire.duration))
        }
    }

    /// The index of the chapter that it is in; nil: it is in none.
    public func chapter(at moment: Moment = .now) -> Int? {
        let number = wire.chapters.number(at: position(at: moment))
        return number == 0 ? nil : number - 1
    }

    /// The attempt that is under way or waits, while what failed is tried again; nil: nothing failed.
    public func retry(at moment: Moment = .now) -> RetryState? {
        guard wire.hasRetry else { return nil }
        return RetryState(
            attempt: Int(wire.retry.attempt), limit: Int(wire.retry.of),
            wait: wire.retryWait(at: moment, bootID: SystemClocks.bootID),
            failure: wire.retry.hasError ? wire.retry.error.failure : nil)
    }

    /// The sleep timer; nil: none runs.
    public func sleepTimer(at moment: Moment = .now) -> SleepTimerState? {
        guard wire.hasSleep else { return nil }
        if wire.sleep.endOfChapter { return .endOfChapter }
        if wire.sleep.episodes > 0 { return .episodes(Int(wire.sleep.episodes)) }
        return .time(remaining: wire.sleep.remaining(at: moment, bootID: SystemClocks.bootID) ?? 0)
    }

    /// What is loaded and how, in one line: `Paused at 12:34 of 58:10: A title, A podcast.`
    public func sentence(at moment: Moment = .now) -> String {
        var snapshot = PlayerSnapshot()
        snapshot.take(wire, now: moment, bootID: SystemClocks.bootID)
        return Sentence.status(snapshot)
    }

    /// `sentence` at the moment at which it is read.
    public var sentence: String { sentence() }

    /// The object that `lockstep status --json` documents.
    public func json(at moment: Moment = .now) -> JSONValue {
        wire.statusJSON(at: moment, bootID: SystemClocks.bootID)
    }

    /// Whether something that a screen shows changes by itself.
    var isCounting: Bool { wire.anchor.running || wire.sleep.endsAt > 0 || wire.retry.nextAt > 0 }
}

/// An episode in few words, as the player and the queues know it.
public struct EpisodeSummary: Sendable, Hashable {
    package let wire: WireEpisodeSummary

    init(_ wire: WireEpisodeSummary) {
        self.wire = wire
    }

    /// Its ID.
    public var id: String { wire.id }
    /// Its title.
    public var title: String { DisplayText.sanitised(wire.title) }
    /// The ID of its podcast.
    public var podcastID: String { wire.podcastID }
    /// The title of its podcast.
    public var podcast: String { DisplayText.sanitised(wire.podcastTitle) }
    /// Its length in seconds; nil: unknown.
    public var duration: Double? { wire.duration > 0 ? wire.duration : nil }
    /// Where it goes on, in seconds.
    public var position: Double { wire.position }
}

/// A chapter of the loaded episode.
public struct ChapterMark: Sendable, Hashable {
    /// Its title.
    public let title: String
    /// Where it begins, in seconds.
    public let start: Double
    /// Where it ends, in seconds; nil: unknown.
    public let end: Double?
}

/// Another attempt at what failed.
public struct RetryState: Sendable, Hashable {
    /// The attempt’s number, from 1.
    public let attempt: Int
    /// The maximum number of attempts.
    public let limit: Int
    /// Seconds until it begins; 0: it is under way.
    public let wait: Double
    /// What the last one failed of.
    public let failure: Failure?
}

/// When a sleep timer pauses the player.
public enum SleepTimerState: Sendable, Hashable {
    /// In so many seconds.
    case time(remaining: Double)
    /// When so many episodes have ended, the loaded one included.
    case episodes(Int)
    /// At the end of the chapter.
    case endOfChapter
}
