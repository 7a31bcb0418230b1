import PodcastModel
import WireMessages

/// The service’s side of its connection to the bus: registration, publishes, acknowledgements and the end of an epoch
/// (`protocols/bus.md`).
///
/// It holds no socket and no clock. The shell sends its messages in order and queues those that can’t be sent yet.
struct PublishLink: Sendable {
    struct Limits: Sendable, Hashable {
        /// The maximum number of unacknowledged publishes.
        var window = BusLimits.perService
        /// The maximum number of publishes that wait for the window.
        var waiting = 65_536
        /// The interval between two heartbeats of the bus.
        var heartbeat: Duration = .milliseconds(500)
        /// The waits before HELLO is sent again.
        var helloBackoff = Backoff.constant(.milliseconds(500))
        /// The number of heartbeats per PING.
        var heartbeatsPerPing = 3
        /// The number of PINGs per requested PONG.
        var pingsPerPong = 3
        /// The time without a message from the bus, or without an answer, after which the service reconnects.
        var silence: Duration = .milliseconds(1_500)
    }

    /// Identifies a group of publications in `published` and `dropped`.
    typealias Token = UInt64

    enum Event: Sendable {
        case start
        /// The bus’s epoch was read, in a heartbeat or another message.
        case epochSeen(UInt64)
        case welcome(generation: UInt32, epoch: UInt64, head: UInt64)
        case acknowledge(epoch: UInt64, count: UInt64, origin: UInt64, sequence: UInt64)
        /// The bus refused a message. `generation` is the registered one if the code is `fenced`.
        case reject(code: String, epoch: UInt64, origin: UInt64, generation: UInt32 = 0)
        case pong(epoch: UInt64)
        /// A heartbeat of the bus was received on the other socket.
        case heartbeat(epoch: UInt64)
        /// The service publishes; `published` or `dropped` reports the outcome under the token.
        case publish(Token, [Publication], wall: UInt64)
        /// The service has put all its retained values.
        case ready
        /// The service answers a request, after all its publishes so far.
        case reply(ReplyTicket, RequestID, Result<[UInt8], Failure>)
        case goodbye
        case tick
    }

    enum Effect: Sendable {
        /// Closes the socket, if one is open, and connects a new one.
        case open
        /// Drops the messages that wait to be sent: they were for another bus.
        case clear
        case send(OutgoingMessage)
        /// The bus has accepted the service, which must put everything and then report that it is ready.
        case begin(epoch: UInt64)
        /// All publications are acknowledged; the last one has this position.
        case published(Token, StreamPosition)
        /// The publications were refused, or their outcome is unknown because the epoch ended.
        case dropped(Token, Failure)
        case rejected(Publication, code: String)
        case fenced(Failure)
    }

    enum OutgoingMessage: Sendable, Hashable {
        case hello(generation: UInt32)
        case publish(Publication, generation: UInt32, epoch: UInt64, origin: UInt64, time: UInt64)
        case ready(generation: UInt32, epoch: UInt64, origin: UInt64)
        case goodbye(generation: UInt32)
        /// Sends PING; `wantsPong` requests an answer.
        case ping(generation: UInt32, epoch: UInt64, wantsPong: Bool)
        case answer(UInt64, RequestID, Result<[UInt8], Failure>, StreamPosition)
    }

    private struct Waiting {
        var publication: Publication
        var origin: UInt64
        var wall: UInt64
    }

    private struct PendingReply {
        var barrier: UInt64
        var ticket: ReplyTicket
        var request: RequestID
        var result: Result<[UInt8], Failure>
    }

    private let generation: UInt32
    private let limits: Limits

    /// The epoch in which the service is registered; nil if it isn’t registered.
    private(set) var epoch: UInt64?
    private var started = false
    /// The failure with which the link ended after a newer process was registered.
    private var fenced: Failure?
    /// The time of the last message from the bus, on either socket.
    private var lastHeard = MonotonicTime(nanoseconds: 0)
    /// The time of the oldest unanswered message on the service’s own socket, which may be broken while the bus runs.
    private var unansweredSince: MonotonicTime?
    /// The time of the next HELLO, or of a PING because no heartbeat was received.
    private var nextSign = MonotonicTime(nanoseconds: 0)
    private var heartbeats = 0
    private var pings = 0
    /// The origin sequences of the last publish that was acknowledged, the last that was accepted from the service, and
    /// the last that was sent.
    private var acknowledged: UInt64 = 0
    private var assigned: UInt64 = 0
    private var sent: UInt64 = 0
    /// The sequence in the stream of the last acknowledged publish.
    private var sequence: UInt64 = 0
    /// Publishes that aren’t sent yet, and those that aren’t acknowledged yet.
    private var waiting: [Waiting] = []
    private var unacknowledged: [Waiting] = []
    private var tokens: [(token: Token, last: UInt64, failure: Failure?)] = []
    private var replies: [PendingReply] = []
    private var readyAfter: UInt64?
    private var goodbyePending = false

