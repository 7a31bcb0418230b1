import LibC
import LockstepClient
import PodcastModel

/// Follows jobs until they have ended, with a progress bar on a terminal, else with a line now and then. ^C ends the
/// command only: the jobs go on.
struct JobFollower: Sendable {
    /// The progress of several jobs together.
    struct Progress: Sendable, Hashable {
        var done = 0
        var failed = 0
        var total = 0
        var isOver = false
    }

    /// The jobs that are followed.
    struct Jobs: Sendable {
        let ids: [JobID]
        /// Those that weren’t on the stream yet, but will be.
        var unseen: Set<JobID>
        /// The last states on the stream.
        private var known: [JobID: JobState] = [:]
        private var ended: Set<JobID> = []

        init(_ ids: [JobID]) {
            self.ids = ids
            unseen = Set(ids)
        }

        /// Reads the jobs of a state, and returns those that have ended since.
        mutating func update(_ state: FleetState) -> [JobID] {
            for id in ids {
                guard let job = state.job(id) else { continue }
                known[id] = job
                unseen.remove(id)
            }
            let new = ids.filter { !ended.contains($0) && hasEnded($0, in: state) }
            ended.formUnion(new)
            return new
        }

        /// Whether a job has ended. One that isn’t on the stream any more has ended a minute ago.
        private func hasEnded(_ id: JobID, in state: FleetState) -> Bool {
            state.job(id).map { $0.ended != nil } ?? !unseen.contains(id)
        }

        /// The progress of all jobs together.
        func progress(in state: FleetState) -> Progress {
            var progress = Progress(isOver: ids.allSatisfy { hasEnded($0, in: state) })
            for id in ids {
                let job = state.job(id)
                guard let shown = job ?? known[id] else { continue }
                progress.total += shown.total
                progress.done += job == nil ? shown.total : shown.done
                progress.failed += shown.failed
            }
            return progress
        }
    }

    /// The time between two lines without a terminal.
    private static let lineInterval = Duration.seconds(10)
    /// The time for which the service may be absent.
    private static let absenceLimit = Duration.seconds(60)

    private let fleet: Fleet
    private let output: Output
    private let isBar: Bool

    init(_ fleet: Fleet, _ context: CommandContext) {
        self.fleet = fleet
        output = context.output
        isBar = !context.plain && !output.quiet && !output.json && isatty(STDERR_FILENO) == 1
    }

    /// Follows jobs until they have ended.
    ///
    /// - Parameter farewell: the sentence after ^C: what goes on, and how to see its outcome.
    /// - Returns: the result of each feed, in order; nil if the service doesn’t know all results any more.
    func follow(_ jobs: [JobID], farewell: String) async throws -> [FeedsClient.Result]? {
        Interruption.say(output.quiet ? "" : "lockstep: \(output.advice.completed(farewell))\n", clearsLine: isBar)
        defer {
            Interruption.reset()
            clear()
        }
        let results = try await results(of: jobs)
        return jobs.allSatisfy { results[$0] != nil } ? jobs.flatMap { results[$0] ?? [] } : nil
    }

    /// Waits for the end of the jobs, and reads the results of each when it has ended: a minute later, the service
    /// doesn’t know them any more.
    private func results(of jobs: [JobID]) async throws -> [JobID: [FeedsClient.Result]] {
        var jobs = Jobs(jobs)
        try await requestUnseen(of: &jobs)
        var results: [JobID: [FeedsClient.Result]] = [:]
        var last = Progress()
        var nextLine = SystemClocks.now().monotonic.advanced(by: Self.lineInterval)
        while true {
            guard let (state, progress) = try await next(jobs, after: last) else {
                try await requestUnseen(of: &jobs)
                continue
            }
            last = progress
            show(last, &nextLine)
            for job in jobs.update(state) { results[job] = try await self.results(of: job) }
            if last.isOver { return results }
        }
    }

