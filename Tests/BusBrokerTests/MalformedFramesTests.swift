import PodcastModel
import TestSupport
import Testing
import WireMessages
import ZeroMQ

@testable import BusBroker

/// A malformed message, and the socket on which it arrives.
struct MalformedCase: Sendable, CustomTestStringConvertible {
    enum Door: Sendable, CaseIterable { case service, client, subscription }

    var name: String
    var door: Door
    /// The frames without the routing ID.
    var frames: Message

    var testDescription: String { "\(door): \(name)" }

    static func header(_ kind: MessageKind, truncatedTo length: Int = BusHeader.length) -> Frame {
        Frame(Array(BusHeader(kind, generation: 1, epoch: 1_000, originSequence: 1).encoded.prefix(length)))
    }

    private static func bytes(_ change: (inout [UInt8]) -> Void) -> Frame {
        var bytes = BusHeader(.put, generation: 1, epoch: 1_000, originSequence: 1).encoded
        change(&bytes)
        return Frame(bytes)
    }

    static let all: [MalformedCase] =
        routed + [
            MalformedCase(name: "no byte", door: .subscription, frames: [.empty]),
            MalformedCase(name: "no subscription", door: .subscription, frames: ["hello"]),
            MalformedCase(name: "two frames", door: .subscription, frames: [Frame([1]), "x"]),
            MalformedCase(
                name: "a nonce that is no text", door: .subscription,
                frames: [Frame([1] + Array("sync/".utf8) + [0xff])]),
            MalformedCase(name: "fetch without a nonce", door: .client, frames: [header(.fetch)]),
            MalformedCase(name: "fetch with a bad nonce", door: .client, frames: [header(.fetch), "NONCE"]),
            MalformedCase(
                name: "fetch with a frame too many", door: .client, frames: [header(.fetch), MachineBench.nonce, ""]),
            MalformedCase(
                name: "request with a short id", door: .client, frames: [header(.request), "id", "queue", "", ""]),
            MalformedCase(
                name: "request without a payload", door: .client,
                frames: [header(.request), MachineBench.requestID(1), "queue", ""]),
            MalformedCase(name: "an answer", door: .client, frames: [header(.reply), MachineBench.requestID(1), ""]),
            MalformedCase(name: "a publish", door: .client, frames: [header(.put), "stream/queue/a", ""]),
            MalformedCase(name: "hello without a name", door: .service, frames: [header(.hello)]),
            MalformedCase(name: "hello of another name", door: .service, frames: [header(.hello), "feeds"]),
            MalformedCase(name: "publish without a payload", door: .service, frames: [header(.put), "stream/queue/a"]),
            MalformedCase(
                name: "publish with a frame too many", door: .service, frames: [header(.put), "stream/queue/a", "", ""]),
            MalformedCase(name: "publish without a topic", door: .service, frames: [header(.put)]),
            MalformedCase(
                name: "answer without a payload", door: .service, frames: [header(.reply), MachineBench.requestID(1)]),
            MalformedCase(name: "telemetry of another", door: .service, frames: [header(.live), "live/feeds/x", ""]),
            MalformedCase(name: "a fetch", door: .service, frames: [header(.fetch), MachineBench.nonce]),
            MalformedCase(name: "a welcome", door: .service, frames: [header(.welcome)]),
        ]

    /// Cases for both routers.
    private static let routed: [MalformedCase] = [Door.service, .client].flatMap { door in
        [
            MalformedCase(name: "no header", door: door, frames: []),
            MalformedCase(name: "an empty header", door: door, frames: [.empty]),
            MalformedCase(name: "a later version", door: door, frames: [bytes { $0[0] = 2 }]),
            MalformedCase(name: "version 0", door: door, frames: [bytes { $0[0] = 0 }]),
            MalformedCase(name: "an unknown kind", door: door, frames: [bytes { $0[1] = 99 }]),
            MalformedCase(name: "noise", door: door, frames: [Frame([UInt8](repeating: 0xff, count: 40))]),
        ]
            + (1..<BusHeader.length).map { length in
                MalformedCase(
                    name: "a header of \(length) bytes", door: door,
                    frames: [header(.put, truncatedTo: length), "a", "b"])
            }
    }
}

