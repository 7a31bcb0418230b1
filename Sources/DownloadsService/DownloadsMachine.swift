package import BusKit
package import OwnerKit
package import PodcastModel
package import WireMessages

/// Owns the downloaded files: which are wanted, how they stand, when they are tried again and when they go.
///
/// The wish is durable before anything is fetched; the file is whole and at its place before it is said to be
/// downloaded; that it is to go is durable before it is deleted. See `protocols/downloads.md`.
package struct DownloadsMachine: OwnerMachine {
    /// The shell's reports.
    package typealias Input = DownloadsInput
    /// The shell's work.
    package typealias Action = DownloadsAction
    typealias Effect = OwnerEffect<DownloadsAction>

    /// The name on the bus.
    package static let owner = ServiceName.downloads
    /// New episodes, and what must not be deleted: what is loaded and what waits in a queue.
    package static let observes = [
        "stream/feeds/episodes/", "stream/feeds/podcast/", "stream/playback/", "stream/queue/queue/",
    ]

    /// The waits before the attempts after the first.
    static let retry = Backoff.steps([.seconds(5), .seconds(15), .seconds(60)], repeatsLast: false)
    /// The time after a refused change in which nothing is begun.
    private static let refusalRetry = Backoff.constant(.seconds(5))
    static let scheduleTimer = TimerName("schedule")
    static let lookTimer = TimerName("look around")
    static let retainTimer = TimerName("retain")
    static let reviewTimer = TimerName("review")
    /// Whoever waits for a look is answered.
    static let limitTimer = TimerName("look limit")
    /// From the last change of what is loaded and queued to deleting by rule: queues are seen one after the other.
    private static let retainsAfter = Duration.seconds(10)

    /// A transfer under way.
    struct Transfer: Sendable {
        var episode: String
        var host: String
        /// Where its file goes, relative to the folder.
        var path: String
        /// Its file is whole, of so many bytes; kept until that is durable.
        var completed: UInt64?
        /// What had come when it was begun.
        var offset: UInt64 = 0
        var received: UInt64 = 0
    }

    /// What waits for a transaction.
    private struct Unsettled: Sendable {
        var command: RequestID?
        var actions: [DownloadsAction]
    }

    /// What an answer of persistence is for.
    enum Lookup: Sendable {
        case add(Command, [String])
        /// The titles of episodes that a command named and that are not here, for the sentence that refuses it.
        case titles(Command, [String])
        /// An episode that was never downloaded, for the sentence that says why.
        case why(Command)
        /// The newest episodes of a podcast, for its rule.
        case newest(podcast: String)
        /// Which podcasts there are, beside those that were counted already: for the rules, and as files of others have
        /// nobody any more.
        case podcasts(Set<String>)
        /// Whether a podcast is there no more; others are asked for behind it.
        case whetherGone(String, others: [String])
        /// What has become of episodes that are downloaded, or are to be.
        case again
    }

    /// The folder of downloads.
    let root: String
    var book = SpeculativeState(DownloadsBook())
    var transfers: [UInt64: Transfer] = [:]
    /// Transfers that are to end, and may be whole before they do.
    var ended: [UInt64: Transfer] = [:]
    /// The number of the newest transfer; none is used twice in a life of the process.
    var lastTransfer: UInt64 = 0
    var lookups: [CallID: Lookup] = [:]
    /// The look at files that is under way, who waits for the next one, and whether there is to be one.
    var looking: Looking?
    var nextLook: [Look] = []
    var isReviewDue = false
    /// What was there when the folder was to be surveyed: what a survey says of later ones may be too old.
    var surveying: [String: DownloadedFile] = [:]
    /// The folder is not the one that files were put into; it is surveyed once it is back.
    var isAway = false
    var isFolderSeen = false
    var surveysWhenBack = false
    /// Podcasts' folders whose disk is out, and the places that were told to be away.
    var absentMounts: Set<String> = []
    var awayPlaces: [String] = []
    /// It is being marked, or cannot be.
    var isMarking = false
    /// The ways out, once they have been looked at; and the hour of the day.
    var interfaces: [String]?
    var hour: Int?
    /// What must not be deleted.
    var loaded = ""
    var queues: [String: ObservedQueue] = [:]
    /// When rules that delete are applied next: a while after the last change that concerns them.
    private var retainsAt: MonotonicTime?
    var hasSeenPlayer = false
    /// When episodes were played to their end or marked, in ms since 1970, as far as that has been heard.
    var played: [String: Int64] = [:]
    /// How many episodes each podcast has, those that are subscribed to, and the podcasts that were forgotten with all
    /// that belonged to them.
    var episodeCounts: [String: UInt32] = [:]
    var subscribed: Set<String> = []
    var forgotten: Set<String> = []
    /// What failed for want of a network and is tried, alone, to see whether that has come back; and when one was last.
    var probing = ""
    var lastProbed = ""
    var probedAt: MonotonicTime?
    /// A change was refused: nothing is begun before.
    var schedulesAt: MonotonicTime?
    var isStopping = false
    /// The timers as they are set.
    private var timers: [TimerName: MonotonicTime] = [:]
    private var unsettled: [TransactionID: Unsettled] = [:]
    /// Counts what needs a name of its own.
    var count: UInt64 = 0

    /// An owner that knows nothing yet. `root`: the folder of downloads, absolute.
    package init(root: String) {
        self.root = root
    }

    // MARK: Starting

    /// Takes the stored downloads over; what was being fetched waits for its turn again.
    package mutating func restore(_ records: [StoredRecord], now: Moment) -> [OwnerEffect<DownloadsAction>] {
        var effects: [Effect] = []
        var book = DownloadsBook()
        for record in records {
            do {
                switch record.collection {
                case "download": book.downloads[record.key] = try WireDownload(wireBytes: record.value)
                case "past": book.past[record.key] = try WirePastDownload(wireBytes: record.value)
                case "alert", "answer": _ = try book.alerts.restore(record)
                case "folder": book.folder = try WireDownloadsFolder(wireBytes: record.value)
                default: _ = book.settings.restore(record)
                }
            } catch {
                effects.append(.log(.error, "record \(record.collection)/\(record.key) is unreadable: \(error)"))
            }
        }
        self.book = SpeculativeState(book)
        effects += moveIn()
        effects += [survey(), .perform(.lookAround), .perform(limitAction)]
        effects += askAgain()
        effects.append(askPodcasts())
        return effects + schedule(now: now)
    }

    package func retained(now: Moment) -> [Publication] { book.current.retained }

    package func everything() -> [WireChange] { book.current.everything }

    /// Whether every transfer has reported what came of it.
    package var hasStopped: Bool { transfers.isEmpty && ended.isEmpty }

    // MARK: Deciding

    package mutating func handle(_ event: OwnerEvent<DownloadsInput>, now: Moment) -> [OwnerEffect<DownloadsAction>] {
        var effects: [Effect] = []
        switch event {
        case .command(let command): effects = take(command, now: now)
        case .committed(let id):
            book.committed(id)
            effects = (unsettled.removeValue(forKey: id)?.actions ?? []).filter(isStillDue).map { .perform($0) }
            schedulesAt = nil
        case .refused(let id, let failure):
            effects = takeBack(id)
            if let command = unsettled.removeValue(forKey: id)?.command, failure.code != "duplicateRequest" {
                effects.append(.reply(command, .failure(failure)))
            }
            // What could not be saved is looked at anew, but not at once, whatever happens meanwhile.
            schedulesAt = now.monotonic.advanced(by: Self.refusalRetry.wait())
            return effects + set(Self.scheduleTimer, to: schedulesAt)
        case .answered(let call, let result): effects = answered(call, result, now: now)
        case .observed(let event):
            effects = observe(event, now: now)
            // Most of what others do changes nothing here.
            if effects.isEmpty { return [] }
        case .timer(let name):
            timers[name] = nil
            if name == Self.scheduleTimer { schedulesAt = nil }
            if name == Self.lookTimer { effects = [.perform(.lookAround)] }
            if name == Self.retainTimer { effects = retainIfDue(now: now) }
            if name == Self.reviewTimer { effects = review(now: now) }
            if name == Self.limitTimer { effects = looksTakeTooLong(now: now) }
        case .input(let input): effects = take(input, now: now)
        case .databaseReplaced: effects = [survey()] + askAgain()
        case .stopping:
            isStopping = true
            return transfers.keys.sorted().map { .perform(.cancel($0)) }
        }
        return effects + schedule(now: now)
    }

    /// Puts a change in force and has it committed; one that is none is answered without that.
    mutating func commit(_ change: BookChange, answering answer: (request: RequestID, reply: [UInt8])? = nil)
        -> [Effect]
    {
        guard !change.isEmpty else {
            return (answer.map { [.reply($0.request, .success($0.reply))] } ?? []) + change.actions.map { .perform($0) }
        }
        count += 1
        let id = TransactionID(count)
        book.apply(id) { $0 = change.book }
        unsettled[id] = Unsettled(command: answer?.request, actions: change.actions)
        return [
            .commit(
                Transaction(
                    id: id, changes: change.changes, publications: change.publications, answering: answer))
        ]
    }

    /// What was not saved is as it was before, also for those who have been shown it already, as at the start.
    private mutating func takeBack(_ id: TransactionID) -> [Effect] {
        let refused = book.current.downloads
        book.refused(id)
        let downloads = book.current.downloads
        let changed = Set(refused.keys).union(downloads.keys).filter { refused[$0] != downloads[$0] }.sorted()
        let publications = changed.map { episode in
            var gone = WireDownload()
            gone.episode = episode
            return DownloadsBook.publication(downloads[episode] ?? gone)
        }
        return publications.isEmpty ? [] : [.publish(publications)]
    }

    /// What had come of a download that was given up stays if it has been asked for again meanwhile, and what is not wanted
    /// any more is not begun.
    private func isStillDue(_ action: DownloadsAction) -> Bool {
        switch action {
        case .discard(let episode): book.current.downloads[episode] == nil
        case .start(let order):
            transfers[order.number] != nil && book.current.downloads[order.episode]?.state == .downloading
        default: true
        }
    }

    /// Rules are looked at when nothing changes any more.
    mutating func retainSoon(now: Moment) -> [OwnerEffect<DownloadsAction>] {
        let time = now.monotonic.advanced(by: Self.retainsAfter)
        retainsAt = time
        // The timer is moved when it is due: queues change often.
        return isSet(Self.retainTimer) ? [] : set(Self.retainTimer, to: time)
    }

    private mutating func retainIfDue(now: Moment) -> [Effect] {
        if let retainsAt, now.monotonic < retainsAt { return set(Self.retainTimer, to: retainsAt) }
        return retain(now: now)
    }

    /// Sets a timer, if that changes it.
    mutating func set(_ timer: TimerName, to time: MonotonicTime?) -> [Effect] {
        guard timers[timer] != time else { return [] }
        timers[timer] = time
        return [.timer(timer, at: time)]
    }

    /// Whether a timer is set.
    func isSet(_ timer: TimerName) -> Bool { timers[timer] != nil }

    /// A change of what is in force now.
    var change: BookChange { BookChange(book.current) }

    /// Asks what the library has of these episodes, at most `RequestSizes.episodes`.
    mutating func call(_ purpose: Lookup, episodes ids: [String]) -> Effect {
        call(purpose) {
            $0.episodesByID.ids = ids
            $0.episodesByID.brief = true
        }
    }

    mutating func call(_ purpose: Lookup, _ fill: (inout WirePersistenceRequest) -> Void) -> Effect {
        count += 1
        let id = CallID("look up \(count)")
        lookups[id] = purpose
        var request = WirePersistenceRequest()
        fill(&request)
        return .call(Call(id: id, to: .persistence, payload: request.wireBytes))
    }

    var limitAction: DownloadsAction {
        .limit(bytesPerSecond: UInt64(book.current.settings.number(.bandwidthLimit) * 1_000))
    }

    /// The folder may have been moved, with all that is in it.
    private mutating func moveIn() -> [Effect] {
        var change = change
        for var download in book.current.downloads.values.sorted(by: { $0.episode < $1.episode })
        where !download.path.isEmpty && relative(download.path) == nil {
            let place = download.path.split(separator: "/").suffix(2).joined(separator: "/")
            download.path = root + "/" + place
            change.put(download)
        }
        return commit(change)
    }

    /// The path of a download relative to the folder; nil: it lies elsewhere, and is not touched.
    func relative(_ path: String) -> String? {
        path.hasPrefix(root + "/") ? String(path.dropFirst(root.count + 1)) : nil
    }
}
