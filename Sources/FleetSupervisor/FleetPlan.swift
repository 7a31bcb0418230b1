package import PodcastModel
import WireMessages

/// A service as the supervisor knows it: its program, what it needs first, how long it may take to stop.
package struct ServicePlan: Sendable, Hashable {
    /// Without the prefix of its executable: `queue` for `lockstep-queue`.
    package var name: String
    /// The services that must be ready before it starts, and that stop only after it.
    package var requires: [String]
    /// How long it may take from SIGTERM to its end, before SIGKILL.
    package var stopLimit: Duration
    /// Whether the fleet can’t work without it: then the supervisor never gives it up, and retries at most 2 s apart.
    package var isEssential: Bool

    package init(_ name: String, requires: [String] = [], stopLimit: Duration = .seconds(5), isEssential: Bool = false)
    {
        self.name = name
        self.requires = requires
        self.stopLimit = stopLimit
        self.isEssential = isEssential
    }

    /// The name of its executable.
    package var program: String { "lockstep-" + name }
}

/// The services of a fleet, each after those that it requires.
package struct FleetPlan: Sendable, Hashable {
    /// In order of their start.
    package let services: [ServicePlan]

    /// A fleet of `services`. A requirement that does not stand before its service is left out: so there are no circles.
    package init(_ services: [ServicePlan]) {
        var known: Set<String> = []
        self.services = services.compactMap { service in
            guard known.insert(service.name).inserted else { return nil }
            var service = service
            service.requires = service.requires.filter { known.contains($0) && $0 != service.name }
            return service
        }
    }

    /// The fleet of this version.
    package static let standard = FleetPlan(
        ServiceCatalog.started.map {
            ServicePlan(
                $0.name.text, requires: $0.requires.map(\.text), stopLimit: $0.stopLimit, isEssential: $0.isEssential)
        })
}

/// The supervisor's limits. The tests of the machine use the same ones.
package struct SupervisorLimits: Sendable, Hashable {
    /// From the start to the first word (READY, STATUS or WATCHDOG), and from each word before READY to the next.
    package var startSilence: Duration = .seconds(90)
    /// Without a sign of life for this long a service is shown as late.
    package var late: Duration = .seconds(3)
    /// Without a sign of life for this long it counts as hung.
    package var hung: Duration = .seconds(10)
    /// The same while several are late together: then the machine is at fault rather than they.
    package var hungTogether: Duration = .seconds(30)
    /// The time that a hung service has for its crash report, between SIGABRT and SIGKILL.
    package var crashReport: Duration = .seconds(2)
    /// The time that a process which has left its crash report has to end by itself.
    package var afterCrash: Duration = .milliseconds(200)
    /// A death within this time of READY is a failed start.
    package var settling: Duration = .seconds(1)
    /// The waits after failed starts, varied so that services do not retry in step.
    package var retry = Backoff.exponential(first: .milliseconds(250), longest: .seconds(30), jitter: 0.2)
    /// The same for an essential service.
    package var essentialRetry = Backoff.exponential(first: .milliseconds(250), longest: .seconds(2), jitter: 0.2)
    /// The number of failures within `failureWindow` that open the circuit.
    package var failuresToOpen = 6
    package var failureWindow: Duration = .seconds(60)
    /// The next try of a service whose circuit is open.
    package var openRetry = Backoff.constant(.seconds(300))
    /// From the first request to stop to SIGKILL for all that is left.
    package var stopAll: Duration = .seconds(25)
    /// The number of restarts within `restartWindow` that raise an alert.
    package var restartsToWarn = 10
    package var restartWindow: Duration = .seconds(3_600)

    package init() {}
}
