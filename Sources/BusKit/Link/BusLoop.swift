import Logging
import PodcastModel
import WireMessages
import ZeroMQ

/// The handler on a process’s poll thread: all its sockets to the bus, and the machines that decide about them.
///
/// After `start` no callback throws: a malformed message is counted and dropped, and a failed send is retried by its
/// machine.
struct BusLoop: PollHandler, ~Copyable {
    let configuration: BusConfiguration
    /// Called with each event for the service.
    let onEvent: @Sendable (BusEvent) -> Void
    private let handlerLoop: () -> [BusCommand]?
    let endpoints: BusEndpoints
    var stream: SocketID?
    var client: SocketID?
    var service: SocketID?

    // The state of the client side.
    var reducer: StreamReducer?
    var retrier: RequestRetrier
    var completions: [RequestID: [@Sendable (Result<Answer, Failure>) -> Void]] = [:]
    var feeds: [ObjectIdentifier: UpdateBuffer] = [:]
    var waits: [(wait: PositionWait, completion: @Sendable (Result<Void, Failure>) -> Void)] = []
    var epoch: UInt64 = 0

    // The state of the service side.
    var link: PublishLink?
    var outbox: [Message] = []
    var outboxIndex = 0
    var publishes: [PublishLink.Token: @Sendable (Result<StreamPosition, Failure>) -> Void] = [:]
    var lastToken: PublishLink.Token = 0
    var leaving: (deadline: MonotonicTime, completion: @Sendable () -> Void)?

    /// The maximum number of calls of the service’s handler in one turn, so that the handler starves no socket.
    private static var handlerRounds: Int { 64 }

    var alarm: MonotonicTime?
    var lastHeartbeat = MonotonicTime(nanoseconds: 0)
    /// The minimum interval between pulses. A heartbeat of the bus causes the next pulse; without heartbeats a timer does.
    private static var heartbeatInterval: Duration { .milliseconds(900) }
    private static var longestHeartbeatInterval: Duration { .milliseconds(1_400) }
    var malformed = 0

    init(
        _ configuration: BusConfiguration, handlerLoop: @escaping () -> [BusCommand]?,
        onEvent: @escaping @Sendable (BusEvent) -> Void
    ) throws {
        self.configuration = configuration
        self.handlerLoop = handlerLoop
        self.onEvent = onEvent
        retrier = RequestRetrier(limits: configuration.requests, hasJoined: false)
        endpoints = try BusEndpoints(runDirectory: configuration.runDirectory)
        if let selection = configuration.observes {
            reducer = StreamReducer(seed: .random(in: .min ... .max), selection: selection)
        }
        if let service = configuration.service { link = PublishLink(generation: service.generation) }
    }

    mutating func start(_ sockets: SocketSet) throws {
        let now = SystemClocks.monotonic()
        lastHeartbeat = now.advanced(by: .zero - Self.heartbeatInterval)
        if reducer == nil {
            try openPulse(sockets)
            client = try openClient(sockets)
        } else {
            reduce(.start, now, sockets)
        }
        link(.start, now, sockets)
    }

    mutating func received(_ command: BusCommand, _ sockets: SocketSet) throws {
        let now = SystemClocks.monotonic()
        switch command {
        case .ask(let request, let completion):
            completions[request.id, default: []].append(completion)
            retry(.ask(request), now, sockets)
        case .cancel(let id): retry(.cancel(id), now, sockets)
        case .follow(let feed): follow(feed)
        case .unfollow(let id): feeds.removeValue(forKey: id)?.finish()
        case .wait(let wait, let completion):
            waits.append((wait, completion))
            completeWaits(now)
        case .publish(let publications, let completion):
            lastToken += 1
            publishes[lastToken] = completion
            link(.publish(lastToken, publications, wall: SystemClocks.wallNanoseconds()), now, sockets)
        case .reply(let ticket, let id, let result): link(.reply(ticket, id, result), now, sockets)
        case .ready: link(.ready, now, sockets)
        case .leave(let deadline, let completion): leaving = (deadline, completion)
        case .alarm(let time): alarm = time
        case .run(let body): body()
        case .wakeHandler: break
        }
    }

    mutating func received(
        _ message: borrowing ReceivedMessage, from socket: SocketID, _ sockets: SocketSet
    ) throws {
        if socket == stream, handleIfUnselected(message, sockets) { return }
        try received(message.message, from: socket, sockets)
    }

    mutating func received(_ message: Message, from socket: SocketID, _ sockets: SocketSet) throws {
        let now = SystemClocks.monotonic()
        do throws(FrameError) {
            if socket == stream {
                received(try StreamReducer.Event(decoding: message), now, sockets)
            } else if socket == client {
                received(try ClientMessage(decoding: message), now, sockets)
            } else if socket == service {
                received(try ServiceMessage(decoding: message), now, sockets)
            }
        } catch {
            malformed += 1
            if malformed.nonzeroBitCount == 1 {
                configuration.logger.warning(
                    "a message from the bus can’t be read", metadata: ["why": "\(error)", "count": "\(malformed)"])
            }
        }
    }

