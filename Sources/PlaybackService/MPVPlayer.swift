import BusKit
import CMPV
import LibC
import PodcastModel

/// Translates between the engine's commands and events and libmpv's. Lives on the engine's thread.
final class MPVPlayer {
    /// The file that was asked for last.
    struct Current {
        var load: EngineLoad
        /// libmpv's number for it, once it has taken the command.
        var entry: Int64?
        var loaded = false
        var wantsPause: Bool
        var log = MPVLogReader()
        /// The length at the moment that it was open; nil: unknown then, so a later one only grows.
        var firstDuration: Double?
        var duration: Double?
        var told: MeasuredDuration?
        var idle = true
        var seeking = false
        var buffering = false
        var paused = false
        var atEnd = false
        var endTold = false
        /// The output was opened anew while it played the last moment, which is gone with it.
        var isLastMomentLost = false
        var standstill = StandstillWatch()
        /// libmpv has closed it, with this reason and error.
        var closed: (reason: mpv_end_file_reason, error: Int32)?
        /// The seek that was asked for last, and how far it has come.
        var seekAsked: (serial: UInt64, position: PlaybackPosition)?
        var seekTaken: UInt64 = 0
        var seekDone: UInt64 = 0
        /// A seek back has not led there.
        var isMisplaced = false
        /// Where a seek or the start has put it while paused, and where it still is.
        var rest: PlaybackPosition?
        /// The part that plays fast now is silence.
        var isSilent = false
        /// How fast it has been told to play, and how that comes to be heard.
        var speeds: SpeedTimeline

        /// Whether sound goes out.
        var isHeard: Bool { loaded && !idle && !seeking && !wantsPause }

        /// Whether its speed changes by itself, or a change of it is on its way to the ear.
        var needsSpeedChecks: Bool { load.sound.trimSilence || speeds.hasChanges }

        /// Whether a seek that was asked for has not led there yet.
        var isSeekPending: Bool { seekAsked.map { $0.serial > seekDone } ?? false }
    }

    /// A file that is to be opened in advance. libmpv goes over to it by itself when the one before it fails, which must
    /// not be heard: it gets it when that is open, and is stopped when that is closed.
    struct Next {
        let load: EngineLoad
        /// libmpv has it in its list, behind the file that is open.
        var isListed = false
        /// libmpv's number for it, once it has taken the command.
        var entry: Int64?
        /// The log lines since then, which may be about this file.
        var log = MPVLogReader()
    }

    enum Watched: UInt64, CaseIterable {
        case idle = 1, seeking, buffering, paused, atEnd, duration, driver

        var name: String {
            switch self {
            case .idle: "core-idle"
            case .seeking: "seeking"
            case .buffering: "paused-for-cache"
            case .paused: "pause"
            case .atEnd: "eof-reached"
            case .duration: "duration"
            case .driver: "current-ao"
            }
        }

        var format: mpv_format {
            switch self {
            case .duration: MPV_FORMAT_DOUBLE
            case .driver: MPV_FORMAT_STRING
            default: MPV_FORMAT_FLAG
            }
        }
    }

    /// Above every serial of a seek: marks the reply to a `loadfile`.
    static let opening: UInt64 = 1 << 63
    /// The same for a file that is to be opened in advance.
    static let preparing: UInt64 = 1 << 62
    /// The same for the command whose reply is a `pong`.
    static let asking: UInt64 = 1 << 61

    /// More, in seconds, than an output takes in advance: beyond that a seek has led elsewhere than it was asked to.
    static let takenInAdvance = 0.5

    let core: MPVCore
    let silenceIsWanted: Bool
    let observer: EngineObserver
    var current: Current?
    var next: Next?
    var opens: UInt64 = 0
    /// Nothing has been asked to be opened.
    private(set) var isUnused = true
    var prepares: UInt64 = 0
    var outputs = MPVOutputs()
    var filters = ""
    /// What silence is found by, from the first sound on that is to be without it.
    var levels: LevelReader?
    var silences = SilenceDetector()
    /// How long what is made now takes to be heard, in seconds, as far as is known.
    var outputDelay = 0.2

    /// Takes the devices that there are.
    let listed: @Sendable ([OutputDevice]) -> Void

    init(
        core: MPVCore, silenceIsWanted: Bool, observer: @escaping EngineObserver,
        listed: @escaping @Sendable ([OutputDevice]) -> Void
    ) {
        self.listed = listed
        self.core = core
        self.silenceIsWanted = silenceIsWanted
        self.observer = observer
        for watched in Watched.allCases {
            core.observe(watched.name, as: watched.format, reply: watched.rawValue)
        }
    }

