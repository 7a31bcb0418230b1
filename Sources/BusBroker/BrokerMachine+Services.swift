import PodcastModel
import WireMessages
import ZeroMQ

// Messages from services: HELLO, publishes, readiness, heartbeats. Replies to requests are in +Requests.
extension BrokerMachine {
    /// Handles a publish with borrowed frames; only the bytes that the ring and the store keep are copied.
    /// - Returns: whether the message is a valid publish; any other message must be passed to `handle(_:now:into:)`.
    mutating func handlePublish(
        _ message: borrowing ReceivedMessage, now: Moment, into effects: inout [BrokerEffect]
    ) -> Bool {
        guard message.count == 4, let header = try? BusHeader(decoding: message.bytes(of: 1)),
            header.kind.isSequenced, let index = registry.index(of: message.bytes(of: 0))
        else { return false }
        registry[index].lastHeard = now.monotonic
        let publish = BorrowedPublish(
            header: header, frames: message.count, topic: message.bytes(of: 2), payload: message.bytes(of: 3))
        receive(publish, index, &effects)
        return true
    }

    mutating func receiveFromService(_ message: Message, _ now: Moment, _ effects: inout [BrokerEffect]) {
        guard message.count >= 2, !message[0].isEmpty else {
            return malformed.add("svc.sock", "a message without a header")
        }
        let peer = message[0]
        let header: BusHeader
        do throws(FrameError) { header = try BusHeader(decoding: message[1].bytes) } catch {
            return malformed.add("svc.sock", error.description)
        }
        if header.kind == .hello { return hello(peer, header, message, now, &effects) }
        guard let index = peer.withUnsafeBytes({ registry.index(of: $0) }) else {
            if header.kind == .live { return }
            if let newer = registry.generationFencing(peer) {
                return reject(peer, .fenced, header.originSequence, registered: newer, &effects)
            }
            return reject(peer, .helloRequired, header.originSequence, &effects)
        }
        registry[index].lastHeard = now.monotonic
        switch header.kind {
        case .put, .delta, .delete, .event:
            let (topic, payload) = (message.count > 2 ? message[2] : .empty, message.count > 3 ? message[3] : .empty)
            topic.withUnsafeBytes { topic in
                payload.withUnsafeBytes { payload in
                    receive(
                        BorrowedPublish(header: header, frames: message.count, topic: topic, payload: payload), index,
                        &effects)
                }
            }
        case .live: publishLive(header, message, index, &effects)
        case .ready: ready(header, index, now, &effects)
        case .ping: ping(header, index, &effects)
        case .goodbye: goodbye(header, index, now, &effects)
        case .reply, .failure: answer(header, message, index, &effects)
        default: malformed.add("svc.sock", FrameError.unexpectedKind(header.kind).description)
        }
    }

    // MARK: Registration

    private mutating func hello(
        _ peer: Frame, _ header: BusHeader, _ message: Message, _ now: Moment, _ effects: inout [BrokerEffect]
    ) {
        guard message.count == 3, let (name, generation) = ServiceRegistry.parts(of: peer), generation > 0,
            message[2].text == name.text, header.generation == generation, name != .bus
        else {
            malformed.add("svc.sock", "a HELLO that doesn’t match its routing ID")
            return reject(peer, .malformed, 0, &effects)
        }
        if registry.index(named: name) == nil, !registry.hasRoom(for: name), let longest = registry.forgettable().first
        {
            forget(longest, now, &effects)
        }
        let known = registry.index(named: name)
        let before = known.map { registry[$0] }
        switch registry.register(name, generation: generation, routingID: peer, now: now.monotonic) {
        case .fenced(let newer): reject(peer, .fenced, 0, registered: newer, &effects)
        case .full: reject(peer, .busy, 0, &effects)
        case .welcome(let index, let replaced):
            if let replaced { reject(replaced, .fenced, 0, registered: generation, &effects) }
            // Requests that were sent over the old connection may be lost.
            if known != nil { loseRequests(at: index, &effects) }
            let welcome = BusHeader(.welcome, generation: generation, epoch: epoch, sequence: head)
            effects.append(.toService([peer, Frame(welcome.encoded)], .other))
            for other in registry.services.indices where other != index && registry[other].state == .ready {
                tell(index, ofStatusOf: other, &effects)
            }
            if before?.state != .starting || before?.generation != generation {
                publishStatus(of: index, now, &effects)
            }
        }
    }

