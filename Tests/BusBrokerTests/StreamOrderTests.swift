import OwnerHarness
import PodcastModel
import TestSupport
import Testing
import WireMessages
import ZeroMQ

@testable import BusBroker

@Suite struct StreamOrderTests {
    @Test func `the events of all services have consecutive sequences`() {
        var bench = MachineBench()
        bench.hello("queue")
        bench.hello("feeds")
        for number in 0..<50 {
            bench.publish(.event, "stream/queue/a", from: "queue")
            if number % 3 == 0 { bench.publish(.event, "stream/feeds/b", from: "feeds") }
        }
        #expect(bench.published.map(\.header.sequence) == Array(1...UInt64(bench.published.count)))
        #expect(Set(bench.published.map(\.header.epoch)) == [1_000])
    }

    @Test func `an event keeps its service’s header and payload`() throws {
        var bench = MachineBench()
        bench.hello("queue", 7)
        bench.forget()
        let header = BusHeader(
            .put, flags: .init(rawValue: 0x8000), generation: 7, epoch: 1_000, originSequence: 1, time: 42)
        bench.service("queue#7", header, "stream/queue/main", Frame([0, 1, 2]))
        let event = try #require(bench.published.first)
        #expect(event.topic.text == "stream/queue/main")
        #expect(event.payload == [0, 1, 2])
        #expect(event.header.kind == .put)
        #expect(event.header.flags.rawValue == 0x8000)
        #expect(event.header.generation == 7)
        #expect(event.header.originSequence == 1)
        #expect(event.header.time == 42)
    }

    @Test func `consecutive events are acknowledged in one message`() throws {
        var bench = MachineBench()
        bench.hello("queue")
        for _ in 0..<5 { bench.publish(.event, "stream/queue/a") }
        #expect(bench.sent(.acknowledge).isEmpty)
        bench.endTurn()
        let acknowledgement = try #require(bench.sent(.acknowledge).first)
        #expect(bench.sent(.acknowledge).count == 1)
        #expect(acknowledgement.header.generation == 5)
        #expect(acknowledgement.header.originSequence == 5)
        #expect(acknowledgement.header.sequence == bench.machine.head)
    }

    @Test func `an acknowledgement never spans the event of another service`() {
        var bench = MachineBench()
        bench.hello("queue")
        bench.hello("feeds")
        let start = bench.machine.head
        bench.publish(.event, "stream/queue/a", from: "queue")
        bench.publish(.event, "stream/feeds/a", from: "feeds")
        bench.publish(.event, "stream/queue/a", from: "queue")
        bench.endTurn()
        let queue = bench.sent(.acknowledge, to: "queue#1").map(\.header)
        #expect(queue.map(\.generation) == [1, 1])
        #expect(queue.map(\.originSequence) == [1, 2])
        #expect(queue.map(\.sequence) == [start + 1, start + 3])
    }

