import PodcastModel
import WireMessages
import ZeroMQ

// What services say: introductions, publishes, readiness, signs of life. Answers to requests are in +Requests.
extension BrokerMachine {
    /// Handles a publish whose frames are lent: of its bytes only those are copied that the ring and the store keep.
    /// - Returns: whether it is one; anything else, and what cannot be read, is left to `handle(_:now:into:)`.
    mutating func handlePublish(
        _ message: borrowing ReceivedMessage, now: Moment, into effects: inout [BrokerEffect]
    ) -> Bool {
        guard message.count == 4, let header = try? BusHeader(decoding: message.bytes(of: 1)),
            header.kind.isSequenced, let place = registry.place(of: message.bytes(of: 0))
        else { return false }
        registry[place].lastHeard = now.monotonic
        let publish = LentPublish(
            header: header, frames: message.count, topic: message.bytes(of: 2), payload: message.bytes(of: 3))
        receive(publish, place, &effects)
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
        guard let place = peer.withUnsafeBytes({ registry.place(of: $0) }) else {
            if header.kind == .live { return }
            if let newer = registry.generationFencing(peer) {
                return reject(peer, .fenced, header.originSequence, registered: newer, &effects)
            }
            return reject(peer, .helloRequired, header.originSequence, &effects)
        }
        registry[place].lastHeard = now.monotonic
        switch header.kind {
        case .put, .delta, .delete, .event:
            let (topic, payload) = (message.count > 2 ? message[2] : .empty, message.count > 3 ? message[3] : .empty)
            topic.withUnsafeBytes { topic in
                payload.withUnsafeBytes { payload in
                    let publish = LentPublish(
                        header: header, frames: message.count, topic: topic, payload: payload)
                    receive(publish, place, &effects)
                }
            }
        case .live: publishLive(header, message, place, &effects)
        case .ready: ready(header, place, now, &effects)
        case .ping: ping(header, place, &effects)
        case .goodbye: goodbye(header, place, now, &effects)
        case .reply, .failure: answer(header, message, place, &effects)
        default: malformed.add("svc.sock", FrameError.unexpectedKind(header.kind).description)
        }
    }

    // MARK: Introductions

    private mutating func hello(
        _ peer: Frame, _ header: BusHeader, _ message: Message, _ now: Moment, _ effects: inout [BrokerEffect]
    ) {
        guard message.count == 3, let (name, generation) = ServiceRegistry.parts(of: peer), generation > 0,
            message[2].text == name.text, header.generation == generation, name != .bus
        else {
            malformed.add("svc.sock", "a HELLO that does not match its routing id")
            return reject(peer, .malformed, 0, &effects)
        }
        if registry.place(named: name) == nil, !registry.hasRoom(for: name), let longest = registry.forgettable().first
        {
            forget(longest, now, &effects)
        }
        let known = registry.place(named: name)
        let before = known.map { registry[$0] }
        switch registry.greet(name, generation: generation, routingID: peer, now: now.monotonic) {
        case .fenced(let newer): reject(peer, .fenced, 0, registered: newer, &effects)
        case .full: reject(peer, .busy, 0, &effects)
        case .welcome(let place, let replaced):
            if let replaced { reject(replaced, .fenced, 0, registered: generation, &effects) }
            // What was with the old connection may have been lost with it.
            if known != nil { loseRequests(at: place, &effects) }
            let welcome = BusHeader(.welcome, generation: generation, epoch: epoch, sequence: head)
            effects.append(.toService([peer, Frame(welcome.encoded)], .other))
            for other in registry.services.indices where other != place && registry[other].state == .ready {
                tell(place, ofStatusOf: other, &effects)
            }
            if before?.state != .starting || before?.generation != generation {
                publishStatus(of: place, now, &effects)
            }
        }
    }

    private mutating func goodbye(_ header: BusHeader, _ place: Int, _ now: Moment, _ effects: inout [BrokerEffect]) {
        guard header.generation == registry[place].generation else { return }
        takeDown(place, now, &effects)
    }

    /// Says on the stream that a service is down and ends the requests that are with it. It must say HELLO again.
    private mutating func takeDown(_ place: Int, _ now: Moment, _ effects: inout [BrokerEffect]) {
        registry[place].greeted = false
        loseRequests(at: place, &effects)
        guard registry[place].state != .down else { return }
        registry[place].state = .down
        registry[place].downSince = now.monotonic
        publishStatus(of: place, now, &effects)
    }

