/// The limits that the bus shares with its peers. Those of the bus alone are in `BrokerLimits`.
package enum BusLimits {
    /// The maximum number of requests in flight to one service, and of its unacknowledged publishes.
    package static let perService = 256
    /// The maximum number of unanswered requests of one client.
    package static let requestsPerClient = 32
    /// The maximum number of prefixes of each kind in a FETCH.
    package static let prefixesPerFetch = 16
    /// The maximum number of events that the bus keeps for replays.
    package static let ringEvents = 16_384
    /// The maximum size of a frame on the stream, in bytes.
    package static let streamFrame: Int64 = 1 << 20
    /// The maximum size of a frame between the bus and a client or service, in bytes.
    package static let frame: Int64 = 8 << 20
    /// The maximum number of messages per peer in a socket (libzmq’s high-water mark), except for the bus’s clients.
    package static let highWaterMark: Int32 = 1_000
}