    private mutating func goodbye(_ header: BusHeader, _ index: Int, _ now: Moment, _ effects: inout [BrokerEffect]) {
        guard header.generation == registry[index].generation else { return }
        takeDown(index, now, &effects)
    }

    /// Publishes that a service is down and fails the requests in flight to it. It must send HELLO again.
    private mutating func takeDown(_ index: Int, _ now: Moment, _ effects: inout [BrokerEffect]) {
        registry[index].isRegistered = false
        loseRequests(at: index, &effects)
        guard registry[index].state != .down else { return }
        registry[index].state = .down
        registry[index].downSince = now.monotonic
        publishStatus(of: index, now, &effects)
    }

    /// Forgets the services outside the fleet that have been down for longer than the limit.
    mutating func forgetGoneServices(_ now: Moment, _ effects: inout [BrokerEffect]) {
        for index in registry.forgettable() {
            guard let since = registry[index].downSince, now.monotonic.since(since) >= limits.forgetAfter else {
                return
            }
            forget(index, now, &effects)
        }
    }

    /// Deletes a service’s retained values and its status, and frees its name.
    private mutating func forget(_ index: Int, _ now: Moment, _ effects: inout [BrokerEffect]) {
        loseRequests(at: index, &effects)
        let service = registry[index]
        let header = BusHeader(.delete, generation: service.generation, time: Self.wallNanoseconds(now))
        for topic in store.topics(of: index) {
            publish(header, topic: topic, payload: .empty, owner: index, registration: service.registration, &effects)
        }
        publish(
            header, topic: Frame(Topic.service(service.name).text), payload: .empty, owner: Self.busItself,
            registration: 0,
            &effects)
        registry.forget(index)
    }

    /// Sends a service the state of another one, so that it needn’t observe the stream.
    func tell(_ index: Int, ofStatusOf other: Int, _ effects: inout [BrokerEffect]) {
        let peer = registry[index].routingID
        let header = BusHeader(.status, generation: registry[other].generation, epoch: epoch, sequence: head)
        effects.append(.toService([peer, Frame(header.encoded), registry[other].status], .needed(peer)))
    }

    mutating func takeDownSilentServices(_ now: Moment, _ effects: inout [BrokerEffect]) {
        for index in registry.services.indices where registry[index].state != .down {
            if now.monotonic.since(registry[index].lastHeard) > limits.serviceSilence { takeDown(index, now, &effects) }
        }
    }

    private mutating func ping(_ header: BusHeader, _ index: Int, _ effects: inout [BrokerEffect]) {
        let service = registry[index]
        guard service.isRegistered, header.epoch == epoch, header.generation == service.generation else {
            return startOver(index, header.originSequence, &effects)
        }
        guard !header.flags.contains(.noAnswer) else { return }
        let pong = BusHeader(.pong, generation: service.generation, epoch: epoch, sequence: head)
        effects.append(.toService([service.routingID, Frame(pong.encoded)], .other))
    }

    private mutating func ready(_ header: BusHeader, _ index: Int, _ now: Moment, _ effects: inout [BrokerEffect]) {
        let service = registry[index]
        guard service.isRegistered, header.epoch == epoch, header.generation == service.generation,
            header.originSequence == service.origin
        else { return startOver(index, header.originSequence, &effects) }
        guard service.state != .ready else { return }
        for topic in store.topics(of: index, excluding: service.registration) {
            let header = BusHeader(.delete, generation: service.generation, time: Self.wallNanoseconds(now))
            publish(header, topic: topic, payload: .empty, owner: index, registration: service.registration, &effects)
        }
        registry[index].state = .ready
        publishStatus(of: index, now, &effects)
    }

    // MARK: Publishes

    private mutating func receive(_ publish: BorrowedPublish, _ index: Int, _ effects: inout [BrokerEffect]) {
        let header = publish.header
        guard registry[index].isRegistered, header.epoch == epoch, header.generation == registry[index].generation,
            header.originSequence == registry[index].origin + 1
        else { return startOver(index, header.originSequence, &effects) }
        registry[index].origin = header.originSequence
        registry[index].waiting += 1
        let topic = topics.frame(of: publish.topic)
        if let code = refusal(of: publish, topic: topic, index) {
            flushAcknowledgement(of: index, &effects)
            return reject(registry[index].routingID, code, header.originSequence, &effects)
        }
        let payload = header.kind == .delete ? Frame.empty : Frame(copying: publish.payload)
        self.publish(
            header, topic: topic, payload: payload, owner: index, registration: registry[index].registration, &effects)
        acknowledge(header.originSequence, at: index, &effects)
    }

