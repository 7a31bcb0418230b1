package import PodcastModel
package import WireMessages

// What a service and the bus exchange: requests in, answers and publications out.

/// An event on the bus for a service. It is handled on the poll thread, so nobody may block it.
package enum BusEvent: Sendable {
    /// The bus has accepted the service in this epoch.
    case epochBegan(epoch: UInt64)
    /// A request; it must be answered once.
    case command(IncomingCommand)
    /// Another service is ready, in this generation, or not: nil. Those that are ready are told after each `began`.
    case status(ServiceName, ready: UInt32?)
    /// The stream went on, for a service that observes it.
    case update(ReplicaUpdate)
    case rejected(Publication, code: String)
    case fenced(Failure)
    case timerFired
    /// A second has passed in which the poll thread has turned.
    case heartbeat
}

package struct Command: Sendable, Hashable {
    package var id: RequestID
    /// The origin in words, for histories: `cli`, `mini` …
    package var origin: String
    /// Protobuf: the service's request message.
    package var payload: [UInt8]
    /// Whether the id may have been used before, and requests that were derived from it too.
    package var mayBeRepeat: Bool

    package init(id: RequestID, origin: String, payload: [UInt8], mayBeRepeat: Bool = false) {
        self.id = id
        self.origin = origin
        self.payload = payload
        self.mayBeRepeat = mayBeRepeat
    }
}

/// A request as it reaches a service.
package struct IncomingCommand: Sendable, Hashable {
    package var ticket: ReplyTicket
    package var command: Command
    /// After this it must not begin.
    package var deadline: MonotonicTime

    package var id: RequestID { command.id }
    /// Protobuf: the service's request message.
    package var payload: [UInt8] { command.payload }
}

/// The return address of one attempt of a request, on one connection.
package struct ReplyTicket: Sendable, Hashable {
    /// The epoch of the bus that issued it; another bus knows nothing of it.
    package var epoch: UInt64
    package var number: UInt64
}

/// A message for the stream, under the service's own name.
package struct Publication: Sendable, Hashable {
    package var topic: Topic
    /// `put`, `delta`, `delete`, `event` or `live`.
    package var kind: MessageKind
    /// Protobuf; empty for a delete.
    package var payload: [UInt8]

    package init(_ kind: MessageKind, _ topic: Topic, _ payload: [UInt8] = []) {
        self.topic = topic
        self.kind = kind
        self.payload = payload
    }
}
