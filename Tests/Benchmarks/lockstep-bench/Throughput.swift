import BusKit
import Foundation
import PodcastModel
import WireMessages
import ZeroMQ

/// How many acknowledged events of 200 bytes the bus carries in a second, to one subscriber, 256 unacknowledged.
enum Throughput {
    static func measure(_ fleet: BenchFleet) throws {
        let first = UInt32(Date().timeIntervalSince1970)
        let rates = try (0..<5).map { try rate(fleet, generation: first + $0) }
        Row(name: "throughput", value: rates.quantile(0.5), unit: "1/s", peer: "libzmq.throughput", budget: ">= 0.5x")
            .print()
    }

    private static func rate(_ fleet: BenchFleet, generation: UInt32) throws -> Double {
        let count: UInt64 = 200_000
        var service = try Socket(
            .dealer, in: fleet.context,
            options: [
                .linger(0), .immediate(true), .receiveTimeout(10_000), .routingID(Array("bench#\(generation)".utf8)),
            ])
        defer { service.close() }
        try service.connect(fleet.endpoint("svc.sock"))
        _ = try service.send([Frame(BusHeader(.hello, generation: generation).encoded), "bench"], wait: true)
        guard let welcome = try service.receive(wait: true) else {
            throw BenchFleet.Failed(description: "the bus does not answer HELLO")
        }
        let epoch = try BusHeader(decoding: welcome[0].bytes).epoch
        let counter = SubscriberCount(fleet, until: count)
        let thread = Thread { counter.run() }
        thread.start()
        counter.started.wait()
        let payload = Frame([UInt8](repeating: 0x2a, count: 200))
        let topic: Frame = "stream/bench/event"
        let start = monotonicSeconds()
        var sent: UInt64 = 0
        var acknowledged: UInt64 = 0
        while acknowledged < count {
            while sent < count, sent - acknowledged < 256 {
                sent += 1
                let header = BusHeader(.event, generation: generation, epoch: epoch, originSequence: sent)
                _ = try service.send([Frame(header.encoded), topic, payload], wait: true)
            }
            guard let answer = try service.receive(wait: true) else {
                throw BenchFleet.Failed(description: "the bus does not acknowledge")
            }
            let header = try BusHeader(decoding: answer[0].bytes)
            if header.kind == .status { continue }
            guard header.kind == .acknowledge else {
                throw BenchFleet.Failed(description: "the bus answers \(header.kind) \(answer.dropFirst())")
            }
            acknowledged = header.originSequence
        }
        counter.ended.wait()
        let rate = Double(count) / (monotonicSeconds() - start)
        _ = try service.send([Frame(BusHeader(.goodbye, generation: generation, epoch: epoch).encoded)], wait: true)
        return rate
    }

    /// A subscriber on a thread of its own, which counts until it has seen the last event.
    private final class SubscriberCount: @unchecked Sendable {
        // Everything but the semaphores is touched by the subscriber's thread alone.
        let started = DispatchSemaphore(value: 0)
        let ended = DispatchSemaphore(value: 0)
        private let fleet: BenchFleet
        private let last: UInt64

        init(_ fleet: BenchFleet, until last: UInt64) {
            self.fleet = fleet
            self.last = last
        }

        func run() {
            defer { ended.signal() }
            guard
                var socket = try? Socket(
                    .subscribe, in: fleet.context,
                    options: [
                        .linger(0), .receiveHighWaterMark(0), .receiveTimeout(5_000),
                        .subscribe(Array("stream/bench/".utf8)), .subscribe(Array("bus/heartbeat".utf8)),
                    ]), let endpoint = try? fleet.endpoint("pub.sock")
            else { return }
            defer { socket.close() }
            try? socket.connect(endpoint)
            // The heartbeat that answers the subscription says that it is in force.
            _ = try? socket.receive(wait: true)
            started.signal()
            while let message = try? socket.receive(wait: true), message.count == 3 {
                guard let header = try? BusHeader(decoding: message[1].bytes) else { continue }
                if header.kind == .event, header.originSequence >= last { return }
            }
        }
    }
}