    /// Forgets the services outside the fleet that have been down for long.
    mutating func forgetGoneServices(_ now: Moment, _ effects: inout [BrokerEffect]) {
        for place in registry.forgettable() {
            guard let since = registry[place].downSince, now.monotonic.since(since) >= limits.forgetAfter else {
                return
            }
            forget(place, now, &effects)
        }
    }

    /// Deletes a service's values and its status, and frees its name.
    private mutating func forget(_ place: Int, _ now: Moment, _ effects: inout [BrokerEffect]) {
        loseRequests(at: place, &effects)
        let service = registry[place]
        let header = BusHeader(.delete, generation: service.generation, time: Self.wallNanoseconds(now))
        for topic in store.topics(of: place) {
            publish(header, topic: topic, payload: .empty, owner: place, life: service.life, &effects)
        }
        publish(
            header, topic: Frame(Topic.service(service.name).text), payload: .empty, owner: Self.busItself, life: 0,
            &effects)
        registry.forget(place)
    }

    /// Tells a service where another one stands, so that it need not follow the stream for that.
    func tell(_ place: Int, ofStatusOf other: Int, _ effects: inout [BrokerEffect]) {
        let peer = registry[place].routingID
        let header = BusHeader(.status, generation: registry[other].generation, epoch: epoch, sequence: head)
        let payload = BrokerPayload.status(of: registry[other])
        effects.append(.toService([peer, Frame(header.encoded), payload], .needed(peer)))
    }

    mutating func takeDownSilentServices(_ now: Moment, _ effects: inout [BrokerEffect]) {
        for place in registry.services.indices where registry[place].state != .down {
            if now.monotonic.since(registry[place].lastHeard) > limits.serviceSilence { takeDown(place, now, &effects) }
        }
    }

    private mutating func ping(_ header: BusHeader, _ place: Int, _ effects: inout [BrokerEffect]) {
        let service = registry[place]
        guard service.greeted, header.epoch == epoch, header.generation == service.generation else {
            return startOver(place, header.originSequence, &effects)
        }
        guard !header.flags.contains(.noAnswer) else { return }
        let pong = BusHeader(.pong, generation: service.generation, epoch: epoch, sequence: head)
        effects.append(.toService([service.routingID, Frame(pong.encoded)], .other))
    }

    private mutating func ready(_ header: BusHeader, _ place: Int, _ now: Moment, _ effects: inout [BrokerEffect]) {
        let service = registry[place]
        guard service.greeted, header.epoch == epoch, header.generation == service.generation,
            header.originSequence == service.origin
        else { return startOver(place, header.originSequence, &effects) }
        guard service.state != .ready else { return }
        for topic in store.leftovers(of: place, before: service.life) {
            let header = BusHeader(.delete, generation: service.generation, time: Self.wallNanoseconds(now))
            publish(header, topic: topic, payload: .empty, owner: place, life: service.life, &effects)
        }
        registry[place].state = .ready
        publishStatus(of: place, now, &effects)
    }

    // MARK: Publishes

    private mutating func receive(_ publish: LentPublish, _ place: Int, _ effects: inout [BrokerEffect]) {
        let header = publish.header
        guard registry[place].greeted, header.epoch == epoch, header.generation == registry[place].generation,
            header.originSequence == registry[place].origin + 1
        else { return startOver(place, header.originSequence, &effects) }
        registry[place].origin = header.originSequence
        registry[place].waiting += 1
        let topic = topics.frame(of: publish.topic)
        if let code = refusal(of: publish, topic: topic, place) {
            flushAcknowledgement(of: place, &effects)
            return reject(registry[place].routingID, code, header.originSequence, &effects)
        }
        let payload = header.kind == .delete ? Frame.empty : Frame(copying: publish.payload)
        self.publish(header, topic: topic, payload: payload, owner: place, life: registry[place].life, &effects)
        acknowledge(header.originSequence, at: place, &effects)
    }

