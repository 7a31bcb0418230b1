public import PodcastModel
public import WireMessages

// What a service and the bus exchange: requests in, answers and publications out.

/// What the bus tells a service, on the poll thread: whoever hears it must not block.
public enum BusEvent: Sendable {
    /// The bus has accepted the service in this epoch.
    case began(epoch: UInt64)
    /// A request; it must be answered once.
    case command(IncomingCommand)
    /// Another service is ready, in this generation, or not: nil. Those that are ready are told after each `began`.
    case status(ServiceName, ready: UInt32?)
    /// The stream went on, for a service that observes it.
    case update(ReplicaUpdate)
    /// The bus refused a publication.
    case rejected(Publication, code: String)
    /// A newer process of the same service has taken over.
    case fenced(Failure)
    /// The time that the service has asked to be woken at has come.
    case alarm
    /// A second has passed in which the poll thread has turned.
    case pulse
}

/// A request to a service.
public struct Command: Sendable, Hashable {
    /// Its id, however often it is sent.
    public var id: RequestID
    /// Who asks, in words, for histories: `cli`, `mini` …
    public var origin: String
    /// Protobuf: the service's request message.
    public var payload: [UInt8]

    /// A request.
    public init(id: RequestID, origin: String, payload: [UInt8]) {
        self.id = id
        self.origin = origin
        self.payload = payload
    }
}

/// A request as it reaches a service.
public struct IncomingCommand: Sendable, Hashable {
    /// Where its answer goes.
    public var ticket: ReplyTicket
    /// Its id, origin and payload.
    public var command: Command
    /// After this it must not begin.
    public var deadline: MonotonicTime
    /// Whether the id may have been used before.
    public var mayBeRepeat: Bool

    /// A request of these parts.
    public init(ticket: ReplyTicket, command: Command, deadline: MonotonicTime, mayBeRepeat: Bool = false) {
        self.ticket = ticket
        self.command = command
        self.deadline = deadline
        self.mayBeRepeat = mayBeRepeat
    }

    /// The request's id.
    public var id: RequestID { command.id }
    /// Protobuf: the service's request message.
    public var payload: [UInt8] { command.payload }
}

/// A place to send an answer to: one sending of a request, on one connection.
public struct ReplyTicket: Sendable, Hashable {
    /// The epoch of the bus that issued it; another bus knows nothing of it.
    public var epoch: UInt64
    /// The bus's number.
    public var number: UInt64

    /// A ticket.
    public init(epoch: UInt64, number: UInt64) {
        self.epoch = epoch
        self.number = number
    }
}

/// A message for the stream, under the service's own name.
public struct Publication: Sendable, Hashable {
    /// Where.
    public var topic: Topic
    /// `put`, `delta`, `delete`, `event` or `live`.
    public var kind: MessageKind
    /// Protobuf; empty for a delete.
    public var payload: [UInt8]

    /// A message.
    public init(_ kind: MessageKind, _ topic: Topic, _ payload: [UInt8] = []) {
        self.topic = topic
        self.kind = kind
        self.payload = payload
    }
}