    init(generation: UInt32, limits: Limits = Limits()) {
        self.generation = generation
        self.limits = limits
    }

    /// The time at which `tick` is due; nil means never.
    var deadline: MonotonicTime? {
        guard started, fenced == nil else { return nil }
        return min(nextSign, livenessDeadline)
    }

    /// The time at which the silence limit is reached, on both sockets or on the service’s own.
    private var livenessDeadline: MonotonicTime {
        min(lastHeard, unansweredSince ?? lastHeard).advanced(by: limits.silence)
    }

    var isSettled: Bool { epoch == nil || (waiting.isEmpty && unacknowledged.isEmpty && replies.isEmpty) }

    mutating func handle(_ event: Event, now: MonotonicTime) -> [Effect] {
        var effects: [Effect] = []
        if let fenced {
            if case .publish(let token, _, _) = event { effects.append(.dropped(token, fenced)) }
            return effects
        }
        switch event {
        case .start:
            guard !started else { break }
            started = true
            effects.append(.open)
            hello(now, &effects)
        case .epochSeen(let seen):
            guard started, let epoch, seen != epoch else { break }
            leaveEpoch(&effects)
            hello(now, &effects)
        case .welcome(let generation, let epoch, let head):
            guard started, generation == 0 || generation == self.generation else { break }
            welcomed(epoch, head, now, &effects)
        case .acknowledge(let epoch, let count, let origin, let sequence):
            guard epoch == self.epoch else { break }
            heard(now)
            acknowledge(count, origin, sequence, &effects)
        case .reject(FailureCode.fenced.rawValue, _, _, let generation): superseded(by: generation, &effects)
        case .reject(let code, let epoch, let origin, _): rejected(code, epoch, origin, now, &effects)
        case .heartbeat(let epoch):
            if epoch == self.epoch { heartbeat(epoch, now, &effects) }
        case .pong(let epoch):
            heard(now)
            if let mine = self.epoch, mine != epoch {
                leaveEpoch(&effects)
                hello(now, &effects)
            }
        case .publish(let token, let publications, let wall): publish(token, publications, wall, &effects)
        case .ready:
            guard epoch != nil else { break }
            readyAfter = assigned
        case .reply(let ticket, let request, let result):
            guard ticket.epoch == epoch else { break }
            replies.append(PendingReply(barrier: assigned, ticket: ticket, request: request, result: result))
        case .goodbye: goodbyePending = true
        case .tick: tick(now, &effects)
        }
        flush(&effects)
        if epoch != nil, !unacknowledged.isEmpty, unansweredSince == nil { unansweredSince = now }
        return effects
    }
}

// MARK: - The epoch

extension PublishLink {
    private static let lost = Failure(.lostInFlight, "The bus disconnected before it published the event.")

    private mutating func hello(_ now: MonotonicTime, _ effects: inout [Effect]) {
        effects.append(.clear)
        effects.append(.send(.hello(generation: generation)))
        heard(now)
        nextSign = now.advanced(by: limits.helloBackoff.wait())
    }

    /// Records a message on the service’s own socket.
    private mutating func heard(_ now: MonotonicTime) {
        lastHeard = now
        unansweredSince = nil
    }

    /// Sends PING in the turn of a heartbeat, so that no extra timer wakes the process.
    private mutating func heartbeat(_ epoch: UInt64, _ now: MonotonicTime, _ effects: inout [Effect]) {
        lastHeard = now
        nextSign = now.advanced(by: limits.heartbeat * 2)
        heartbeats += 1
        guard heartbeats % limits.heartbeatsPerPing == 0 else { return }
        pings += 1
        ping(epoch, wantsPong: pings % limits.pingsPerPong == 0, now, &effects)
    }

    private mutating func ping(
        _ epoch: UInt64, wantsPong: Bool, _ now: MonotonicTime, _ effects: inout [Effect]
    ) {
        if wantsPong, unansweredSince == nil { unansweredSince = now }
        effects.append(.send(.ping(generation: generation, epoch: epoch, wantsPong: wantsPong)))
    }

    private mutating func leaveEpoch(_ effects: inout [Effect]) {
        epoch = nil
        for entry in tokens { effects.append(.dropped(entry.token, Self.lost)) }
        acknowledged = 0
        assigned = 0
        sent = 0
        waiting = []
        unacknowledged = []
        tokens = []
        replies = []
        readyAfter = nil
    }

    private mutating func welcomed(
        _ epoch: UInt64, _ head: UInt64, _ now: MonotonicTime, _ effects: inout [Effect]
    ) {
        leaveEpoch(&effects)
        self.epoch = epoch
        sequence = head
        heard(now)
        nextSign = now.advanced(by: limits.heartbeat)
        effects.append(.begin(epoch: epoch))
    }

