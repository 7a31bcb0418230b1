package import OwnerKit
package import PodcastModel
import WireMessages

extension PlaybackMachine {
    /// See `OwnerMachine`. What was loaded comes back: playing on if the process died or was restarted in a living
    /// fleet, else paused; see `protocols/playback.md`.
    package mutating func restore(_ records: [StoredRecord], now: Moment) -> [OwnerEffect<PlaybackAction>] {
        pending.begin(now: now)
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
                    pending.alerts.put(alert)
                    output.restore(alert.alert, as: record.key)
                case "bookmark": bookmarks.restore(try WireBookmark(wireBytes: record.value), as: record.key)
                case "sleep":
                    sleepTimer = SleepTimerMachine(
                        try WireSleepState(wireBytes: record.value), now: now, bootID: context.bootID)
                case "answer": pending.alerts.restore(try WirePlaybackAnswerRecord(wireBytes: record.value), to: record.key)
                default: _ = settings.restore(record)
                }
            } catch {
                if record.collection == Self.sessionKey.0 { isCorrupt = true }
                pending.log(.error, "The record \(record.collection)/\(record.key) cannot be read: \(error)")
            }
        }
        if let stored {
            restore(stored)
            isCorrupt = session == nil
        }
        if isCorrupt { resetSession() }
        // An earlier life’s waiting for a server has ended with it.
        pending.withdraw(StreamRecovery.returnPromise(context.limits))
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
            if (try? settings.set(setting)) != nil { pending.writes.mark(.setting(podcast: "", key: setting.key)) }
            // Without it, so that a speed that is taken back does not come again out of here.
            pending.writes.mark(.settings)
        }
        volume = Volume(percent: record.volume) ?? .full
        output.restore(record)
    }

    private mutating func restore(_ record: WireSessionRecord) {
        guard let session = PlaybackSession(record, now: now, speed: speed, context: context) else {
            return
        }
        self.session = session
        self.session?.lookUpIfUnknown(&pending)
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

    /// What was loaded cannot be known any more; the episodes' own positions are stored elsewhere.
    private mutating func resetSession() {
        pending.log(.error, "The stored session cannot be used and has been reset.")
        pending.raise(
            PlayerAlert(
                FailureCode.sessionCorrupt.rawValue, about: session, title: "The last session is lost",
            "What was loaded last cannot be read from the database. Episodes keep their own positions; play one again.",
            .warning, actions: ["dismiss"]))
        pending.writes.mark(.session)
        pending.commit = true
    }

    /// What was loaded plays on, unless it crashes again and again.
    mutating func playOn(afterCrash: Bool) {
        if session?.playOn(afterCrash: afterCrash, &pending) == false { forgetDevice() }
    }

    private mutating func askOrWait(age: Int64, isSameFleet: Bool) {
        // What is to be skipped is looked for by nobody, and stays for the queue to see.
        if let session, !session.skip, case .file(let path)? = session.source {
            pending.perform(.examine(session.loadID, path: path))
        }
        guard age > Self.sessionAge, !isSameFleet, let session, session.position(at: now.monotonic) > .zero else {
            return
        }
        pending.raise(
            PlayerAlert(
                "resumeOrRestart", about: session, title: "Resume or restart?",
            "“\(session.episode.title)” was left at \(ClockText.format(session.tracker.anchor.position.seconds)) more than a day ago.",
            .info, actions: ["resume", "restart", "dismiss"]))
        pending.commit = true
    }

    /// An episode whose file is gone, and that cannot be streamed, is not offered any longer.
    mutating func handleExamined(_ load: LoadID, isThere: Bool) {
        guard let session, session.loadID == load, session.engine == .closed || session.isBeingLookedUp, !isThere
        else { return }
        if session.localPath != nil, case .web? = session.enclosure {
            pending.log(.info, "The downloaded file of \(session.episode.id) is gone; it will be streamed.")
            self.session?.localPath = nil
            pending.saveSession()
            return
        }
        let place = session.source.map { " (\($0))" } ?? ""
        pending.endAlerts(.left(load))
        pending.raise(
            PlayerAlert(
                "episodeGone", about: session, title: "The episode is gone",
            "“\(session.episode.title)” was loaded, but its file is not there any more\(place).", .warning,
            actions: ["dismiss"]))
        self.session = nil
        pending.saveSession()
    }
}
