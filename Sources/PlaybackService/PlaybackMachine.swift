package import BusKit
package import OwnerKit
package import PodcastModel
package import WireMessages

/// The identity of the boot and of the fleet, by which a process distinguishes a crash from an orderly exit.
package struct PlaybackContext: Sendable, Hashable {
    package var bootID: String
    /// The supervisor’s run; empty if there is no supervisor, and playback doesn’t resume by itself.
    package var fleetRun: String
    /// The name of the computer, which play sessions contain; empty if unknown.
    package var device: String
    package var limits: PlaybackLimits

    package init(bootID: String, fleetRun: String, device: String = "", limits: PlaybackLimits = PlaybackLimits()) {
        self.bootID = bootID
        self.fleetRun = fleetRun
        self.device = device
        self.limits = limits
    }
}

/// The time limits for streams and sound devices.
package struct PlaybackLimits: Sendable, Hashable {
    /// The waits before each retry of a stream; after the last retry the stream has failed.
    package var reconnectBackoff = Backoff.steps([.seconds(2), .seconds(5), .seconds(10)], repeatsLast: false)
    /// The limit from opening a stream to its first data.
    package var opening: Duration = .seconds(60)
    /// The limit for a stream that waits for data and gets none.
    package var stall: Duration = .seconds(20)
    /// The waits between probes of the server of a failed stream; empty if it isn’t probed.
    package var serverProbeBackoff = Backoff.steps(
        [.seconds(30), .seconds(60), .seconds(120), .seconds(300)], repeatsLast: true)
    /// The time after which the return of a server no longer resumes playback.
    package var serverReturnWindow: Duration = .seconds(1_800)
    /// The limit for a server’s answer to a probe.
    package var probe: Duration = .seconds(15)
    /// The wait until a new sound device is used: sound systems announce devices before they can be opened.
    package var deviceSettling: Duration = .milliseconds(800)
    /// The time within which the position must advance after playback resumes on a device.
    package var deviceCheck: Duration = .milliseconds(1_500)
    /// The waits before each opening of the output while playback is paused by the loss of its device.
    package var deviceReloadBackoff = Backoff.steps(
        [.seconds(1), .seconds(2), .seconds(3), .seconds(5)], repeatsLast: true)
    /// The waits before each opening of the output during silent playback.
    package var silentReloadBackoff = Backoff.steps(
        [.seconds(2), .seconds(5), .seconds(10), .seconds(30)], repeatsLast: true)
    /// The time after which the return of a lost device no longer resumes playback.
    package var deviceWait: Duration = .seconds(60)

    package init() {}

    /// The sentence in a published failure and its alert while the server is probed.
    var autoResumeNotice: String {
        " Playback resumes by itself if the server is available again within \(returnMinutes) min."
    }

    /// The notice in alerts that earlier versions stored.
    var earlierAutoResumeNotice: String {
        " It plays on by itself if its server is back within \(returnMinutes) min."
    }

    private var returnMinutes: Int { Int(serverReturnWindow / .seconds(60)) }
}

/// A report from the shell to the player.
package enum PlaybackInput: Sendable, Hashable {
    case engine(EngineEvent)
    /// Whether the file of a load exists.
    case examined(LoadID, isThere: Bool)
    /// The answer of a load’s server to the probe with this number.
    case probed(LoadID, serial: UInt64, ProbeAnswer)
    /// The computer is about to sleep and waits for `allowSuspend`.
    case suspends
    /// The computer has woken.
    case wakes
}

/// An action that only the shell can perform for the player.
package enum PlaybackAction: Sendable, Hashable {
    case engine(EngineCommand)
    /// Check whether a file exists, and report `examined`.
    case examine(LoadID, path: String)
    /// Ask a web server which audio it has, and report `probed` with the same number.
    case probe(LoadID, url: String, podcast: String, serial: UInt64)
    /// Let the computer sleep, as everything has been saved.
    case allowSuspend
    /// End the process at once without waiting for the engine.
    case endProcess(Failure)
}

/// Decides what the player loads, plays, stores, publishes and answers.
///
/// Effects on the engine are published at once and remain if they can’t be saved; the command is then answered with
/// `notSaved`, and saving is retried. See `protocols/playback.md`.
package struct PlaybackMachine: OwnerMachine {
    package typealias Input = PlaybackInput
    package typealias Action = PlaybackAction
    package typealias Query = PlaybackQuery
    package typealias Timer = PlaybackTimer
    package typealias Step = TransactionID
    typealias Item = PendingWrites.Item

    package static let owner = ServiceName.playback
    package static let followsPodcasts = true

    let context: PlaybackContext
    var now: Moment { pending.now }
    var session: PlaybackSession?
    var settings = OwnerSettings(.playback)
    var speed = PlaybackSpeed.normal
    var sound = WireSoundState()
    var volume = Volume.full
    var output: SoundOutput
    var episodeStates = EpisodeStates()
    var bookmarks = BookmarkStore()
    var marks = MarkHistory()
    var chapters = ChapterTracker()
    var sleepTimer = SleepTimerMachine()
    var pending = PendingEffects()
    var timers = PlaybackTimers()
    var revision: UInt64 = 0
    /// Whether the computer waits for `allowSuspend` before it sleeps.
    var isSuspending = false
    var prepared = PreparedEpisode()
    var heldSeeks = HeldSeeks()
    var liveness = EngineLiveness()
    var playSessions: PlaySessionRecorder

    package init(context: PlaybackContext) {
        self.context = context
        output = SoundOutput(limits: context.limits)
        playSessions = PlaySessionRecorder(device: context.device)
    }

    package mutating func handle(_ event: Event, now: Moment) -> [Effect] {
        pending.begin(now: now)
        switch event {
        case .command(let command): handle(command)
        case .committed(let id): handleCommitted(id)
        case .refused(let id, let failure): handleRefused(id, failure)
        case .answered(let query, let result): handleAnswer(query, result)
        case .timer(let timer): handleTimer(timer)
        case .input(.engine(let event)): if !pending.isStopping, !liveness.hasHung { handle(event) }
        case .input(.examined(let load, let isThere)): handleExamined(load, isThere: isThere)
        case .input(.probed(let load, let serial, let answer)):
            if !pending.isStopping, session?.loadID == load { session?.probed(serial, answer, &pending) }
        case .input(.suspends): suspend()
        case .input(.wakes):
            isSuspending = false
            playSessions.interrupt()
            session?.woke(&pending)
        case .podcastForgotten(let podcast): forget(podcast: podcast.text)
        case .observed, .databaseReplaced: break
        case .stopping: stop()
        }
        return flush()
    }

    package func retained(now: Moment) -> [Publication] {
        [
            Publication(.put, .playbackState, state.wireBytes),
            Publication(.put, .playbackOutput, output.wire.wireBytes),
        ]
            + settings.retained + bookmarks.publications
            + pending.alerts.retained
    }

    /// The current state, which the stream shows unless an end isn’t durable yet.
    package var state: WirePlaybackState {
        var state = WirePlaybackState()
        state.status = .idle
        session?.fill(&state)
        if session != nil { chapters.fill(&state) }
        state.playSession = playSessions.currentID
        state.speed = speed.factor
        state.sound = sound
        if sleepTimer.phase != .over, let sleep = sleepTimer.wire(bootID: context.bootID) { state.sleep = sleep }
        state.volume = volume.percent
        output.fill(&state)
        state.revision = revision
        return state
    }

    private mutating func stop() {
        pending.isStopping = true
        session?.processStops(&pending)
    }
}
