package import BusKit
package import OwnerKit
package import PodcastModel
package import WireMessages

/// What a process knows about itself, by which it tells a crash from an orderly end and a living fleet from a new one.
package struct PlaybackContext: Sendable, Hashable {
    /// The boot, as in `/proc/sys/kernel/random/boot_id`.
    package var bootID: String
    /// The supervisor's life; empty: there is no supervisor, and nothing ever plays on by itself.
    package var fleetRun: String
    /// How long it waits for what.
    package var limits: PlaybackLimits

    /// A process's surroundings.
    package init(bootID: String, fleetRun: String, limits: PlaybackLimits = PlaybackLimits()) {
        self.bootID = bootID
        self.fleetRun = fleetRun
        self.limits = limits
    }
}

/// How long the player waits for a stream and for a sound device.
package struct PlaybackLimits: Sendable, Hashable {
    /// Before each new try of a stream that failed; after so many it has failed for good.
    package var reconnect = Backoff.steps([.seconds(2), .seconds(5), .seconds(10)], repeatsLast: false)
    /// From the order to open a stream to its first data.
    package var opening: Duration = .seconds(60)
    /// Without any data coming while it waits for some.
    package var stall: Duration = .seconds(20)
    /// Between the questions to the server of a stream that has failed. No steps: none is asked.
    package var comeback = Backoff.steps(
        [.seconds(30), .seconds(60), .seconds(120), .seconds(300)], repeatsLast: true)
    /// After so long a server's return does not make it play on.
    package var comebackWindow: Duration = .seconds(1_800)
    /// For a server's answer to the question why its stream fails.
    package var probe: Duration = .seconds(15)
    /// From a sound device's return to its use: sound systems announce devices before they can be opened.
    package var deviceSettling: Duration = .milliseconds(800)
    /// From there until it must be heard.
    package var deviceCheck: Duration = .milliseconds(1_500)
    /// Before each opening of the output while playback is paused by the loss of its device.
    package var deviceReloads = Backoff.steps(
        [.seconds(1), .seconds(2), .seconds(3), .seconds(5)], repeatsLast: true)
    /// The same while it plays without sound.
    package var silentReloads = Backoff.steps(
        [.seconds(2), .seconds(5), .seconds(10), .seconds(30)], repeatsLast: true)
    /// After so long a lost device's return does not make it play on.
    package var deviceWait: Duration = .seconds(60)

    /// The usual limits.
    package init() {}
}

/// What the shell tells the player.
package enum PlaybackInput: Sendable, Hashable {
    /// The engine reports.
    case engine(EngineEvent)
    /// Whether the file of a load is there, as `examine` asked.
    case examined(LoadID, isThere: Bool)
    /// What the server of a load's stream says, as `probe` asked with this number.
    case probed(LoadID, serial: UInt64, ProbeAnswer)
    /// The machine is about to sleep, and waits for `allowSuspend`.
    case suspends
    /// The machine has woken.
    case wakes
}

/// What only the shell can do for the player.
package enum PlaybackAction: Sendable, Hashable {
    /// Tell the engine.
    case engine(EngineCommand)
    /// See whether a file is there, and report `examined`.
    case examine(LoadID, path: String)
    /// Ask a web server which audio it has at an address, and report `probed` with the same number.
    case probe(LoadID, url: String, podcast: String, serial: UInt64)
    /// Let the machine sleep: what had to be saved is.
    case allowSuspend
    /// End the process at once, for this reason, without waiting for the engine.
    case endProcess(Failure)
}

/// The player's decisions: what is loaded, how it stands, what is stored, published and answered.
///
/// What the engine does is a fact: it is published at once, and stays when it cannot be saved; the command is then
/// answered `notSaved`, and what is unsaved is tried again. See `protocols/playback.md`.
package struct PlaybackMachine: OwnerMachine {
    /// The engine's and the shell's reports.
    package typealias Input = PlaybackInput
    /// Commands to the engine and the shell.
    package typealias Action = PlaybackAction
    typealias Effect = OwnerEffect<PlaybackAction>

    package static let owner = ServiceName.playback
    /// Podcasts, with which what was set and noted for them is forgotten.
    package static let observes = ["stream/feeds/podcast/"]

    /// A session older than this is asked about, in milliseconds.
    static let sessionAge: Int64 = 24 * 3_600 * 1_000

    let context: PlaybackContext
    var now: Moment { pending.now }
    var session: PlaybackSession?
    /// What is set for podcasts and for all of them.
    var settings = OwnerSettings(.playback)
    /// What is in force of it.
    var speed = PlaybackSpeed.normal
    var sound = WireSoundState()
    var volume = Volume.full
    var output: SoundOutput
    var episodeStates = EpisodeStates()
    var bookmarks = BookmarkStore()
    var chapters = ChapterTracker()
    /// Podcasts that something is kept for, and of which the library is being asked whether they are there.
    var doubtful: Set<String> = []
    var sleepTimer = SleepTimerMachine()
    var pending = PendingEffects()
    var timers = PlaybackTimers()
    var revision: UInt64 = 0
    /// The machine waits to sleep.
    var isSuspending = false
    var next = NextEpisode()
    /// Seeks whose answers wait for what the engine reports.
    var heldSeeks: [HeldSeek] = []
    /// Whether the engine carries out what it is told.
    var liveness = EngineLiveness()
    /// The engine hangs, and the process ends.
    var hang: EngineHang?
    /// A player with nothing loaded.
    package init(context: PlaybackContext) {
        self.context = context
        output = SoundOutput(limits: context.limits)
    }

    package mutating func handle(_ event: OwnerEvent<PlaybackInput>, now: Moment) -> [OwnerEffect<PlaybackAction>] {
        pending.begin(now: now)
        switch event {
        case .command(let command): take(command)
        case .committed(let id): handleCommitted(id)
        case .refused(let id, let failure): handleRefused(id, failure)
        case .answered(let call, let result): handleAnswer(call, result)
        case .timer(let name): handleTimer(name)
        case .input(.engine(let event)): if !pending.isStopping, hang == nil { handle(event) }
        case .input(.examined(let load, let isThere)): handleExamined(load, isThere: isThere)
        case .input(.probed(let load, let serial, let answer)): 
            if !pending.isStopping, session?.loadID == load { session?.probed(serial, answer, &pending) }
        case .input(.suspends): suspend()
        case .input(.wakes):
            isSuspending = false
            session?.woke(&pending)
        case .observed(let event): observe(event)
        case .databaseReplaced, .podcastForgotten: break
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

    /// What is so now, and shown on the stream, but for an end that is not durable yet.
    package var state: WirePlaybackState {
        var state = WirePlaybackState()
        state.status = .idle
        if let session {
            session.fill(&state)
            state.chapters = chapters.chapters
            state.chapter = UInt32(chapters.number)
        }
        state.speed = speed.factor
        state.sound = sound
        if sleepTimer.phase != .over, let sleep = sleepTimer.wire(bootID: context.bootID) { state.sleep = sleep }
        state.volume = volume.percent
        state.output = output.inUse
        state.nullOutput = output.isSilent ?? false
        state.revision = revision
        return state
    }

    /// The process will end.
    private mutating func stop() {
        pending.isStopping = true
        session?.processStops(&pending)
    }
}
