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
    static let backupRetry = Duration.seconds(900)
    /// From a change of queue, session or subscriptions to its side snapshot, which has a minute to be written.
    static let snapshotDelay = Duration.seconds(240)
    /// After a side snapshot that failed.
    static let snapshotRetry = Duration.seconds(30)
    /// Between two rounds of forgetting.
    static let pruneInterval = Duration.seconds(3_600)
    /// How long replies and commit ids are kept, in ms.
    static let retention: Int64 = 86_400_000
    /// Between two attempts to write to a full disk.
    static let probeInterval = Duration.seconds(5)
    /// From a change of the library to the count.
    static let countDelay = Duration.seconds(1)
    /// From the start to the reading of a large database.
    static let checkDelay = Duration.seconds(60)
    /// The longest sleep, so that the wall clock is looked at.
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
    private var probeAt: MonotonicTime?

    init(lastBackup: Timestamp?, needsCheck: Bool, now: Moment) {
        self.lastBackup = lastBackup
        backupNotBefore = now.monotonic.advanced(by: Self.backupDelay)
        pruneAt = now.monotonic.advanced(by: .seconds(60))
        checkAt = needsCheck ? now.monotonic.advanced(by: Self.checkDelay) : nil
    }

    /// Whether nothing is under way and nothing must be done before the service may stop.
    var isQuiet: Bool {
        !isBackingUp && !isSnapshotting && !isPruning && !isCounting && !isRebuilding && snapshotAt == nil
    }

    // MARK: What happened

    mutating func changed(now: Moment) {
        if isSnapshotting { changedDuringSnapshot = true }
        if snapshotAt == nil { snapshotAt = now.monotonic.advanced(by: Self.snapshotDelay) }
    }

    mutating func libraryChanged(now: Moment) {
        if countAt == nil { countAt = now.monotonic.advanced(by: Self.countDelay) }
    }

    mutating func diskIsFull(now: Moment) { probeAt = now.monotonic.advanced(by: Self.probeInterval) }

    mutating func snapshotDone(now: Moment) {
        isSnapshotting = false
        snapshotAt = changedDuringSnapshot ? now.monotonic.advanced(by: Self.snapshotDelay) : nil
        changedDuringSnapshot = false
    }

    mutating func snapshotFailed(now: Moment) {
        isSnapshotting = false
        changedDuringSnapshot = false
        snapshotAt = now.monotonic.advanced(by: Self.snapshotRetry)
    }

    mutating func backupDone(reaches: Timestamp, now: Moment) {
        isBackingUp = false
        lastBackup = reaches
    }

    mutating func backupFailed(now: Moment) {
        isBackingUp = false
        backupNotBefore = now.monotonic.advanced(by: Self.backupRetry)
    }

    mutating func pruned(now: Moment) {
        isPruning = false
        pruneAt = now.monotonic.advanced(by: Self.pruneInterval)
    }

    mutating func counted() { isCounting = false }
    mutating func rebuilt() { isRebuilding = false }

    // MARK: What is due

    func isProbeDue(now: Moment) -> Bool { probeAt.map { $0 <= now.monotonic } ?? true }

    private func isBackupDue(now: Moment) -> Bool {
        guard now.monotonic >= backupNotBefore else { return false }
        guard let lastBackup else { return true }
        let age = now.wall.milliseconds - lastBackup.milliseconds
        return age >= Self.backupInterval || age < -Self.backupInterval  // a clock that was wrong
    }

    /// What begins now. When the service stops, only what has changed since the last side snapshot is saved.
    mutating func start(now: Moment, isStopping: Bool) -> [PersistenceMachine.Effect] {
        var effects: [PersistenceMachine.Effect] = []
        if isStopping {
            defer { snapshotAt = nil }
            guard snapshotAt != nil, !isSnapshotting, !hadLastSnapshot else { return [] }
            hadLastSnapshot = true
            isSnapshotting = true
            return [.copy(.snapshot)]
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
        if let at = checkAt, at <= now.monotonic {
            checkAt = nil
            effects.append(.check)
        }
        if wantsRebuild, !isRebuilding {
            wantsRebuild = false
            isRebuilding = true
            effects.append(.rebuild)
        }
        return effects
    }

    /// When to look again.
    func nextWake(now: Moment, isDiskFull: Bool) -> MonotonicTime {
        let moments = [
            isSnapshotting ? nil : snapshotAt, isPruning ? nil : pruneAt, isCounting ? nil : countAt, checkAt,
            isBackingUp || backupNotBefore <= now.monotonic ? nil : backupNotBefore, isDiskFull ? probeAt : nil,
        ]
        return moments.compactMap { $0 }.reduce(now.monotonic.advanced(by: Self.longestSleep), min)
    }
}
