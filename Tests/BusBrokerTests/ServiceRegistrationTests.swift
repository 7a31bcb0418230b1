import PodcastModel
import Testing
import WireMessages
import ZeroMQ

@testable import BusBroker

@Suite struct ServiceRegistrationTests {
    @Test func `a service that registers receives WELCOME, and its state is published`() throws {
        var bench = MachineBench()
        bench.hello("queue", 7)
        let welcome = try #require(bench.sent(.welcome, to: "queue#7").first)
        #expect(welcome.header.epoch == 1_000 && welcome.header.generation == 7 && welcome.header.sequence == 0)
        bench.ready("queue", 7)
        bench.service("queue#7", BusHeader(.goodbye, generation: 7, epoch: 1_000))
        #expect(bench.states(of: "queue") == [.starting, .ready, .down])
    }

    @Test func `publishes to a bus that received no hello are refused`() {
        var bench = MachineBench()
        bench.service(
            "queue#1", BusHeader(.put, generation: 1, epoch: 1_000, originSequence: 550), "stream/queue/a", "x")
        bench.service("queue#1", BusHeader(.ready, generation: 1, epoch: 1_000, originSequence: 550))
        bench.service("queue#1", BusHeader(.ping, generation: 1, epoch: 1_000))
        #expect(bench.rejections == ["helloRequired", "helloRequired", "helloRequired"])
        #expect(bench.sent(.reject).first?.header.originSequence == 550)
        #expect(bench.machine.head == 0 && bench.published.isEmpty)
    }

    @Test func `publishes for another epoch are refused`() {
        var bench = MachineBench()
        bench.hello("queue")
        bench.publish(.put, "stream/queue/a", epoch: 999)
        bench.publish(.put, "stream/queue/a")
        #expect(bench.rejections == ["helloRequired", "helloRequired"])
        bench.hello("queue")
        bench.publish(.put, "stream/queue/a")
        #expect(bench.published.last?.topic.text == "stream/queue/a")
    }

    @Test(arguments: [0, 1, 3, 4, UInt64.max] as [UInt64])
    func `a gap or a repeat in the origin sequence makes the service register again`(_ origin: UInt64) {
        var bench = MachineBench()
        bench.hello("queue")
        bench.publish(.event, "stream/queue/a")
        let head = bench.machine.head
        bench.service(
            "queue#1", BusHeader(.event, generation: 1, epoch: 1_000, originSequence: origin), "stream/queue/a", "x")
        bench.service(
            "queue#1", BusHeader(.event, generation: 1, epoch: 1_000, originSequence: 2), "stream/queue/a", "x")
        #expect(bench.rejections == ["helloRequired", "helloRequired"])
        #expect(bench.machine.head == head)
        #expect(bench.sent(.acknowledge).map(\.header.originSequence) == [1])
        bench.hello("queue")
        bench.publish(.event, "stream/queue/b")
        #expect(bench.machine.head == head + 1)
    }

    @Test func `READY after a lost publish makes the service register again`() {
        var bench = MachineBench()
        bench.hello("queue")
        bench.publish(.put, "stream/queue/a")
        bench.service("queue#1", BusHeader(.ready, generation: 1, epoch: 1_000, originSequence: 2))
        #expect(bench.rejections == ["helloRequired"])
        #expect(bench.states(of: "queue") == [.starting])
    }

    @Test func `a newer generation fences the older one`() {
        var bench = MachineBench()
        bench.serving("queue", 5)
        bench.forget()
        bench.hello("queue", 6)
        #expect(bench.sent(.reject, to: "queue#5").map(\.code) == ["fenced"])
        bench.forget()
        bench.service("queue#5", BusHeader(.put, generation: 5, epoch: 1_000, originSequence: 1), "stream/queue/a", "x")
        bench.service("queue#5", BusHeader(.ping, generation: 5, epoch: 1_000))
        bench.service("queue#5", BusHeader(.hello, generation: 5), "queue")
        #expect(bench.rejections == ["fenced", "fenced", "fenced"])
        #expect(bench.sent(.reject).map(\.header.generation) == [6, 6, 6])
        #expect(bench.published.isEmpty)
        bench.publish(.put, "stream/queue/a", generation: 6)
        #expect(bench.published.map(\.header.generation) == [6])
    }

