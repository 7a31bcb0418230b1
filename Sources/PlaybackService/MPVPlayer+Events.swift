import BusKit
import CMPV
import PodcastModel

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
        } else if let asked = current?.seekRequested, event.reply_userdata == asked.serial {
            current?.seekAccepted = asked.serial
            guard event.error < 0 else { return }
            // The file isn’t seekable: the position doesn’t change, and is reported.
            current?.seekDone = asked.serial
            reportProgress()
            refreshAtEnd()
        }
    }

    /// Returns libmpv’s number for the file of a `loadfile` command; nil if the command was refused.
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
        if current?.isHeldBack != true {
            current?.log.read(prefix: prefix, text: text, opensOther: opensOther)
        }
        next?.log.read(prefix: prefix, text: text)
    }

    private func handleLoaded() {
        guard var now = current, now.entry != nil else { return }
        now.loaded = true
        now.firstDuration = core.number("duration")
        now.duration = now.firstDuration
        current = now
        // The previous file may have ended meanwhile, which pauses libmpv.
        core.set("pause", now.wantsPause)
        let length = measured
        current?.reportedDuration = length
        let chapters = core.list("chapter-list").compactMap { item in
            item["time"]?.number.map {
                ChapterMark(start: PlaybackPosition(clamping: $0), title: item["title"]?.text ?? "")
            }
        }
        observer(.opened(now.load.id, length, chapters: chapters))
        if let asked = now.seekRequested { seek(to: asked.position, serial: asked.serial) }
        listNext()
        // Whether there is sound is known once libmpv has opened its output.
        if outputs.driver != nil { reportOutputs() }
    }

    private func handleRestart() {
        guard let now = current, now.loaded else { return }
        guard !isMisplaced(now) else {
            current?.isMisplaced = true
            return
        }
        // The event may belong to an earlier seek.
        guard core.flag(Watched.seeking.rawValue) != true else { return }
        current?.seekDone = now.seekAccepted
        // Properties with the same value as in the previous file aren’t reported as changes.
        current?.idle = core.flag(Watched.idle.rawValue) ?? now.idle
        current?.seeking = core.flag(Watched.seeking.rawValue) ?? now.seeking
        current?.buffering = core.flag(Watched.buffering.rawValue) ?? now.buffering
        if now.wantsPause { current?.rest = now.seekRequested?.position ?? now.load.start }
        // The position of the seek is reported before an end at the same position.
        reportProgress()
        refreshAtEnd()
    }

    /// Whether a seek ended at a later position than requested, as in a stream that can only be read forwards.
    private func isMisplaced(_ now: Current) -> Bool {
        guard case .web = now.load.source, let asked = now.seekRequested, now.seekAccepted == asked.serial,
            now.seekDone < asked.serial, let position = core.number("time-pos")
        else { return false }
        return position > asked.position.seconds + 2
    }

    private func handleChange(_ event: mpv_event) {
        guard let property = event.data?.assumingMemoryBound(to: mpv_event_property.self).pointee,
            let watched = Watched(rawValue: String(cString: property.name))
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
        // libmpv is idle at the end while the last half second is still heard.
        if now.loaded && !now.atEnd { reportProgress() }
    }

    /// Handles a change of `eof-reached`, which is true once libmpv has decoded everything. If it becomes false without
    /// a seek, the output was reopened in the last moment of the file, which is lost: libmpv waits for it forever.
    private func handleAtEnd(_ atEnd: Bool, isKnown: Bool) {
        guard let now = current else { return }
        // Properties of the previous file, or from before a seek, are stale.
        guard !atEnd || now.loaded && !now.isSeekPending else { return }
        current?.atEnd = atEnd
        if now.atEnd, !atEnd, isKnown, now.closed == nil { current?.isLastMomentLost = true }
    }

    /// Reads `eof-reached` after a seek: libmpv reports no change if the value is the same as before the seek.
    private func refreshAtEnd() {
        guard let now = current, now.loaded, !now.isSeekPending else { return }
        current?.atEnd = core.flag(Watched.atEnd.rawValue) ?? now.atEnd
    }

    private func handleDuration(_ duration: Double?) {
        guard let now = current, now.loaded, let duration else { return }
        current?.duration = duration
        guard let measured, measured != now.reportedDuration else { return }
        current?.reportedDuration = measured
        observer(.measured(now.load.id, measured))
    }

    private func handleEnd(_ event: mpv_event) {
        guard let end = event.data?.assumingMemoryBound(to: mpv_event_end_file.self).pointee else { return }
        if end.playlist_entry_id == closing { closing = nil }
        guard let entry = current?.entry, entry == end.playlist_entry_id else { return }
        if end.reason == MPV_END_FILE_REASON_REDIRECT {
            current?.entry = end.playlist_insert_id
            return
        }
        // The log lines with the reason may follow this event, so it is handled after all queued events.
        current?.closed = (end.reason, end.error)
    }

    func closeFile() {
        guard let now = current, let (reason, error) = now.closed else { return }
        current = nil
        // libmpv would play the prepared file now.
        if next != nil { dropAll() }
        let source = now.load.source
        switch error {
        case MPV_ERROR_UNKNOWN_FORMAT.rawValue, MPV_ERROR_NOTHING_TO_PLAY.rawValue:
            let what = if case .web = source { "The data from \(source.host)" } else { "\(source)" }
            observer(.failed(now.load.id, Failure(.decoderFailed, "\(what) contains no playable audio.")))
        case MPV_ERROR_AO_INIT_FAILED.rawValue:
            observer(.failed(now.load.id, Failure(.noSoundDevice, "No sound device can be opened.")))
        default:
            guard reason != MPV_END_FILE_REASON_STOP else { return }
            observer(.failed(now.load.id, now.log.failure(opening: source)))
        }
    }

    // MARK: Reports

    private var measured: MeasuredDuration? {
        guard let now = current, let duration = EpisodeDuration(seconds: now.duration ?? 0) else { return nil }
        guard let first = now.firstDuration, duration.seconds < first + 1 else {
            return MeasuredDuration(duration, .partial)
        }
        return MeasuredDuration(duration, now.log.estimated ? .estimated : .declared)
    }

    func reportProgress() {
        guard let now = current, now.loaded else { return }
        let pending = now.isSeekPending ? now.seekRequested?.position : nil
        let heard = heard
        guard let position = pending ?? heard.map({ self.position(hearing: $0.position) }) else { return }
        let progress = EngineProgress(
            position: position, at: SystemClocks.monotonic(),
            running: pending == nil && !now.idle && !now.seeking && !now.wantsPause,
            buffering: !now.wantsPause && (now.buffering || now.seeking), serial: now.seekDone,
            cached: core.number("demuxer-cache-time") ?? 0, speed: heard?.speed ?? now.speeds.speed)
        watchEnd(now, progress)
        if !now.atEnd { observer(.progress(now.load.id, progress)) }
    }

    /// Detects an end that libmpv doesn’t report: the position doesn’t advance after all audio has been played.
    private func watchEnd(_ now: Current, _ progress: EngineProgress) {
        let shouldSound = progress.running || now.atEnd && !now.wantsPause && !now.isSeekPending
        let isStalled = current?.standstill.isStalled(
            at: progress.position, isRunning: shouldSound, now: progress.at)
        guard isStalled == true else { return }
        // The output has buffered some tenths of a second, which may be lost.
        let reach = 1 + Self.bufferedAhead * now.speeds.speed.factor
        let isStream = if case .web = now.load.source { true } else { false }
        let ends = [now.duration, isStream ? progress.cached : nil].compactMap { $0 }
        if now.atEnd || ends.contains(where: { $0 > 0 && progress.position.seconds >= $0 - reach }) {
            current?.isLastMomentLost = true
        }
    }

    /// The position that libmpv reports, in seconds. While it plays, `time-pos` is some tenths of a second old: it is
    /// updated when the output wants more data; `audio-pts` is computed when it is read.
    var shown: Double? {
        (current?.isHeard == true ? core.number("audio-pts") : nil) ?? core.number("time-pos")
    }

    /// The present position. libmpv subtracts what its output has buffered, and so reports some tenths of a second less
    /// than the position of a seek; repeated relative seeks would accumulate the difference.
    var presentPosition: PlaybackPosition? { heard.map { position(hearing: $0.position) } }

    private func position(hearing seconds: Double) -> PlaybackPosition {
        if let rest = current?.rest, abs(seconds - rest.seconds) < Self.bufferedAhead { return rest }
        return PlaybackPosition(clamping: seconds)
    }

    /// Reports the end once it has been heard: libmpv pauses by itself some tenths of a second after it has decoded
    /// everything.
    func reportEnd() {
        guard let now = current, now.loaded, now.atEnd && now.paused || now.isLastMomentLost, !now.wantsPause,
            !now.isEndReported, !now.isSeekPending
        else { return }
        current?.isEndReported = true
        let position = core.number("time-pos") ?? now.duration ?? 0
        let end = ReportedEnd(
            position: PlaybackPosition(clamping: position), measured: measured,
            cut: isCut(log: now.log),
            hasSize: core.number("stream-end").map { $0 > 0 } ?? false)
        observer(.ended(now.load.id, end))
    }

    /// Whether the audio ended before its source was read to the end. If the log reports no cut, the unread part must
    /// be larger than tags or tables at the end can be.
    private func isCut(log: MPVLogReader) -> Bool {
        guard let end = core.number("stream-end"), let position = core.number("stream-pos"), end > 0 else {
            return log.cut
        }
        return position < end - max(65_536, end / (log.cut ? 100 : 10))
    }
}
