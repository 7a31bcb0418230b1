import BusKit
import Foundation
import NIOConcurrencyHelpers
import PodcastModel
import WireMessages
import ZeroMQ

/// Measures how many acknowledged events of 200 bytes per second the bus carries to one subscriber, 256 unacknowledged.
///
/// Both sides copy and decode only the numbers that they count, like the baseline’s.
enum Throughput {
    /// The bus drops a subscriber’s unread messages beyond a thousand; libzmq frees space in halves of that.
    private static let maximumUnread: UInt64 = 480

    static func measure(_ fleet: BenchFleet) throws {
        let first = UInt32(Date().timeIntervalSince1970)
        let rounds = try (0..<5).map { try round(fleet, generation: first + $0) }
        let lost = rounds.reduce(0) { $0 + $1.lost }
        Row(
            name: "throughput", value: rounds.map(\.rate).quantile(0.5), unit: "1/s", peer: "libzmq.throughput",
            budget: ">= 0.6x"
        ).print()
        Row(name: "throughput.lost", value: Double(lost), unit: "events", budget: "<= 0").print()
    }

    private static func round(_ fleet: BenchFleet, generation: UInt32) throws -> (rate: Double, lost: UInt64) {
        let count: UInt64 = 200_000
        let publisher = try Publisher(fleet, generation: generation)
        let subscriber = Subscriber(fleet, until: count)
        let thread = Thread { subscriber.run() }
        thread.start()
        subscriber.started.wait()
        let start = monotonicSeconds()
        try publisher.publish(count) { subscriber.seen.withLockedValue { $0 } }
        subscriber.ended.wait()
        let rate = Double(count) / (monotonicSeconds() - start)
        try publisher.end()
        return (rate, subscriber.lost)
    }

    /// A service with one blocking socket.
    private final class Publisher {
        private let context: ZeroMQContext
        private var socket: Socket
        private let generation: UInt32
        private let epoch: UInt64
        private var answer = ReceivedMessage()

        init(_ fleet: BenchFleet, generation: UInt32) throws {
            context = try ZeroMQContext(sockets: 16)
            self.generation = generation
            var socket = try Socket(
                .dealer, in: context,
                options: [
                    .immediate(true), .receiveTimeout(10_000), .routingID(Array("bench#\(generation)".utf8)),
                ])
            try socket.connect(fleet.endpoint("svc.sock"))
            _ = try socket.send([Frame(BusHeader(.hello, generation: generation).encoded), "bench"], wait: true)
            guard let welcome = try socket.receive(wait: true) else {
                throw BenchFleet.Failed(description: "the bus does not answer HELLO")
            }
            epoch = try BusHeader(decoding: welcome[0].bytes).epoch
            self.socket = socket
        }

        /// Publishes `count` events, each when the window and the subscriber have space for it.
        func publish(_ count: UInt64, seen: () -> UInt64) throws {
            let topic = Array("stream/bench/event".utf8)
            let payload = [UInt8](repeating: 0x2a, count: 200)
            var bytes = [UInt8](repeating: 0, count: BusHeader.length)
            var sent: UInt64 = 0
            var acknowledged: UInt64 = 0
            while acknowledged < count {
                let room = min(count, acknowledged + 256, seen() + Throughput.maximumUnread)
                while sent < room {
                    sent += 1
                    let header = BusHeader(.event, generation: generation, epoch: epoch, originSequence: sent)
                    try bytes.withUnsafeMutableBytes { bytes in
                        header.encode(into: bytes)
                        try topic.withUnsafeBytes { topic in
                            try payload.withUnsafeBytes { payload in
                                _ = try socket.send(UnsafeRawBufferPointer(bytes), topic, payload, wait: true)
                            }
                        }
                    }
                }
                // If nothing is in flight, only the subscriber has no space.
                if acknowledged == sent { usleep(20) }
                var wait = acknowledged < sent
                while try socket.receive(into: &answer, wait: wait) {
                    let header = try BusHeader(decoding: answer.bytes(of: 0))
                    switch header.kind {
                    case .acknowledge: acknowledged = header.originSequence
                    case .status: continue
                    default: throw BenchFleet.Failed(description: "the bus answers \(header.kind)")
                    }
                    wait = false
                }
                if wait { throw BenchFleet.Failed(description: "the bus does not acknowledge") }
            }
        }

        func end() throws {
            let goodbye = BusHeader(.goodbye, generation: generation, epoch: epoch)
            try socket.set(.linger(200))
            _ = try socket.send([Frame(goodbye.encoded)], wait: true)
            socket.close()
            context.terminate()
        }
    }

    /// A subscriber on its own thread, which counts until it has received the last event.
    private final class Subscriber: @unchecked Sendable {
        // Only the subscriber’s thread uses anything but the semaphores and the box, until it has ended.
        let started = DispatchSemaphore(value: 0)
        let ended = DispatchSemaphore(value: 0)
        /// The sequence of the last received event, or of one shortly before.
        let seen = NIOLockedValueBox<UInt64>(0)
        private(set) var lost: UInt64 = 0
        private let fleet: BenchFleet
        private let last: UInt64

        init(_ fleet: BenchFleet, until last: UInt64) {
            self.fleet = fleet
            self.last = last
        }

        func run() {
            defer {
                // After a failure this ends the publisher’s wait.
                seen.withLockedValue { $0 = last }
                started.signal()
                ended.signal()
            }
            do { try receive() } catch {
                FileHandle.standardError.write(Data("  the subscriber failed: \(error)\n".utf8))
            }
        }

        private func receive() throws {
            let context = try ZeroMQContext(sockets: 16)
            defer { context.terminate() }
            var socket = try Socket(
                .subscribe, in: context,
                options: [
                    .receiveHighWaterMark(0), .receiveTimeout(5_000), .subscribe(Array("stream/bench/".utf8)),
                    .subscribe(Array("bus/heartbeat".utf8)),
                ])
            defer { socket.close() }
            try socket.connect(fleet.endpoint("pub.sock"))
            // The heartbeat that follows the subscription confirms that it is in force.
            _ = try socket.receive(wait: true)
            started.signal()
            var message = ReceivedMessage()
            var number: UInt64 = 0
            while number < last {
                guard try socket.receive(into: &message, wait: true) else {
                    lost += last - number
                    return
                }
                let header = try BusHeader(decoding: message.bytes(of: 1))
                guard header.kind == .event else { continue }
                lost += header.originSequence - number - 1
                number = header.originSequence
                if number % 64 == 0 || number == last { seen.withLockedValue { $0 = number } }
            }
        }
    }
}
