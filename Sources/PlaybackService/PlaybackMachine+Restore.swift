package import OwnerKit
package import PodcastModel
import WireMessages

extension PlaybackMachine {
    /// See `OwnerMachine`. What was loaded comes back: playing on if the process died or was restarted in a living
    /// fleet, else paused; see `protocols/playback.md`.
    package mutating func restore(_ records: [StoredRecord], now: Moment) -> [OwnerEffect<PlaybackAction>] {
        self.now = now
        revision = UInt64(clamping: now.wall.milliseconds)
        var stored: WireSessionRecord?
        var isCorrupt = false
        for record in records {
            do {
                switch record.collection {
                case Self.sessionKey.0: stored = try WireSessionRecord(wireBytes: record.value)
                case Self.settingsKey.0: restore(try WirePlaybackSettingsRecord(wireBytes: record.value))
                case "chapters":
                    chapters.restore(try WirePlaybackChaptersRecord(wireBytes: record.value), of: record.key)
                case "alert":
                    let alert = try WirePlaybackAlertRecord(wireBytes: record.value)
                    alerts[record.key] = alert
                    output.restore(alert.alert, as: record.key)
                case "bookmark": bookmarks.restore(try WireBookmark(wireBytes: record.value), as: record.key)
                case "sleep":
                    sleepTimer = SleepTimerMachine(
                        try WireSleepState(wireBytes: record.value), now: now, bootID: context.bootID)
                case "answer": answers[record.key] = try WirePlaybackAnswerRecord(wireBytes: record.value)
                default: _ = settings.restore(record)
                }
            } catch {
                if record.collection == Self.sessionKey.0 { isCorrupt = true }
                pending.logs.append((.error, "The record \(record.collection)/\(record.key) cannot be read: \(error)"))
            }
        }
        if let stored {
            restore(stored)
            isCorrupt = session == nil
        }
        if isCorrupt { resetSession() }
        // An earlier life’s waiting for a server has ended with it.
        withdrawPromises()
        if let session { chapters.load(session.episode.id) }
        applySettings()
        lookUpChapters()
        askCensus()
        return flush()
    }

    private mutating func restore(_ record: WirePlaybackSettingsRecord) {
        // Speeds were stored here once.
        if record.speed > 0, settings.own(.speed, podcast: "") == nil {
            var setting = WireSetSetting()
            setting.key = SettingKey.speed.rawValue
            setting.value = String(record.speed)
            if (try? settings.set(setting)) != nil { book.mark(.setting(podcast: "", key: setting.key)) }
            // Without it, so that a speed that is taken back does not come again out of here.
            book.mark(.settings)
        }
        volume = Volume(percent: record.volume) ?? .full
        output.restore(record)
    }

    private mutating func restore(_ record: WireSessionRecord) {
        guard let session = PlaybackSession(record, now: now, speed: speed, context: context) else {
            return
        }
        self.session = session
        lookUpIfUnknown()
        let isSameFleet =
            !context.fleetRun.isEmpty && record.fleetRun == context.fleetRun && record.bootID == context.bootID
        let age = now.wall.milliseconds - record.savedAt
        let plays = settings.isOn(.autoPlay) && age <= Self.sessionAge && session.isStartable
        if record.status == .playing && (isSameFleet || plays) {
            playOn(afterCrash: isSameFleet && !record.clean)
        } else if record.pausedBy == .soundDevice, isSameFleet, session.isStartable {
            waitForDevice()
        } else if session.status != .finished {
            askOrWait(age: age, isSameFleet: isSameFleet)
        }
    }

    /// A process that died before the library had told it of a load has stored what came with that, which may be long past,
    /// and where somebody wanted to be in it.
    private mutating func lookUpIfUnknown() {
        guard let session, session.episodeState.updatedAt == 0, session.status == .paused else { return }
        let place = session.tracker.anchor.position
        lookUpAgain(at: place.seconds == session.episodeState.position ? nil : place)
    }

    /// What was loaded cannot be known any more; the episodes' own positions are stored elsewhere.
    private mutating func resetSession() {
        pending.logs.append((.error, "The stored session cannot be used and has been reset."))
        raise(
            FailureCode.sessionCorrupt.rawValue, title: "The last session is lost",
            "What was loaded last cannot be read from the database. Episodes keep their own positions; play one again.",
            .warning, actions: ["dismiss"])
        book.mark(.session)
        pending.commit = true
    }

    /// It was playing, or waiting for a sound device, when the process went away and the fleet lived on.
    mutating func playOn(afterCrash: Bool) {
        if afterCrash, let before = session?.resumedAt, now.monotonic.since(before) < Self.crashWindow {
            session?.resumedAt = nil
            forgetDevice()
            raise(
                "playbackCrashed", title: "Playback crashed twice",
                "The player crashed twice within a minute at “\(session?.episode.title ?? "")”, which is now paused.",
                .error, actions: ["resume", "dismiss"])
        } else {
            if afterCrash { session?.resumedAt = now.monotonic }
            session?.status = .loading(plays: true)
            if session?.isBeingLookedUp == false { session?.engine = .awaitingCommit(nil) }
            session?.tracker.resumed(isRestored: true)
        }
        book.mark(.session)
        pending.commit = true
    }

    private mutating func askOrWait(age: Int64, isSameFleet: Bool) {
        // What is to be skipped is looked for by nobody, and stays for the queue to see.
        if let session, !session.skip, case .file(let path)? = session.source {
            pending.perform(.examine(session.loadID, path: path))
        }
        guard age > Self.sessionAge, !isSameFleet, let session, session.position(at: now.monotonic) > .zero else {
            return
        }
        raise(
            "resumeOrRestart", title: "Resume or restart?",
            "“\(session.episode.title)” was left at \(ClockText.format(session.tracker.anchor.position.seconds)) more than a day ago.",
            .info, actions: ["resume", "restart", "dismiss"])
        pending.commit = true
    }

    /// An episode whose file is gone, and that cannot be streamed, is not offered any longer.
    mutating func handleExamined(_ load: LoadID, isThere: Bool) {
        guard let session, session.loadID == load, session.engine == .closed || session.isBeingLookedUp, !isThere
        else { return }
        if session.localPath != nil, case .web? = session.enclosure {
            pending.logs.append((.info, "The downloaded file of \(session.episode.id) is gone; it will be streamed."))
            self.session?.localPath = nil
            saveSession()
            return
        }
        let place = session.source.map { " (\($0))" } ?? ""
        endAlerts(of: load, all: true)
        raise(
            "episodeGone", title: "The episode is gone",
            "“\(session.episode.title)” was loaded, but its file is not there any more\(place).", .warning,
            actions: ["dismiss"])
        self.session = nil
        saveSession()
    }
}
