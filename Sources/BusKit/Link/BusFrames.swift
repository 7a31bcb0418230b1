package import PodcastModel
package import WireMessages
import ZeroMQ

// The messages of protocols/bus.md as values, in both directions. A malformed message throws a `FrameError`; the shell
// counts it and continues.

extension StreamReducer.Event {
    /// Decodes a message from `pub.sock`.
    init(decoding message: Message) throws(FrameError) {
        let event = try StreamEvent(decoding: message[...])
        switch event.header.kind {
        case .put, .delta, .delete, .event: self = .stream(event)
        case .live: self = .live(event)
        case .heartbeat: self = .heartbeat(epoch: event.header.epoch, head: event.header.sequence)
        case .sync:
            let nonce = String(event.topic.text.dropFirst("sync/".count))
            self = .sync(nonce: nonce, epoch: event.header.epoch, head: event.header.sequence)
        default: throw .unexpectedKind(event.header.kind)
        }
    }
}

extension StreamEvent {
    /// Decodes topic, header and payload; later frames are ignored.
    init(decoding frames: ArraySlice<Frame>) throws(FrameError) {
        guard frames.count >= 2 else { throw .frameCount(expected: 3, got: frames.count) }
        let first = frames.startIndex
        guard let topic = frames[first].text else { throw .badText }
        let header = try BusHeader(decoding: frames[first + 1].bytes)
        self.init(topic: Topic(topic), header: header, payload: frames.count > 2 ? frames[first + 2].bytes : [])
    }
}

/// One chunk of the answer to a FETCH.
package struct FetchChunk: Sendable, Hashable {
    /// Whether the chunk belongs to a snapshot; otherwise it belongs to a replay.
    package var isSnapshot: Bool
    /// The nonce of the join that it belongs to.
    package var nonce: String
    package var epoch: UInt64
    /// The sequence up to which the answer extends, the same in all its chunks.
    package var head: UInt64
    /// Whether another chunk follows.
    package var more: Bool
    /// The ready services and their generations, in a snapshot.
    package var ready: [ServiceName: UInt32]
    /// Events, or retained values and their deltas.
    package var entries: [StreamEvent]

    package init(
        isSnapshot: Bool, nonce: String, epoch: UInt64, head: UInt64, more: Bool = false,
        ready: [ServiceName: UInt32] = [:], entries: [StreamEvent]
    ) {
        self.isSnapshot = isSnapshot
        self.nonce = nonce
        self.epoch = epoch
        self.head = head
        self.more = more
        self.ready = ready
        self.entries = entries
    }

    init(_ header: BusHeader, decoding message: Message) throws(FrameError) {
        let isSnapshot = header.kind == .snapshot
        let fixed = isSnapshot ? 3 : 2
        guard message.count >= fixed, (message.count - fixed) % 3 == 0 else {
            throw .frameCount(expected: fixed, got: message.count)
        }
        guard let nonce = message[1].text else { throw .badText }
        var ready: [ServiceName: UInt32] = [:]
        if isSnapshot {
            guard let text = message[2].text else { throw .badText }
            ready = Self.services(text)
        }
        var entries: [StreamEvent] = []
        entries.reserveCapacity((message.count - fixed) / 3)
        for index in stride(from: fixed, to: message.count, by: 3) {
            entries.append(try StreamEvent(decoding: message[index..<index + 3]))
        }
        self.init(
            isSnapshot: isSnapshot, nonce: nonce, epoch: header.epoch, head: header.sequence,
            more: header.flags.contains(.more), ready: ready, entries: entries)
    }

    private static func services(_ text: String) -> [ServiceName: UInt32] {
        var ready: [ServiceName: UInt32] = [:]
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: "#")
            guard parts.count == 2, let name = ServiceName(String(parts[0])), let generation = UInt32(parts[1]) else {
                continue
            }
            ready[name] = generation
        }
        return ready
    }
}

/// A message from `cli.sock`.
enum ClientMessage: Sendable {
    case chunk(FetchChunk)
    case answer(RequestID, Result<Answer, Failure>)

    init(decoding message: Message) throws(FrameError) {
        guard let first = message.first else { throw .frameCount(expected: 2, got: 0) }
        let header = try BusHeader(decoding: first.bytes)
        switch header.kind {
        case .replay, .snapshot: self = .chunk(try FetchChunk(header, decoding: message))
        case .reply, .failure:
            guard message.count >= 2 else { throw .frameCount(expected: 3, got: message.count) }
            let id = try RequestID(decoding: message[1])
            let payload = message.count > 2 ? message[2].bytes : []
            let position = StreamPosition(epoch: header.epoch, sequence: header.sequence)
            self = .answer(
                id,
                header.kind == .failure
                    ? .failure(Failure(decoding: payload))
                    : .success(Answer(payload: payload, position: header.epoch == 0 ? nil : position)))
        default: throw .unexpectedKind(header.kind)
        }
    }
}

extension RequestID {
    fileprivate init(decoding frame: Frame) throws(FrameError) {
        guard let id = RequestID(frame.bytes) else { throw .truncated(expected: Self.length, got: frame.count) }
        self = id
    }
}

