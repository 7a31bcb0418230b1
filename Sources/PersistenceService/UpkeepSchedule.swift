import PodcastModel

/// When the database's service makes copies, forgets old replies, counts and checks.
///
/// Days are counted on the wall clock (a machine that sleeps at night makes its backup in the morning), the rest
/// on the monotonic one.
struct UpkeepSchedule: Sendable {
    /// Between two daily backups.
    static let backupInterval: Int64 = 86_400_000
    /// A start has other things to do than a backup.
    static let backupDelay = Duration.seconds(300)
    /// After a backup that failed.
    static let backupRetry = Backoff.constant(.seconds(900))
    /// From a change of queue, session or subscriptions to its side snapshot, which has a minute to be written.
    static let snapshotDelay = Duration.seconds(240)
    /// After a side snapshot that failed.
    static let snapshotRetry = Backoff.constant(.seconds(30))
    /// Between two rounds of forgetting.
    static let pruneInterval = Duration.seconds(3_600)
    /// How long replies and commit ids are kept, in ms.
    static let retention: Int64 = 86_400_000
    /// Between two attempts to write to a full disk.
    static let probeRetry = Backoff.constant(.seconds(5))
    /// From a change of the library to the count.
    static let countDelay = Duration.seconds(1)
    /// The length of the log, in pages, from which on a quiet moment is used for a checkpoint. Not sooner: a page that
    /// many commits change is copied once.
    static let checkpointPages = 500
    /// From the last commit to the checkpoint: whoever has just given a command may give the next one.
    static let checkpointDelay = Duration.seconds(2)
    /// The length of the log, in pages, from which on the shorter delay is enough.
    static let urgentCheckpointPages = Store.forcedCheckpointPages / 2
    /// From the last commit to the checkpoint of a long log.
    static let urgentCheckpointDelay = Duration.milliseconds(100)
    /// From a checkpoint that failed, or could not copy everything, to the next one.
    static let checkpointRetry = Backoff.constant(.seconds(30))
    /// From the start to the reading of a large database.
    static let checkDelay = Duration.seconds(60)
    /// The longest sleep, so that the wall clock is checked.
    static let longestSleep = Duration.seconds(300)

    /// A backup was asked for.
    var wantsBackup = false
    /// The search index must be made anew.
    var wantsRebuild = false
    private var lastBackup: Timestamp?
    private var backupNotBefore: MonotonicTime
    private var isBackingUp = false
    private var snapshotAt: MonotonicTime?
    private var changedDuringSnapshot = false
    private var isSnapshotting = false
    private var hadLastSnapshot = false
    private var pruneAt: MonotonicTime
    private var isPruning = false
    private var countAt: MonotonicTime?
    private var isCounting = false
    private var checkAt: MonotonicTime?
    private var isRebuilding = false
    private var checkpointAt: MonotonicTime?
    private var checkpointNotBefore: MonotonicTime?
    private var isCheckpointing = false
    /// The pages in the log that are not in the database.
    private var loggedPages = 0
    private var probeAt: MonotonicTime?

    init(lastBackup: Timestamp?, needsCheck: Bool, loggedPages: Int, now: Moment) {
        self.lastBackup = lastBackup
        backupNotBefore = now.monotonic.advanced(by: Self.backupDelay)
        pruneAt = now.monotonic.advanced(by: .seconds(60))
        checkAt = needsCheck ? now.monotonic.advanced(by: Self.checkDelay) : nil
        wrote(pages: loggedPages, now: now)
    }

    /// Whether nothing is under way and nothing must be done before the service may stop.
    var isQuiet: Bool {
        !isBackingUp && !isSnapshotting && !isPruning && !isCounting && !isRebuilding && !isCheckpointing
            && snapshotAt == nil
    }

    // MARK: Recording

    mutating func changed(now: Moment) {
        if isSnapshotting { changedDuringSnapshot = true }
        if snapshotAt == nil { snapshotAt = now.monotonic.advanced(by: Self.snapshotDelay) }
    }

    mutating func libraryChanged(now: Moment) {
        if countAt == nil { countAt = now.monotonic.advanced(by: Self.countDelay) }
    }

    mutating func diskIsFull(now: Moment) { probeAt = now.monotonic.advanced(by: Self.probeRetry.wait()) }

    mutating func snapshotDone(now: Moment) {
        isSnapshotting = false
        snapshotAt = changedDuringSnapshot ? now.monotonic.advanced(by: Self.snapshotDelay) : nil
        changedDuringSnapshot = false
    }

