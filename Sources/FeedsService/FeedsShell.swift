public import BusKit
public import PodcastModel
public import ServiceLifecycle

/// The process of the feeds: its machine, run, and the fetcher that acts for it.
public struct FeedsShell: ServiceLifecycle.Service {
    /// Minutes between two refreshes of a feed (`feeds.refreshMinutes`), in the environment; 0: only on command.
    public static let intervalVariable = "LOCKSTEP_FEEDS_REFRESH_MINUTES"

    private let service: OwnerService<FeedsMachine>
    private let fetcher: FeedFetcher

    /// Feeds in this process's surroundings.
    /// - Throws: `badConfiguration` for an interval that is no number of minutes from 0 to 43200.
    public init(_ context: ServiceContext) throws(Failure) {
        var schedule = RefreshSchedule(seed: .random(in: .min ... .max))
        if let text = context.environment[Self.intervalVariable] {
            guard let minutes = Int64(text), (0...43_200).contains(minutes) else {
                throw Failure(
                    .badConfiguration,
                    "\(Self.intervalVariable) is “\(text)”; it must be a number of minutes from 0 to 43200.")
            }
            schedule.isAutomatic = minutes > 0
            if minutes > 0 { schedule.interval = .seconds(minutes * 60) }
            schedule.longest = max(schedule.longest, schedule.interval)
        }
        let fetcher = FeedFetcher(logger: context.logger)
        self.fetcher = fetcher
        service = OwnerService(FeedsMachine(schedule: schedule), context: context) { action, inputs in
            fetcher.perform(action) { inputs.send($0) }
        }
    }

    /// Serves until the process is asked to stop; then no fetch and no connection is left.
    public func run() async throws {
        do {
            try await service.run()
        } catch {
            await fetcher.shutdown()
            throw error
        }
        await fetcher.shutdown()
    }
}
