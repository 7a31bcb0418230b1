import BusKit
import CMPV
import PodcastModel

// What libmpv says, and what the machine is told of it.

extension MPVPlayer {
    func handle(_ event: mpv_event) {
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
            if let entry = Self.entry(in: event) { current?.entry = entry }
        } else if event.reply_userdata == Self.preparing | prepares {
            if let entry = Self.entry(in: event) { next?.entry = entry }
        } else if event.reply_userdata >= Self.asking, event.reply_userdata < Self.preparing {
            observer(.pong(event.reply_userdata - Self.asking))
        } else if let asked = current?.seekAsked, event.reply_userdata == asked.serial {
            current?.seekTaken = asked.serial
            guard event.error < 0 else { return }
            // It cannot seek: it stays where it is, and says where that is.
            current?.seekDone = asked.serial
            reportProgress()
            refreshAtEnd()
        }
    }

    /// libmpv's number for the file of a `loadfile` that it replies to; nil: it has not taken it.
    private static func entry(in event: mpv_event) -> Int64? {
        guard let reply = event.data?.assumingMemoryBound(to: mpv_event_command.self).pointee,
            case .map(let map) = MPVValue(reply.result)
        else { return nil }
        return map["playlist_entry_id"]?.number.map { Int64($0) }
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
        if outputs.driver != nil { reportOutputs() }
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
        // The position that was sought is reported before an end there.
        reportProgress()
        refreshAtEnd()
    }

    /// Whether a seek has led to a later position than was wanted, as in a stream that can only be read onwards.
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
        case .atEnd: handleAtEnd(flag, isKnown: data != nil)
        case .duration: handleDuration(data.map { $0.load(as: Double.self) })
        case .driver:
            driverChanged(data?.load(as: UnsafePointer<CChar>?.self).map { String(cString: $0) })
        }
    }

    private func change(_ field: WritableKeyPath<Current, Bool>, to value: Bool) {
        guard var now = current, now[keyPath: field] != value else { return }
        now[keyPath: field] = value
        current = now
        // The last half second is still being heard when the library calls itself idle at the end.
        if now.loaded && !now.atEnd { reportProgress() }
    }

    /// libmpv has decoded all, or there is more to hear. Without a seek there is more only for libmpv: an output that is
    /// opened anew while it plays the last moment loses it, and libmpv waits for it for ever.
    private func handleAtEnd(_ atEnd: Bool, isKnown: Bool) {
        guard let now = current else { return }
        // Properties of the previous file, or from before a seek, are stale.
        guard !atEnd || now.loaded && !now.isSeekPending else { return }
        current?.atEnd = atEnd
        if now.atEnd, !atEnd, isKnown, now.closed == nil { current?.isLastMomentLost = true }
    }

    /// A property that had its value before a seek isn’t reported as a change.
    private func refreshAtEnd() {
        guard let now = current, now.loaded, !now.isSeekPending else { return }
        current?.atEnd = core.flag(Watched.atEnd.name) ?? now.atEnd
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

    func closeFile() {
        guard let now = current, let (reason, error) = now.closed else { return }
        current = nil
        // Else libmpv would play it now.
        if next != nil { dropAll() }
        let source = now.load.source
        switch error {
        case MPV_ERROR_UNKNOWN_FORMAT.rawValue, MPV_ERROR_NOTHING_TO_PLAY.rawValue:
            let what = if case .web = source { "What \(source.host) sent" } else { "\(source)" }
            observer(.failed(now.load.id, Failure(.decoderFailed, "\(what) holds no audio that can be played.")))
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

    func reportProgress() {
        guard let now = current, now.loaded else { return }
        let pending = now.isSeekPending ? now.seekAsked?.position : nil
        let heard = heard
        guard let position = pending ?? heard.map({ place(hearing: $0.position) }) else { return }
        let progress = EngineProgress(
            position: position, at: SystemClocks.monotonic(),
            running: pending == nil && !now.idle && !now.seeking && !now.wantsPause,
            buffering: !now.wantsPause && (now.buffering || now.seeking), serial: now.seekDone,
            cached: core.number("demuxer-cache-time") ?? 0, speed: heard?.speed ?? now.speeds.speed)
        watchEnd(now, progress)
        if !now.atEnd { observer(.progress(now.load.id, progress)) }
    }

    /// Whatever keeps libmpv from saying so: audio that stands still where all that there is has been played is at its end.
    private func watchEnd(_ now: Current, _ progress: EngineProgress) {
        let shouldSound = progress.running || now.atEnd && !now.wantsPause && !now.isSeekPending
        let standsStill = current?.standstill.standsStill(
            at: progress.position, isRunning: shouldSound, now: progress.at)
        guard standsStill == true else { return }
        // The output has been given some tenths of a second, which may be gone.
        let reach = 1 + Self.takenInAdvance * now.speeds.speed.factor
        let isStream = if case .web = now.load.source { true } else { false }
        let ends = [now.duration, isStream ? progress.cached : nil].compactMap { $0 }
        if now.atEnd || ends.contains(where: { $0 > 0 && progress.position.seconds >= $0 - reach }) {
            current?.isLastMomentLost = true
        }
    }

    /// Where libmpv says it is. Its `time-pos` is some tenths of a second old while it plays: it is brought up to date when
    /// the output wants more. `audio-pts` is reckoned at the moment.
    var shown: Double? {
        (current?.isHeard == true ? core.number("audio-pts") : nil) ?? core.number("time-pos")
    }

    /// Where it is. libmpv takes what its output has been given in advance off the position, and so is some tenths of a
    /// second before the position that it has been put at exactly; a key held down would add them up.
    var place: PlaybackPosition? { heard.map { place(hearing: $0.position) } }

    private func place(hearing seconds: Double) -> PlaybackPosition {
        if let rest = current?.rest, abs(seconds - rest.seconds) < Self.takenInAdvance { return rest }
        return PlaybackPosition(clamping: seconds)
    }

    /// The end has been heard once libmpv pauses by itself, some tenths of a second after it has decoded all.
    func reportEnd() {
        guard let now = current, now.loaded, now.atEnd && now.paused || now.isLastMomentLost, !now.wantsPause,
            !now.endTold, !now.isSeekPending
        else { return }
        current?.endTold = true
        let position = core.number("time-pos") ?? now.duration ?? 0
        let end = EndOfFile(
            position: PlaybackPosition(clamping: position), measured: measured,
            cut: isCut(log: now.log),
            hasSize: core.number("stream-end").map { $0 > 0 } ?? false)
        observer(.ended(now.load.id, end))
    }

    /// Whether the audio ended before the bytes of its source did. Where that is not in the log, more is left than tags
    /// behind the audio, or tables, may take.
    private func isCut(log: MPVLogReader) -> Bool {
        guard let end = core.number("stream-end"), let position = core.number("stream-pos"), end > 0 else {
            return log.cut
        }
        return position < end - max(65_536, end / (log.cut ? 100 : 10))
    }
}