    mutating func snapshotFailed(now: Moment) {
        isSnapshotting = false
        changedDuringSnapshot = false
        snapshotAt = now.monotonic.advanced(by: Self.snapshotRetry.wait())
    }

    mutating func backupDone(reaches: Timestamp, now: Moment) {
        isBackingUp = false
        lastBackup = reaches
    }

    mutating func backupFailed(now: Moment) {
        isBackingUp = false
        backupNotBefore = now.monotonic.advanced(by: Self.backupRetry.wait())
    }

    mutating func pruned(now: Moment) {
        isPruning = false
        pruneAt = now.monotonic.advanced(by: Self.pruneInterval)
    }

    mutating func counted() { isCounting = false }

    mutating func wrote(pages: Int, now: Moment) {
        loggedPages += pages
        guard loggedPages >= Self.checkpointPages else { return }
        let isUrgent = loggedPages >= Self.urgentCheckpointPages
        let time = now.monotonic.advanced(by: isUrgent ? Self.urgentCheckpointDelay : Self.checkpointDelay)
        checkpointAt = max(time, checkpointNotBefore ?? time)
    }

    mutating func checkpointed(_ remaining: Result<Int, Failure>, now: Moment) {
        isCheckpointing = false
        checkpointNotBefore = nil
        if case .success(let pages) = remaining { loggedPages = pages }
        guard loggedPages >= Self.checkpointPages else { return }
        checkpointNotBefore = now.monotonic.advanced(by: Self.checkpointRetry.wait())
        checkpointAt = checkpointNotBefore
    }
    mutating func rebuilt() { isRebuilding = false }

    // MARK: Starting

    func isProbeDue(now: Moment) -> Bool { probeAt.map { $0 <= now.monotonic } ?? true }

    private func isBackupDue(now: Moment) -> Bool {
        guard now.monotonic >= backupNotBefore else { return false }
        guard let lastBackup else { return true }
        let age = now.wall.milliseconds - lastBackup.milliseconds
        return age >= Self.backupInterval || age < -Self.backupInterval  // a clock that was wrong
    }

    /// Starts the work that is due; `isIdle`: nothing is being written. When the service stops, only what has changed since
    /// the last side snapshot is saved.
    mutating func start(
        now: Moment, isIdle: Bool, isStopping: Bool, _ effects: inout [PersistenceMachine.Effect]
    ) {
        if isStopping {
            checkpointAt = nil
            defer { snapshotAt = nil }
            guard snapshotAt != nil, !isSnapshotting, !hadLastSnapshot else { return }
            hadLastSnapshot = true
            isSnapshotting = true
            effects.append(.copy(.snapshot))
            return
        }
        if !isSnapshotting, let at = snapshotAt, at <= now.monotonic {
            isSnapshotting = true
            effects.append(.copy(.snapshot))
        }
        if !isBackingUp, wantsBackup || isBackupDue(now: now) {
            wantsBackup = false
            isBackingUp = true
            effects.append(.copy(.backup))
        }
        if !isPruning, pruneAt <= now.monotonic {
            isPruning = true
            effects.append(.prune(before: Timestamp(milliseconds: now.wall.milliseconds - Self.retention)))
        }
        if !isCounting, let at = countAt, at <= now.monotonic {
            countAt = nil
            isCounting = true
            effects.append(.count)
        }
        if !isCheckpointing, let at = checkpointAt, at <= now.monotonic {
            checkpointAt = nil
            // The write under way requests the next one.
            isCheckpointing = isIdle
            if isIdle { effects.append(.checkpoint) }
        }
        if let at = checkAt, at <= now.monotonic {
            checkAt = nil
            effects.append(.check)
        }
        if wantsRebuild, !isRebuilding {
            wantsRebuild = false
            isRebuilding = true
            effects.append(.rebuild)
        }
    }

    /// When to look again.
    func nextWake(now: Moment, isDiskFull: Bool) -> MonotonicTime {
        let moments = [
            isSnapshotting ? nil : snapshotAt, isPruning ? nil : pruneAt, isCounting ? nil : countAt, checkAt,
            isCheckpointing ? nil : checkpointAt,
            isBackingUp || backupNotBefore <= now.monotonic ? nil : backupNotBefore, isDiskFull ? probeAt : nil,
        ]
        return moments.compactMap { $0 }.reduce(now.monotonic.advanced(by: Self.longestSleep), min)
    }
}
