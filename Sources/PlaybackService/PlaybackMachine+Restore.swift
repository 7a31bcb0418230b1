package import OwnerKit
package import PodcastModel
import WireMessages

extension PlaybackMachine {
    /// Restores the session: playing if the process died or was restarted in a running fleet, else paused; see
    /// `protocols/playback.md`.
    package mutating func restore(_ records: [StoredRecord], now: Moment) -> [Effect] {
        pending.begin(now: now)
        revision = UInt64(clamping: now.wall.milliseconds)
        var stored: WireSessionRecord?
        var isCorrupt = false
        for record in records {
            do {
                if record.collection == "session" {
                    stored = try WireSessionRecord(wireBytes: record.value)
                } else {
                    try restore(record)
                }
            } catch {
                if record.collection == "session" { isCorrupt = true }
                pending.log(.error, "The record \(record.collection)/\(record.key) can’t be read: \(error)")
            }
        }
        if let stored {
            restore(stored)
            isCorrupt = session == nil
        }
        if isCorrupt { pending.resetSession() }
        // The earlier process’s probes of the server have ended with it.
        pending.withdraw(context.limits.autoResumeNotice)
        pending.withdraw(context.limits.earlierAutoResumeNotice)
        if let session { chapters.load(session.episode.id) }
        applySettings()
        lookUpChapters()
        return flush()
    }

    private mutating func restore(_ record: StoredRecord) throws {
        switch record.collection {
        case "settings": restore(try WirePlaybackSettingsRecord(wireBytes: record.value))
        case "chapters": _ = try chapters.restore(record)
        case "marks": _ = try marks.restore(record)
        case "bookmark": _ = try bookmarks.restore(record)
        case "sleep":
            let stored = try WireSleepState(wireBytes: record.value)
            sleepTimer = SleepTimerMachine(stored, now: now, bootID: context.bootID)
        case "alert", "answer":
            try pending.alerts.restore(record)
            if let alert = pending.alerts.active[record.key] { output.restore(alert, as: record.key) }
        default: _ = settings.restore(record)
        }
    }

    private mutating func restore(_ record: WirePlaybackSettingsRecord) {
        // Earlier versions stored the speed here. The record is rewritten without it, so that an unset speed isn’t
        // restored.
        if record.speed > 0, settings.own(.speed, podcast: "") == nil {
            pending.writes.mark(.settings)
            let setting = try? settings.setting(speed: record.speed, of: "")
            if let setting, (try? settings.set(setting)) != nil {
                pending.writes.mark(.setting(podcast: "", key: setting.key))
            }
        }
        volume = Volume(percent: record.volume) ?? .full
        output.restore(record)
    }

    private mutating func restore(_ record: WireSessionRecord) {
        session = PlaybackSession(record, now: now, speed: speed, context: context)
        session?.lookUpIfUnknown(&pending)
        let decision = session?.restoration(
            record, context, autoPlays: settings.isOn(.autoPlay), now: now)
        switch decision {
        case .play(let afterCrash)?: resumePlayback(afterCrash: afterCrash)
        case .awaitDevice?: awaitDevice()
        case .stay(let asks)?: session?.stay(asks: asks, &pending)
        case nil: break
        }
    }

    mutating func resumePlayback(afterCrash: Bool) {
        if session?.resumePlayback(afterCrash: afterCrash, &pending) == false { stopAwaitingDevice() }
    }

    /// Unloads an episode whose file no longer exists and that cannot be streamed.
    mutating func handleExamined(_ load: LoadID, isThere: Bool) {
        guard session?.loadID == load, !isThere, session?.fileIsGone(&pending) == true else { return }
        session = nil
    }

    // MARK: Forgotten podcasts

    package var knownPodcasts: Set<PodcastID> {
        let texts =
            settings.podcasts + bookmarks.bookmarks.values.values.map(\.podcast)
            + chapters.files.values.values.map(\.podcast)
        return Set(texts.compactMap { PodcastID($0) })
    }

    /// Removes the stored data of a forgotten podcast. The data of an unsubscribed podcast is kept.
    mutating func forget(podcast: String) {
        if let change = settings.forget(podcast: podcast) {
            pending.save(change) { .setting(podcast: podcast, key: $0) }
            applySettings()
        }
        pending.save(bookmarks.removeAll(of: podcast), as: Item.bookmark)
        pending.save(chapters.forget(podcast: podcast), as: Item.chapters)
        pending.commit = true
    }
}
