import BusKit
import CProcess
import LibC
import Logging
import NIOConcurrencyHelpers
import PodcastModel
import ProcessKit
import SupervisorControl
import WireMessages

/// Holds the supervisor's alerts up on the stream. It joins the bus when there is the first one, on threads of its own,
/// so that the supervisor neither waits for the bus nor depends on it.
final class AlertLink: Sendable {
    /// What the supervisor hears back.
    enum News: Sendable {
        /// Somebody wants this service tried again.
        case retry(String)
        /// The bus cannot be joined; why.
        case failed(String)
    }

    private let home: LockstepHome
    /// Readable when there is news; for `poll`.
    let descriptor: Int32
    private let bell: Int32
    private let news = NIOLockedValueBox<[News]>([])
    private let state = NIOLockedValueBox(State())

    private let backoff: Backoff

    private struct State: Sendable {
        /// Nil: it has not joined the bus, or could not stay there.
        var loop: ServiceLoop<AlertHandler>?
        /// What needs attention, by service: a new loop knows nothing of it.
        var concerns: [String: FleetConcern] = [:]
        /// How often it could not join or stay since there was nothing to show.
        var failures = 0
        var isRetryScheduled = false
        var isStopped = false
    }

    /// The link of a home's supervisor.
    ///
    /// - Throws: `badConfiguration` when there is no pipe.
    init(
        home: LockstepHome,
        backoff: Backoff = .exponential(first: .seconds(1), longest: .seconds(60), jitter: 0.2)
    ) throws(Failure) {
        self.home = home
        self.backoff = backoff
        var ends: [Int32] = [-1, -1]
        guard lockstep_pipe(&ends, 1) == 0 else {
            throw Failure(.badConfiguration, "A pipe cannot be made: \(SystemCall.reason()).")
        }
        (descriptor, bell) = (ends[0], ends[1])
        _ = fcntl(bell, F_SETFL, O_NONBLOCK)
    }

    deinit {
        close(descriptor)
        close(bell)
    }

    /// Shows what needs attention of a service; nil: nothing does any more.
    func show(_ concern: FleetConcern?, of service: String) {
        state.withLockedValue { state in
            state.concerns[service] = concern
            if state.concerns.isEmpty { state.failures = 0 }
            if let loop = state.loop {
                loop.inputs.send(.concern(service, concern))
            } else if !state.isRetryScheduled {
                join(&state)
            }
        }
    }

    /// Leaves the bus, for good.
    func stop() {
        state.withLockedValue { state in
            state.isStopped = true
            state.loop?.inputs.send(.stop)
        }
    }

    /// What has come since the last call.
    func takeNews() -> [News] {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(descriptor, &bytes, bytes.count) > 0 {}
        return news.withLockedValue { news in
            defer { news = [] }
            return news
        }
    }

    private func join(_ state: inout State) {
        guard !state.isStopped, !state.concerns.isEmpty else { return }
        do throws(Failure) {
            let loop = try makeLoop()
            state.loop = loop
            for (service, concern) in state.concerns { loop.inputs.send(.concern(service, concern)) }
            Task { [weak self] in
                do { try await loop.run() } catch { self?.lost(because: error) }
            }
        } catch {
            retry(after: error, &state)
        }
    }

    private func makeLoop() throws(Failure) -> ServiceLoop<AlertHandler> {
        // What goes wrong is told as news, and lands in the supervisor's own log.
        let logger = Logger(label: "supervisor") { _ in SwiftLogNoOpLogHandler() }
        let context = try ServiceContext.nextLife(of: .supervisor, home: home, logger: logger)
        let retry: @Sendable (String) -> Void = { [weak self] in self?.tell(.retry($0)) }
        return ServiceLoop<AlertHandler>(context, observes: nil) { _ in AlertHandler(retry: retry) }
    }

    private func lost(because error: any Error) {
        state.withLockedValue { state in
            state.loop = nil
            retry(after: error, &state)
        }
    }

    /// Joins again after a while. A concern that comes meanwhile waits too.
    private func retry(after error: any Error, _ state: inout State) {
        tell(.failed((error as? Failure)?.message ?? "\(error)"))
        state.failures += 1
        state.isRetryScheduled = true
        let wait = backoff.wait(after: state.failures, random: .random(in: 0..<1))
        Task { [weak self] in
            try await Task.sleep(for: wait)
            self?.state.withLockedValue { state in
                state.isRetryScheduled = false
                self?.join(&state)
            }
        }
    }

    private func tell(_ item: News) {
        news.withLockedValue { $0.append(item) }
        _ = write(bell, [1], 1)
    }
}

/// The alerts on the thread that has the bus's sockets.
private struct AlertHandler: ServiceHandler {
    enum Input: Sendable {
        case concern(String, FleetConcern?)
        case stop
    }

    var deadline: MonotonicTime? { nil }
    private var alerts = FleetAlerts()
    private let retry: @Sendable (String) -> Void

    init(retry: @escaping @Sendable (String) -> Void) { self.retry = retry }

    mutating func handle(_ event: ServiceEvent<Input>, now: Moment) -> [ServiceEffect<Input>] {
        switch event {
        case .bus(.began): return [.publish(alerts.publications), .ready]
        case .input(.concern(let service, let concern)):
            // Without a bus it is dropped, and put when there is one.
            return [.publish(alerts.note(concern, of: service, at: now.wall))]
        case .bus(.command(let command)):
            let answering = alerts.answer(command.payload, at: now.wall)
            if let service = answering.retries { retry(service) }
            return [.publish(answering.publications), .reply(command.ticket, command.id, answering.result)]
        case .input(.stop), .stopping: return [.stop(nil)]
        case .bus(.fenced(let failure)): return [.stop(failure)]
        case .started, .bus(.status), .bus(.update), .bus(.rejected), .bus(.alarm), .bus(.pulse): return []
        }
    }
}
