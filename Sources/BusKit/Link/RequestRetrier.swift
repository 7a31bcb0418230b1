package import PodcastModel
package import WireMessages

/// The answer to a request.
package struct Answer: Sendable, Hashable {
    /// Protobuf: the service’s reply message.
    package var payload: [UInt8]
    /// The position in the stream up to which the effect is included; nil if the reply has none.
    package var position: StreamPosition?
}

/// A request of the program. All its attempts have the same ID.
package struct OutgoingRequest: Sendable, Hashable {
    package var id: RequestID
    package var service: ServiceName
    /// Protobuf: the service’s request message.
    package var payload: [UInt8]
    /// The time at which the caller stops waiting; nil means never.
    package var deadline: MonotonicTime?
    /// The time at which the caller abandons a request that hasn’t reached the service; nil means at the deadline.
    package var reachDeadline: MonotonicTime?
    /// Whether the ID may have been used before, by an earlier process of the caller.
    package var mayBeRepeat: Bool

    package init(
        id: RequestID, service: ServiceName, payload: [UInt8], deadline: MonotonicTime?,
        reachDeadline: MonotonicTime? = nil, mayBeRepeat: Bool = false
    ) {
        self.id = id
        self.service = service
        self.payload = payload
        self.deadline = deadline
        self.reachDeadline = reachDeadline
        self.mayBeRepeat = mayBeRepeat
    }
}

/// Retries each request of a client under the same ID until it is answered, permanently refused or past its deadline.
///
/// It holds no socket and no clock. The shell performs its effects, passes it the replies and calls it at `deadline`.
package struct RequestRetrier: Sendable {
    package struct Limits: Sendable, Hashable {
        /// The waits before a request is retried.
        package var retryBackoff = Backoff.exponential(first: .milliseconds(50), longest: .seconds(1))
        /// The time limit of an attempt without a deadline, and the silence after which any request is retried.
        package var attempt: Duration = .seconds(5)
        /// The maximum number of requests in flight.
        package var window = BusLimits.requestsPerClient
        /// The maximum number of requests in all.
        package var waiting = 4_096
        package init() {}
    }

    package enum Event: Sendable {
        case ask(OutgoingRequest)
        case cancel(RequestID)
        case reply(RequestID, Answer)
        case failure(RequestID, Failure)
        case unsent(RequestID)
        /// The bus or the connection is new and knows none of the requests. Nothing is sent until `joined`: a request
        /// could go to a bus that fails before its failure is detected.
        case connectionLost
        /// A message of the bus was received on this connection: requests may be sent.
        case joined
        /// The service is ready: its waiting requests are sent at once.
        case ready(ServiceName)
        case tick
    }

    package enum Effect: Sendable, Hashable {
        /// Sends an attempt: the request with the deadline after which its owner refuses to begin, and `mayBeRepeat`
        /// from the second attempt on.
        case send(OutgoingRequest)
        /// Reports the result to the program; the request is removed.
        case finish(RequestID, Result<Answer, Failure>)
    }

    private enum Phase {
        case waiting(until: MonotonicTime)
        case sent(at: MonotonicTime)
        /// The request waits because the window is full.
        case queued
    }

    private struct Request {
        var outgoing: OutgoingRequest
        var phase: Phase
        var failures = 0
        var wasSent = false
        /// Whether an attempt may have taken effect.
        var mayHaveHappened = false
        var lastFailure: Failure?

        /// The deadline at which the request fails; nil if there is none.
        var end: MonotonicTime? {
            if case .sent = phase { return outgoing.deadline }
            return mayHaveHappened
                ? outgoing.deadline : [outgoing.reachDeadline, outgoing.deadline].compactMap(\.self).min()
        }
    }

    private let limits: Limits
    private var requests: [RequestID: Request] = [:]
    /// The request IDs in order of arrival, for fairness.
    private var order: [RequestID] = []
    private var inFlight = 0
    private var hasJoined: Bool

    /// - Parameter hasJoined: whether the bus has sent a message; if not, requests wait for `joined`.
    package init(limits: Limits = Limits(), hasJoined: Bool = true) {
        self.limits = limits
        self.hasJoined = hasJoined
    }

    /// The number of unanswered requests.
    package var count: Int { requests.count }

    /// The time at which `tick` is due; nil means never.
    package var deadline: MonotonicTime? {
        requests.values.compactMap { due($0) }.min()
    }

    package mutating func handle(_ event: Event, now: MonotonicTime) -> [Effect] {
        var effects: [Effect] = []
        switch event {
        case .ask(let outgoing): ask(outgoing, now, &effects)
        case .cancel(let id):
            if let request = requests[id] { finish(id, .failure(Self.cancelled(request)), &effects) }
        case .reply(let id, let answer): finish(id, .success(answer), &effects)
        case .failure(let id, let failure): refused(id, failure, now, &effects)
        case .unsent(let id): retry(id, Failure(.unavailable, "The bus doesn’t accept the request."), now, sent: false)
        case .joined:
            hasJoined = true
            for (id, request) in requests { retryPromptly(id, request) }
        case .connectionLost:
            hasJoined = false
            let lost = Failure(.lostInFlight, "The bus disconnected while the request was in flight.")
            for (id, request) in requests {
                if case .sent = request.phase { retry(id, lost, now, sent: true) }
            }
        case .ready(let service):
            for (id, request) in requests where request.outgoing.service == service { retryPromptly(id, request) }
        case .tick: tick(now, &effects)
        }
        fillWindow(now, &effects)
        return effects
    }

    /// Fails all unanswered requests with `failure`, because the program stops.
    package mutating func close(_ failure: Failure) -> [Effect] {
        defer {
            requests = [:]
            order = []
            inFlight = 0
        }
        return order.map { .finish($0, .failure(failure)) }
    }
}

