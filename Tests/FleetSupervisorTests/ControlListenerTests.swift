import BusKit
import CProcess
import LibC
import PodcastModel
import SupervisorControl
import TestSupport
import Testing

@testable import FleetSupervisor

/// Tests the control socket while the process has no free descriptor. The limit is lowered below the open descriptors
/// only for the call, so that nothing else in the process is affected.
@Suite(.serialized) struct ControlListenerTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path + "/s" }

    init() throws { folder = try TemporaryFolder() }

    private func withoutDescriptors<Result>(leaving count: Int, _ body: () throws -> Result) rethrows -> Result {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(7), &limit)
        let before = limit
        // The system assigns the lowest free number, so gaps below the limit are filled first.
        var fillers: [Int32] = []
        let top = dup(0)
        close(top)
        limit.rlim_cur = rlim_t(top)
        setrlimit(__rlimit_resource_t(7), &limit)
        while true {
            let filler = dup(0)
            guard filler >= 0 else { break }
            fillers.append(filler)
        }
        for filler in fillers.suffix(count) { close(filler) }
        defer {
            for filler in fillers.dropLast(count) { close(filler) }
            var limit = before
            setrlimit(__rlimit_resource_t(7), &limit)
        }
        return try body()
    }

    @Test func `a client without a free descriptor is refused and doesn’t keep the supervisor busy`() throws {
        var listener = ControlListener(lockstep_listen(path))
        defer { listener.close() }
        let clients = (0..<3).map { _ in lockstep_connect(path) }
        defer { for client in clients { close(client) } }
        #expect(clients.allSatisfy { $0 >= 0 })
        let accepted = withoutDescriptors(leaving: 0) { listener.accept(now: MonotonicTime(nanoseconds: 1)) }
        #expect(accepted.isEmpty)
        var waiting = pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0)
        #expect(poll(&waiting, 1, 0) == 0, "no client waits, so poll reports nothing")
        for client in clients {
            var bytes = [UInt8](repeating: 0, count: 1_024)
            let count = read(client, &bytes, bytes.count)
            let reply = try ControlCoding.reply(Array(bytes[..<max(0, count)].dropLast()))
            #expect(reply.error?.code == FailureCode.busy.rawValue)
        }
        let late = lockstep_connect(path)
        defer { close(late) }
        let taken = listener.accept(now: MonotonicTime(nanoseconds: 2))
        #expect(taken.count == 1)
        for connection in taken { close(connection.descriptor) }
    }

    @Test func `without even the reserved descriptor no client is accepted for a second`() {
        let listening = lockstep_listen(path)
        let client = lockstep_connect(path)
        defer { close(client) }
        let second = MonotonicTime(nanoseconds: 1_000_000_000)
        var listener = withoutDescriptors(leaving: 0) {
            var listener = ControlListener(listening)
            #expect(listener.accept(now: second).isEmpty)
            return listener
        }
        defer { listener.close() }
        #expect(listener.descriptor == -1)
        #expect(listener.deadline == second.advanced(by: .seconds(1)))
        #expect(listener.accept(now: second.advanced(by: .milliseconds(500))).isEmpty)
        let taken = listener.accept(now: second.advanced(by: .seconds(1)))
        #expect(taken.count == 1 && listener.descriptor == listening)
        for connection in taken { close(connection.descriptor) }
    }
}