@Suite struct MalformedFramesTests {
    @Test(arguments: MalformedCase.all)
    func `malformed frames are counted and change nothing`(_ malformed: MalformedCase) {
        var bench = MachineBench()
        bench.serving("queue")
        bench.endTurn()
        let before = bench.machine.summary
        let published = bench.published.count
        switch malformed.door {
        case .service: bench.feed(.service(["queue#1"] + malformed.frames))
        case .client: bench.feed(.client(["c"] + malformed.frames))
        case .subscription: bench.feed(.subscription(malformed.frames))
        }
        #expect(bench.machine.summary.malformed == 1)
        #expect(bench.machine.summary.head == before.head)
        #expect(bench.published.count == published)
        #expect(bench.machine.summary.requestsInFlight == 0)
        // The machine continues to work.
        bench.hello("queue", 2)
        bench.publish(.put, "stream/queue/a", generation: 2)
        #expect(bench.published.last?.topic.text == "stream/queue/a")
    }

    @Test(arguments: MalformedCase.Door.allCases)
    func `an empty message is counted`(_ door: MalformedCase.Door) {
        var bench = MachineBench()
        switch door {
        case .service: bench.feed(.service([]))
        case .client: bench.feed(.client([]))
        case .subscription: bench.feed(.subscription([]))
        }
        #expect(bench.machine.summary.malformed == 1)
    }

    @Test func `many malformed messages are logged once per second`() {
        var bench = MachineBench()
        for step in 0..<40 {
            for _ in 0..<100 { bench.feed(.client(["c", "garbage"])) }
            if step > 0 { bench.advance(.milliseconds(100)) }
            bench.endTurn()
        }
        #expect((3...5).contains(bench.warnings.count))
        #expect(bench.machine.summary.malformed == 4_000)
    }

    @Test func `a malformed publish is rejected and consumes its sequence`() {
        var bench = MachineBench()
        bench.hello("queue")
        bench.service("queue#1", BusHeader(.put, generation: 1, epoch: 1_000, originSequence: 1), "stream/queue/a")
        #expect(bench.rejections == ["malformed"])
        bench.service(
            "queue#1", BusHeader(.put, generation: 1, epoch: 1_000, originSequence: 2), "stream/queue/a", "x")
        #expect(bench.published.last?.topic.text == "stream/queue/a")
    }

    @Test func `random bytes never crash the bus`() {
        var generator = SeededGenerator(seed: 20_240_229)
        var bench = MachineBench()
        bench.serving("queue")
        for _ in 0..<20_000 {
            let message = Self.randomMessage(&generator)
            switch Int.random(in: 0..<3, using: &generator) {
            case 0: bench.feed(.service(message))
            case 1: bench.feed(.client(message))
            default: bench.feed(.subscription(message))
            }
            if Int.random(in: 0..<50, using: &generator) == 0 {
                bench.advance(.milliseconds(Int.random(in: 0..<2_000, using: &generator)))
                bench.endTurn()
                bench.forget()
            }
        }
        #expect(bench.machine.summary.malformed > 0)
        bench.serving("queue", .max)
        #expect(bench.machine.registry.services.contains { $0.name == .queue && $0.state == .ready })
    }

    private static func randomMessage(_ generator: inout SeededGenerator) -> Message {
        let peers: [Frame] = ["queue#1", "queue#2", "feeds#1", "c", "", "x#y"]
        let texts: [Frame] = [
            "queue", "stream/queue/a", "live/queue/a", MachineBench.nonce, MachineBench.requestID(1), "",
            Frame([1] + Array("sync/0123456789abcdef".utf8)), Frame([UInt8](repeating: 0xfe, count: 70)),
        ]
        var header = BusHeader(
            MessageKind.allCases.randomElement(using: &generator) ?? .put,
            generation: .random(in: 0...3, using: &generator),
            epoch: Bool.random(using: &generator) ? 1_000 : .random(in: .min ... .max, using: &generator),
            sequence: .random(in: 0...5, using: &generator),
            originSequence: .random(in: 0...5, using: &generator),
            time: Bool.random(using: &generator) ? .random(in: .min ... .max, using: &generator) : 0
        ).encoded
        if Int.random(in: 0..<4, using: &generator) == 0 {
            header[Int.random(in: 0..<40, using: &generator)] = .random(in: 0...255, using: &generator)
        }
        var message: Message = [peers.randomElement(using: &generator) ?? "c", Frame(header)]
        for _ in 0..<Int.random(in: 0..<6, using: &generator) {
            message.append(texts.randomElement(using: &generator) ?? "")
        }
        return Array(message.dropFirst(Int.random(in: 0..<8, using: &generator) == 0 ? 1 : 0))
    }
}
