import Logging
import PodcastModel
import WireMessages
import ZeroMQ

// Handles the client side of the loop: stream subscriptions and requests.

extension BusLoop {
    /// Handles an event that isn’t selected without copying it: only its sequence is used.
    /// - Returns: false for any other message.
    mutating func handleIfUnselected(_ message: borrowing ReceivedMessage, _ sockets: SocketSet) -> Bool {
        guard let selection = configuration.observes, !selection.isAll, message.count >= 2,
            !selection.contains(topic: message.bytes(of: 0)),
            let header = try? BusHeader(decoding: message.bytes(of: 1)), header.kind.isSequenced
        else { return false }
        received(
            .stream(StreamEvent(topic: Topic(""), header: header, payload: [])), SystemClocks.monotonic(), sockets)
        return true
    }

    mutating func received(_ event: StreamReducer.Event, _ now: MonotonicTime, _ sockets: SocketSet) {
        switch event {
        case .stream(let event): epochSeen(event.header.epoch, now, sockets)
        case .heartbeat(let epoch, _), .sync(_, let epoch, _): epochSeen(epoch, now, sockets)
        default: break
        }
        reduce(event, now, sockets)
        if case .heartbeat(let epoch, _) = event { link(.heartbeat(epoch: epoch), now, sockets) }
    }

    mutating func received(_ message: ClientMessage, _ now: MonotonicTime, _ sockets: SocketSet) {
        switch message {
        case .chunk(let chunk): reduce(.chunk(chunk), now, sockets)
        case .answer(let id, .success(let answer)): retry(.reply(id, answer), now, sockets)
        case .answer(let id, .failure(let failure)): retry(.failure(id, failure), now, sockets)
        }
    }

    /// Ends the attempts that were sent to another bus. The service’s side ignores a smaller epoch, which may be in a
    /// buffered message of the old bus.
    private mutating func epochSeen(_ seen: UInt64, _ now: MonotonicTime, _ sockets: SocketSet) {
        guard seen != epoch else { return }
        if epoch != 0 { retry(.connectionLost, now, sockets) }
        if reducer == nil { retry(.joined, now, sockets) }
        epoch = seen
        if let mine = link?.epoch, seen > mine { link(.epochSeen(seen), now, sockets) }
    }

    mutating func reduce(_ event: StreamReducer.Event, _ now: MonotonicTime, _ sockets: SocketSet) {
        guard let effects = reducer?.handle(event, now: now), !effects.isEmpty else { return }
        for effect in effects {
            switch effect {
            case .open(let nonce): open(nonce, now, sockets)
            case .fetch(let request):
                _ = send(request.message, on: client, sockets)
                retry(.joined, now, sockets)
            case .update(let update): tell(update, now, sockets)
            }
        }
        completeWaits(now)
    }

    private mutating func open(_ nonce: String, _ now: MonotonicTime, _ sockets: SocketSet) {
        do throws(ZeroMQError) {
            try openStream(nonce: nonce, sockets)
            if let old = client { sockets.close(old) }
            client = nil
            client = try openClient(sockets)
        } catch {
            // A failed join is retried when its silence limit is reached.
            log("joining the bus failed", error)
        }
        retry(.connectionLost, now, sockets)
    }

    private mutating func tell(_ update: ReplicaUpdate, _ now: MonotonicTime, _ sockets: SocketSet) {
        guard let reducer else { return }
        onEvent(.update(update))
        for feed in feeds.values { feed.push(update, replica: reducer.replica, connection: reducer.connection) }
        switch update {
        case .event(let event): wakeRequests(for: event, now, sockets)
        case .snapshot(let replica):
            for service in replica.ready.keys { retry(.ready(service), now, sockets) }
        default: break
        }
    }

    /// Retries waiting requests at once when their service becomes ready.
    private mutating func wakeRequests(for event: StreamEvent, _ now: MonotonicTime, _ sockets: SocketSet) {
        guard retrier.count > 0, event.header.kind == .put, let name = Replica.service(event.topic),
            reducer?.replica.ready[name] != nil
        else { return }
        retry(.ready(name), now, sockets)
    }

    mutating func follow(_ feed: UpdateBuffer) {
        guard let reducer else { return feed.finish() }
        feeds[ObjectIdentifier(feed)] = feed
        if reducer.replica.position.epoch != 0 {
            feed.push(.snapshot(reducer.replica), replica: reducer.replica, connection: reducer.connection)
        }
        feed.push(.connection(reducer.connection), replica: reducer.replica, connection: reducer.connection)
    }

    mutating func completeWaits(_ now: MonotonicTime) {
        guard !waits.isEmpty else { return }
        guard let replica = reducer?.replica else {
            for wait in waits {
                wait.completion(.failure(Failure(.invalidArgument, "This client doesn’t follow the stream.")))
            }
            waits = []
            return
        }
        waits.removeAll { entry in
            if entry.wait.isOver(replica) {
                entry.completion(.success(()))
                return true
            }
            guard now >= entry.wait.deadline else { return false }
            entry.completion(.failure(Failure(.unavailable, "The change didn’t arrive on the stream in time.")))
            return true
        }
    }

    mutating func retry(_ event: RequestRetrier.Event, _ now: MonotonicTime, _ sockets: SocketSet) {
        // A failed send makes room for the next waiting request; the events are handled in a loop, without recursion.
        var events = [event]
        var next = 0
        while next < events.count {
            for effect in retrier.handle(events[next], now: now) {
                switch effect {
                case .send(let request):
                    let message = request.message(origin: configuration.origin)
                    if !send(message, on: client, sockets) { events.append(.unsent(request.id)) }
                case .finish(let id, let result): finish(id, result)
                }
            }
            next += 1
        }
    }

    mutating func finish(_ id: RequestID, _ result: Result<Answer, Failure>) {
        for completion in completions.removeValue(forKey: id) ?? [] { completion(result) }
    }
}
