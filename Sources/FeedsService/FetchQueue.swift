import BusKit
import PodcastModel
import WireMessages

/// A line of a command’s reply, or of a job, that waits for a feed.
struct Waiter: Sendable, Hashable {
    enum Target: Sendable, Hashable {
        case command(RequestID)
        case job(JobID)
    }
    enum Operation: Sendable, Hashable {
        case subscribe(keep: Bool)
        /// The first fetch of a stored subscription.
        case add(dropsFailing: Bool)
        /// A change of the address.
        case move
        case refresh
        case check
    }
    var target: Target
    var line: Int
    /// The address or ID in the command; empty for a podcast of a job.
    var name: String
    var operation: Operation

    var isSubscribing: Bool { if case .subscribe = operation { true } else { false } }
    var isAdding: Bool { if case .add = operation { true } else { false } }
    var keepsFailing: Bool { operation == .subscribe(keep: true) }
    var isOfJob: Bool { if case .job = target { true } else { false } }
}

/// A feed that is queued, being fetched, or whose fetched document is being stored.
struct Fetch: Sendable {
    /// Fetches with the same key are combined, unless their users or passwords differ.
    enum Key: Sendable, Hashable {
        case podcast(PodcastID)
        case new(String)
        case check(String)
        /// Another user or password for a subscribed podcast.
        case signIn(PodcastID, WebCredentials)
        /// Another address of a subscribed podcast.
        case move(PodcastID, String)
    }
    enum Stage: Sendable, Hashable { case queued, running, storing }

    var number: UInt64
    var key: Key
    var address: WebAddress
    var waiters: [Waiter]
    var stage = Stage.queued
    /// Whether it takes longer than most fetches, so that it no longer counts against the limit.
    var isSlow = false
    var seenCount = 0
    var credentials: WebCredentials?

    var podcast: PodcastID? {
        switch key {
        case .podcast(let id), .signIn(let id, _), .move(let id, _): id
        case .new, .check: nil
        }
    }

    /// Whether a command waits for the fetch.
    var isUrgent: Bool { priority == .command }
    /// Whether only the schedule and jobs wait for it: its results need no commit of their own.
    var isInBackground: Bool { waiters.allSatisfy(\.isOfJob) }

    /// The order in which fetches start.
    enum Priority: Int, Sendable { case command, job, scheduled }
    var priority: Priority {
        waiters.isEmpty ? .scheduled : waiters.contains { !$0.isOfJob } ? .command : .job
    }
}

/// Orders fetches: those for commands are first, then those of jobs. At most `limit` run at a time, not counting slow
/// ones, so that stalled feeds never delay others.
struct FetchQueue: Sendable {
    private static let limit = 8
    /// The maximum number of running fetches, slow or not, which limits descriptors and memory.
    private static let hardLimit = 64

    private var fetches: [UInt64: Fetch] = [:]
    private var numbers: [Fetch.Key: [UInt64]] = [:]
    /// The queued fetches by priority.
    private var queues: [[UInt64]] = [[], [], []]
    private var last: UInt64 = 0
    private var runningCount = 0
    private var slowCount = 0
    /// The fetches that were removed since the last `drainRemoved`.
    private var removed: [UInt64] = []

    var running: [UInt64] { fetches.values.filter { $0.stage == .running }.map(\.number).sorted() }

    subscript(number: UInt64) -> Fetch? { fetches[number] }

    func contains(_ key: Fetch.Key) -> Bool { numbers[key] != nil }

    /// The number of fetches that haven’t started.
    var queuedCount: Int { queues.reduce(0) { $0 + $1.count } }

    /// Adds a fetch, or a waiter to the active one. A waiter with a user and password doesn’t join a fetch without
    /// them.
    mutating func add(
        _ key: Fetch.Key, _ address: WebAddress, _ waiter: Waiter?, _ credentials: WebCredentials? = nil
    ) {
        let same = numbers[key]?.first { credentials == nil || fetches[$0]?.credentials == credentials }
        if let number = same {
            guard let waiter, var fetch = fetches[number] else { return }
            let before = fetch.priority
            fetch.waiters.append(waiter)
            fetches[number] = fetch
            if fetch.stage == .queued, fetch.priority != before {
                queues[before.rawValue].removeAll { $0 == number }
                queues[fetch.priority.rawValue].append(number)
            }
            return
        }
        last += 1
        numbers[key, default: []].append(last)
        let fetch = Fetch(
            number: last, key: key, address: address, waiters: waiter.map { [$0] } ?? [], credentials: credentials)
        fetches[last] = fetch
        queues[fetch.priority.rawValue].append(last)
    }

    /// Removes and returns the next fetch that may start.
    ///
    /// - Parameter commandsOnly: whether those of jobs and the schedule wait.
    mutating func start(commandsOnly: Bool) -> Fetch? {
        guard runningCount - slowCount < Self.limit, runningCount < Self.hardLimit,
            let next = queues.firstIndex(where: { !$0.isEmpty }),
            !commandsOnly || next == Fetch.Priority.command.rawValue
        else { return nil }
        let number = queues[next].removeFirst()
        runningCount += 1
        fetches[number]?.stage = .running
        return fetches[number]
    }

    /// Records the number of episodes with which a fetch is compared.
    mutating func setSeenCount(_ number: UInt64, _ count: Int) { fetches[number]?.seenCount = count }

    /// Marks a running fetch as slow: it no longer counts against the limit.
    mutating func markSlow(_ number: UInt64) {
        guard let fetch = fetches[number], fetch.stage == .running, !fetch.isSlow else { return }
        fetches[number]?.isSlow = true
        slowCount += 1
    }

    /// Ends a running fetch, which remains until `remove`; returns nil if it isn’t running.
    mutating func stopped(_ number: UInt64) -> Fetch? {
        guard let fetch = fetches[number], fetch.stage == .running else { return nil }
        runningCount -= 1
        if fetch.isSlow { slowCount -= 1 }
        fetches[number]?.stage = .storing
        return fetches[number]
    }

    mutating func remove(_ number: UInt64) {
        guard let fetch = fetches.removeValue(forKey: number) else { return }
        numbers[fetch.key]?.removeAll { $0 == number }
        if numbers[fetch.key]?.isEmpty == true { numbers[fetch.key] = nil }
        removed.append(number)
    }

    mutating func drainRemoved() -> [UInt64] {
        defer { removed = [] }
        return removed
    }
}
