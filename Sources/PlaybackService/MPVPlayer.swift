import BusKit
import CMPV
import LibC
import PodcastModel

/// Translates between the engine’s commands and events and libmpv’s, on the engine’s thread.
final class MPVPlayer {
    /// The file that was requested last.
    struct Current {
        var load: EngineLoad
        /// libmpv’s number for the file, once libmpv has accepted the command.
        var entry: Int64?
        /// Whether libmpv is not told to open the file yet, because it must close another one first.
        var isHeldBack = false
        var loaded = false
        var wantsPause: Bool
        var log = MPVLogReader()
        /// The length when the file was opened; nil if it was unknown, so later lengths are partial.
        var firstDuration: Double?
        var duration: Double?
        var reportedDuration: MeasuredDuration?
        var idle = true
        var seeking = false
        var buffering = false
        var paused = false
        var atEnd = false
        var isEndReported = false
        /// The output was reopened in the last moment of the file, which was lost.
        var isLastMomentLost = false
        var standstill = StandstillWatch()
        /// The reason and error with which libmpv closed the file.
        var closed: (reason: mpv_end_file_reason, error: Int32)?
        /// The last seek that was requested, and the last ones that libmpv has accepted and completed.
        var seekRequested: (serial: UInt64, position: PlaybackPosition)?
        var seekAccepted: UInt64 = 0
        var seekDone: UInt64 = 0
        /// A backward seek did not reach its position.
        var isMisplaced = false
        /// The position of a seek or of the start, while playback is paused there.
        var rest: PlaybackPosition?
        /// Whether silence is being played fast.
        var isSilent = false
        var speeds: SpeedTimeline

        var isHeard: Bool { loaded && !idle && !seeking && !wantsPause }

        /// Whether silence may change the speed, or a speed change isn’t heard yet.
        var needsSpeedChecks: Bool { load.sound.trimSilence || speeds.hasChanges }

        var isSeekPending: Bool { seekRequested.map { $0.serial > seekDone } ?? false }

        /// Whether log lines about failed seeks may still follow.
        var mayLogFailedSeeks: Bool {
            closed == nil && log.isLinear && (seekRequested != nil || log.cannotGoBack)
        }
    }

    /// A file to open in advance. libmpv would start this file by itself if the current one failed, so it receives this
    /// file only when the current one is open, and is stopped when that is closed.
    struct Next {
        let load: EngineLoad
        /// Whether libmpv has the file in its list, after the file that is open.
        var isListed = false
        /// libmpv’s number for the file, once libmpv has accepted the command.
        var entry: Int64?
        /// The log lines since it was listed, which may be about this file.
        var log = MPVLogReader()
    }

    /// The properties of libmpv that are observed.
    enum Watched: String, CaseIterable {
        case idle = "core-idle"
        case seeking
        case buffering = "paused-for-cache"
        case paused = "pause"
        case atEnd = "eof-reached"
        case duration
        case driver = "current-ao"

        var format: mpv_format {
            switch self {
            case .duration: MPV_FORMAT_DOUBLE
            case .driver: MPV_FORMAT_STRING
            default: MPV_FORMAT_FLAG
            }
        }
    }

    /// The flags in the reply numbers of `loadfile`, of `loadfile` in advance, and of `ping`, above every serial number
    /// of a seek.
    static let opening: UInt64 = 1 << 63
    static let preparing: UInt64 = 1 << 62
    static let asking: UInt64 = 1 << 61

    /// More than an output buffers, in seconds; a seek that misses its position by more has failed.
    static let bufferedAhead = 0.5

    let core: MPVCore
    let usesNullOutput: Bool
    let observer: EngineObserver
    var current: Current?
    var next: Next?
    /// libmpv’s number for a file that must be closed before another one is opened. Log lines don’t tell which file they
    /// are about, so a failed seek in this file would count for the other one, which would restart from the beginning.
    var closing: Int64?
    var opens: UInt64 = 0
    /// No file has been opened yet.
    private(set) var isUnused = true
    var prepares: UInt64 = 0
    var outputs = MPVOutputs()
    var filters = ""
    /// Measures the levels for detecting silence; it is created when silence is first trimmed.
    var levels: LevelReader?
    var silences = SilenceDetector()
    /// The estimated time until sound that is generated now is heard, in seconds.
    var outputDelay = 0.2

    let listed: @Sendable ([OutputDevice]) -> Void

    init(
        core: MPVCore, usesNullOutput: Bool, observer: @escaping EngineObserver,
        listed: @escaping @Sendable ([OutputDevice]) -> Void
    ) {
        self.listed = listed
        self.core = core
        self.usesNullOutput = usesNullOutput
        self.observer = observer
        for watched in Watched.allCases {
            core.observe(watched.rawValue, as: watched.format)
        }
    }

    func perform(_ command: EngineCommand) {
        switch command {
        case .open(let load): open(load)
        case .setPaused(let paused): setPaused(paused)
        case .seek(let position, let serial): seek(to: position, serial: serial)
        case .setSpeed(let speed): setSpeed(speed)
        case .setSound(let sound): setSound(sound)
        case .prepare(let load): prepare(load)
        case .setVolume(let volume): core.set("volume", volume.percent)
        case .setOutput(let device): choose(device)
        case .sample: reportProgress()
        case .reloadOutput: reloadOutput()
        case .listOutputs: listDevices()
        // libmpv carries out its commands in order, so the reply follows all earlier ones.
        case .ping(let number): core.command(["ignore"], reply: Self.asking | number)
        case .unload:
            guard current != nil else { return }
            leaveCurrent()
            // `stop` would close the prepared file, too.
            if next?.isListed == true { core.set("pause", true) } else { dropAll() }
        }
    }

