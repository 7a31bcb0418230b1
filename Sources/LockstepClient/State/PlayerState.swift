public import PodcastModel
import SwiftProtobuf
package import WireMessages

/// The loaded episode and its playback state, as published by the player.
public struct PlayerState: Sendable, Hashable {
    /// The playback state.
    public enum Status: Sendable, Hashable {
        /// Nothing is loaded.
        case idle
        /// The episode is being opened, and will play or be paused.
        case loading(willPlay: Bool)
        /// The episode is playing; while it buffers, it is silent.
        case playing(isBuffering: Bool)
        /// The episode is paused.
        case paused(by: Pause)
        /// The episode has ended, and no entry followed.
        case finished
        /// The episode couldn’t be played.
        case failed(Failure)
    }

    /// The cause of a pause.
    public enum Pause: Sendable, Hashable {
        /// A user’s command, or a load that was requested as paused.
        case user
        /// The sleep timer has expired.
        case sleepTimer
        /// A user’s `stop` command.
        case stop
        /// The sound device was removed.
        case soundDevice

        init(_ wire: WirePlaybackState.PausedBy) {
            self =
                switch wire {
                case .somebody, .UNRECOGNIZED: .user
                case .sleepTimer: .sleepTimer
                case .stop: .stop
                case .soundDevice: .soundDevice
                }
        }
    }

    package let wire: WirePlaybackState

    package init(_ wire: WirePlaybackState) {
        self.wire = wire
    }

    /// The player before it has published a state: idle, with the default speed and volume.
    package static let unknown = PlayerState(
        .with {
            $0.speed = PlaybackSpeed.normal.factor
            $0.volume = Volume.full.percent
        })

    /// The playback state.
    public var status: Status {
        switch wire.status {
        case .idle, .unknown, .UNRECOGNIZED: .idle
        case .loading: .loading(willPlay: wire.willPlay)
        case .playing: .playing(isBuffering: wire.buffering)
        case .finished: .finished
        case .failed: .failed(wire.error.failure.sanitised)
        case .paused: .paused(by: Pause(wire.pausedBy))
        }
    }

    package var isLoading: Bool { wire.status == .loading }

    package var statusWord: String { wire.status.word }

    package var isRunning: Bool { wire.anchor.running }

    /// The rate of the position, which exceeds the speed while silence is skipped.
    package var pace: Double { wire.anchor.speed > 0 ? wire.anchor.speed : speed }

    /// The active sound filters as text.
    package var soundWords: [String] {
        let sound = wire.sound
        var words: [String] = []
        if sound.gain != 0 { words.append("gain \(sound.gain > 0 ? "+" : "")\(NumberText.short(sound.gain)) dB") }
        if sound.trimSilence { words.append("trims silence") }
        if sound.boost { words.append("boost") }
        if sound.normalise { words.append("normalised") }
        return words
    }

    /// Whether the episode is playing, even if it is silent at the moment.
    public var isPlaying: Bool { wire.status == .playing }

    /// The loaded episode; nil if none is loaded.
    public var episode: EpisodeSummary? {
        wire.hasEpisode && wire.status != .idle ? EpisodeSummary(wire.episode) : nil
    }

    /// The ID of the current load; a replay has a new one. Nil if nothing is loaded.
    public var loadID: LoadID? { LoadID(wire.loadID) }

    /// The queue entry of the load; nil if it has none.
    public var queueEntry: QueueEntryID? { QueueEntryID(wire.queueEntry) }

    /// The position in seconds from the beginning.
    public func position(at moment: Moment = .now) -> Double {
        PlaybackAnchor(wire)?.position(
            at: moment, bootID: SystemClocks.bootID, duration: EpisodeDuration(seconds: wire.duration)
        ).seconds ?? 0
    }

    /// The episode’s length in seconds; nil if unknown.
    public var duration: Double? { wire.duration > 0 ? wire.duration : nil }

    /// The playback speed; 1 is the original speed.
    public var speed: Double { wire.speed > 0 ? wire.speed : 1 }

    /// The volume in percent.
    public var volume: Double { wire.volume }

    /// The name of the sound device in use; nil for the system’s default.
    public var output: String? { wire.output.isEmpty ? nil : DisplayText.sanitised(wire.output) }

    /// Whether there is no sound device, so that it plays silently.
    public var isSilent: Bool { wire.nullOutput }

    /// Whether the downloaded file is played instead of the stream.
    public var isLocal: Bool { wire.local }

    /// The name of the load’s source queue; nil if it has none.
    public var queue: String? { wire.queue.isEmpty ? nil : wire.queue }

    /// The episode’s chapters, in order.
    public var chapters: [ChapterState] { ChapterState.list(wire.chapters, duration: wire.duration) }

    /// The index of the current chapter; nil if there is none.
    public func chapter(at moment: Moment = .now) -> Int? { chapter(atPosition: position(at: moment)) }

    func chapter(atPosition position: Double) -> Int? {
        let number = wire.chapters.number(at: position)
        return number == 0 ? nil : number - 1
    }