    @Test func `a refused publish consumes its sequence`() {
        var bench = MachineBench()
        bench.hello("queue")
        bench.publish(.event, "stream/queue/a")
        bench.publish(.event, "stream/feeds/stolen")
        bench.publish(.event, "stream/queue/b")
        bench.endTurn()
        #expect(bench.rejections == ["notOwner"])
        #expect(bench.sent(.reject).map(\.header.originSequence) == [2])
        #expect(bench.sent(.acknowledge).map(\.header.originSequence) == [1, 3])
        #expect(
            bench.published.filter { $0.header.kind == .event }.map(\.topic.text) == [
                "stream/queue/a", "stream/queue/b",
            ])
    }

    @Test(arguments: [
        "stream/feeds/x", "stream/queue/", "stream/queue", "stream/queue//x", "stream/queue/x/", "stream/queue/a b",
        "stream/queue/\n", "live/queue/x", "bus/heartbeat", "sync/0123456789abcdef", "", "stream/queuex/a",
        "stream/bus/service/queue", String(repeating: "stream/queue/x", count: 20),
    ])
    func `topics of other services and invalid topics are refused`(_ topic: String) {
        var bench = MachineBench()
        bench.hello("queue")
        let head = bench.machine.head
        bench.publish(.put, topic)
        #expect(bench.rejections == ["notOwner"])
        #expect(bench.machine.head == head)
        let name = ServiceName("queue") ?? .bus
        #expect(!Topic(topic).isPublishable(by: name, kind: .put))
    }

    @Test(arguments: ["stream/queue/x", "stream/queue/queue/main", "stream/queue/ä", "live/queue/level"])
    func `the topic check for bytes agrees with the one for text`(_ topic: String) {
        let rule = TopicRule(owner: .queue)
        for kind in [MessageKind.put, .delta, .delete, .event, .live] {
            let allowed = Frame(topic).withUnsafeBytes { rule.allows($0, kind: kind) }
            #expect(allowed == Topic(topic).isPublishable(by: .queue, kind: kind))
        }
        #expect(!Frame(Array(topic.utf8) + [0xff]).withUnsafeBytes { rule.allows($0, kind: .put) })
    }

    @Test func `telemetry has neither a sequence nor an origin sequence`() throws {
        var bench = MachineBench()
        bench.hello("queue")
        let head = bench.machine.head
        bench.forget()
        bench.service("queue#1", BusHeader(.live, generation: 1, epoch: 1_000, originSequence: 9), "live/queue/l", "1")
        let event = try #require(bench.published.first)
        #expect(event.header.kind == .live && event.header.sequence == 0)
        #expect(bench.machine.head == head)
        bench.publish(.event, "stream/queue/a")
        bench.endTurn()
        #expect(bench.rejections.isEmpty)
        #expect(bench.sent(.acknowledge).count == 1)
    }

    @Test func `a burst beyond the window is refused as busy`() {
        var bench = MachineBench()
        bench.hello("queue")
        for _ in 0..<257 { bench.publish(.event, "stream/queue/a") }
        #expect(bench.rejections == ["busy"])
        bench.endTurn()
        bench.publish(.event, "stream/queue/a")
        #expect(bench.rejections == ["busy"])
        bench.endTurn()
        #expect(bench.sent(.acknowledge).map(\.header.originSequence) == [256, 258])
    }

    @Test func `a payload beyond the limit is refused`() {
        var limits = BrokerLimits()
        limits.payloadBytes = 100
        var bench = MachineBench(limits: limits)
        bench.hello("queue")
        bench.publish(.put, "stream/queue/a", Frame([UInt8](repeating: 0, count: 101)))
        bench.publish(.put, "stream/queue/a", Frame([UInt8](repeating: 0, count: 100)))
        #expect(bench.rejections == ["tooLarge"])
    }

    @Test func `the heartbeat reports the head twice a second`() {
        var bench = MachineBench()
        bench.endTurn()
        bench.hello("queue")
        bench.forget()
        bench.advance(.milliseconds(499))
        bench.endTurn()
        #expect(bench.published.isEmpty)
        bench.advance(.milliseconds(1))
        bench.endTurn()
        #expect(bench.published.map(\.topic.text) == ["bus/heartbeat"])
        #expect(bench.published.map(\.header.sequence) == [1])
        #expect(bench.published.map(\.header.kind) == [.heartbeat])
        #expect(bench.machine.nextDeadline == bench.now.monotonic.advanced(by: .milliseconds(500)))
    }

    @Test func `a new subscriber of the heartbeat receives it at once`() {
        var bench = MachineBench()
        bench.endTurn()
        bench.forget()
        bench.subscribe("bus/heartbeat")
        bench.subscribe("bus/heartbeat")
        bench.endTurn()
        #expect(bench.published.map(\.topic.text) == ["bus/heartbeat"])
    }

    @Test func `topics that share a cache slot are distinguished`() {
        var cache = TopicCache()
        for round in 0..<3 {
            for number in 0..<500 {
                let topic = Frame("stream/queue/\(number)" + String(repeating: "x", count: number))
                #expect(topic.withUnsafeBytes { cache.frame(of: $0) } == topic, "round \(round)")
            }
        }
    }
}