    /// Asks the service which of the jobs that weren’t on the stream yet it knows: the reply with a job’s ID may arrive
    /// before the job, and a job that ended more than a minute ago isn’t on the stream any more.
    private func requestUnseen(of jobs: inout Jobs) async throws(Failure) {
        let state = fleet.state
        for job in jobs.unseen where state.job(job) == nil {
            if try await !fleet.feeds.knows(job) { jobs.unseen.remove(job) }
        }
    }

    /// Returns the next state with other progress; nil if there is none for a while.
    private func next(_ jobs: Jobs, after last: Progress) async throws(Failure) -> (FleetState, Progress)? {
        let (state, isMet) = await fleet.first(within: Self.absenceLimit) { state in
            guard !state.isStale(.jobs) else { return false }
            let progress = jobs.progress(in: state)
            return progress.isOver || progress != last
        }
        guard !isMet else { return (state, jobs.progress(in: state)) }
        guard !state.isStale(.jobs) else {
            throw Failure(
                .unavailable,
                "The feeds service isn’t ready. The work goes on when it is; `lockstep ps` shows what it is doing.")
        }
        return nil
    }

    /// - Returns: nil if the service doesn’t know the results any more.
    private func results(of job: JobID) async throws(Failure) -> [FeedsClient.Result]? {
        do throws(Failure) {
            return try await fleet.feeds.results(of: job)
        } catch {
            guard error.known == .notFound else { throw error }
            return nil
        }
    }

    private func show(_ progress: Progress, _ nextLine: inout MonotonicTime) {
        guard !isBar else { return draw(progress) }
        let now = SystemClocks.now().monotonic
        guard nextLine <= now, !progress.isOver else { return }
        nextLine = now.advanced(by: Self.lineInterval)
        output.progress("\(Self.sentence(progress)).")
    }

    /// `120 of 5000 feeds are fetched, 3 failed`.
    static func sentence(_ progress: Progress) -> String {
        let failed = progress.failed == 0 ? "" : ", \(progress.failed) failed"
        return "\(progress.done) of \(NumberText.counted(progress.total, "feed")) fetched\(failed)"
    }

    /// A bar of at most `columns`, and the sentence.
    static func bar(_ progress: Progress, columns: Int) -> String {
        let text = sentence(progress)
        let width = min(30, columns - DisplayText.width(text) - 4)
        guard width >= 8, progress.total > 0 else { return DisplayText.cut(text, to: columns) }
        let filled = min(width, width * progress.done / progress.total)
        return "[\(String(repeating: "#", count: filled))\(String(repeating: "-", count: width - filled))] \(text)"
    }

    private func draw(_ progress: Progress) {
        // The last column stays empty: writing there wraps on some terminals.
        let line = Self.bar(progress, columns: (Output.terminalWidth(of: STDERR_FILENO) ?? 80) - 1)
        try? Output.write("\r\(line)\u{1b}[K", to: STDERR_FILENO)
    }

    private func clear() {
        if isBar { try? Output.write("\r\u{1b}[K", to: STDERR_FILENO) }
    }
}

/// The text of `Interruption`.
///
/// `unsafe`: a signal handler can’t acquire a lock. It is set before the handlers are installed, and never freed.
private nonisolated(unsafe) var farewell = UnsafeBufferPointer<UInt8>(start: nil, count: 0)

/// The end of the process by ^C with a last sentence.
enum Interruption {
    private static let signals = [SIGINT, SIGTERM]

    /// Sets the sentence.
    static func say(_ text: String, clearsLine: Bool) {
        let bytes = Array(((clearsLine ? "\r\u{1b}[K" : "") + text).utf8)
        let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
        _ = buffer.initialize(from: bytes)
        farewell = UnsafeBufferPointer(buffer)
        for number in signals {
            _ = signal(number) { number in
                _ = write(STDERR_FILENO, farewell.baseAddress, farewell.count)
                _exit(128 + number)
            }
        }
    }

    /// Restores the usual effect of ^C.
    static func reset() {
        for number in signals { _ = signal(number, SIG_DFL) }
    }
}
