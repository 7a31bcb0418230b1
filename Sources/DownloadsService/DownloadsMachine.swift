package import BusKit
package import OwnerKit
package import PodcastModel
package import WireMessages

/// Owns the downloads: decides which files are fetched, retried and deleted.
///
/// A request is durable before anything is fetched; a file is complete and at its path before it is reported as
/// downloaded; the removal of a download is durable before its file is deleted. See `protocols/downloads.md`.
package struct DownloadsMachine: OwnerMachine {
    package typealias Input = DownloadsInput
    package typealias Action = DownloadsAction

    package static let owner = ServiceName.downloads
    /// The topics that report new episodes and the episodes that must not be deleted: the loaded and the queued ones.
    package static let observes = [
        "stream/feeds/episodes/", "stream/feeds/podcast/", "stream/playback/", "stream/queue/queue/",
    ]

    package static let followsPodcasts = true

    package enum Timer: Sendable, Hashable {
        /// The next attempt of a download, or the end of the pause after a refused change.
        case schedule
        case networkCheck
        case retention
        case fileCheck
        /// The deadline of the commands that wait for a file check.
        case fileCheckTimeout
    }

    package struct Step: Sendable {
        fileprivate var id: TransactionID
        /// The actions that are performed once the transaction is durable.
        fileprivate var actions: [DownloadsAction]
    }

    private(set) var store: SpeculativeState<DownloadStore>
    private(set) var schedule = TransferSchedule()
    var files = FileReconciler()
    var rules = RetentionRules()
    var autoDownload = AutoDownload()
    private var network = NetworkConditions()

    /// - Parameter root: the download folder, absolute.
    package init(root: String) { store = SpeculativeState(DownloadStore(root: root)) }

    package mutating func restore(_ record: StoredRecord, now: Moment) throws {
        try store.amend { try $0.restore(record) }
    }

    /// Starts the service; interrupted transfers are queued again.
    package mutating func start(now: Moment, _ effects: inout [Effect]) {
        var change = change(now)
        FileReconciler.rebasePaths(&change)
        commit(change, &effects)
        files.scanFolder(store.current, &effects)
        effects += [.perform(.checkNetwork), .perform(limitAction)]
        refresh(&effects)
        lookUpPodcasts(&effects)
        updateSchedule(now: now, &effects)
    }

    package func retained(now: Moment) -> [Publication] { store.current.retained }

    package func everything() -> [WireChange] { store.current.everything }

    package var knownPodcasts: Set<PodcastID> { store.current.knownPodcasts }

    package var hasStopped: Bool { schedule.hasStopped }

    package mutating func handle(_ event: Event, now: Moment) -> [Effect] {
        var effects: Effects = []
        switch event {
        case .command(let command): handle(command, now: now, &effects)
        case .committed(let step):
            store.committed(step.id)
            effects += step.actions.filter(isDue).map { .perform($0) }
            schedule.resume()
        case .refused(let step, _):
            rollBack(step.id, &effects)
            schedule.changeRefused(now: now, &effects)
        case .answered(let query, let result): answered(query, result.persistenceReply, now: now, &effects)
        case .observed(let event):
            observe(event, now: now, &effects)
            // Most events of other services change nothing.
            if effects.isEmpty { return [] }
        case .timer(let timer): timerFired(timer, now: now, &effects)
        case .input(let input): handle(input, now: now, &effects)
        case .podcastForgotten(let podcast):
            var change = change(now)
            rules.podcastForgotten(podcast.text, &change)
            commit(change, &effects)
            rules.applySoon(now: now, &effects)
        case .databaseReplaced:
            files.scanFolder(store.current, &effects)
            refresh(&effects)
        case .stopping: schedule.stop(&effects)
        }
        updateSchedule(now: now, &effects)
        return effects
    }

    private mutating func timerFired(_ timer: Timer, now: Moment, _ effects: inout Effects) {
        switch timer {
        case .schedule: schedule.resume()
        case .networkCheck: network.timerFired(&effects)
        case .retention:
            var change = change(now)
            rules.timerFired(&change)
            commit(change, &effects)
        case .fileCheck: files.timerFired(store.current, now: now, &effects)
        case .fileCheckTimeout: handle(files.checkTimedOut(), now: now, &effects)
        }
    }

    private mutating func handle(_ input: DownloadsInput, now: Moment, _ effects: inout Effects) {
        var change = change(now)
        switch input {
        case .began(let number, let start): schedule.began(number, start, &change, &network)
        case .progressed(let number, let received, let speed): schedule.progressed(number, received, speed, &change)
        case .saved(let number, let received): schedule.saved(number, received, &change)
        case .stopped(let episode, let version, let received): schedule.stopped(episode, version, received, &change)
        case .completed(let number, let bytes):
            if schedule.completed(number, bytes, &change) { rules.applySoon(now: now, &effects) }
        case .failed(let number, let failure):
            guard let download = schedule.failed(number, failure, &change, &network) else { break }
            effects.append(.log(.warning, "The download of \(download.episode) failed: \(failure.failure)"))
            if failure.failure.code == DownloadFolder.wrongFolderCode {
                files.folder.folderReplaced()
                files.recheck(store.current, now: now, &effects)
            } else {
                // The feed may have a new address for the file.
                refresh([download.episode], &effects)
            }
        case .ended(let number): schedule.ended(number)
        case .folderScanned(let found, let snapshot): files.folderScanned(found, snapshot, &change)
        case .scanFailed(let failure):
            files.folder.scanFailed()
            effects.append(.log(.warning, "The download folder can’t be read: \(failure)"))
        case .filesChecked(let number, let found, let snapshot):
            guard let waiters = files.checkFinished(number, found, snapshot, &change) else { break }
            commit(change, &effects)
            handle(waiters, now: now, &effects)
            return handle(files.continueAfterCheck(store.current, now: now, &effects), now: now, &effects)
        case .marked(let marker): files.folder.marked(marker, &change)
        case .markFailed(let failure): effects.append(.log(.info, "\(failure)"))
        case .deleted(let episode, let failure):
            // A file that could not be deleted is deleted after the next start; a foreign file is never deleted.
            if failure?.retry != true { change.recordDeletion(episode) }
            if let failure { effects.append(.log(.warning, "The file of \(episode) wasn’t deleted: \(failure)")) }
        case .networkChecked(let interfaces, let hour): network.checked(interfaces, hour, &change)
        }
        commit(change, &effects)
    }

    private mutating func handle(_ waiters: [Command], now: Moment, _ effects: inout Effects) {
        for command in waiters { handle(command, isChecked: true, now: now, &effects) }
    }

    /// Begins and ends transfers, and sets the timers.
    private mutating func updateSchedule(now: Moment, _ effects: inout Effects) {
        guard !schedule.isPaused else { return }
        var change = change(now)
        let current = store.current
        let isFolderKnown = files.isFolderKnown(current)
        schedule.update(store, &change) { [files, network, rules] download in
            files.missingFolder(of: download, in: current) ?? network.obstacle(to: download, current.settings)
                ?? rules.obstacle(to: download, in: current)
                ?? (isFolderKnown ? nil : "")
        }
        commit(change, &effects)
        files.scheduleCheck(store.current, now: now, &effects)
        network.scheduleCheck(store.current, now: now, &effects)
    }

    // MARK: Committing

    /// Returns an empty change of the current state.
    func change(_ now: Moment) -> DownloadStoreChange { DownloadStoreChange(store.current, now: now) }

    /// Applies a change and commits it; a command that changes nothing is answered without a commit.
    mutating func commit(
        _ change: DownloadStoreChange, answering answer: (request: RequestID, reply: [UInt8])? = nil,
        _ effects: inout Effects
    ) {
        effects += change.effects
        guard !change.written.isEmpty else {
            if let answer { effects.append(.reply(answer.request, .success(answer.reply))) }
            effects += change.actions.map { .perform($0) }
            return
        }
        let step = Step(id: store.apply { $0 = change.store }, actions: change.actions)
        effects.append(.commit(Transaction(step, change.written, answering: answer)))
    }

    /// Rolls back a change that couldn’t be saved, and publishes the previous state.
    private mutating func rollBack(_ id: TransactionID, _ effects: inout Effects) {
        let refused = store.current.downloads.values
        store.refused(id)
        let downloads = store.current.downloads.values
        let changed = Set(refused.keys).union(downloads.keys).filter { refused[$0] != downloads[$0] }.sorted()
        guard !changed.isEmpty else { return }
        let publications = changed.map { episode in
            downloads[episode].map(DownloadStore.publication) ?? Publication(.delete, .download(episode))
        }
        effects.append(.publish(publications))
    }

    /// Whether an action is still needed: a partial file is kept if its episode has been requested again, and a
    /// transfer that is no longer wanted isn’t begun.
    private func isDue(_ action: DownloadsAction) -> Bool {
        switch action {
        case .discard(let episode): store.current.downloads[episode] == nil
        case .start(let order): schedule.isDue(order, in: store.current)
        default: true
        }
    }

    var limitAction: DownloadsAction {
        .limit(bytesPerSecond: UInt64(store.current.settings.number(.bandwidthLimit) * 1_000))
    }
}

/// The effects of one event, in order.
typealias Effects = [DownloadsMachine.Effect]