    private mutating func tick(_ now: MonotonicTime, _ effects: inout [Effect]) {
        if now >= livenessDeadline {
            leaveEpoch(&effects)
            effects.append(.open)
            hello(now, &effects)
            return
        }
        guard now >= nextSign else { return }
        nextSign = now.advanced(by: epoch == nil ? limits.helloBackoff.wait() : limits.heartbeat)
        if let epoch {
            // No heartbeat: a PONG distinguishes a silent bus from a broken subscription.
            ping(epoch, wantsPong: true, now, &effects)
        } else {
            effects.append(.clear)
            effects.append(.send(.hello(generation: generation)))
        }
    }

    private mutating func superseded(by generation: UInt32, _ effects: inout [Effect]) {
        leaveEpoch(&effects)
        let failure = Failure.fenced(by: generation)
        fenced = failure
        effects.append(.fenced(failure))
    }

    private mutating func rejected(
        _ code: String, _ epoch: UInt64, _ origin: UInt64, _ now: MonotonicTime, _ effects: inout [Effect]
    ) {
        switch FailureCode(rawValue: code) {
        case .helloRequired:
            // An answer to messages from before the last HELLO is ignored.
            guard self.epoch != nil else { return }
            leaveEpoch(&effects)
            hello(now, &effects)
        default:
            guard epoch == self.epoch, let refused = unacknowledged.first(where: { $0.origin == origin }) else {
                return
            }
            heard(now)
            effects.append(.rejected(refused.publication, code: code))
            let failure = Failure(code: code, message: "The bus refused \(refused.publication.topic).")
            for index in tokens.indices where tokens[index].last >= origin {
                tokens[index].failure = failure
                break
            }
            acknowledge(upTo: origin, sequence: sequence, &effects)
        }
    }
}

// MARK: - Publishing

extension PublishLink {
    private mutating func publish(
        _ token: Token, _ publications: [Publication], _ wall: UInt64, _ effects: inout [Effect]
    ) {
        guard let epoch else {
            effects.append(.dropped(token, Failure(.unavailable, "The bus isn’t connected.")))
            return
        }
        guard waiting.count + publications.count <= limits.waiting else {
            effects.append(.dropped(token, Failure(.busy, "Too many events are waiting for the bus.")))
            return
        }
        for publication in publications {
            if publication.kind == .live {
                effects.append(
                    .send(.publish(publication, generation: generation, epoch: epoch, origin: 0, time: wall)))
                continue
            }
            assigned += 1
            waiting.append(Waiting(publication: publication, origin: assigned, wall: wall))
        }
        guard acknowledged < assigned else {
            effects.append(.published(token, StreamPosition(epoch: epoch, sequence: sequence)))
            return
        }
        tokens.append((token, assigned, nil))
    }

    private mutating func acknowledge(
        _ count: UInt64, _ origin: UInt64, _ sequence: UInt64, _ effects: inout [Effect]
    ) {
        // The bus can’t acknowledge more than was sent.
        guard origin > acknowledged, origin <= sent, count <= origin else { return }
        acknowledge(upTo: origin, sequence: sequence, &effects)
    }

    private mutating func acknowledge(upTo origin: UInt64, sequence: UInt64, _ effects: inout [Effect]) {
        guard let epoch else { return }
        self.sequence = max(sequence, self.sequence)
        acknowledged = origin
        unacknowledged.removeFirst(unacknowledged.prefix { $0.origin <= origin }.count)
        let done = tokens.prefix { $0.last <= origin }.count
        for entry in tokens[..<done] {
            let position = StreamPosition(epoch: epoch, sequence: self.sequence)
            effects.append(entry.failure.map { .dropped(entry.token, $0) } ?? .published(entry.token, position))
        }
        tokens.removeFirst(done)
    }

    /// Sends what the window allows: READY after the service’s puts, replies after the events that they refer to.
    private mutating func flush(_ effects: inout [Effect]) {
        guard let epoch else {
            if goodbyePending { effects.append(.send(.goodbye(generation: generation))) }
            goodbyePending = false
            return
        }
        let room = limits.window - unacknowledged.count
        if room > 0, !waiting.isEmpty {
            let next = waiting.prefix(room)
            for item in next {
                effects.append(
                    .send(
                        .publish(
                            item.publication, generation: generation, epoch: epoch, origin: item.origin,
                            time: item.wall)))
            }
            sent += UInt64(next.count)
            unacknowledged += next
            waiting.removeFirst(next.count)
        }
        if let after = readyAfter, sent >= after {
            readyAfter = nil
            effects.append(.send(.ready(generation: generation, epoch: epoch, origin: after)))
        }
        let due = replies.prefix { $0.barrier <= acknowledged }.count
        for reply in replies[..<due] {
            let position = StreamPosition(epoch: epoch, sequence: sequence)
            effects.append(.send(.answer(reply.ticket.number, reply.request, reply.result, position)))
        }
        replies.removeFirst(due)
        if goodbyePending, waiting.isEmpty, unacknowledged.isEmpty {
            goodbyePending = false
            effects.append(.send(.goodbye(generation: generation)))
        }
    }
}