extension Failure {
    /// Decodes a failure’s payload; a malformed one becomes an `internalError`.
    init(decoding payload: [UInt8]) {
        do {
            self = try WireFailure(wireBytes: payload).failure
        } catch {
            self.init(.internalError, "The failure in the answer can’t be read.")
        }
    }
}

/// A message from `svc.sock`.
enum ServiceMessage: Sendable {
    /// An event of the service’s connection or of its publishes.
    case link(PublishLink.Event)
    /// The state of another service; `ready` is its generation if it is READY.
    case status(ServiceName, ready: UInt32?, epoch: UInt64)
    case request(IncomingCommand)

    init(decoding message: Message) throws(FrameError) {
        guard let first = message.first else { throw .frameCount(expected: 1, got: 0) }
        let header = try BusHeader(decoding: first.bytes)
        switch header.kind {
        case .welcome:
            self = .link(.welcome(generation: header.generation, epoch: header.epoch, head: header.sequence))
        case .acknowledge:
            self = .link(
                .acknowledge(
                    epoch: header.epoch, count: UInt64(header.generation), origin: header.originSequence,
                    sequence: header.sequence))
        case .reject:
            guard message.count >= 2, let code = message[1].text else {
                throw .frameCount(expected: 2, got: message.count)
            }
            self = .link(
                .reject(code: code, epoch: header.epoch, origin: header.originSequence, generation: header.generation))
        case .pong: self = .link(.pong(epoch: header.epoch))
        case .status:
            guard message.count >= 2, let status = try? WireServiceStatus(wireBytes: message[1].bytes),
                let name = ServiceName(status.name)
            else { throw .badText }
            self = .status(name, ready: status.state == .ready ? header.generation : nil, epoch: header.epoch)
        case .request: self = .request(try IncomingCommand(header, decoding: message))
        default: throw .unexpectedKind(header.kind)
        }
    }
}

extension IncomingCommand {
    fileprivate init(_ header: BusHeader, decoding message: Message) throws(FrameError) {
        guard message.count >= 4 else { throw .frameCount(expected: 4, got: message.count) }
        let id = try RequestID(decoding: message[1])
        guard let origin = message[2].text else { throw .badText }
        self.init(
            ticket: ReplyTicket(epoch: header.epoch, number: header.originSequence),
            command: Command(
                id: id, origin: origin, payload: message[3].bytes, mayBeRepeat: header.flags.contains(.mayBeRepeat)),
            deadline: MonotonicTime(nanoseconds: header.time))
    }
}

// The messages that a client sends.

extension FetchRequest {
    var message: Message {
        let header = BusHeader(
            .fetch, flags: forceSnapshot ? .forceSnapshot : [], epoch: from.epoch, sequence: from.sequence)
        // The list of excluded prefixes, which ends with an empty frame, is empty. No prefix may be empty, so a bus
        // that doesn’t support the second list refuses it.
        return [Frame(header.encoded), Frame(nonce)] + (includedPrefixes.map { [.empty] + $0.map { Frame($0) } } ?? [])
    }
}

extension OutgoingRequest {
    func message(origin: String) -> Message {
        let header = BusHeader(.request, flags: mayBeRepeat ? .mayBeRepeat : [], time: deadline?.nanoseconds ?? 0)
        return [Frame(header.encoded), Frame(id.bytes), Frame(service.text), Frame(origin), Frame(payload)]
    }
}

// The messages that a service sends.

extension PublishLink.OutgoingMessage {
    func message(name: ServiceName) -> Message {
        switch self {
        case .hello(let generation):
            return [Frame(BusHeader(.hello, generation: generation).encoded), Frame(name.text)]
        case .publish(let publication, let generation, let epoch, let origin, let time):
            let header = BusHeader(
                publication.kind, generation: generation, epoch: epoch, originSequence: origin, time: time)
            return [Frame(header.encoded), Frame(publication.topic.text), Frame(publication.payload)]
        case .ready(let generation, let epoch, let origin):
            return [Frame(BusHeader(.ready, generation: generation, epoch: epoch, originSequence: origin).encoded)]
        case .goodbye(let generation): return [Frame(BusHeader(.goodbye, generation: generation).encoded)]
        case .ping(let generation, let epoch, let wantsPong):
            let flags: BusHeader.Flags = wantsPong ? [] : .noAnswer
            return [Frame(BusHeader(.ping, flags: flags, generation: generation, epoch: epoch).encoded)]
        case .answer(let ticket, let id, .success(let payload), let position):
            let header = BusHeader(
                .reply, epoch: position.epoch, sequence: position.sequence, originSequence: ticket)
            return [Frame(header.encoded), Frame(id.bytes), Frame(payload)]
        case .answer(let ticket, let id, .failure(let failure), let position):
            let header = BusHeader(.failure, epoch: position.epoch, originSequence: ticket)
            return [Frame(header.encoded), Frame(id.bytes), Frame(WireFailure(failure).wireBytes)]
        }
    }
}
