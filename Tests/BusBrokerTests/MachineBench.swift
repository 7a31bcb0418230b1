import PodcastModel
import SwiftProtobuf
import WireMessages
import ZeroMQ

@testable import BusBroker

/// The size of a machine’s state.
struct BrokerSummary: Hashable {
    var head: UInt64
    var ringEvents: Int
    var ringBytes: Int
    var retainedTopics: Int
    var retainedBytes: Int
    var services: Int
    var requestsInFlight: Int
    var clientsWaiting: Int
    /// The number of messages that were dropped as malformed.
    var malformed: UInt64
}

extension BrokerMachine {
    var summary: BrokerSummary {
        BrokerSummary(
            head: head, ringEvents: ring.count, ringBytes: ring.bytes, retainedTopics: store.count,
            retainedBytes: store.bytes, services: registry.count, requestsInFlight: requests.count,
            clientsWaiting: requests.clientCount, malformed: malformed.total)
    }
}

/// A machine with a manual clock, driven with the frames of the protocol.
struct MachineBench {
    /// A message that was sent to a service or client, or published: header and further frames.
    struct Received: Hashable {
        var peer: String
        var header: BusHeader
        var frames: [Frame]

        var code: String { frames.first?.text ?? "" }
    }

    var machine: BrokerMachine
    var now = Moment(
        monotonic: MonotonicTime(nanoseconds: 1_000_000_000), wall: Timestamp(milliseconds: 1_700_000_000_000))
    private(set) var published: [StreamEvent] = []
    private(set) var toServices: [Received] = []
    private(set) var toClients: [Received] = []
    private(set) var warnings: [String] = []
    private var origins: [String: UInt64] = [:]

    static let nonce = Frame("0123456789abcdef")

    init(epoch: UInt64 = 1_000, limits: BrokerLimits = BrokerLimits()) {
        machine = BrokerMachine(epoch: epoch, limits: limits, now: now)
    }

    // MARK: Input

    mutating func feed(_ event: BrokerEvent) {
        var effects: [BrokerEffect] = []
        machine.handle(event, now: now, into: &effects)
        for effect in effects {
            switch effect {
            case .publish(let topic, let header, let payload):
                published.append(StreamEvent(topic: Topic(topic.text ?? ""), header: header, payload: payload.bytes))
            case .toService(let message, _): toServices.append(Self.received(message))
            case .toClient(let message): toClients.append(Self.received(message))
            case .answer(var answer):
                _ = answer.send { message in
                    toClients.append(Self.received(message))
                    return .sent
                }
            case .warn(let line): warnings.append(line)
            }
        }
    }

    mutating func service(_ peer: String, _ header: BusHeader, _ frames: Frame...) {
        feed(.service([Frame(peer), Frame(header.encoded)] + frames))
    }

    mutating func client(_ peer: String, _ header: BusHeader, _ frames: Frame...) {
        feed(.client([Frame(peer), Frame(header.encoded)] + frames))
    }

    /// Sends HELLO; the origin sequence restarts.
    mutating func hello(_ name: String, _ generation: UInt32 = 1) {
        origins[name] = 0
        service("\(name)#\(generation)", BusHeader(.hello, generation: generation), Frame(name))
    }

    mutating func ready(_ name: String, _ generation: UInt32 = 1) {
        service(
            "\(name)#\(generation)",
            BusHeader(.ready, generation: generation, epoch: machine.epoch, originSequence: origins[name] ?? 0))
    }

    mutating func serving(_ name: String, _ generation: UInt32 = 1) {
        hello(name, generation)
        ready(name, generation)
    }

    /// Publishes with the next origin sequence.
    mutating func publish(
        _ kind: MessageKind, _ topic: String, _ payload: Frame = "x", from name: String = "queue",
        generation: UInt32 = 1, epoch: UInt64? = nil
    ) {
        let origin = (origins[name] ?? 0) + 1
        origins[name] = origin
        service(
            "\(name)#\(generation)",
            BusHeader(
                kind, generation: generation, epoch: epoch ?? machine.epoch, originSequence: origin, time: 77),
            Frame(topic), payload)
    }

    mutating func endTurn() { feed(.turnEnded) }

    mutating func advance(_ duration: Duration) {
        now.monotonic = now.monotonic.advanced(by: duration)
        now.wall = Timestamp(milliseconds: now.wall.milliseconds + Int64(duration / .milliseconds(1)))
    }

    mutating func subscribe(_ topic: String) {
        feed(.subscription([Frame([1] + Array(topic.utf8))]))
    }

    mutating func fetch(
        epoch: UInt64 = 0, from sequence: UInt64 = 0, flags: BusHeader.Flags = [], except prefixes: [Frame] = [],
        only included: [Frame]? = nil
    ) {
        let header = BusHeader(.fetch, flags: flags, epoch: epoch, sequence: sequence)
        feed(
            .client(
                [Frame("c"), Frame(header.encoded), Self.nonce] + prefixes + (included.map { [.empty] + $0 } ?? [])))
    }

    mutating func request(
        _ id: UInt8, to service: String = "queue", client peer: String = "c", seconds: Int = 10
    ) {
        let deadline = now.monotonic.advanced(by: .seconds(seconds))
        client(
            peer, BusHeader(.request, time: deadline.nanoseconds), Self.requestID(id), Frame(service), "cli", "do it")
    }

    static func requestID(_ number: UInt8) -> Frame { Frame([UInt8](repeating: number, count: 16)) }

    // MARK: Output

    mutating func forget() {
        published = []
        toServices = []
        toClients = []
        warnings = []
    }

    func sent(_ kind: MessageKind, to peer: String? = nil) -> [Received] {
        toServices.filter { $0.header.kind == kind && (peer == nil || $0.peer == peer) }
    }

    /// The codes of the rejections, in order.
    var rejections: [String] { sent(.reject).map(\.code) }

    /// The codes of the failures that were sent to clients, in order.
    var failures: [String] {
        toClients.filter { $0.header.kind == .failure }.map { received in
            received.frames.count == 2
                ? (try? WireFailure(serializedBytes: received.frames[1].bytes).code) ?? "unreadable" : "frames"
        }
    }

    /// Returns the published states of a service, in order.
    func states(of name: String) -> [WireServiceStatus.State] {
        published.filter { $0.topic.text == "stream/bus/service/\(name)" }.map { event in
            (try? WireServiceStatus(serializedBytes: event.payload).state) ?? .unknown
        }
    }

    /// The entries of the last answer to a fetch, from all chunks.
    var fetched: [StreamEvent] {
        toClients.filter { [.replay, .snapshot].contains($0.header.kind) }.flatMap { received in
            let frames = Array(received.frames.dropFirst(received.header.kind == .snapshot ? 2 : 1))
            return stride(from: 0, to: frames.count - 2, by: 3).map { Self.event(Array(frames[$0..<$0 + 3])) }
        }
    }

    private static func event(_ message: [Frame]) -> StreamEvent {
        let header = (try? BusHeader(decoding: message[1].bytes)) ?? BusHeader(.event)
        return StreamEvent(topic: Topic(message[0].text ?? ""), header: header, payload: message[2].bytes)
    }

    private static func received(_ message: [Frame]) -> Received {
        let header = (try? BusHeader(decoding: message[1].bytes)) ?? BusHeader(.event)
        return Received(peer: message[0].text ?? "", header: header, frames: Array(message.dropFirst(2)))
    }
}
