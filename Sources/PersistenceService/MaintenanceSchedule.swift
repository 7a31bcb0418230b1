import BusKit
import PodcastModel

/// Schedules the persistence service’s copies, removal of old replies, counts and checks.
///
/// Days are measured on the wall clock (a machine that sleeps at night makes its backup in the morning), the other
/// intervals on the monotonic clock.
struct MaintenanceSchedule: Sendable {
    /// A day in ms: the shortest interval between backups, and the interval between side snapshots of positions.
    static let day: Int64 = 86_400_000
    /// The delay from the start to the first backup.
    static let backupDelay = Duration.seconds(300)
    static let backupBackoff = Backoff.constant(.seconds(900))
    /// The delay from a change of queue, session or subscriptions to its side snapshot, which may take a minute.
    static let snapshotDelay = Duration.seconds(240)
    /// The number of bytes of side snapshots that changes may cause in an hour: flash memory wears out.
    static let snapshotBytesPerHour: UInt64 = 2 << 20
    static let snapshotBackoff = Backoff.exponential(first: .seconds(30), longest: .seconds(3_600))
    static let pruneInterval = Duration.seconds(3_600)
    /// The retention time of replies and commit IDs, in ms.
    static let retention: Int64 = 86_400_000
    /// The interval between attempts to write to a full disk.
    static let probeBackoff = Backoff.constant(.seconds(5))
    static let countDelay = Duration.seconds(1)
    /// The minimum length of the log, in pages, for a checkpoint: a page that many commits change is then copied once.
    static let checkpointPages = 500
    /// The delay from the last commit to the checkpoint: another command often follows soon.
    static let checkpointDelay = Duration.seconds(2)
    /// The minimum length of the log, in pages, for the shorter delay.
    static let urgentCheckpointPages = Store.forcedCheckpointPages / 2
    static let urgentCheckpointDelay = Duration.milliseconds(100)
    /// The delay after a checkpoint that failed or could not copy everything.
    static let checkpointBackoff = Backoff.constant(.seconds(30))
    static let checkDelay = Duration.seconds(60)
    /// The interval between checks of the whole database while the service runs.
    static let checkInterval = Duration.seconds(7 * 86_400)
    /// The maximum sleep, so that the wall clock is checked.
    static let longestSleep = Duration.seconds(300)

    /// A kind of work of which at most one run is in progress.
    private struct Job: Sendable {
        /// The time at which it is due; nil if there is nothing to do.
        var at: MonotonicTime?
        var isRunning = false

        func isDue(_ now: Moment) -> Bool { at.map { $0 <= now.monotonic } ?? false }

        /// Begins a run that is due, unless one is in progress.
        mutating func begin(if isDue: Bool) -> Bool {
            guard isDue, !isRunning else { return false }
            (at, isRunning) = (nil, true)
            return true
        }
    }

    /// Whether a backup was requested.
    var wantsBackup = false
    /// Whether the search index is damaged and must be rebuilt.
    var wantsRebuild = false
    /// The newest backup, and the newest copy of any kind.
    private var lastBackup: DatabaseCopy?
    private var lastCopy: DatabaseCopy?
    private var backup: Job
    private var snapshot = Job()
    /// The number of side snapshots that failed since the last successful one: each may fill the disk first.
    private var snapshotFailures = 0
    /// The earliest time of the next side snapshot that a change causes.
    private var snapshotNotBefore: MonotonicTime?
    /// Whether anything was written since the newest copy began.
    private var hasUncopiedWrites = true
    private var hadLastSnapshot = false
    /// Whether the last backup failed: then the day’s positions are saved without waiting for one.
    private var backupFailed = false
    private var prune: Job
    private var count = Job()
    private var check: Job
    private var rebuild = Job()
    private var checkpoint = Job()
    private var checkpointNotBefore: MonotonicTime?
    /// The number of pages in the log that are not in the database.
    private var loggedPages = 0
    private var probeAt: MonotonicTime?

    /// - Parameter copies: the copies that exist, newest first.
    init(copies: [DatabaseCopy], needsCheck: Bool, loggedPages: Int, now: Moment) {
        lastBackup = copies.first { $0.kind == .backup }
        lastCopy = copies.first
        backup = Job(at: now.monotonic.advanced(by: Self.backupDelay))
        prune = Job(at: now.monotonic.advanced(by: .seconds(60)))
        check = Job(at: now.monotonic.advanced(by: needsCheck ? Self.checkDelay : Self.checkInterval))
        wrote(pages: loggedPages, now: now)
    }

    /// Whether a backup is in progress.
    var isBackingUp: Bool { backup.isRunning }

    /// Whether nothing is in progress and nothing must be done before the service may stop.
    var isQuiet: Bool {
        ![backup, snapshot, prune, count, rebuild, checkpoint].contains(where: \.isRunning) && snapshot.at == nil
    }

    mutating func changed(now: Moment) {
        guard snapshot.at == nil else { return }
        let time = now.monotonic.advanced(by: Self.snapshotDelay)
        snapshot.at = max(time, snapshotNotBefore ?? time)
    }

    mutating func libraryChanged(now: Moment) {
        count.at = count.at ?? now.monotonic.advanced(by: Self.countDelay)
    }

    mutating func diskIsFull(now: Moment) { probeAt = now.monotonic.advanced(by: Self.probeBackoff.wait()) }

