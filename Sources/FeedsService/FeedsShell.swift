import BusKit
import Dispatch
import FeedFetching
import Logging
import OwnerKit
package import PodcastModel
package import ProcessKit
import ServiceLifecycle

/// Runs the machine of the feeds service and performs its actions.
package struct FeedsShell: ServiceLifecycle.Service {
    /// The environment variable with the minutes between two refreshes of a feed (`feeds.refreshMinutes`); 0 to refresh
    /// only on command.
    package static let intervalVariable = "LOCKSTEP_FEEDS_REFRESH_MINUTES"

    private let service: OwnerService<FeedsMachine>
    private let fetcher: FeedFetcher

    /// - Throws: `badConfiguration` for an interval that isn’t a number of minutes from 0 to 43200; `storageFailed`
    ///   while the file of passwords can’t be read.
    package init(_ context: ServiceContext) throws(Failure) {
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
        let storage = SecretsStorage(
            file: context.home.secretsFile, moved: context.home.movedSecretsFile, logger: context.logger)
        let (secrets, damage) = try storage.load()
        let fetcher = FeedFetcher()
        self.fetcher = fetcher
        let quarantine = CrashLoopQuarantine(context)
        let machine = FeedsMachine(schedule: schedule, secrets: secrets, damage: damage)
        service = OwnerService(machine, context: context) { action, inputs in
            Self.perform(action, fetcher, storage, quarantine) { inputs.send($0) }
        }
    }

    /// Performs an action. A feed that has crashed the process is fetched only if a command requests it, and not while
    /// the request that crashed the process may be repeated.
    private static func perform(
        _ action: FeedsAction, _ fetcher: FeedFetcher, _ storage: SecretsStorage, _ quarantine: CrashLoopQuarantine,
        report: @escaping @Sendable (FeedsInput) -> Void
    ) {
        switch action {
        case .fetch(let order):
            let key = "feed:\((order.podcast ?? .feed(at: order.request.address)).text)"
            if order.isRequested { quarantine.release(key, after: .seconds(60)) }
            quarantine.begin(order.number, key) {
                report(.began(order.number))
                fetcher.start(order.number, report) { .fetched(order.number, await fetcher.fetch(order)) }
            } postpone: {
                report(.postponed(order.number))
            } refuse: {
                let failure = CrashLoopQuarantine.refusal(of: "this feed", by: "feeds")
                report(.fetched(order.number, .failed(failure, retryAfter: nil)))
            }
        case .cancel(let number):
            quarantine.end(number)
            fetcher.cancel(number)
        case .forget(let number): quarantine.end(number)
        case .fetchChapters(let number, let address, let credentials):
            fetcher.start(.max - number, report) {
                .chapters(number, await fetcher.fetchChapters(address, credentials))
            }
        case .saveSecrets(let number, let secrets): storage.save(secrets) { report(.secretsSaved(number, $0)) }
        case .migrateSecrets: storage.migrate(report)
        case .dropMovedSecrets: storage.dropMoved()
        }
    }

    /// Runs until the process is asked to stop, and then ends every fetch and connection.
    package func run() async throws {
        do {
            try await service.run()
        } catch {
            await fetcher.shutdown()
            throw error
        }
        await fetcher.shutdown()
    }
}

/// Reads and writes the users and passwords of feeds.
private struct SecretsStorage: Sendable {
    let file: SecretsFile
    let moved: SecretsFile
    let logger: Logger
    /// Writes run in order, so that the newest secrets are written last.
    private let queue = DispatchQueue(label: "lockstep.feeds.secrets")
    private static let advice = " Subscribe again to feeds that ask for a password."

    init(file: SecretsFile, moved: SecretsFile, logger: Logger) {
        self.file = file
        self.moved = moved
        self.logger = logger
    }

    /// Reads the file. A damaged one is renamed; `damage` is the message about it.
    func load() throws(Failure) -> (secrets: FeedSecrets, damage: String?) {
        let (secrets, damage) = try file.load(at: SystemClocks.wall())
        guard let damage else { return (secrets, nil) }
        logger.error("\(damage)")
        return (secrets, damage + Self.advice)
    }

    func save(_ secrets: FeedSecrets, report: @escaping @Sendable (Failure?) -> Void) {
        queue.async { [file] in
            do throws(Failure) {
                try file.write(secrets)
                report(nil)
            } catch {
                report(error)
            }
        }
    }

    /// Reads the secrets that persistence found in an older database. A file that can’t be read is tried again at the
    /// next start.
    func migrate(_ report: @escaping @Sendable (FeedsInput) -> Void) {
        queue.async { [moved, logger] in
            do throws(Failure) {
                let (found, damage) = try moved.load(at: SystemClocks.wall())
                if let damage { report(.secretsDamaged(damage + Self.advice)) }
                if !found.isEmpty { report(.secretsMoved(found)) }
            } catch {
                logger.error("\(error.message)")
            }
        }
    }

    func dropMoved() { queue.async { [moved] in moved.remove() } }
}
