import BusKit
import PodcastModel

/// Schedules the persistence service’s copies, removal of old replies, counts and checks.
///
/// Days are measured on the wall clock (a machine that sleeps at night makes its backup in the morning), the other
/// intervals on the monotonic clock.
struct MaintenanceSchedule: Sendable {
    /// The interval between daily backups, in ms.
    static let backupInterval: Int64 = 86_400_000
    /// The delay from the start to the first backup.
    static let backupDelay = Duration.seconds(300)
    static let backupBackoff = Backoff.constant(.seconds(900))
    /// The delay from a change of queue, session or subscriptions to its side snapshot, which may take a minute.
    static let snapshotDelay = Duration.seconds(240)
    static let snapshotBackoff = Backoff.constant(.seconds(30))
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
    private var lastBackup: Timestamp?
    private var backup: Job
    private var snapshot = Job()
    private var hadLastSnapshot = false
    private var prune: Job
    private var count = Job()
    private var check: Job
    private var rebuild = Job()
    private var checkpoint = Job()
    private var checkpointNotBefore: MonotonicTime?
    /// The number of pages in the log that are not in the database.
    private var loggedPages = 0
    private var probeAt: MonotonicTime?

    init(lastBackup: Timestamp?, needsCheck: Bool, loggedPages: Int, now: Moment) {
        self.lastBackup = lastBackup
        backup = Job(at: now.monotonic.advanced(by: Self.backupDelay))
        prune = Job(at: now.monotonic.advanced(by: .seconds(60)))
        check = Job(at: needsCheck ? now.monotonic.advanced(by: Self.checkDelay) : nil)
        wrote(pages: loggedPages, now: now)
    }

    /// Whether nothing is in progress and nothing must be done before the service may stop.
    var isQuiet: Bool {
        ![backup, snapshot, prune, count, rebuild, checkpoint].contains(where: \.isRunning) && snapshot.at == nil
    }

    mutating func changed(now: Moment) {
        snapshot.at = snapshot.at ?? now.monotonic.advanced(by: Self.snapshotDelay)
    }

    mutating func libraryChanged(now: Moment) {
        count.at = count.at ?? now.monotonic.advanced(by: Self.countDelay)
    }

    mutating func diskIsFull(now: Moment) { probeAt = now.monotonic.advanced(by: Self.probeBackoff.wait()) }

    mutating func snapshotEnded(failed: Bool = false, now: Moment) {
        snapshot.isRunning = false
        if failed { snapshot.at = now.monotonic.advanced(by: Self.snapshotBackoff.wait()) }
    }

    /// - Parameter copy: the backup; nil if it failed.
    mutating func backupEnded(_ copy: DatabaseCopy?, now: Moment) {
        backup.isRunning = false
        if let copy { lastBackup = copy.at }
        backup.at = copy == nil ? now.monotonic.advanced(by: Self.backupBackoff.wait()) : now.monotonic
    }

    mutating func pruned(now: Moment) { prune = Job(at: now.monotonic.advanced(by: Self.pruneInterval)) }

    mutating func counted() { count.isRunning = false }

    mutating func rebuilt() { rebuild.isRunning = false }

    mutating func wrote(pages: Int, now: Moment) {
        loggedPages += pages
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
        guard let lastBackup else { return true }
        let age = now.wall.milliseconds - lastBackup.milliseconds
        return age >= Self.backupInterval || age < -Self.backupInterval  // or it is dated in the future
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
        if snapshot.begin(if: snapshot.isDue(now)) { effects.append(.copy(.snapshot)) }
        if backup.begin(if: wantsBackup || isBackupDue(now: now)) {
            wantsBackup = false
            effects.append(.copy(.backup))
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