    /// Carries out a command.
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
        // libmpv carries out what it is told in turn.
        case .ping(let number): core.command(["ignore"], reply: Self.asking | number)
        case .unload:
            guard current != nil else { return }
            current = nil
            // What is prepared would be closed too.
            if next?.isListed == true { core.set("pause", true) } else { dropAll() }
        }
    }

    /// Waits for an event or a wake-up, then handles all that there are.
    func handleEvents() {
        var event = core.wait(seconds: nextSpeedCheck ?? (isListing ? 0.5 : -1))
        while event.event_id != MPV_EVENT_NONE {
            handle(event)
            event = core.wait(seconds: 0)
        }
        checkSpeed()
        goBack()
        closeFile()
        reportEnd()
        endListing()
    }

    // MARK: Commands

    /// The stream can only be read onwards, and a seek led back: it is read from its beginning again.
    ///
    /// A start that led back is in what opening the stream has read already, so that another opening has the same end: it is
    /// heard from the beginning, some seconds before.
    private func goBack() {
        guard let now = current, now.log.cannotGoBack || now.isMisplaced else { return }
        var load = reopening(now)
        if let asked = now.seekAsked {
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

    /// What opens a file again as it is now.
    private func reopening(_ now: Current) -> EngineLoad {
        var load = now.load
        load.start = now.seekAsked.flatMap { $0.serial > now.seekDone ? $0.position : nil } ?? place ?? load.start
        load.serial = now.seekAsked?.serial ?? load.serial
        load.paused = now.wantsPause
        load.volume = Volume(percent: core.number("volume") ?? 100) ?? load.volume
        load.output = outputs.chosen
        return load
    }

    private func open(_ load: EngineLoad) {
        isUnused = false
        current = nil
        if case .file(let path) = load.source, let failure = Self.obstacle(at: path) {
            dropAll()
            observer(.failed(load.id, failure))
            return
        }
        opens += 1
        silences.reset()
        _ = levels?.read()
        current = Current(load: load, wantsPause: load.paused, speeds: SpeedTimeline(load.speed))
        current?.seekTaken = load.serial
        current?.seekDone = load.serial
        prepareOutput(load.output)
        core.set("pause", load.paused)
        core.set("speed", load.speed.factor)
        core.set("volume", load.volume.percent)
        // A seek to the beginning leads elsewhere in a stream that can only be read onwards.
        core.set("start", load.start.seconds > 0 ? "+\(load.start.seconds)" : "none")
        core.seekQuickly(in: load.source)
        filter(for: load.sound)
        if let next, next.load.id == load.id, next.load.source == load.source, let entry = next.entry, isWaiting(next) {
            current?.entry = entry
            current?.log = next.log
            core.command(["playlist-next", "force"])
        } else {
            core.command(["loadfile", load.target, "replace"], reply: Self.opening | opens)
        }
        next = nil
    }

    /// Closes the file and what is prepared behind it.
    func dropAll() {
        next = nil
        core.command(["stop"])
    }

    /// Whether libmpv still stands before the prepared file, which is the last of its list.
    private func isWaiting(_ next: Next) -> Bool {
        guard next.isListed, let place = core.number("playlist-pos"), let count = core.number("playlist-count") else {
            return false
        }
        return place >= 0 && place == count - 2
    }

    /// Why there is no file to open at `path`; libmpv would take a folder for a playlist.
    static func obstacle(at path: String) -> Failure? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            let reason = errno
            return reason == ENOENT || reason == ENOTDIR
                ? Failure(.fileMissing, "The file \(path) is not there.")
                : Failure(.streamFailed, "The file \(path) cannot be read: \(String(cString: strerror(reason))).")
        }
        guard status.st_mode & S_IFMT == S_IFREG else { return Failure(.decoderFailed, "\(path) is not a file.") }
        guard access(path, R_OK) == 0 else {
            return Failure(.streamFailed, "The file \(path) cannot be read: \(String(cString: strerror(errno))).")
        }
        return nil
    }

    private func setPaused(_ paused: Bool) {
        guard current != nil else { return }
        current?.wantsPause = paused
        if !paused { current?.rest = nil }
        current?.endTold = false
        core.set("pause", paused)
    }

    func seek(to position: PlaybackPosition, serial: UInt64) {
        guard let now = current else { return }
        current?.isSilent = false
        playAtOnce(at: now.load.speed)
        current?.seekAsked = (serial, position)
        current?.endTold = false
        current?.isLastMomentLost = false
        current?.standstill = StandstillWatch()
        guard now.loaded else { return }
        core.command(["seek", "\(position.seconds)", "absolute+exact"], reply: serial)
        // At the end of its file libmpv has paused by itself.
        current?.atEnd = false
        if !now.wantsPause { core.set("pause", false) }
    }
}
