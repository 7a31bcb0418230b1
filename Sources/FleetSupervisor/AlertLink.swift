import BusKit
import CProcess
import LibC
import Logging
import NIOConcurrencyHelpers
import PodcastModel
import ProcessKit
import SupervisorControl
import WireMessages

/// Publishes the supervisor’s alerts on the stream. It joins the bus for the first alert, on its own threads, so that
/// the supervisor neither waits for the bus nor depends on it.
final class AlertLink: Sendable {
    enum Event: Sendable {
        /// The user’s answer requests a retry of this service.
        case retry(String)
        /// Joining the bus failed, with this reason.
        case failed(String)
    }

    private let home: LockstepHome
    /// The descriptor to poll; it is readable when there are events.
    let descriptor: Int32
    private let bell: Int32
    private let events = NIOLockedValueBox<[Event]>([])
    private let state = NIOLockedValueBox(State())

    private let backoff: Backoff

    private struct State: Sendable {
        /// The connection to the bus; nil if there is none.
        var loop: ServiceLoop<AlertHandler>?
        /// The concerns by service, for the next loop.
        var concerns: [String: FleetConcern] = [:]
        /// The number of failed or lost connections to the bus since the last time without a concern.
        var failures = 0
        var isRetryScheduled = false
        var isStopped = false
    }

    init(
        home: LockstepHome,
        backoff: Backoff = .exponential(first: .seconds(1), longest: .seconds(60), jitter: 0.2)
    ) throws(Failure) {
        self.home = home
        self.backoff = backoff
        var ends: [Int32] = [-1, -1]
        guard lockstep_pipe(&ends, 1) == 0 else {
            throw Failure(.badConfiguration, "A pipe can’t be created: \(SystemError.reason()).")
        }
        (descriptor, bell) = (ends[0], ends[1])
        _ = fcntl(bell, F_SETFL, O_NONBLOCK)
    }

    deinit {
        close(descriptor)
        close(bell)
    }

    /// Publishes the concern about a service; nil ends it.
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

    /// Leaves the bus permanently.
    func stop() {
        state.withLockedValue { state in
            state.isStopped = true
            state.loop?.inputs.send(.stop)
        }
    }

    /// Returns and removes the events since the last call.
    func removeEvents() -> [Event] {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(descriptor, &bytes, bytes.count) > 0 {}
        return events.withLockedValue { events in
            defer { events = [] }
            return events
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
        // A failure is an event, which the supervisor writes to its own log.
        let logger = Logger(label: "supervisor") { _ in SwiftLogNoOpLogHandler() }
        let context = try ServiceContext.nextGeneration(of: .supervisor, home: home, logger: logger)
        let retry: @Sendable (String) -> Void = { [weak self] in self?.report(.retry($0)) }
        return ServiceLoop<AlertHandler>(context, observes: nil) { _ in AlertHandler(retry: retry) }
    }

    private func lost(because error: any Error) {
        state.withLockedValue { state in
            state.loop = nil
            retry(after: error, &state)
        }
    }

    /// Joins again after a wait. Concerns during the wait are published after it.
    private func retry(after error: any Error, _ state: inout State) {
        report(.failed((error as? Failure)?.message ?? "\(error)"))
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

    private func report(_ event: Event) {
        events.withLockedValue { $0.append(event) }
        _ = write(bell, [1], 1)
    }
}

/// Handles the alerts on the thread that owns the bus’s sockets.
private struct AlertHandler: ServiceHandler {
    enum Input: Sendable {
        case concern(String, FleetConcern?)
        case stop
    }

    var deadline: MonotonicTime? { nil }
    var alerts = FleetAlerts()
    let retry: @Sendable (String) -> Void

    mutating func handle(_ event: ServiceEvent<Input>, now: Moment) -> [ServiceEffect<Input>] {
        switch event {
        case .bus(.epochBegan): return [.publish(alerts.publications), .ready]
        case .input(.concern(let service, let concern)):
            // Without a bus this is dropped, and all alerts are published when the next epoch begins.
            return [.publish(alerts.update(concern, of: service, at: now.wall))]
        case .bus(.command(let command)):
            let answering = alerts.answer(command.payload, at: now.wall)
            if let service = answering.retries { retry(service) }
            return [.publish(answering.publications), .reply(command.ticket, command.id, answering.result)]
        case .input(.stop), .stopping: return [.stop(nil)]
        case .bus(.fenced(let failure)): return [.stop(failure)]
        case .started, .bus(.status), .bus(.update), .bus(.rejected), .bus(.timerFired), .bus(.heartbeat): return []
        }
    }
}
