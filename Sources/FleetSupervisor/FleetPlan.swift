import PodcastModel
import WireMessages

/// The supervisor’s configuration of a service, from its `ServiceDescription`.
struct ServicePlan: Sendable, Hashable {
    var name: String
    var requires: [String]
    var stopLimit: Duration
    var isEssential: Bool

    init(_ name: String, requires: [String] = [], stopLimit: Duration = .seconds(5), isEssential: Bool = false) {
        (self.name, self.requires, self.stopLimit, self.isEssential) = (name, requires, stopLimit, isEssential)
    }

    /// The name of its executable.
    var program: String { "lockstep-" + name }
}

/// The services of a fleet, each after those that it requires.
struct FleetPlan: Sendable, Hashable {
    /// The services in start order.
    let services: [ServicePlan]

    /// Creates a plan without requirements that don’t precede their service, so that there are no cycles.
    init(_ services: [ServicePlan]) {
        var known: Set<String> = []
        self.services = services.compactMap { service in
            guard known.insert(service.name).inserted else { return nil }
            var service = service
            service.requires = service.requires.filter { known.contains($0) && $0 != service.name }
            return service
        }
    }

    /// The fleet of this version.
    static let `default` = FleetPlan(
        ServiceCatalog.started.map {
            ServicePlan(
                $0.name.text, requires: $0.requires.map(\.text), stopLimit: $0.stopLimit, isEssential: $0.isEssential)
        })
}

/// The supervisor’s time limits and failure limits.
struct SupervisorLimits: Sendable, Hashable {
    /// The maximum silence before the first message (READY, STATUS or WATCHDOG), and between messages before READY.
    var startSilence: Duration = .seconds(90)
    /// The silence after which a service is late.
    var late: Duration = .seconds(3)
    /// The silence after which a service is hung.
    var hung: Duration = .seconds(10)
    /// The silence after which a service is hung while several are late, which suggests that the machine is slow.
    var hungTogether: Duration = .seconds(30)
    /// The time for a hung service’s crash report, between SIGABRT and SIGKILL.
    var crashReport: Duration = .seconds(2)
    /// The time between the crash report and SIGKILL.
    var afterCrash: Duration = .milliseconds(200)
    /// The time after READY within which an end is a failed start.
    var settling: Duration = .seconds(1)
    /// The waits after failed starts, with jitter so that services don’t retry at the same time.
    var retryBackoff = Backoff.exponential(first: .milliseconds(250), longest: .seconds(30), jitter: 0.2)
    var essentialRetryBackoff = Backoff.exponential(first: .milliseconds(250), longest: .seconds(2), jitter: 0.2)
    /// The number of failures within `failureWindow` that open the circuit.
    var failuresToOpen = 6
    var failureWindow: Duration = .seconds(60)
    /// The wait before a retry while the circuit is open: after `failuresToOpen` failures of a service that isn’t
    /// essential, and for every service after exit code 78, 126 or 127 or without its program.
    var openCircuitBackoff = Backoff.constant(.seconds(300))
    /// The time from the first stop request to SIGKILL for all remaining processes.
    var stopAll: Duration = .seconds(25)
    /// The number of restarts within `restartWindow` that raise an alert.
    var restartsToWarn = 10
    var restartWindow: Duration = .seconds(3_600)
}