    private mutating func refusal(of publish: BorrowedPublish, topic: Frame, _ index: Int) -> RejectCode? {
        guard publish.frames == 4 else {
            malformed.add("svc.sock", FrameError.frameCount(expected: 4, got: publish.frames).description)
            return .malformed
        }
        guard registry[index].waiting <= limits.publishesPerService else { return .busy }
        guard publish.payload.count <= limits.payloadBytes else { return .tooLarge }
        let kind = publish.header.kind
        guard registry[index].rule.allows(publish.topic, kind: kind) else { return .notOwner }
        let cost = topic.count + BusHeader.length + publish.payload.count
        return store.refusal(
            of: kind, topic: topic, cost: cost, owner: index, registration: registry[index].registration)
    }

    private mutating func publishLive(
        _ header: BusHeader, _ message: Message, _ index: Int, _ effects: inout [BrokerEffect]
    ) {
        guard message.count == 4, message[3].count <= limits.payloadBytes,
            message[2].withUnsafeBytes({ registry[index].rule.allows($0, kind: .live) })
        else { return malformed.add("svc.sock", "malformed telemetry") }
        guard registry[index].isRegistered, header.epoch == epoch else { return }
        var header = header
        header.sequence = 0
        header.originSequence = 0
        send(message[2], header, message[3], &effects)
    }

    // MARK: Acknowledgements

    /// Acknowledges a publish with the event at the head. One message acknowledges a run of consecutive sequences.
    private mutating func acknowledge(_ origin: UInt64, at index: Int, _ effects: inout [BrokerEffect]) {
        let sequence = head
        var count: UInt32 = 1
        if let run = registry[index].unacknowledged {
            if run.lastSequence + 1 == sequence {
                count += run.count
            } else {
                sendAcknowledgement(run, at: index, &effects)
            }
        } else {
            unacknowledged.append(index)
        }
        registry[index].unacknowledged = .init(count: count, lastOrigin: origin, lastSequence: sequence)
    }

    mutating func flushAcknowledgements(_ effects: inout [BrokerEffect]) {
        for index in unacknowledged { flushAcknowledgement(of: index, &effects) }
        unacknowledged.removeAll(keepingCapacity: true)
        for index in registry.services.indices { registry[index].waiting = 0 }
    }

    private mutating func flushAcknowledgement(of index: Int, _ effects: inout [BrokerEffect]) {
        guard let run = registry[index].unacknowledged else { return }
        registry[index].unacknowledged = nil
        sendAcknowledgement(run, at: index, &effects)
    }

    private func sendAcknowledgement(
        _ run: ServiceRegistry.Unacknowledged, at index: Int, _ effects: inout [BrokerEffect]
    ) {
        let peer = registry.services[index].routingID
        let header = BusHeader(
            .acknowledge, generation: run.count, epoch: epoch, sequence: run.lastSequence,
            originSequence: run.lastOrigin)
        effects.append(.toService([peer, Frame(header.encoded)], .needed(peer)))
    }

    // MARK: Refusals

    /// Requests a new HELLO after a lost message or one with another bus’s epoch; until then messages are ignored.
    private mutating func startOver(_ index: Int, _ origin: UInt64, _ effects: inout [BrokerEffect]) {
        registry[index].isRegistered = false
        flushAcknowledgement(of: index, &effects)
        reject(registry[index].routingID, .helloRequired, origin, &effects)
    }

    func reject(
        _ peer: Frame, _ code: RejectCode, _ origin: UInt64, registered: UInt32 = 0, _ effects: inout [BrokerEffect]
    ) {
        let header = BusHeader(.reject, generation: registered, epoch: epoch, originSequence: origin)
        effects.append(.toService([peer, Frame(header.encoded), Frame(code.rawValue)], .other))
    }
}

/// The reason for which the bus rejects a service’s message, as encoded on the wire.
enum RejectCode: String, Sendable {
    case helloRequired, fenced, notOwner, busy, malformed
    /// The delta follows no put of the same registration.
    case noPut
    case tooManyDeltas
    /// The payload, or the owner’s retained values, exceed the limit.
    case tooLarge
}

/// A publish as received; its bytes are borrowed for the duration of the call.
struct BorrowedPublish {
    var header: BusHeader
    var frames: Int
    var topic: UnsafeRawBufferPointer
    var payload: UnsafeRawBufferPointer
}
