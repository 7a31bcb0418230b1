package import PodcastModel
package import WireMessages

// The values that a service and the bus exchange: requests in, replies and publications out.

/// A bus event for a service. It is handled on the poll thread, so its handler must not block.
package enum BusEvent: Sendable {
    /// The bus has accepted the service in this epoch.
    case epochBegan(epoch: UInt64)
    /// A request; it must be answered once.
    case command(IncomingCommand)
    /// Another service is ready in this generation, or isn’t (nil). Ready ones are reported after each `epochBegan`.
    case status(ServiceName, ready: UInt32?)
    /// An update of the stream, for a service that observes it.
    case update(ReplicaUpdate)
    case rejected(Publication, code: String)
    case fenced(Failure)
    case timerFired
    /// The pulse of the poll thread, about once a second.
    case heartbeat
}

package struct Command: Sendable, Hashable {
    package var id: RequestID
    /// The requesting program’s name, for histories: `cli`, `mini` …
    package var origin: String
    /// Protobuf: the service’s request message.
    package var payload: [UInt8]
    /// Whether the ID, and those derived from it, may have been used before.
    package var mayBeRepeat: Bool

    package init(id: RequestID, origin: String, payload: [UInt8], mayBeRepeat: Bool = false) {
        self.id = id
        self.origin = origin
        self.payload = payload
        self.mayBeRepeat = mayBeRepeat
    }
}

/// A request as received by a service.
package struct IncomingCommand: Sendable, Hashable {
    package var ticket: ReplyTicket
    package var command: Command
    /// The time after which the service must not execute the request.
    package var deadline: MonotonicTime

    package var id: RequestID { command.id }
    /// Protobuf: the service’s request message.
    package var payload: [UInt8] { command.payload }
}

/// The return address of one attempt of a request, on one connection.
package struct ReplyTicket: Sendable, Hashable {
    /// The epoch of the bus that issued the ticket, which is invalid on any other bus.
    package var epoch: UInt64
    package var number: UInt64
}

/// A message for the stream, under the service’s own name.
package struct Publication: Sendable, Hashable {
    package var topic: Topic
    /// `put`, `delta`, `delete`, `event` or `live`.
    package var kind: MessageKind
    /// A Protobuf message; empty for a delete.
    package var payload: [UInt8]

    package init(_ kind: MessageKind, _ topic: Topic, _ payload: [UInt8] = []) {
        self.topic = topic
        self.kind = kind
        self.payload = payload
    }
}
