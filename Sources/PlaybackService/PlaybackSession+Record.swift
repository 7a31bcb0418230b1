import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackSession {
    func fill(_ state: inout WirePlaybackState) {
        state.episode = episode
        state.loadID = loadID.text
        state.queueEntry = queueEntry
        state.queue = queue
        state.duration = duration?.seconds ?? 0
        state.buffering = buffering
        state.local = localPath != nil
        state.skip = skippedAlert != nil
        state.skippedAlert = skippedAlert ?? ""
        let anchor = tracker.anchor
        state.anchor.position = anchor.position.seconds
        state.anchor.at = anchor.at.nanoseconds
        state.anchor.bootID = anchor.bootID
        state.anchor.running = anchor.running
        state.anchor.wall = anchor.wall.milliseconds
        state.anchor.speed = anchor.speed.factor
        switch status {
        case .loading(let plays):
            state.status = .loading
            state.willPlay = plays
            if let retry = recovery.retry { state.retry = retry.wire }
        case .playing: state.status = .playing
        case .paused:
            state.status = .paused
            state.pausedBy = pausedBy
        case .finished: state.status = .finished
        case .failed(let failure):
            state.status = .failed
            state.error = WireFailure(failure)
            if recovery.awaitsServer { state.error.message += recovery.limits.autoResumeNotice }
        }
    }

    /// Follows a queue that has a new name.
    mutating func rename(queue: String, to name: String, _ pending: inout PendingEffects) {
        guard self.queue == queue, queue != name else { return }
        self.queue = name
        pending.state = true
        savePosition(&pending)
    }

    func record(now: Moment, context: PlaybackContext, clean: Bool) -> WireSessionRecord {
        var record = WireSessionRecord()
        record.episode = episode
        record.loadID = loadID.text
        record.queueEntry = queueEntry
        record.queue = queue
        record.position = position(at: now.monotonic).seconds
        record.duration = knownDuration?.seconds ?? 0
        record.bootID = context.bootID
        record.fleetRun = context.fleetRun
        record.clean = clean
        record.resumedAt = resumedAt?.nanoseconds ?? 0
        record.register = episodeState
        record.localPath = localPath ?? ""
        record.skip = skippedAlert != nil
        record.skippedAlert = skippedAlert ?? ""
        tracker.fill(&record, now: now.wall)
        switch status {
        case .playing, .loading(plays: true): record.status = .playing
        case .paused, .loading(plays: false):
            record.status = .paused
            record.pausedBy = pausedBy
        case .finished:
            record.status = .finished
            record.position = 0
        case .failed(let failure):
            record.status = .failed
            record.error = WireFailure(failure)
        }
        return record
    }

    /// Restores a session, with the engine closed; nil if the record is invalid.
    init?(_ record: WireSessionRecord, now: Moment, speed: PlaybackSpeed, context: PlaybackContext) {
        guard let loadID = LoadID(record.loadID), EpisodeID(record.episode.id) != nil else { return nil }
        switch record.status {
        case .playing, .loading, .paused: status = .paused
        case .finished: status = .finished
        case .failed: status = .failed(record.error.failure)
        case .unknown, .idle, .UNRECOGNIZED: return nil
        }
        self.loadID = loadID
        episode = record.episode
        enclosure = try? AudioSource(enclosure: record.episode.enclosureURL)
        localPath = record.localPath.isEmpty ? nil : record.localPath
        skippedAlert = record.skip ? record.skippedAlert : nil
        // Only a restart within the same fleet run continues to wait for a device.
        pausedBy = record.pausedBy == .soundDevice ? .somebody : record.pausedBy
        queueEntry = record.queueEntry
        queue = record.queue
        audio = AudioIdentity(
            announced: record.episode.duration, recorded: EpisodeDuration(seconds: record.duration))
        episodeState = record.register
        episodeState.episode = record.episode.id
        if episodeState.updatedAt > 0 { lookup = .answered }
        if record.resumedAt > 0, record.bootID == context.bootID {
            resumedAt = MonotonicTime(nanoseconds: record.resumedAt)
        }
        self.speed = speed
        recovery = StreamRecovery(limits: context.limits)
        tracker = PositionTracker(record, speed: speed, bootID: context.bootID, now: now)
    }
}

extension PlaybackSession {
    /// The action after a session is restored.
    enum Restoration: Sendable, Hashable {
        case play(afterCrash: Bool)
        case awaitDevice
        /// Keep the status. `asks`: raise an alert that offers to resume or restart.
        case stay(asks: Bool)
    }

    /// The age, in milliseconds, beyond which a session doesn’t resume by itself.
    private static let longestAbsence: Int64 = 24 * 3_600 * 1_000

    func restoration(
        _ record: WireSessionRecord, _ context: PlaybackContext, autoPlays: Bool, now: Moment
    ) -> Restoration? {
        let isSameFleet =
            !context.fleetRun.isEmpty && record.fleetRun == context.fleetRun && record.bootID == context.bootID
        let isOld = now.wall.milliseconds - record.savedAt > Self.longestAbsence
        if record.status == .playing, isSameFleet || autoPlays && !isOld && isStartable {
            return .play(afterCrash: isSameFleet && !record.clean)
        }
        if record.pausedBy == .soundDevice, isSameFleet, isStartable { return .awaitDevice }
        guard status != .finished else { return nil }
        return .stay(asks: isOld && !isSameFleet && position(at: now.monotonic) > .zero)
    }

    func stay(asks: Bool, _ pending: inout PendingEffects) {
        // A skipped episode’s file isn’t needed, and its session must stay visible to the queue.
        if skippedAlert == nil, case .file(let path)? = source { pending.perform(.examine(loadID, path: path)) }
        guard asks else { return }
        pending.raise(
            "resumeOrRestart", about: self, title: "Resume or restart?",
            "“\(episode.title)” was left at \(ClockText.format(tracker.anchor.position.seconds)) more than a day ago.",
            .info, actions: ["resume", "restart", "dismiss"])
    }

    /// Handles a missing file, and returns whether the episode can’t be played at all.
    mutating func fileIsGone(_ pending: inout PendingEffects) -> Bool {
        guard engine == .closed || isBeingLookedUp else { return false }
        pending.saveSession()
        if localPath != nil, case .web? = enclosure {
            pending.log(.info, "The downloaded file of \(episode.id) no longer exists; the episode will be streamed.")
            localPath = nil
            return false
        }
        let source = source.map { " (\($0))" } ?? ""
        pending.endAlerts(.left(loadID))
        pending.raise(
            "episodeGone", about: self, title: "The episode is gone",
            "“\(episode.title)” was loaded, but its file no longer exists\(source).", .warning,
            actions: ["dismiss"])
        return true
    }
}