    @Test func `a fenced generation can neither send GOODBYE nor reply in place of its successor`() {
        var bench = MachineBench()
        bench.serving("queue", 5)
        bench.serving("queue", 6)
        bench.request(1)
        let ticket = bench.sent(.request).last?.header.originSequence ?? 0
        bench.forget()
        bench.service("queue#5", BusHeader(.goodbye, generation: 5, epoch: 1_000))
        bench.service("queue#5", BusHeader(.reply, originSequence: ticket), MachineBench.requestID(1), "no")
        #expect(bench.published.isEmpty && bench.toClients.isEmpty)
    }

    @Test func `after ten thousand names have registered and left, the next one is accepted`() {
        var bench = MachineBench()
        bench.serving("queue")
        for number in 0..<10_000 {
            let name = Self.name(number)
            bench.serving(name)
            bench.publish(.put, "stream/\(name)/a", from: name)
            bench.service("\(name)#1", BusHeader(.goodbye, generation: 1, epoch: 1_000))
            bench.endTurn()
            bench.forget()
        }
        #expect(bench.machine.summary.services == 65)
        #expect(bench.machine.registry.services.count == 65)
        // A value and a status for each, and the queue’s status.
        #expect(bench.machine.summary.retainedTopics == 129)
        bench.serving("another")
        bench.serving("supervisor")
        #expect(bench.rejections.isEmpty)
        bench.advance(.seconds(61))
        bench.endTurn()
        #expect(bench.machine.summary.services <= 3)
    }

    @Test func `the fleet’s own services are accepted when the limit of others is reached`() {
        var bench = MachineBench()
        for number in 0..<64 { bench.serving(Self.name(number)) }
        bench.hello("another")
        #expect(bench.rejections == ["busy"])
        for name in ["persistence", "playback", "queue", "feeds", "downloads", "sync", "supervisor"] {
            bench.serving(name)
            #expect(bench.sent(.welcome, to: "\(name)#1").count == 1)
        }
    }