    /// - Parameter copy: the side snapshot; nil if it failed.
    mutating func snapshotEnded(_ copy: DatabaseCopy?, now: Moment) {
        snapshot.isRunning = false
        guard let copy else {
            hasUncopiedWrites = true
            snapshotFailures += 1
            snapshot.at = now.monotonic.advanced(by: Self.snapshotBackoff.wait(after: snapshotFailures))
            return
        }
        snapshotFailures = 0
        lastCopy = copy
        snapshotNotBefore = now.monotonic.advanced(by: Self.pause(after: copy))
        snapshot.at = snapshot.at.map { max($0, snapshotNotBefore ?? $0) }
    }

    /// The interval after a side snapshot, by its size.
    private static func pause(after copy: DatabaseCopy) -> Duration {
        .seconds(Int64(clamping: copy.bytes / (snapshotBytesPerHour / 3_600)))
    }

    /// - Parameter copy: the backup; nil if it failed.
    mutating func backupEnded(_ copy: DatabaseCopy?, now: Moment) {
        backup.isRunning = false
        backupFailed = copy == nil
        if let copy { (lastBackup, lastCopy) = (copy, copy) } else { hasUncopiedWrites = true }
        backup.at = copy == nil ? now.monotonic.advanced(by: Self.backupBackoff.wait()) : now.monotonic
    }

    mutating func pruned(now: Moment) { prune = Job(at: now.monotonic.advanced(by: Self.pruneInterval)) }

    mutating func counted() { count.isRunning = false }

    mutating func rebuilt() { rebuild.isRunning = false }

    mutating func checked(now: Moment) {
        check = Job(at: now.monotonic.advanced(by: Self.checkInterval))
    }

    mutating func wrote(pages: Int, now: Moment) {
        loggedPages += pages
        if pages > 0 { hasUncopiedWrites = true }
        guard loggedPages >= Self.checkpointPages else { return }
        let isUrgent = loggedPages >= Self.urgentCheckpointPages
        let time = now.monotonic.advanced(by: isUrgent ? Self.urgentCheckpointDelay : Self.checkpointDelay)
        checkpoint.at = max(time, checkpointNotBefore ?? time)
    }

    mutating func checkpointed(_ remaining: Result<Int, Failure>, now: Moment) {
        checkpoint.isRunning = false
        checkpointNotBefore = nil
        if case .success(let pages) = remaining { loggedPages = pages }
        guard loggedPages >= Self.checkpointPages else { return }
        checkpointNotBefore = now.monotonic.advanced(by: Self.checkpointBackoff.wait())
        checkpoint.at = checkpointNotBefore
    }

    func isProbeDue(now: Moment) -> Bool { probeAt.map { $0 <= now.monotonic } ?? true }

    private func isBackupDue(now: Moment) -> Bool {
        guard backup.isDue(now) else { return false }
        return Self.isDue(after: lastBackup, interval: lastBackup?.interval ?? 0, now: now)
    }

    /// Whether a day’s positions must be saved, which don’t cause a side snapshot by themselves.
    private func isDailySnapshotDue(now: Moment) -> Bool {
        guard hasUncopiedWrites, snapshot.at == nil, !backup.isRunning, backupFailed || backup.isDue(now) else {
            return false
        }
        return Self.isDue(after: lastCopy, interval: Self.day, now: now)
    }

    private static func isDue(after copy: DatabaseCopy?, interval: Int64, now: Moment) -> Bool {
        guard let copy else { return true }
        let age = now.wall.milliseconds - copy.at.milliseconds
        return age >= interval || age < -day  // or it is dated in the future
    }

    /// Starts the work that is due; `isIdle`: nothing is being written. When the service stops, only changes since the
    /// last side snapshot are saved.
    mutating func start(
        now: Moment, isIdle: Bool, isStopping: Bool, _ effects: inout [PersistenceMachine.Effect]
    ) {
        if isStopping {
            checkpoint.at = nil
            guard !snapshot.isRunning else { return }
            if snapshot.begin(if: snapshot.at != nil && !hadLastSnapshot) {
                hadLastSnapshot = true
                effects.append(.copy(.snapshot))
            }
            snapshot.at = nil
            return
        }
        if backup.begin(if: wantsBackup || isBackupDue(now: now)) {
            wantsBackup = false
            hasUncopiedWrites = false
            effects.append(.copy(.backup))
        }
        if snapshot.begin(if: snapshot.isDue(now) || isDailySnapshotDue(now: now)) {
            hasUncopiedWrites = false
            effects.append(.copy(.snapshot))
        }
        if prune.begin(if: prune.isDue(now)) {
            effects.append(.prune(before: Timestamp(milliseconds: now.wall.milliseconds - Self.retention)))
        }
        if count.begin(if: count.isDue(now)) { effects.append(.count) }
        if !checkpoint.isRunning, checkpoint.isDue(now) {
            // If a write is in progress, its commit schedules the checkpoint again.
            if checkpoint.begin(if: isIdle) { effects.append(.checkpoint) }
            checkpoint.at = nil
        }
        if check.begin(if: check.isDue(now)) { effects.append(.check) }
        if rebuild.begin(if: wantsRebuild) {
            wantsRebuild = false
            effects.append(.rebuild)
        }
    }

    func nextWake(now: Moment, isDiskFull: Bool) -> MonotonicTime {
        let jobs = [snapshot, prune, count, check, checkpoint, backup].filter { !$0.isRunning }
        return (jobs.map(\.at) + [isDiskFull ? probeAt : nil]).compactMap { $0 }.filter { $0 > now.monotonic }
            .reduce(now.monotonic.advanced(by: Self.longestSleep), min)
    }
}
