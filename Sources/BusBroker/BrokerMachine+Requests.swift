import PodcastModel
import WireMessages
import ZeroMQ

// Routes requests to services and replies to clients; the bus neither stores nor repeats requests.
extension BrokerMachine {
    mutating func receiveFromClient(_ message: Message, _ now: Moment, _ effects: inout [BrokerEffect]) {
        guard message.count >= 2, !message[0].isEmpty else {
            return malformed.add("cli.sock", "a message without a header")
        }
        let header: BusHeader
        do throws(FrameError) { header = try BusHeader(decoding: message[1].bytes) } catch {
            return malformed.add("cli.sock", error.description)
        }
        switch header.kind {
        case .fetch: fetch(header, message, &effects)
        case .request: request(header, message, now, &effects)
        default: malformed.add("cli.sock", FrameError.unexpectedKind(header.kind).description)
        }
    }

    private mutating func request(
        _ header: BusHeader, _ message: Message, _ now: Moment, _ effects: inout [BrokerEffect]
    ) {
        guard message.count == 6, message[2].count == RequestID.length else {
            return malformed.add("cli.sock", "a malformed request")
        }
        let client = message[0]
        let id = message[2]
        guard let name = message[3].text.flatMap({ ServiceName($0) }) else {
            malformed.add("cli.sock", FrameError.badText.description)
            return fail(client, id, Failure(.malformed, "The request doesn’t name its service."), &effects)
        }
        guard message[4].text != nil else {
            malformed.add("cli.sock", FrameError.badText.description)
            return fail(client, id, Failure(.malformed, "The origin of the request isn’t UTF-8."), &effects)
        }
        if let failure = RequestLimits.refusal(originBytes: message[4].count) {
            return fail(client, id, failure, &effects)
        }
        guard let index = registry.index(named: name), registry[index].state == .ready else {
            let isStarting = registry.index(named: name).map { registry[$0].state } == .starting
            let state = isStarting ? "is starting" : "is not running"
            return fail(client, id, Failure(.unavailable, "The \(name) service \(state)."), &effects)
        }
        let deadline = min(
            MonotonicTime(nanoseconds: header.time), now.monotonic.advanced(by: limits.longestRequest))
        guard deadline > now.monotonic else {
            let failure = Failure(.expired, "The request’s deadline passed before it reached the \(name) service.")
            return fail(client, id, failure, &effects)
        }
        guard let ticket = admit(client, id, index, deadline, message[5].count) else {
            return fail(client, id, Failure(.busy, "Too many requests are waiting for an answer."), &effects)
        }
        let forwarded = BusHeader(
            .request, flags: header.flags, generation: registry[index].generation, epoch: epoch, sequence: head,
            originSequence: ticket, time: header.time)
        effects.append(
            .toService(
                [registry[index].routingID, Frame(forwarded.encoded), id, message[4], message[5]], .request(ticket)))
    }

    /// Returns the ticket with which the request is sent to the service; nil if a limit is reached. A repeat of a request
    /// that is still in flight has the same ticket, by which the service joins both.
    private mutating func admit(
        _ client: Frame, _ id: Frame, _ index: Int, _ deadline: MonotonicTime, _ bytes: Int
    ) -> UInt64? {
        if let ticket = requests.ticket(of: id, client: client, serviceIndex: index) { return ticket }
        guard requests.count(of: client) < limits.requestsPerClient,
            registry[index].requests < limits.requestsPerService,
            requests.bytes(of: client) + bytes <= limits.requestBytesPerClient,
            registry[index].requestBytes + bytes <= limits.requestBytesPerService
        else { return nil }
        registry[index].requests += 1
        registry[index].requestBytes += bytes
        return requests.insert(.init(client: client, id: id, serviceIndex: index, deadline: deadline, bytes: bytes))
    }

    // MARK: Replies

    mutating func answer(_ header: BusHeader, _ message: Message, _ index: Int, _ effects: inout [BrokerEffect]) {
        guard message.count == 4 else {
            return malformed.add("svc.sock", FrameError.frameCount(expected: 4, got: message.count).description)
        }
        // A reply to an abandoned request is ignored, not counted as malformed.
        guard let request = requests[header.originSequence], request.serviceIndex == index, request.id == message[2]
        else {
            return
        }
        end(header.originSequence)
        var answer = header
        answer.originSequence = 0
        answer.time = 0
        effects.append(.toClient([request.client, Frame(answer.encoded), request.id, message[3]]))
    }

    @discardableResult
    private mutating func end(_ ticket: UInt64) -> InFlightRequests.Request? {
        guard let request = requests.remove(ticket) else { return nil }
        registry[request.serviceIndex].requests -= 1
        registry[request.serviceIndex].requestBytes -= request.bytes
        return request
    }

    private func fail(_ client: Frame, _ id: Frame, _ failure: Failure, _ effects: inout [BrokerEffect]) {
        let header = BusHeader(.failure, epoch: epoch, sequence: head)
        effects.append(.toClient([client, Frame(header.encoded), id, Frame(WireFailure(failure).wireBytes)]))
    }

    private mutating func fail(_ ticket: UInt64, _ failure: Failure, _ effects: inout [BrokerEffect]) {
        guard let request = end(ticket) else { return }
        fail(request.client, request.id, failure, &effects)
    }

    /// Fails the requests in flight to a service whose connection is lost: their outcome is unknown.
    mutating func loseRequests(at index: Int, _ effects: inout [BrokerEffect]) {
        for ticket in requests.tickets(at: index) {
            let name = registry[index].name
            let failure = Failure(.lostInFlight, "The \(name) service disconnected before it answered the request.")
            fail(ticket, failure, &effects)
        }
    }

    mutating func expireRequests(_ now: Moment, _ effects: inout [BrokerEffect]) {
        for ticket in requests.expired(at: now.monotonic) {
            guard let index = requests[ticket]?.serviceIndex else { continue }
            let name = registry[index].name
            fail(ticket, Failure(.outcomeUnknown, "The \(name) service didn’t answer in time."), &effects)
        }
    }

    mutating func handleUndelivered(
        _ delivery: BrokerDelivery, _ outcome: SendOutcome, _ effects: inout [BrokerEffect]
    ) {
        switch delivery {
        case .request(let ticket):
            guard let index = requests[ticket]?.serviceIndex else { return }
            let name = registry[index].name
            let failure =
                outcome == .unreachable
                ? Failure(.unavailable, "The \(name) service isn’t connected.")
                : Failure(.busy, "The \(name) service can’t accept more requests now.")
            fail(ticket, failure, &effects)
        case .needed(let peer):
            // The service would wait forever for the message, which wasn’t delivered: it must register again.
            if let index = peer.withUnsafeBytes({ registry.index(of: $0) }) { registry[index].isRegistered = false }
        case .other: break
        }
    }
}
