/// Limits that the bus and those who connect to it share. Those of the bus alone are in `BrokerLimits`.
package enum BusLimits {
    /// The number of requests that may be with one service, and of publishes that may wait for their acknowledgement.
    package static let perService = 256
    /// The number of unanswered requests of one client.
    package static let requestsPerClient = 32
    /// The number of prefixes of each kind in a FETCH.
    package static let prefixesPerFetch = 16
    /// The number of events that the bus keeps for replays.
    package static let ringEvents = 16_384
    /// The size of a frame on the stream, in bytes.
    package static let streamFrame: Int64 = 1 << 20
    /// The size of a frame between the bus and a client or service, in bytes.
    package static let frame: Int64 = 8 << 20
    /// The number of messages that wait in a socket for one peer (libzmq’s high-water mark), except at the bus’s clients.
    package static let highWaterMark: Int32 = 1_000
}