    private mutating func refusal(of publish: LentPublish, topic: Frame, _ place: Int) -> RejectCode? {
        guard publish.frames == 4 else {
            malformed.add("svc.sock", FrameError.frameCount(expected: 4, got: publish.frames).description)
            return .malformed
        }
        guard registry[place].waiting <= limits.publishesPerService else { return .busy }
        guard publish.payload.count <= limits.payloadBytes else { return .tooLarge }
        let kind = publish.header.kind
        guard registry[place].rule.allows(publish.topic, kind: kind) else { return .notOwner }
        let cost = topic.count + BusHeader.length + publish.payload.count
        switch store.refusal(of: kind, topic: topic, cost: cost, owner: place, life: registry[place].life) {
        case .noPut: return .noPut
        case .tooManyDeltas: return .tooManyDeltas
        case .full: return .tooLarge
        case nil: return nil
        }
    }

    private mutating func publishLive(
        _ header: BusHeader, _ message: Message, _ place: Int, _ effects: inout [BrokerEffect]
    ) {
        guard message.count == 4, message[3].count <= limits.payloadBytes,
            message[2].withUnsafeBytes({ registry[place].rule.allows($0, kind: .live) })
        else { return malformed.add("svc.sock", "telemetry of a wrong form") }
        guard registry[place].greeted, header.epoch == epoch else { return }
        var header = header
        header.sequence = 0
        header.originSequence = 0
        send(message[2], header, message[3], &effects)
    }

    // MARK: Acknowledgements

    /// Notes that the event at the head answers this publish. One message acknowledges a run of neighbours.
    private mutating func acknowledge(_ origin: UInt64, at place: Int, _ effects: inout [BrokerEffect]) {
        let sequence = head
        var count: UInt32 = 1
        if let run = registry[place].unacknowledged {
            if run.lastSequence + 1 == sequence {
                count += run.count
            } else {
                sendAcknowledgement(run, at: place, &effects)
            }
        } else {
            unacknowledged.append(place)
        }
        registry[place].unacknowledged = .init(count: count, lastOrigin: origin, lastSequence: sequence)
    }

    mutating func flushAcknowledgements(_ effects: inout [BrokerEffect]) {
        for place in unacknowledged {
            flushAcknowledgement(of: place, &effects)
        }
        unacknowledged.removeAll(keepingCapacity: true)
        for place in registry.services.indices { registry[place].waiting = 0 }
    }

    private mutating func flushAcknowledgement(of place: Int, _ effects: inout [BrokerEffect]) {
        guard let run = registry[place].unacknowledged else { return }
        registry[place].unacknowledged = nil
        sendAcknowledgement(run, at: place, &effects)
    }

    private func sendAcknowledgement(
        _ run: ServiceRegistry.Unacknowledged, at place: Int, _ effects: inout [BrokerEffect]
    ) {
        let peer = registry.services[place].routingID
        let header = BusHeader(
            .acknowledge, generation: run.count, epoch: epoch, sequence: run.lastSequence,
            originSequence: run.lastOrigin)
        effects.append(.toService([peer, Frame(header.encoded)], .needed(peer)))
    }

    // MARK: Refusals

    /// A message of this service was lost, or it speaks of another bus: nothing counts before its next HELLO.
    private mutating func startOver(_ place: Int, _ origin: UInt64, _ effects: inout [BrokerEffect]) {
        registry[place].greeted = false
        flushAcknowledgement(of: place, &effects)
        reject(registry[place].routingID, .helloRequired, origin, &effects)
    }

    func reject(
        _ peer: Frame, _ code: RejectCode, _ origin: UInt64, registered: UInt32 = 0, _ effects: inout [BrokerEffect]
    ) {
        let header = BusHeader(.reject, generation: registered, epoch: epoch, originSequence: origin)
        effects.append(.toService([peer, Frame(header.encoded), Frame(code.rawValue)], .other))
    }
}

/// Why the bus refuses a service's message, as it stands on the wire.
enum RejectCode: String, Sendable {
    case helloRequired
    case fenced
    case notOwner
    case noPut
    case tooManyDeltas
    case busy
    case tooLarge
    case malformed
}

/// A publish as it arrived; its bytes are lent for the length of a call.
struct LentPublish {
    var header: BusHeader
    /// The frames of the whole message.
    var frames: Int
    var topic: UnsafeRawBufferPointer
    var payload: UnsafeRawBufferPointer
}
