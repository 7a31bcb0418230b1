package import BusKit
import CProcess
import LibC
package import PodcastModel

/// Sends requests to a home’s supervisor; works without the bus. Its calls block until the answer arrives.
package struct SupervisorControlClient: Sendable {
    private let home: LockstepHome

    package init(home: LockstepHome) { self.home = home }

    /// Returns a report on every service, the supervisor last. Like every call, it throws `noFleet` without a fleet.
    package func ps() throws(Failure) -> [ServiceReport] {
        try ask(ControlRequest("ps"), within: .seconds(5)).services ?? []
    }

    /// Waits until every service is ready.
    ///
    /// - Throws: `unavailable` with the reason if a service can’t be started; `outcomeUnknown` after `limit`.
    package func ready(within limit: Duration = .seconds(30)) throws(Failure) {
        _ = try ask(ControlRequest("ready"), within: limit)
    }

    /// Stops a service and starts it again; returns a sentence with the outcome.
    ///
    /// - Throws: `notFound` for an unknown service, like the calls below.
    package func restart(_ service: String) throws(Failure) -> String {
        try ask(ControlRequest("restart", service: service), within: .seconds(5)).message ?? ""
    }

    /// Retries a failed service now; returns a sentence with the outcome.
    package func resetFailed(_ service: String) throws(Failure) -> String {
        try ask(ControlRequest("resetFailed", service: service), within: .seconds(5)).message ?? ""
    }

    /// Stops everything in order; returns when another fleet may be started.
    package func down() throws(Failure) {
        _ = try ask(ControlRequest("down"), within: .seconds(40))
    }

    /// Passes the last lines of a service, or of all, to `handle`, and with `follow` also new lines, until `handle`
    /// returns false or the fleet stops.
    package func logs(of service: String?, lines: Int, follow: Bool, _ handle: ([String]) -> Bool) throws(Failure) {
        let connection = try Connection(home)
        try connection.send(ControlRequest("logs", service: service, lines: lines, follow: follow))
        repeat {
            let reply: ControlReply
            do { reply = try connection.receive(within: follow ? nil : .seconds(5)) } catch {
                guard follow, error.known == .noFleet else { throw error }
                return
            }
            if let error = reply.error { throw error.failure }
            if !handle(reply.lines ?? []) { return }
        } while follow
    }

    private func ask(_ request: ControlRequest, within limit: Duration) throws(Failure) -> ControlReply {
        let connection = try Connection(home)
        try connection.send(request)
        let reply = try connection.receive(within: limit)
        if let error = reply.error { throw error.failure }
        return reply
    }
}

/// One connection to the control socket.
private final class Connection {
    private let descriptor: Int32
    private var pending: [[UInt8]] = []
    private var splitter = LineSplitter(limit: .max)

    init(_ home: LockstepHome) throws(Failure) {
        let home = home.ofRunningFleet()
        try home.checkSocketPaths()
        var descriptor = lockstep_connect(home.controlSocket)
        // `EAGAIN` means that the listening socket’s backlog is full, so connecting is retried.
        for _ in 0..<20 where descriptor < 0 && errno == EAGAIN {
            _ = poll(nil, 0, 4)
            descriptor = lockstep_connect(home.controlSocket)
        }
        guard descriptor >= 0 else {
            guard errno == EACCES || errno == EPERM else { throw FleetPresence.noFleet(in: home) }
            throw Failure(.badConfiguration, "Couldn’t open \(home.controlSocket): \(SystemError.reason()).")
        }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    func send(_ request: ControlRequest) throws(Failure) {
        let line = ControlCoding.line(request)
        let count = sendBytes(descriptor, line, waiting: true)
        guard count == line.count else { throw FleetPresence.noFleet }
    }

    func receive(within limit: Duration?) throws(Failure) -> ControlReply {
        let due = limit.map { SystemClocks.monotonic().advanced(by: $0) }
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while pending.isEmpty {
            let left = due.map { Int32(max(0, min($0.since(SystemClocks.monotonic()) / .milliseconds(1) + 1, 2e9))) }
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let outcome = poll(&waiting, 1, left ?? -1)
            if outcome < 0, errno == EINTR { continue }
            guard outcome > 0 else {
                throw Failure(.outcomeUnknown, "The supervisor didn’t answer in time. See `lockstep ps`.")
            }
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count > 0 else { throw FleetPresence.noFleet }
            pending += splitter.lines(chunk[..<count])
        }
        return try ControlCoding.reply(pending.removeFirst())
    }
}