extension RequestRetrier {
    private mutating func ask(_ outgoing: OutgoingRequest, _ now: MonotonicTime, _ effects: inout [Effect]) {
        guard requests[outgoing.id] == nil else { return }
        guard requests.count < limits.waiting else {
            effects.append(.finish(outgoing.id, .failure(Failure(.busy, "Too many requests are waiting."))))
            return
        }
        requests[outgoing.id] = Request(outgoing: outgoing, phase: .queued)
        order.append(outgoing.id)
    }

    private mutating func fillWindow(_ now: MonotonicTime, _ effects: inout [Effect]) {
        guard hasJoined, inFlight < limits.window, requests.count > inFlight else { return }
        for id in order {
            guard inFlight < limits.window else { return }
            guard let request = requests[id], case .queued = request.phase else { continue }
            send(id, request, now, &effects)
        }
    }

    private mutating func send(
        _ id: RequestID, _ request: Request, _ now: MonotonicTime, _ effects: inout [Effect]
    ) {
        var request = request
        var attempt = request.outgoing
        attempt.deadline = attempt.deadline ?? now.advanced(by: limits.attempt * 2)
        attempt.mayBeRepeat = attempt.mayBeRepeat || request.wasSent
        request.phase = .sent(at: now)
        request.wasSent = true
        inFlight += 1
        requests[id] = request
        effects.append(.send(attempt))
    }

    private mutating func refused(
        _ id: RequestID, _ failure: Failure, _ now: MonotonicTime, _ effects: inout [Effect]
    ) {
        guard let request = requests[id] else { return }
        switch failure.known {
        case .unavailable, .busy, .helloRequired: retry(id, failure, now, sent: false)
        case .lostInFlight: retry(id, failure, now, sent: true)
        // The bus’s deadline is that of one attempt; without a deadline a request is retried until it is answered.
        case .outcomeUnknown where request.outgoing.deadline == nil: retry(id, failure, now, sent: true)
        case .expired where request.outgoing.deadline == nil: retry(id, failure, now, sent: false)
        case .expired where request.mayHaveHappened: finish(id, .failure(Self.outcomeUnknown(request)), &effects)
        default: finish(id, .failure(failure), &effects)
        }
    }

    private mutating func retry(_ id: RequestID, _ failure: Failure, _ now: MonotonicTime, sent: Bool) {
        guard var request = requests[id] else { return }
        if case .sent = request.phase { inFlight -= 1 }
        request.failures += 1
        request.phase = .waiting(until: now.advanced(by: limits.retryBackoff.wait(after: request.failures)))
        request.mayHaveHappened = request.mayHaveHappened || sent
        request.lastFailure = failure
        requests[id] = request
    }

    /// Retries a waiting request at once, because the reason for waiting has ended. An earlier refusal may still
    /// arrive; the wait after it must be short.
    private mutating func retryPromptly(_ id: RequestID, _ request: Request) {
        if case .waiting = request.phase { requests[id]?.phase = .queued }
        requests[id]?.failures = 0
    }

    private mutating func tick(_ now: MonotonicTime, _ effects: inout [Effect]) {
        for id in order {
            guard let request = requests[id], let due = due(request), now >= due else { continue }
            if let deadline = request.end, now >= deadline {
                finish(id, .failure(Self.failureAtDeadline(of: request)), &effects)
                continue
            }
            if case .sent = request.phase {
                inFlight -= 1
                requests[id]?.mayHaveHappened = true
            }
            requests[id]?.phase = .queued
        }
    }

    private func due(_ request: Request) -> MonotonicTime? {
        let next: MonotonicTime?
        switch request.phase {
        case .waiting(let until): next = until
        case .sent(let at): next = at.advanced(by: limits.attempt)
        case .queued: next = nil
        }
        return [next, request.end].compactMap(\.self).min()
    }

    /// The failure at the deadline: the outcome is unknown, unless every attempt was refused before it reached the service.
    private static func failureAtDeadline(of request: Request) -> Failure {
        if case .sent = request.phase { return outcomeUnknown(request) }
        guard !request.mayHaveHappened else { return outcomeUnknown(request) }
        return request.lastFailure ?? Failure(.unavailable, "The request could not be sent in time.")
    }

    private static func cancelled(_ request: Request) -> Failure {
        let message = "The request was cancelled."
        if case .sent = request.phase { return Failure(.outcomeUnknown, message) }
        return Failure(request.mayHaveHappened ? .outcomeUnknown : .unavailable, message)
    }

    private static func outcomeUnknown(_ request: Request) -> Failure {
        Failure(
            .outcomeUnknown,
            "\(request.outgoing.service) did not answer in time: whether the command took effect is not known.")
    }

    private mutating func finish(_ id: RequestID, _ result: Result<Answer, Failure>, _ effects: inout [Effect]) {
        guard let request = requests.removeValue(forKey: id) else { return }
        if case .sent = request.phase { inFlight -= 1 }
        order.removeAll { $0 == id }
        effects.append(.finish(id, result))
    }
}