    /// The retry that is pending or in progress; nil if there is none.
    public func retry(at moment: Moment = .now) -> RetryState? {
        guard wire.hasRetry else { return nil }
        return RetryState(
            attempt: Int(wire.retry.attempt), limit: Int(wire.retry.of), wait: retryWait(at: moment),
            failure: wire.retry.hasError ? wire.retry.error.failure.sanitised : nil)
    }

    /// The number of seconds until the retry; 0 if it is in progress.
    func retryWait(at moment: Moment) -> Double {
        guard wire.retry.nextAt > 0 else { return 0 }
        guard wire.anchor.bootID == SystemClocks.bootID else { return wire.retry.nextInSeconds }
        return max(0, MonotonicTime(nanoseconds: wire.retry.nextAt).since(moment.monotonic) / .seconds(1))
    }

    /// The sleep timer; nil if none is set.
    public func sleepTimer(at moment: Moment = .now) -> SleepTimerState? {
        guard wire.hasSleep else { return nil }
        if wire.sleep.endOfChapter { return .endOfChapter }
        if wire.sleep.episodes > 0 { return .episodes(Int(wire.sleep.episodes)) }
        return .time(remaining: wire.sleep.remaining(at: moment, bootID: SystemClocks.bootID) ?? 0)
    }

    /// Whether the sleep timer is fading the volume out.
    public var isFadingOut: Bool { wire.hasSleep && wire.sleep.fading }

    /// Whether both states have the same sleep timer, regardless of its remaining time.
    package func hasSleepTimer(of other: PlayerState) -> Bool {
        wire.hasSleep == other.wire.hasSleep && wire.sleep == other.wire.sleep
    }

    /// The episode and its playback state in one line: `Paused at 12:34 of 58:10: A title, A podcast.`
    public func sentence(at moment: Moment = .now) -> String { Sentence.status(PlayerSnapshot(self, at: moment)) }

    /// The `sentence(at:)` of the current time.
    public var sentence: String { sentence() }

    /// Whether a shown value changes without an update.
    var isCounting: Bool { wire.anchor.running || wire.sleep.endsAt > 0 || wire.retry.nextAt > 0 }
}

/// The episode data in the states of the player and the queues.
public struct EpisodeSummary: Sendable, Hashable {
    /// The episode’s ID.
    public let id: EpisodeID
    /// The episode’s title.
    public let title: String
    /// The ID of its podcast; nil if not known.
    public let podcastID: PodcastID?
    /// The title of its podcast.
    public let podcast: String
    /// Its length in seconds; nil if unknown.
    public var duration: Double?
    /// The position at which it resumes, in seconds.
    public var position: Double
    /// Whether it counts as played.
    public let isPlayed: Bool

    package init?(_ wire: WireEpisodeSummary) {
        guard let id = EpisodeID(wire.id) else { return nil }
        self.id = id
        title = DisplayText.sanitised(wire.title)
        podcastID = PodcastID(wire.podcastID)
        podcast = DisplayText.sanitised(wire.podcastTitle)
        duration = wire.duration > 0 ? wire.duration : nil
        position = wire.position
        isPlayed = wire.played
    }
}

/// A chapter of an episode.
public struct ChapterState: Sendable, Hashable {
    /// The chapter’s title.
    public let title: String
    /// Its start in seconds.
    public let start: Double
    /// Its end in seconds; nil if unknown.
    public let end: Double?
    /// Its address; empty if it has none.
    public let url: String

    static func list(_ chapters: [WireChapter], duration: Double) -> [ChapterState] {
        chapters.indices.map { index in
            ChapterState(
                title: DisplayText.sanitised(chapters[index].title), start: chapters[index].start,
                end: chapters.end(of: index, duration: duration), url: chapters[index].url)
        }
    }
}

extension [WireChapter] {
    /// Returns the number, from 1, of the chapter at a position in seconds; 0 if there is none.
    func number(at position: Double) -> Int {
        // The anchor may lag behind the engine by this time when the engine reports that a chapter has begun.
        number(at: position, tolerance: 0.05)
    }

    /// Returns the end of the chapter with this index in seconds; nil if unknown.
    func end(of index: Int, duration: Double) -> Double? {
        if self[index].end > self[index].start { return self[index].end }
        if index + 1 < count { return self[index + 1].start }
        return duration > self[index].start ? duration : nil
    }
}

/// A retry after a failure.
public struct RetryState: Sendable, Hashable {
    /// The attempt’s number, from 1.
    public let attempt: Int
    /// The maximum number of attempts.
    public let limit: Int
    /// The number of seconds until the retry; 0 if it is in progress.
    public let wait: Double
    /// The failure of the last attempt.
    public let failure: Failure?

    /// The failure after a colon; empty if it isn’t known.
    package var reason: String {
        guard let message = failure?.message, !message.isEmpty else { return "" }
        return ": \(message)"
    }
}

/// A sleep timer, by the condition on which it pauses the player.
public enum SleepTimerState: Sendable, Hashable {
    /// Pauses after this number of seconds.
    case time(remaining: Double)
    /// Pauses when this number of episodes have ended, including the loaded one.
    case episodes(Int)
    /// Pauses at the end of the chapter.
    case endOfChapter
}
