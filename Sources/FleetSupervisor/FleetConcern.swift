import PodcastModel
import SupervisorControl

/// A reason why a service needs its user’s attention.
enum FleetConcern: Sendable, Hashable {
    /// The number of restarts within an hour, and the end of the last process.
    case restartsOften(Int, last: String)
    /// A sentence that names the service and the reason.
    case doesNotStart(String)

    /// The code of its alert, which stays the same during one occurrence.
    var code: String {
        switch self {
        case .restartsOften: "restartsOften"
        case .doesNotStart: "serviceFailed"
        }
    }
}

extension SupervisorMachine {
    mutating func reportConcerns(now: MonotonicTime, _ effects: inout [SupervisorEffect]) {
        for index in services.indices {
            services[index].dropOldRestarts(now: now, limits)
            let concern = concern(about: services[index], now: now)
            guard concern != services[index].concern else { continue }
            services[index].concern = concern
            effects.append(.concern(services[index].plan.name, concern))
        }
    }

    /// The time at which a concern ends without a further event; nil if no concern ends by time.
    var concernDeadline: MonotonicTime? {
        services.compactMap { service -> MonotonicTime? in
            switch service.concern {
            case .doesNotStart: service.readyAt?.advanced(by: limits.settling)
            case .restartsOften: service.restartTimes.first?.advanced(by: limits.restartWindow + .milliseconds(1))
            case nil: nil
            }
        }.min()
    }

    private func concern(about service: ServiceState, now: MonotonicTime) -> FleetConcern? {
        let hasFailed =
            service.circuitIsOpen || service.plan.isEssential && service.failures.count >= limits.failuresToOpen
        // After the service was ready for a while, earlier failures don’t count, even if it stops or hangs.
        let isSettled = service.readyAt.map { now.since($0) >= limits.settling } ?? false
        if hasFailed, !isSettled {
            // During a retry the concern doesn’t change.
            if case .doesNotStart = service.concern, service.condition == .starting { return service.concern }
            return .doesNotStart(failureSentence(service))
        }
        guard service.restartTimes.count >= limits.restartsToWarn else { return nil }
        return .restartsOften(service.restartTimes.count, last: service.lastEnd ?? "ended")
    }
}
