import BusKit
import CMPV
import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

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
        /// What is being passed over quickly is silence.
        var isSilent = false
        /// How fast it has been told to play, and how that comes to be heard.
        var pace: PlaybackSpeed
        var turn: PaceTurn?
    }

    /// A file that is to be opened in advance. libmpv goes over to it by itself when the one before it fails, which must
    /// not be heard: it gets it when that is open, and is stopped when that is closed.
    struct Next {
        let load: EngineLoad
        /// libmpv has it in its list, behind the file that is open.
        var isListed = false
        /// libmpv's number for it, once it has taken the command.
        var entry: Int64?
        /// What was logged since: it may be about this file.
        var log = MPVLogReader()
    }

    enum Watched: UInt64, CaseIterable {
        case idle = 1, seeking, buffering, paused, atEnd, duration, driver
        /// Not watched before a device is missed: it wakes every sound system.
        case devices
        /// Not watched before silence is passed over.
        case silence

        var name: String {
            switch self {
            case .idle: "core-idle"
            case .seeking: "seeking"
            case .buffering: "paused-for-cache"
            case .paused: "pause"
            case .atEnd: "eof-reached"
            case .duration: "duration"
            case .driver: "current-ao"
            case .devices: "audio-device-list"
            case .silence: "af-metadata/\(MPVFilters.silence)"
            }
        }

        var format: mpv_format {
            switch self {
            case .duration: MPV_FORMAT_DOUBLE
            case .driver: MPV_FORMAT_STRING
            case .devices: MPV_FORMAT_NONE
            case .silence: MPV_FORMAT_NODE
            default: MPV_FORMAT_FLAG
            }
        }
    }

    /// Above every serial of a seek: marks the reply to a `loadfile`.
    private static let opening: UInt64 = 1 << 63
    /// The same for a file that is to be opened in advance.
    static let preparing: UInt64 = 1 << 62

    /// More, in seconds, than an output takes in advance: beyond that a seek has led elsewhere than it was asked to.
    private static let takenInAdvance = 0.5

    let core: MPVCore
    private let silenceIsWanted: Bool
    private let observer: EngineObserver
    var current: Current?
    var next: Next?
    private var opens: UInt64 = 0
    private var output = ""
    var prepares: UInt64 = 0
    private var driver: String?
    private var outputsAreDue = false
    private var watchesDevices = false
    var watchesSilence = false
    var filters = ""

    init(core: MPVCore, silenceIsWanted: Bool, observer: @escaping EngineObserver) {
        self.core = core
        self.silenceIsWanted = silenceIsWanted
        self.observer = observer
        for watched in Watched.allCases where watched != .devices && watched != .silence {
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
        case .sample: tellProgress()
        case .reloadOutput: core.command(["ao-reload"])
        case .unload:
            guard current != nil else { return }
            current = nil
            // What is prepared would be closed too.
            if next?.isListed == true { core.set("pause", true) } else { dropAll() }
        }
    }

    /// Waits for an event or a wake-up, then handles all that there are.
    func handleEvents() {
        var event = core.wait(seconds: current?.turn == nil ? -1 : PaceTurn.look)
        while event.event_id != MPV_EVENT_NONE {
            handle(event)
            event = core.wait(seconds: 0)
        }
        endTurn()
        goBack()
        closeFile()
        tellEnd()
    }

    // MARK: Commands

    /// The stream can only be read onwards, and a seek led back: it is read from its beginning again.
    private func goBack() {
        guard let now = current, now.log.cannotGoBack || now.isMisplaced, let asked = now.seekAsked else { return }
        var load = now.load
        load.start = asked.position
        load.paused = now.wantsPause
        load.volume = Volume(percent: core.number("volume") ?? 100) ?? load.volume
        load.output = output
        let following = next?.load
        next = nil
        open(load)
        prepare(following)
        current?.seekTaken = asked.serial
        current?.seekDone = asked.serial
    }

    private func open(_ load: EngineLoad) {
        current = nil
        if case .file(let path) = load.source, let failure = Self.obstacle(at: path) {
            dropAll()
            observer(.failed(load.id, failure))
            return
        }
        opens += 1
        current = Current(load: load, wantsPause: load.paused, pace: load.speed)
        choose(load.output)
        core.set("pause", load.paused)
        core.set("speed", load.speed.factor)
        core.set("volume", load.volume.percent)
        core.set("start", "+\(load.start.seconds)")
        core.seekQuickly(in: load.source)
        filter(for: load.sound)
        if let next, next.load.id == load.id, next.load.source == load.source, let entry = next.entry, isWaiting(next) {
            current?.entry = entry
            current?.log = next.log
            core.command(["playlist-next", "force"])
        } else {
            core.command(["loadfile", load.source.description, "replace"], reply: Self.opening | opens)
        }
        next = nil
    }

    /// Closes the file and what is prepared behind it.
    private func dropAll() {
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

    private func seek(to position: PlaybackPosition, serial: UInt64) {
        guard let now = current else { return }
        setSilent(false)
        current?.turn = nil
        current?.seekAsked = (serial, position)
        guard now.loaded else { return }
        core.command(["seek", "\(position.seconds)", "absolute+exact"], reply: serial)
        // At the end of its file libmpv has paused by itself.
        current?.atEnd = false
        if !now.wantsPause { core.set("pause", false) }
    }

    private func choose(_ device: String) {
        guard device != output else { return }
        output = device
        core.set("audio-device", device.isEmpty ? "auto" : device)
    }

    // MARK: Events

    private func handle(_ event: mpv_event) {
        switch event.event_id {
        case MPV_EVENT_COMMAND_REPLY: handleReply(event)
        case MPV_EVENT_LOG_MESSAGE: handleLog(event)
        case MPV_EVENT_FILE_LOADED: handleLoaded()
        case MPV_EVENT_PLAYBACK_RESTART: handleRestart()
        case MPV_EVENT_PROPERTY_CHANGE: handleChange(event)
        case MPV_EVENT_END_FILE: handleEnd(event)
        default: break
        }
    }

    private func handleReply(_ event: mpv_event) {
        if event.reply_userdata == Self.opening | opens {
            guard let reply = event.data?.assumingMemoryBound(to: mpv_event_command.self).pointee,
                case .map(let map) = MPVValue(reply.result), let entry = map["playlist_entry_id"]?.number
            else { return }
            current?.entry = Int64(entry)
        } else if event.reply_userdata == Self.preparing | prepares {
            guard let reply = event.data?.assumingMemoryBound(to: mpv_event_command.self).pointee,
                case .map(let map) = MPVValue(reply.result), let entry = map["playlist_entry_id"]?.number
            else { return }
            next?.entry = Int64(entry)
        } else if let asked = current?.seekAsked, event.reply_userdata == asked.serial {
            current?.seekTaken = asked.serial
            guard event.error < 0 else { return }
            // It cannot seek: it stays where it is, and says where that is.
            current?.seekDone = asked.serial
            tellProgress()
        }
    }

    private func handleLog(_ event: mpv_event) {
        guard let message = event.data?.assumingMemoryBound(to: mpv_event_log_message.self).pointee else { return }
        let (prefix, text) = (String(cString: message.prefix), String(cString: message.text))
        let opensOther = next != nil && current?.loaded == true
        current?.log.read(prefix: prefix, text: text, opensOther: opensOther)
        next?.log.read(prefix: prefix, text: text)
    }

    private func handleLoaded() {
        guard var now = current, now.entry != nil else { return }
        now.loaded = true
        now.firstDuration = core.number("duration")
        now.duration = now.firstDuration
        current = now
        // The file before may have ended, and paused by that, after this one was asked for.
        core.set("pause", now.wantsPause)
        let length = measured
        current?.told = length
        let chapters = core.list("chapter-list").compactMap { item in
            item["time"]?.number.map {
                AudioChapter(start: PlaybackPosition(clamping: $0), title: item["title"]?.text ?? "")
            }
        }
        observer(.opened(now.load.id, OpenedAudio(duration: length, chapters: chapters)))
        if let asked = now.seekAsked { seek(to: asked.position, serial: asked.serial) }
        listNext()
        // Whether there is sound is known once the library has opened its output, be it the silent one.
        outputsAreDue = true
        if driver != nil { tellOutputs(listing: true) }
    }

    private func handleRestart() {
        guard let now = current, now.loaded else { return }
        guard !missed(now) else {
            current?.isMisplaced = true
            return
        }
        // One that was on its way when a seek was asked for is not that seek's.
        guard core.flag(Watched.seeking.name) != true else { return }
        current?.seekDone = now.seekTaken
        // What was so for the file before, too, is not told as a change.
        current?.idle = core.flag(Watched.idle.name) ?? now.idle
        current?.seeking = core.flag(Watched.seeking.name) ?? now.seeking
        current?.buffering = core.flag(Watched.buffering.name) ?? now.buffering
        if now.wantsPause { current?.rest = now.seekAsked?.position ?? now.load.start }
        tellProgress()
    }

    /// Whether a seek has led to a later place than was wanted, as in a stream that can only be read onwards.
    private func missed(_ now: Current) -> Bool {
        guard case .web = now.load.source, let asked = now.seekAsked, now.seekTaken == asked.serial,
            now.seekDone < asked.serial, let place = core.number("time-pos")
        else { return false }
        return place > asked.position.seconds + 2
    }

    private func handleChange(_ event: mpv_event) {
        guard let watched = Watched(rawValue: event.reply_userdata),
            let property = event.data?.assumingMemoryBound(to: mpv_event_property.self).pointee
        else { return }
        let data = property.format == MPV_FORMAT_NONE ? nil : property.data
        let flag = data.map { watched.format == MPV_FORMAT_FLAG && $0.load(as: Int32.self) != 0 } ?? false
        switch watched {
        case .idle: change(\.idle, to: data == nil || flag)
        case .seeking: change(\.seeking, to: flag)
        case .buffering: change(\.buffering, to: flag)
        case .paused: current?.paused = flag
        case .atEnd: current?.atEnd = flag
        case .duration: handleDuration(data.map { $0.load(as: Double.self) })
        case .driver:
            driver = data?.load(as: UnsafePointer<CChar>?.self).map { String(cString: $0) }
            if driver != nil { tellOutputs(listing: outputsAreDue) }
        case .devices: tellOutputs(listing: true)
        case .silence:
            guard current?.load.sound.trimSilence == true, let data else { return }
            setSilent(MPVFilters.isSilent(MPVValue(data.load(as: mpv_node.self))))
        }
    }

    private func change(_ field: WritableKeyPath<Current, Bool>, to value: Bool) {
        guard var now = current, now[keyPath: field] != value else { return }
        now[keyPath: field] = value
        current = now
        // The last half second is still being heard when the library calls itself idle at the end.
        if now.loaded && !now.atEnd { tellProgress() }
    }

    private func handleDuration(_ duration: Double?) {
        guard let now = current, now.loaded, let duration else { return }
        current?.duration = duration
        guard let measured, measured != now.told else { return }
        current?.told = measured
        observer(.measured(now.load.id, measured))
    }

    private func handleEnd(_ event: mpv_event) {
        guard let end = event.data?.assumingMemoryBound(to: mpv_event_end_file.self).pointee,
            let entry = current?.entry, entry == end.playlist_entry_id
        else { return }
        if end.reason == MPV_END_FILE_REASON_REDIRECT {
            current?.entry = end.playlist_insert_id
            return
        }
        // The log lines that say why may stand behind this event: it is judged when all events are read.
        current?.closed = (end.reason, end.error)
    }

    private func closeFile() {
        guard let now = current, let (reason, error) = now.closed else { return }
        current = nil
        // Else libmpv would play it now.
        if next != nil { dropAll() }
        let source = now.load.source
        switch error {
        case MPV_ERROR_UNKNOWN_FORMAT.rawValue, MPV_ERROR_NOTHING_TO_PLAY.rawValue:
            observer(.failed(now.load.id, Failure(.decoderFailed, "\(source) holds no audio that can be played.")))
        case MPV_ERROR_AO_INIT_FAILED.rawValue:
            observer(.failed(now.load.id, Failure(.noSoundDevice, "No sound device can be opened.")))
        default:
            guard reason != MPV_END_FILE_REASON_STOP else { return }
            observer(.failed(now.load.id, now.log.failure(opening: source)))
        }
    }

    // MARK: Telling

    private var measured: MeasuredDuration? {
        guard let now = current, let duration = EpisodeDuration(seconds: now.duration ?? 0) else { return nil }
        guard let first = now.firstDuration, duration.seconds < first + 1 else {
            return MeasuredDuration(duration, .growing)
        }
        return MeasuredDuration(duration, now.log.estimated ? .estimated : .declared)
    }

    func tellProgress() {
        guard let now = current, now.loaded, !now.atEnd else { return }
        let pending = now.seekAsked.flatMap { $0.serial > now.seekDone ? $0.position : nil }
        guard let position = pending ?? place else { return }
        observer(
            .progress(
                now.load.id,
                EngineProgress(
                    position: position, at: SystemClocks.monotonic(),
                    running: pending == nil && !now.idle && !now.seeking && !now.wantsPause,
                    buffering: !now.wantsPause && (now.buffering || now.seeking), serial: now.seekDone,
                    cached: core.number("demuxer-cache-time") ?? 0, speed: now.turn?.pace ?? now.pace)))
    }

    /// Where libmpv says it is. Its `time-pos` is some tenths of a second old while it plays: it is brought up to date when
    /// the output wants more. `audio-pts` is reckoned at the moment.
    var shown: Double? {
        let isHeard = current.map { !$0.idle && !$0.seeking && !$0.wantsPause } ?? false
        return (isHeard ? core.number("audio-pts") : nil) ?? core.number("time-pos")
    }

    /// Where it is. libmpv takes what its output has been given in advance off the position, and so is some tenths of a
    /// second before the place that it has been put at exactly; a key held down would add them up.
    var place: PlaybackPosition? {
        guard let seconds = shown else { return nil }
        if let rest = current?.rest, abs(seconds - rest.seconds) < Self.takenInAdvance { return rest }
        guard let turn = current?.turn else { return PlaybackPosition(clamping: seconds) }
        return PlaybackPosition(clamping: turn.heard(shown: seconds, at: SystemClocks.monotonic()))
    }

    /// The end has been heard once libmpv pauses by itself, some tenths of a second after it has decoded all.
    private func tellEnd() {
        guard let now = current, now.loaded, now.atEnd, now.paused, !now.wantsPause, !now.endTold,
            now.seekAsked.map({ $0.serial == now.seekDone }) ?? true
        else { return }
        current?.endTold = true
        let position = core.number("time-pos") ?? now.duration ?? 0
        let end = EndOfFile(
            position: PlaybackPosition(clamping: position), measured: measured, cut: now.log.cut && !allRead,
            hasSize: core.number("stream-end").map { $0 > 0 } ?? false)
        observer(.ended(now.load.id, end))
    }

    /// Whether the stream was read to its last byte, but for tags behind the audio.
    private var allRead: Bool {
        guard let end = core.number("stream-end"), let position = core.number("stream-pos"), end > 0 else {
            return false
        }
        return position >= end - max(65_536, end / 100)
    }

    /// Asking for the devices wakes every sound system of the machine: not where silence is wanted.
    private var listedDevices: [OutputDevice] {
        guard !silenceIsWanted else { return [OutputDevice(name: "null", description: "No sound")] }
        return core.list("audio-device-list").compactMap { item in
            item["name"]?.text.map { OutputDevice(name: $0, description: item["description"]?.text ?? $0) }
        }
    }

    private func tellOutputs(listing: Bool) {
        outputsAreDue = false
        let devices = listing ? listedDevices : nil
        let silent = driver == "null" && !silenceIsWanted
        if silent, !watchesDevices {
            watchesDevices = true
            core.observe(Watched.devices.name, as: Watched.devices.format, reply: Watched.devices.rawValue)
        }
        observer(.outputs(EngineOutputs(devices: devices, inUse: output, silent: silent)))
    }
}