    /// Waits for an event or a wake-up, then handles all events that are queued.
    func handleEvents() {
        var event = core.wait(seconds: nextSpeedCheck ?? (isListing ? 0.5 : -1))
        while event.event_id != MPV_EVENT_NONE {
            handle(event)
            event = core.wait(seconds: 0)
        }
        openHeldBack()
        checkSpeed()
        goBack()
        closeFile()
        reportEnd()
        endListing()
    }

    // MARK: Commands

    /// Reopens a stream that can only be read forwards, after a seek back.
    ///
    /// A start position that needs a seek back is in the part that was read to open the stream; reopening would have
    /// the same result, so the stream plays from the beginning, some seconds earlier.
    private func goBack() {
        guard let now = current, now.log.cannotGoBack || now.isMisplaced else { return }
        var load = reopening(now)
        if let asked = now.seekRequested {
            load.start = asked.position
        } else {
            guard now.log.cannotGoBack, now.load.start.seconds > 0 else { return }
            load.start = .zero
        }
        let following = next?.load
        next = nil
        open(load)
        prepare(following)
    }

    private func reopening(_ now: Current) -> EngineLoad {
        var load = now.load
        load.start = (now.isSeekPending ? now.seekRequested?.position : nil) ?? presentPosition ?? load.start
        load.serial = now.seekRequested?.serial ?? load.serial
        load.paused = now.wantsPause
        load.volume = Volume(percent: core.number("volume") ?? 100) ?? load.volume
        load.output = outputs.chosen
        return load
    }

    private func open(_ load: EngineLoad) {
        isUnused = false
        leaveCurrent()
        if case .file(let path) = load.source, let failure = Self.obstacle(at: path) {
            dropAll()
            observer(.failed(load.id, failure))
            return
        }
        opens += 1
        silences.reset()
        _ = levels?.newItems()
        current = Current(load: load, wantsPause: load.paused, speeds: SpeedTimeline(load.speed))
        current?.seekAccepted = load.serial
        current?.seekDone = load.serial
        prepareOutput(load.output)
        core.set("pause", load.paused)
        core.set("speed", load.speed.factor)
        core.set("volume", load.volume.percent)
        // In a stream that can only be read forwards a seek to the beginning fails.
        core.set("start", load.start.seconds > 0 ? "+\(load.start.seconds)" : "none")
        core.seekQuickly(in: load.source)
        filter(for: load.sound)
        if closing != nil {
            current?.isHeldBack = true
            dropAll()
        } else if let next, next.load.id == load.id, next.load.source == load.source, let entry = next.entry,
            isWaiting(next)
        {
            current?.entry = entry
            current?.log = next.log
            core.command(["playlist-next", "force"])
        } else {
            loadCurrent()
        }
        next = nil
    }

    private func loadCurrent() {
        guard let now = current else { return }
        core.command(["loadfile", now.load.target, "replace"], reply: Self.opening | opens)
    }

    /// Opens a file that was held back, after the last log line about the file that had to be closed.
    private func openHeldBack() {
        guard closing == nil, current?.isHeldBack == true else { return }
        current?.isHeldBack = false
        loadCurrent()
    }

    private func leaveCurrent() {
        if let now = current, now.mayLogFailedSeeks { closing = now.entry }
        current = nil
    }

    func dropAll() {
        next = nil
        core.command(["stop"])
    }

    /// Whether libmpv has not started the prepared file yet, which is the last of its list.
    private func isWaiting(_ next: Next) -> Bool {
        guard next.isListed, let index = core.number("playlist-pos"), let count = core.number("playlist-count") else {
            return false
        }
        return index >= 0 && index == count - 2
    }

    /// The reason why there is no file to open at `path`; libmpv would open a folder as a playlist.
    static func obstacle(at path: String) -> Failure? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            let reason = errno
            return reason == ENOENT || reason == ENOTDIR
                ? Failure(.fileMissing, "The file \(path) doesn’t exist.")
                : Failure(.streamFailed, "The file \(path) can’t be read: \(SystemError.reason(reason)).")
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            return Failure(.decoderFailed, "\(path) isn’t a regular file.")
        }
        guard access(path, R_OK) == 0 else {
            return Failure(.streamFailed, "The file \(path) can’t be read: \(SystemError.reason()).")
        }
        return nil
    }

    private func setPaused(_ paused: Bool) {
        guard current != nil else { return }
        current?.wantsPause = paused
        if !paused { current?.rest = nil }
        current?.isEndReported = false
        core.set("pause", paused)
    }

    func seek(to position: PlaybackPosition, serial: UInt64) {
        guard let now = current else { return }
        current?.isSilent = false
        playAtOnce(at: now.load.speed)
        current?.seekRequested = (serial, position)
        current?.isEndReported = false
        current?.isLastMomentLost = false
        current?.standstill = StandstillWatch()
        guard now.loaded else { return }
        core.command(["seek", "\(position.seconds)", "absolute+exact"], reply: serial)
        // At the end of its file libmpv has paused by itself.
        current?.atEnd = false
        if !now.wantsPause { core.set("pause", false) }
    }
}