    @Test func `a name is released a minute after its service has disconnected, with its values`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.publish(.put, "stream/queue/a")
        bench.serving("guest")
        bench.publish(.put, "stream/guest/a", from: "guest")
        for name in ["queue", "guest"] {
            bench.service("\(name)#1", BusHeader(.goodbye, generation: 1, epoch: 1_000))
        }
        bench.advance(.seconds(59))
        bench.endTurn()
        #expect(bench.machine.summary.services == 2)
        bench.forget()
        bench.advance(.seconds(2))
        bench.endTurn()
        #expect(
            bench.published.filter { $0.header.kind == .delete }.map(\.topic.text) == [
                "stream/guest/a", "stream/bus/service/guest",
            ])
        bench.fetch()
        #expect(Set(bench.fetched.map(\.topic.text)) == ["stream/queue/a", "stream/bus/service/queue"])
        // Its index is reused by the next service, which inherits nothing.
        bench.serving("visitor", 3)
        #expect(bench.machine.registry.services.count == 2)
        bench.service("guest#1", BusHeader(.ping, generation: 1, epoch: 1_000))
        #expect(bench.rejections == ["helloRequired"])
    }

    @Test(arguments: ["queue#05", "queue#+5", "queue#", "queue#5 ", "Queue#5"])
    func `a routing ID that isn’t exactly name and generation is malformed`(_ peer: String) {
        var bench = MachineBench()
        bench.serving("queue", 7)
        bench.forget()
        bench.service(peer, BusHeader(.hello, generation: 5), "queue")
        #expect(bench.rejections == ["malformed"])
    }

    /// Returns a name of letters only.
    private static func name(_ number: Int) -> String {
        "guest" + String(String(number).unicodeScalars.compactMap { UnicodeScalar($0.value + 49) }.map(Character.init))
    }

    // A value that the service doesn’t put again before READY is deleted, and its deletion is published.
    @Test func `ready deletes values that were not put again`() {
        var bench = MachineBench()
        bench.hello("queue", 1)
        for name in ["kept", "gone", "also-gone"] { bench.publish(.put, "stream/queue/\(name)") }
        bench.publish(.delta, "stream/queue/gone")
        bench.ready("queue", 1)
        bench.hello("feeds")
        bench.publish(.put, "stream/feeds/untouched", from: "feeds")

        bench.hello("queue", 2)
        bench.forget()
        bench.publish(.put, "stream/queue/kept", generation: 2)
        #expect(!bench.published.contains { $0.header.kind == .delete })
        bench.ready("queue", 2)
        #expect(
            bench.published.map { "\($0.header.kind) \($0.topic)" } == [
                "put stream/queue/kept", "delete stream/queue/also-gone", "delete stream/queue/gone",
                "put stream/bus/service/queue",
            ])
        #expect(bench.published.map(\.header.sequence) == Array(10...13))
        bench.fetch()
        #expect(
            Set(bench.fetched.map(\.topic.text)) == [
                "stream/queue/kept", "stream/feeds/untouched", "stream/bus/service/queue", "stream/bus/service/feeds",
            ])
    }

    @Test func `an observer that joins before READY still receives the old values`() {
        var bench = MachineBench()
        bench.serving("queue", 1)
        bench.publish(.put, "stream/queue/main", "old")
        bench.hello("queue", 2)
        bench.forget()
        bench.fetch()
        #expect(bench.fetched.contains { $0.topic.text == "stream/queue/main" && $0.header.generation == 1 })
        #expect(bench.toClients.first?.frames[1].text == "")
    }

    @Test func `a second hello of the same generation also deletes the retained values`() {
        var bench = MachineBench()
        bench.hello("queue")
        bench.publish(.put, "stream/queue/a")
        bench.ready("queue")
        bench.hello("queue")
        bench.ready("queue")
        #expect(bench.published.filter { $0.header.kind == .delete }.map(\.topic.text) == ["stream/queue/a"])
        #expect(bench.states(of: "queue") == [.starting, .ready, .starting, .ready])
    }

    @Test func `a second ready publishes nothing`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.forget()
        bench.ready("queue")
        #expect(bench.published.isEmpty && bench.rejections.isEmpty)
    }

    @Test func `a delta needs a put of the same registration`() {
        var bench = MachineBench()
        bench.hello("queue", 1)
        bench.publish(.delta, "stream/queue/a")
        bench.publish(.put, "stream/queue/a")
        bench.publish(.delta, "stream/queue/a")
        bench.publish(.delete, "stream/queue/a", "")
        bench.publish(.delta, "stream/queue/a")
        #expect(bench.rejections == ["noPut", "noPut"])
        bench.publish(.put, "stream/queue/a")
        bench.hello("queue", 2)
        bench.forget()
        bench.publish(.delta, "stream/queue/a", generation: 2)
        #expect(bench.rejections == ["noPut"])
    }

    @Test func `more deltas than the limit are refused`() {
        var bench = MachineBench()
        bench.hello("queue")
        bench.publish(.put, "stream/queue/a")
        for number in 0...BrokerLimits().deltasPerPut {
            bench.publish(.delta, "stream/queue/a")
            if number % 100 == 0 { bench.endTurn() }
        }
        #expect(bench.rejections == ["tooManyDeltas"])
        bench.publish(.put, "stream/queue/a")
        bench.publish(.delta, "stream/queue/a")
        #expect(bench.rejections.count == 1)
    }

    @Test func `a ping is answered with the head`() {
        var bench = MachineBench()
        bench.hello("queue")
        bench.service("queue#1", BusHeader(.ping, generation: 1, epoch: 1_000))
        #expect(bench.sent(.pong).map(\.header.sequence) == [1])
        bench.service("queue#1", BusHeader(.ping, generation: 1, epoch: 999))
        #expect(bench.rejections == ["helloRequired"])
    }

    @Test func `a silent service is down until its next hello`() {
        var bench = MachineBench()
        bench.serving("queue")
        for _ in 0..<10 {
            bench.advance(.milliseconds(500))
            bench.endTurn()
        }
        #expect(bench.states(of: "queue") == [.starting, .ready])
        bench.advance(.milliseconds(500))
        bench.endTurn()
        #expect(bench.states(of: "queue") == [.starting, .ready, .down])
        bench.service("queue#1", BusHeader(.ping, generation: 1, epoch: 1_000))
        #expect(bench.rejections == ["helloRequired"])
        bench.serving("queue")
        #expect(bench.states(of: "queue") == [.starting, .ready, .down, .starting, .ready])
    }

    @Test func `a service that pings stays up`() {
        var bench = MachineBench()
        bench.serving("queue")
        for _ in 0..<40 {
            bench.advance(.milliseconds(500))
            bench.service("queue#1", BusHeader(.ping, generation: 1, epoch: 1_000))
            bench.endTurn()
        }
        #expect(bench.states(of: "queue") == [.starting, .ready])
    }

    @Test func `a bus that was suspended itself declares no service down`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.endTurn()
        bench.advance(.seconds(60))
        bench.endTurn()
        #expect(bench.states(of: "queue") == [.starting, .ready])
    }

    @Test func `a service receives the states of the others`() throws {
        var bench = MachineBench()
        bench.serving("persistence", 3)
        bench.hello("feeds")
        bench.forget()
        bench.hello("queue")
        func told(_ peer: String) throws -> [String] {
            try bench.sent(.status, to: peer).map { received in
                let status = try WireServiceStatus(wireBytes: received.frames[0].bytes)
                #expect(status.generation == received.header.generation && received.header.epoch == bench.machine.epoch)
                return "\(status.name) \(status.state)"
            }
        }
        #expect(try told("queue#1") == ["persistence ready"])
        bench.ready("queue")
        bench.service("persistence#3", BusHeader(.goodbye, generation: 3))
        #expect(try told("queue#1") == ["persistence ready", "persistence down"])
        #expect(try told("feeds#1") == ["queue starting", "queue ready", "persistence down"])
        #expect(try told("persistence#3") == ["queue starting", "queue ready"])
        // A lost message is sent again, after the next HELLO.
        bench.feed(.undelivered(.needed("feeds#1"), .wouldBlock))
        bench.publish(.event, "stream/feeds/a", from: "feeds")
        #expect(bench.rejections == ["helloRequired"])
        bench.forget()
        bench.hello("feeds")
        #expect(try told("feeds#1") == ["queue ready"])
    }

    @Test func `a service whose acknowledgements can’t be sent must register again`() {
        var bench = MachineBench()
        bench.hello("queue")
        bench.publish(.event, "stream/queue/a")
        bench.feed(.undelivered(.needed("queue#1"), .wouldBlock))
        bench.publish(.event, "stream/queue/a")
        #expect(bench.rejections == ["helloRequired"])
    }

    @Test(
        arguments: [
            ("queue#2", "queue", 1), ("queue#1", "feeds", 1), ("queue", "queue", 1), ("#1", "", 1), ("bus#1", "bus", 1),
            ("Queue#1", "Queue", 1), ("queue#0", "queue", 0), ("queue#1#1", "queue", 1), ("queue#-1", "queue", 1),
        ] as [(String, String, UInt32)])
    func `a hello that does not match its routing ID is refused`(_ peer: String, _ name: String, _ generation: UInt32) {
        var bench = MachineBench()
        bench.service(peer, BusHeader(.hello, generation: generation), Frame(name))
        #expect(bench.rejections == ["malformed"])
        #expect(bench.machine.registry.services.isEmpty)
    }

    @Test func `the number of services is bounded`() {
        var limits = BrokerLimits()
        limits.services = 2
        var bench = MachineBench(limits: limits)
        bench.hello("a")
        bench.hello("b")
        bench.hello("c")
        bench.hello("b", 2)
        #expect(bench.rejections == ["busy", "fenced"])
    }
}