    mutating func writable(_ socket: SocketID, _ sockets: SocketSet) throws {
        if socket == service { flushOutbox(sockets) }
    }

    mutating func turnEnded(now nanoseconds: UInt64, _ sockets: SocketSet) throws -> UInt64? {
        let now = MonotonicTime(nanoseconds: nanoseconds)
        reduce(.tick, now, sockets)
        if let due = retrier.deadline, now >= due { retry(.tick, now, sockets) }
        if let due = link?.deadline, now >= due { link(.tick, now, sockets) }
        if let alarm, now >= alarm {
            self.alarm = nil
            onEvent(.timerFired)
        }
        if now.since(lastHeartbeat) >= Self.heartbeatInterval {
            lastHeartbeat = now
            onEvent(.heartbeat)
        }
        var rounds = 0
        while rounds < Self.handlerRounds, let commands = handlerLoop() {
            for command in commands { try received(command, sockets) }
            rounds += 1
        }
        completeWaits(now)
        settleLeaving(now, sockets)
        let deadlines = [
            reducer?.deadline, retrier.deadline, link?.deadline, alarm, leaving?.deadline,
            lastHeartbeat.advanced(by: Self.longestHeartbeatInterval),
            waits.map(\.wait.deadline).min(), rounds == Self.handlerRounds ? now : nil,
        ]
        return deadlines.compactMap { $0?.nanoseconds }.min()
    }

    mutating func stop(_ sockets: SocketSet) {
        let closed = Failure(.unavailable, "The program is disconnecting from the bus.")
        for case .finish(let id, let result) in retrier.close(closed) { finish(id, result) }
        for wait in waits { wait.completion(.failure(closed)) }
        waits = []
        for feed in feeds.values { feed.finish() }
        feeds = [:]
        for completion in publishes.values { completion(.failure(closed)) }
        publishes = [:]
        leaving?.completion()
        leaving = nil
    }
}

// MARK: - Sockets

extension BusLoop {
    private static var options: [SocketOption] {
        [
            .reconnectInterval(10), .sendHighWaterMark(BusLimits.highWaterMark),
            .receiveHighWaterMark(BusLimits.highWaterMark),
        ]
    }

    /// Subscribes to the heartbeats alone, for processes that don’t follow the stream.
    mutating func openPulse(_ sockets: SocketSet) throws(ZeroMQError) {
        let id = try sockets.open(
            .subscribe, options: Self.options + [.subscribe(Array(Topic.heartbeat.text.utf8))])
        stream = id
        try sockets.connect(id, to: endpoints.stream)
    }

    mutating func openStream(nonce: String, _ sockets: SocketSet) throws(ZeroMQError) {
        if let old = stream { sockets.close(old) }
        stream = nil
        let telemetry = configuration.observes?.telemetryPrefixes ?? []
        let prefixes = [Topic.streamPrefix, Topic.heartbeat.text, "sync/" + nonce].map { Array($0.utf8) } + telemetry
        let id = try sockets.open(
            .subscribe,
            options: Self.options + [.maximumMessageSize(BusLimits.streamFrame)]
                + prefixes.map { .subscribe($0) })
        stream = id
        try sockets.connect(id, to: endpoints.stream)
    }

    func openClient(_ sockets: SocketSet) throws(ZeroMQError) -> SocketID {
        let id = try sockets.open(.dealer, options: Self.options + [.maximumMessageSize(BusLimits.frame)])
        try sockets.connect(id, to: endpoints.clients)
        return id
    }

    mutating func openService(_ sockets: SocketSet) throws(ZeroMQError) {
        guard let (name, generation) = configuration.service else { return }
        if let old = service { sockets.close(old) }
        service = nil
        let id = try sockets.open(
            .dealer,
            options: Self.options + [
                .maximumMessageSize(BusLimits.frame), .immediate(true),
                .routingID(Array("\(name.text)#\(generation)".utf8)),
            ])
        service = id
        try sockets.connect(id, to: endpoints.services)
    }

    /// Sends a message; false if the socket didn’t accept it.
    func send(_ message: Message, on socket: SocketID?, _ sockets: SocketSet) -> Bool {
        guard let socket else { return false }
        do {
            return try sockets.send(message, on: socket) == .sent
        } catch {
            configuration.logger.error("a message can’t be sent", metadata: ["why": "\(error)"])
            return false
        }
    }

    func log(_ what: String, _ error: any Error) {
        configuration.logger.error("\(what)", metadata: ["why": "\(error)"])
    }
}
