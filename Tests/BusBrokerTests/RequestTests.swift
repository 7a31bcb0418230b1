import PodcastModel
import Testing
import WireMessages
import ZeroMQ

@testable import BusBroker

@Suite struct RequestTests {
    /// Returns the tickets of the requests that reached the service.
    private func tickets(_ bench: MachineBench) -> [UInt64] { bench.sent(.request).map(\.header.originSequence) }

    @Test func `a request with an origin of two megabytes is too large and reaches no service`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.client(
            "c", BusHeader(.request, time: bench.now.monotonic.advanced(by: .seconds(1)).nanoseconds),
            MachineBench.requestID(1), "queue", Frame([UInt8](repeating: 0x78, count: 2 << 20)), "do it")
        #expect(bench.failures == ["tooLarge"])
        #expect(bench.sent(.request).isEmpty)
    }

    @Test func `the bytes of requests in flight are bounded for one client and for one service`() {
        var limits = BrokerLimits()
        limits.requestBytesPerClient = 1_000
        limits.requestBytesPerService = 1_500
        var bench = MachineBench(limits: limits)
        bench.serving("queue")
        func ask(_ id: UInt8, _ client: String) {
            bench.client(
                client, BusHeader(.request, time: bench.now.monotonic.advanced(by: .seconds(1)).nanoseconds),
                MachineBench.requestID(id), "queue", "cli", Frame([UInt8](repeating: 0, count: 600)))
        }
        ask(1, "c")
        ask(2, "c")
        #expect(bench.failures == ["busy"])
        ask(3, "d")
        ask(4, "e")
        #expect(bench.failures == ["busy", "busy"])
        bench.advance(.seconds(2))
        bench.endTurn()
        bench.forget()
        ask(5, "c")
        ask(6, "d")
        #expect(bench.failures.isEmpty && bench.sent(.request).count == 2)
    }

    @Test func `a request reaches its service and the reply its client`() throws {
        var bench = MachineBench()
        bench.serving("queue", 3)
        bench.request(1)
        let request = try #require(bench.sent(.request, to: "queue#3").first)
        #expect(request.frames == [MachineBench.requestID(1), "cli", "do it"])
        #expect(request.header.time == bench.now.monotonic.advanced(by: .seconds(10)).nanoseconds)
        #expect(request.header.generation == 3)

        let reply = BusHeader(.reply, epoch: 1_000, sequence: 17, originSequence: request.header.originSequence)
        bench.service("queue#3", reply, MachineBench.requestID(1), "done")
        let answer = try #require(bench.toClients.first)
        #expect(answer.peer == "c" && answer.header.kind == .reply)
        #expect(answer.header.epoch == 1_000 && answer.header.sequence == 17)
        #expect(answer.frames == [MachineBench.requestID(1), "done"])
        #expect(bench.machine.summary.requestsInFlight == 0 && bench.machine.summary.clientsWaiting == 0)
    }

    @Test func `a service’s refusal reaches the client`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.request(1)
        let failure = BusHeader(.failure, originSequence: tickets(bench)[0])
        bench.service("queue#1", failure, MachineBench.requestID(1), "opaque")
        #expect(bench.toClients.map(\.header.kind) == [.failure])
        #expect(bench.toClients.first?.frames.last == "opaque")
    }

    @Test func `a service that is not ready is unavailable at once`() {
        var bench = MachineBench()
        bench.request(1, to: "nobody")
        bench.hello("queue")
        bench.request(2)
        bench.ready("queue")
        bench.service("queue#1", BusHeader(.goodbye, generation: 1, epoch: 1_000))
        bench.request(3)
        #expect(bench.failures == ["unavailable", "unavailable", "unavailable"])
        #expect(bench.sent(.request).isEmpty)
    }

    @Test func `a request that cannot be sent fails at once`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.request(1)
        bench.request(2)
        bench.feed(.undelivered(.request(tickets(bench)[0]), .unreachable))
        bench.feed(.undelivered(.request(tickets(bench)[1]), .wouldBlock))
        #expect(bench.failures == ["unavailable", "busy"])
        #expect(bench.machine.summary.requestsInFlight == 0)
    }

    @Test func `a request past its deadline is refused`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.request(1, seconds: 0)
        bench.request(2, seconds: -5)
        #expect(bench.failures == ["expired", "expired"])
        #expect(bench.sent(.request).isEmpty)
    }

    @Test func `a request without a reply in time has an unknown outcome`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.request(1, seconds: 1)
        bench.request(2, seconds: 2)
        bench.endTurn()
        bench.advance(.seconds(1))
        bench.endTurn()
        #expect(bench.failures == ["outcomeUnknown"])
        bench.advance(.seconds(1))
        bench.endTurn()
        #expect(bench.failures == ["outcomeUnknown", "outcomeUnknown"])
        // The late reply is dropped.
        bench.service("queue#1", BusHeader(.reply, originSequence: 1), MachineBench.requestID(1), "late")
        #expect(bench.toClients.count == 2)
    }

    @Test func `the machine reports the next deadline`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.endTurn()
        let start = bench.now.monotonic
        bench.client(
            "c", BusHeader(.request, time: start.advanced(by: .milliseconds(200)).nanoseconds),
            MachineBench.requestID(1), "queue", "cli", "")
        #expect(bench.machine.nextDeadline == start.advanced(by: .milliseconds(200)))
        bench.advance(.milliseconds(200))
        bench.endTurn()
        #expect(bench.failures == ["outcomeUnknown"])
    }

    @Test func `a deadline too far in the future is capped`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.client("c", BusHeader(.request, time: .max), MachineBench.requestID(1), "queue", "cli", "")
        bench.advance(.seconds(121))
        bench.endTurn()
        #expect(bench.failures == ["outcomeUnknown"])
    }

    @Test func `a client may have 32 requests in flight`() {
        var bench = MachineBench()
        bench.serving("queue")
        for number in 0..<33 { bench.request(UInt8(number)) }
        #expect(bench.failures == ["busy"])
        bench.request(50, client: "other")
        #expect(tickets(bench).count == 33)
        bench.service("queue#1", BusHeader(.reply, originSequence: tickets(bench)[0]), MachineBench.requestID(0), "")
        bench.request(60)
        #expect(tickets(bench).count == 34)
    }

    @Test func `a service may have 256 requests in flight`() {
        var bench = MachineBench()
        bench.serving("queue")
        for client in 0..<9 {
            for number in 0..<32 { bench.request(UInt8(number), client: "client \(client)") }
        }
        #expect(tickets(bench).count == 256)
        #expect(bench.failures == [String](repeating: "busy", count: 32))
    }

    @Test(arguments: ["goodbye", "generation", "hello", "silence"])
    func `requests to a service that disconnects are lost in flight`(_ how: String) {
        var bench = MachineBench()
        bench.serving("queue", 1)
        bench.serving("feeds")
        bench.request(1)
        bench.request(2)
        bench.request(3, to: "feeds")
        switch how {
        case "goodbye": bench.service("queue#1", BusHeader(.goodbye, generation: 1, epoch: 1_000))
        case "generation": bench.hello("queue", 2)
        case "hello": bench.hello("queue", 1)
        default:
            for _ in 0..<12 {
                bench.advance(.milliseconds(500))
                bench.service("feeds#1", BusHeader(.ping, generation: 1, epoch: 1_000))
                bench.endTurn()
            }
        }
        #expect(bench.failures == ["lostInFlight", "lostInFlight"])
        #expect(bench.machine.summary.requestsInFlight == 1)
        bench.forget()
        bench.serving("queue", 3)
        for number in 10..<20 { bench.request(UInt8(number)) }
        #expect(tickets(bench).count == 10)
    }

    @Test func `a repeat of a request in flight keeps its ticket and counts once in the window`() {
        var bench = MachineBench()
        bench.serving("queue")
        for _ in 0..<50 { bench.request(1) }
        #expect(Set(tickets(bench)).count == 1)
        #expect(tickets(bench).count == 50)
        #expect(bench.failures.isEmpty)
        bench.service("queue#1", BusHeader(.reply, originSequence: tickets(bench)[0]), MachineBench.requestID(1), "")
        #expect(bench.toClients.count == 1)
        #expect(bench.machine.summary.requestsInFlight == 0)
    }

    @Test func `the same ID from another client is another request`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.request(1, client: "a")
        bench.request(1, client: "b")
        #expect(Set(tickets(bench)).count == 2)
    }

    @Test func `a reply with a wrong ticket or ID is dropped`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.serving("feeds")
        bench.request(1)
        let ticket = tickets(bench)[0]
        bench.service("queue#1", BusHeader(.reply, originSequence: ticket + 1), MachineBench.requestID(1), "")
        bench.service("queue#1", BusHeader(.reply, originSequence: ticket), MachineBench.requestID(2), "")
        bench.service("feeds#1", BusHeader(.reply, originSequence: ticket), MachineBench.requestID(1), "")
        #expect(bench.toClients.isEmpty)
        bench.service("queue#1", BusHeader(.reply, originSequence: ticket), MachineBench.requestID(1), "")
        #expect(bench.toClients.count == 1)
    }

    @Test func `a request that names no service is refused`() {
        var bench = MachineBench()
        let deadline = bench.now.monotonic.advanced(by: .seconds(1)).nanoseconds
        for name in [Frame(""), "Queue", "a b", Frame([0xff])] {
            bench.client("c", BusHeader(.request, time: deadline), MachineBench.requestID(1), name, "cli", "")
        }
        #expect(bench.failures == ["malformed", "malformed", "malformed", "malformed"])
    }
}
