import PodcastModel
import SupervisorControl

extension SupervisorMachine {
    mutating func stop(now: MonotonicTime, _ effects: inout [SupervisorEffect]) {
        guard !isStopping else { return }
        isStopping = true
        isReady = false
        stopDeadline = now.advanced(by: limits.stopAll)
        effects.append(.log("stopping"))
        for index in services.indices {
            services[index].nextTry = nil
            services[index].startsAgain = false
            if !services[index].runs, services[index].condition != .starting { services[index].condition = .stopped }
        }
    }

    /// Terminates each service that no running service requires.
    mutating func terminateUnrequired(now: MonotonicTime, _ effects: inout [SupervisorEffect]) {
        for index in services.indices where services[index].runs {
            let name = services[index].plan.name
            guard !services[index].isEnding,
                !services.contains(where: { $0.runs && $0.plan.requires.contains(name) })
            else { continue }
            services[index].beginEnd(.stopping, within: services[index].plan.stopLimit, because: nil, now: now)
            effects.append(.terminate(name))
        }
        guard !isFinished, services.allSatisfy({ $0.condition == .stopped }) else { return }
        isFinished = true
        effects.append(.finished)
    }

    // MARK: - Time

    mutating func tick(now: MonotonicTime, _ effects: inout [SupervisorEffect]) {
        excuseOwnDelay(now: now)
        let together = services.count { $0.lastSign.map { now.since($0) > limits.late } ?? false } > 1
        for index in services.indices where services[index].runs {
            let name = services[index].plan.name
            if let due = services[index].killAt, now >= due {
                services[index].killAt = now.advanced(by: limits.crashReport)
                effects.append(.log("\(name) didn’t end in time and is killed", .warning))
                effects.append(.kill(name))
            }
            if let silence = silence(of: services[index], together: together, now: now) {
                services[index].beginEnd(.hung, within: limits.crashReport, because: "it " + silence, now: now)
                effects.append(.log("\(name) \(silence); restarting it", .warning))
                effects.append(.abort(name))
            } else if services[index].condition == .ready,
                let sign = services[index].lastSign, now.since(sign) > limits.late
            {
                services[index].condition = .late
            }
        }
        if let stopDeadline, now >= stopDeadline, !isFinished {
            self.stopDeadline = now.advanced(by: limits.crashReport)
            for service in services where service.runs { effects.append(.kill(service.plan.name)) }
        }
        lastTick = now
    }

    /// Excludes time in which the supervisor itself wasn’t running from the services’ silence.
    private mutating func excuseOwnDelay(now: MonotonicTime) {
        guard let lastTick, now.since(lastTick) > .seconds(2) else { return }
        let gap = now.since(lastTick)
        for index in services.indices {
            services[index].lastSign = services[index].lastSign.map { min(now, $0.advanced(by: gap)) }
            services[index].startDeadline = services[index].startDeadline.map { $0.advanced(by: gap) }
        }
    }

    /// The reason why the service is hung, or nil.
    private func silence(of service: ServiceState, together: Bool, now: MonotonicTime) -> String? {
        guard service.serves || service.condition == .starting else { return nil }
        if let due = service.startDeadline, service.readyAt == nil, now >= due {
            return "has reported nothing since its start"
        }
        let limit = together ? limits.hungTogether : limits.hung
        guard let sign = service.lastSign, now.since(sign) >= limit else { return nil }
        return "has sent no liveness report for \(now.since(sign).components.seconds) s"
    }
}
