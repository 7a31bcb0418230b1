import BusKit
import CConnectionGuard
import CProcess
import LibC
import Logging
import PodcastModel
import WireMessages
import ZeroMQ

/// The bus’s thread: reads the three sockets, calls the machine and performs its effects.
struct BrokerShell: PollHandler {
    private let endpoints: BusEndpoints
    private let limits: BrokerLimits
    private let epoch: UInt64
    private let logger: Logger
    private let pulse: @Sendable () -> Void
    private var machine: BrokerMachine
    private var effects: [BrokerEffect] = []
    private var publishing: SocketID?
    private var services: SocketID?
    private var clients: SocketID?
    private var descriptors = DescriptorWatch()
    private var outbox = ReplyOutbox()
    private var memory = MemoryRelease()
    private var nextPulse: UInt64 = 0
    /// The time of the first message of this turn; nil if there is none yet.
    private var turnBegan: Moment?

    init(
        endpoints: BusEndpoints, epoch: UInt64, limits: BrokerLimits, logger: Logger,
        pulse: @escaping @Sendable () -> Void
    ) {
        self.endpoints = endpoints
        self.limits = limits
        self.epoch = epoch
        self.logger = logger
        self.pulse = pulse
        machine = BrokerMachine(epoch: epoch, limits: limits, now: SystemClocks.now())
    }

    mutating func start(_ sockets: SocketSet) throws {
        // Many processes wait for the bus, so it asks for short time slices. If this fails, its latency is higher.
        _ = lockstep_shorten_slice()
        for endpoint in endpoints.all { try endpoint.removeStaleFile() }
        let router: [SocketOption] = [.routerMandatory(true), .maximumMessageSize(BusLimits.frame), .backlog(1_024)]
        // Without `xpubNoDrop`, libzmq drops the messages to a subscriber at its limit.
        let publishing = try sockets.open(
            .extendedPublish,
            options: [
                .sendHighWaterMark(limits.messagesToSubscriber), .receiveHighWaterMark(BusLimits.highWaterMark),
                .xpubVerbose(true), .maximumMessageSize(limits.subscriptionBytes), .backlog(1_024),
            ])
        let services = try sockets.open(
            .router,
            options: router + [
                .sendHighWaterMark(BusLimits.highWaterMark), .receiveHighWaterMark(BusLimits.highWaterMark),
            ])
        let clients = try sockets.open(
            .router,
            options: router + [
                .sendHighWaterMark(limits.messagesToClient), .receiveHighWaterMark(limits.messagesFromClient),
            ])
        // Clients check for svc.sock last: when it exists, the others do too.
        try sockets.bind(publishing, to: endpoints.stream)
        try sockets.bind(clients, to: endpoints.clients)
        try sockets.bind(services, to: endpoints.services)
        self.publishing = publishing
        self.services = services
        self.clients = clients
    }

    mutating func received(_ command: Never, _ sockets: SocketSet) throws {}

    mutating func received(
        _ message: borrowing ReceivedMessage, from socket: SocketID, _ sockets: SocketSet
    ) throws {
        if socket == services, machine.handlePublish(message, now: momentOfTurn(), into: &effects) {
            return try perform(sockets)
        }
        try received(message.message, from: socket, sockets)
    }

    mutating func received(_ message: Message, from socket: SocketID, _ sockets: SocketSet) throws {
        let event: BrokerEvent =
            switch socket {
            case services: .service(message)
            case clients: .client(message)
            default: .subscription(message)
            }
        machine.handle(event, now: momentOfTurn(), into: &effects)
        try perform(sockets)
    }

    /// The time of the turn, read once for all its messages, because a turn is short.
    private mutating func momentOfTurn() -> Moment {
        if let turnBegan { return turnBegan }
        let now = SystemClocks.now()
        turnBegan = now
        return now
    }

    mutating func turnEnded(now: UInt64, _ sockets: SocketSet) throws -> UInt64? {
        turnBegan = nil
        machine.handle(.turnEnded, now: SystemClocks.now(), into: &effects)
        try perform(sockets)
        let moment = MonotonicTime(nanoseconds: now)
        if let clients, let due = outbox.deadline, moment >= due {
            try outbox.flush(now: moment) { try sockets.send($0, on: clients) }
        }
        if let line = outbox.report(now: moment) { logger.warning("\(line)") }
        for line in descriptors.check(now: moment) { logger.warning("\(line)") }
        memory.observersLeft(machine.takeDepartures())
        if memory.isDue(now: moment) { lockstep_release_memory() }
        if now >= nextPulse {
            nextPulse = now + 900_000_000
            pulse()
        }
        return min(machine.nextDeadline, outbox.deadline ?? machine.nextDeadline).nanoseconds
    }

    /// Performs the effects in order; the effects of a failed send follow them.
    private mutating func perform(_ sockets: SocketSet) throws {
        guard let publishing, let services, let clients else { return }
        var next = 0
        while next < effects.count {
            let effect = effects[next]
            next += 1
            switch effect {
            case .publish(let topic, let header, let payload):
                memory.carried(payload.count)
                // Never blocks: a subscriber whose buffer is full misses the event and detects the gap in the sequence.
                try withUnsafeTemporaryAllocation(byteCount: BusHeader.length, alignment: 8) { bytes in
                    header.encode(into: bytes)
                    _ = try sockets.send(topic, UnsafeRawBufferPointer(bytes), payload, on: publishing)
                }
            case .toService(let message, let delivery):
                let outcome = try sockets.send(message, on: services)
                guard outcome != .sent else { continue }
                machine.handle(.undelivered(delivery, outcome), now: SystemClocks.now(), into: &effects)
            case .toClient(let message):
                try outbox.send(message, now: SystemClocks.monotonic()) { try sockets.send($0, on: clients) }
            case .answer(let answer):
                try outbox.send(answer, now: SystemClocks.monotonic()) {
                    memory.carried($0.reduce(0) { $0 + $1.count })
                    return try sockets.send($0, on: clients)
                }
            case .warn(let line):
                logger.warning("\(line)")
            }
        }
        effects.removeAll(keepingCapacity: true)
    }
}

/// Monitors the number of open descriptors and the actions of the connection guard.
struct DescriptorWatch: Sendable {
    private var next: MonotonicTime?
    private var refused: UInt64 = 0
    private var ended: UInt64 = 0

    /// Checks every ten seconds and returns lines for the log.
    mutating func check(now: MonotonicTime) -> [String] {
        if let next, now < next { return [] }
        next = now.advanced(by: .seconds(10))
        var lines: [String] = []
        let counts = lockstep_guard_count()
        if counts.refused != refused {
            let count = counts.refused - refused
            lines.append("refused \(count) connections: only the reserve of file descriptors is left")
        }
        if counts.ended != ended {
            lines.append("ended \(counts.ended - ended) connections whose messages exceed the limits")
        }
        (refused, ended) = (counts.refused, counts.ended)
        return lines
    }

    /// The number of file descriptors, of `limit`, that are reserved for the fleet’s own processes.
    static func reserve(of limit: Int) -> Int { min(128, limit / 4) }
}
