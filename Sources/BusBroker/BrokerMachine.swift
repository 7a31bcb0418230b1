package import PodcastModel
import WireMessages
import ZeroMQ

/// The bus without its sockets: assigns sequences to events, retains values, registers services, routes requests and
/// answers fetches. It turns an event and the time into effects.
package struct BrokerMachine: Sendable {
    let limits: BrokerLimits
    /// The epoch of this run of the bus.
    package let epoch: UInt64
    var ring: EventRing
    var store: RetainedStore
    var registry: ServiceRegistry
    var requests = InFlightRequests()
    var topics = TopicCache()
    var malformed = MalformedCount()
    private var nextHeartbeat: MonotonicTime
    private var heartbeatWanted = false
    private var lastTurn: MonotonicTime
    /// The services with acknowledgements to send at the end of the turn.
    var unacknowledged: [Int] = []
    /// The snapshot of the retained events at `head`, reused for other clients that fetch at the same head.
    var snapshot: (head: UInt64, events: [StoredEvent])?
    /// The number of observers that have left since the last call of `takeDepartures`.
    private var departures = 0

    /// Creates a bus that has published nothing.
    /// - Parameter epoch: a time in milliseconds, larger than any earlier epoch in this directory.
    package init(epoch: UInt64, limits: BrokerLimits = BrokerLimits(), now: Moment) {
        self.epoch = epoch
        self.limits = limits
        ring = EventRing(eventLimit: limits.ringEvents, byteLimit: limits.ringBytes)
        store = RetainedStore(limits: limits)
        registry = ServiceRegistry(limit: limits.services)
        nextHeartbeat = now.monotonic
        lastTurn = now.monotonic
    }

    /// The sequence of the newest event; 0 before the first.
    package var head: UInt64 { ring.last }

    /// The latest time at which `turnEnded` is due.
    package var nextDeadline: MonotonicTime {
        min(nextHeartbeat, requests.nextDeadline ?? nextHeartbeat)
    }

    /// Handles an event and appends the effects to `effects`, so that one array serves many messages.
    package mutating func handle(_ event: BrokerEvent, now: Moment, into effects: inout [BrokerEffect]) {
        switch event {
        case .service(let message): receiveFromService(message, now, &effects)
        case .client(let message): receiveFromClient(message, now, &effects)
        case .subscription(let message): receiveSubscription(message, now, &effects)
        case .undelivered(let delivery, let outcome): handleUndelivered(delivery, outcome, &effects)
        case .turnEnded: endTurn(now, &effects)
        }
    }

    // MARK: The stream

    mutating func publish(
        _ header: BusHeader, topic: Frame, payload: Frame, owner: Int, registration: UInt64,
        _ effects: inout [BrokerEffect]
    ) {
        var header = header
        header.epoch = epoch
        header.sequence = head + 1
        let event = StoredEvent(topic: topic, header: header, payload: payload)
        ring.append(event)
        store.apply(event, owner: owner, registration: registration)
        send(topic, header, payload, &effects)
    }

    func send(_ topic: Frame, _ header: BusHeader, _ payload: Frame, _ effects: inout [BrokerEffect]) {
        effects.append(.publish(topic: topic, header: header, payload: payload))
    }

    /// Publishes the state of a service and sends it to the other services.
    mutating func publishStatus(of index: Int, _ now: Moment, _ effects: inout [BrokerEffect]) {
        let service = registry[index]
        publish(
            BusHeader(.put, generation: service.generation, time: Self.wallNanoseconds(now)),
            topic: Frame(Topic.service(service.name).text), payload: service.status,
            owner: Self.busItself, registration: 0, &effects)
        for other in registry.services.indices where other != index && registry[other].isRegistered {
            tell(other, ofStatusOf: index, &effects)
        }
    }

    /// The owner of the bus’s own topics in the store.
    static let busItself = -1

    static func wallNanoseconds(_ now: Moment) -> UInt64 {
        UInt64(clamping: now.wall.milliseconds) &* 1_000_000
    }

    // MARK: The end of a turn

    private mutating func endTurn(_ now: Moment, _ effects: inout [BrokerEffect]) {
        flushAcknowledgements(&effects)
        // While the bus itself was suspended, it received nothing: that time doesn’t count as the services’ silence.
        if now.monotonic.since(lastTurn) > limits.heartbeatInterval * 4 { registry.restartSilence(now.monotonic) }
        lastTurn = now.monotonic
        expireRequests(now, &effects)
        if now.monotonic >= nextHeartbeat {
            takeDownSilentServices(now, &effects)
            forgetGoneServices(now, &effects)
            snapshot = nil
            nextHeartbeat = now.monotonic.advanced(by: limits.heartbeatInterval)
            heartbeatWanted = true
            if let line = malformed.report(now: now.monotonic) { effects.append(.warn(line)) }
        }
        if heartbeatWanted {
            heartbeatWanted = false
            let header = BusHeader(.heartbeat, epoch: epoch, sequence: head, time: Self.wallNanoseconds(now))
            send(Frame(Topic.heartbeat.text), header, .empty, &effects)
        }
    }

    // MARK: Joining

    mutating func takeDepartures() -> Int {
        defer { departures = 0 }
        return departures
    }

    private mutating func receiveSubscription(_ message: Message, _ now: Moment, _ effects: inout [BrokerEffect]) {
        guard message.count == 1, let first = message[0].bytes.first, first <= 1 else {
            return malformed.add("pub.sock", "a message that isn’t a subscription")
        }
        let topic = Frame(copying: message[0].bytes.dropFirst())
        guard first == 1 else {
            if Self.nonce(inSync: topic) != nil { departures += 1 }
            return
        }
        if topic == Self.heartbeatTopic {
            heartbeatWanted = true
        } else if let nonce = Self.nonce(inSync: topic) {
            guard JoinNonce.isValid(nonce) else { return malformed.add("pub.sock", "a malformed nonce") }
            let header = BusHeader(.sync, epoch: epoch, sequence: head, time: Self.wallNanoseconds(now))
            send(topic, header, .empty, &effects)
        }
    }

    private static let heartbeatTopic = Frame(Topic.heartbeat.text)
    private static let syncPrefix = Array("sync/".utf8)

    private static func nonce(inSync topic: Frame) -> ArraySlice<UInt8>? {
        topic.bytes.starts(with: syncPrefix) ? topic.bytes[syncPrefix.count...] : nil
    }
}

/// Validates a nonce: 16 to 64 characters of `0-9a-z`.
enum JoinNonce {
    static func isValid(_ bytes: some Collection<UInt8>) -> Bool {
        (16...64).contains(bytes.count)
            && bytes.allSatisfy { byte in
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
            }
    }
}
