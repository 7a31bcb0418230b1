import BusKit
import LibC
import PodcastModel
import ProcessKit
import SupervisorControl

extension SupervisorLoop {
    /// Answers a line of the control socket, at once or later.
    func answer(_ line: [UInt8], at index: Int) {
        do {
            let request = try ControlCoding.request(line)
            if let reply = try perform(request, at: index) { connections[index].send(reply) }
        } catch {
            connections[index].send(ControlReply(error: ControlError(error)))
        }
    }

    private func perform(_ request: ControlRequest, at index: Int) throws(Failure) -> ControlReply? {
        switch request.op {
        case "ps": return ControlReply(services: reports())
        case "ready":
            if machine.isReady { return ControlReply(message: "Every service is ready.") }
            if let failure = machine.failure { throw Failure(.unavailable, failure) }
            connections[index].waitsForReady = true
            return nil
        case "restart":
            let name = try known(request.service)
            guard !machine.isStopping else { throw Failure(.unavailable, "The fleet is being stopped.") }
            guard name != "supervisor" else {
                throw Failure(
                    .notApplicable,
                    "The supervisor can’t restart itself; use `lockstep down` and `lockstep up` to restart everything.")
            }
            handle(.restart(name))
            return ControlReply(message: "\(name) is being restarted.")
        case "resetFailed":
            let name = try known(request.service)
            let had = machine.service(name)
            handle(.resetFailed(name))
            if had?.condition == .failed || had?.condition == .retrying {
                return ControlReply(message: "Retrying \(name) now.")
            }
            return ControlReply(
                message: had?.concern == nil
                    ? "No change: \(name) has not failed." : "Cleared the earlier failure of \(name).")
        case "logs":
            let name = try request.service.map { service throws(Failure) in try known(service) }
            let lines = LogReader(configuration.home).last(min(max(request.lines ?? 100, 0), 1_000), of: name)
            connections[index].follows = request.follow == true ? name ?? "" : nil
            return ControlReply(lines: lines)
        case "down":
            connections[index].waitsForEnd = true
            writeLog("stop requested by a client")
            handle(.stop)
            return nil
        default:
            throw Failure(
                .unknownCommand,
                "“\(request.op)” isn’t an operation; use ps, ready, restart, resetFailed, logs or down.")
        }
    }

    private func known(_ name: String?) throws(Failure) -> String {
        guard let name else { throw Failure(.invalidArgument, "Specify a service.") }
        let bare = name.hasPrefix("lockstep-") ? String(name.dropFirst(9)) : name
        if machine.service(bare) != nil || bare == "supervisor" { return bare }
        let names = (machine.services.map(\.plan.name) + ["supervisor"]).joined(separator: ", ")
        throw Failure(.notFound, "There is no service “\(bare)”. The services are \(names).")
    }

    /// Notifies the waiting clients that every service is ready, or of the reason why not.
    func reportReady(_ failure: String?) {
        if let failure { notifier.status(failure) } else { notifier.status("Every service is ready.") }
        // The service manager is notified in both cases: a failing service is retried while the others work.
        notifier.ready()
        if let failure {
            writeLog(failure, .error)
        } else if wasReady {
            writeLog("every service is ready again")
        } else {
            writeLog("every service is ready, \(rounded(SystemClocks.monotonic().since(startedAt))) s after the start")
        }
        wasReady = wasReady || failure == nil
        for index in connections.indices where connections[index].waitsForReady {
            connections[index].waitsForReady = false
            connections[index].send(
                failure.map { ControlReply(error: ControlError(Failure(.unavailable, $0))) }
                    ?? ControlReply(message: "Every service is ready."))
        }
    }

    private func rounded(_ duration: Duration) -> Double { (duration / .seconds(1) * 100).rounded() / 100 }

    private func reports() -> [ServiceReport] {
        let now = SystemClocks.monotonic()
        let services = machine.services.map { service in
            var report = ServiceReport(
                name: service.plan.name, state: service.condition.rawValue, pid: service.pid)
            report.restarts = service.restarts
            report.uptime = service.pid == nil ? nil : service.startedAt.map { rounded(now.since($0)) }
            report.status = service.status
            report.lastEnd = service.lastEnd
            report.nextTry = service.nextTry.map { max(0, rounded($0.since(now))) }
            report.warning = service.warning
            return report
        }
        var own = ServiceReport(name: "supervisor", state: machine.isStopping ? "stopping" : "ready", pid: getpid())
        own.uptime = rounded(now.since(startedAt))
        let crashed = crashes.all()
        return (services + [own]).map { report in
            var report = report
            report.pss = report.pid.flatMap(ProcessFacts.proportionalMemory)
            report.written = report.pid.flatMap(ProcessFacts.bytesWritten)
            report.cpu = report.pid.flatMap(ProcessFacts.processorTime)
            report.crashReport = crashed.first { $0.service == report.name }?.path
            return report
        }
    }
}
