import BusKit

/// The limits of the bus. The numbers are part of the protocol where `bus.md` names them; tests make them small.
package struct BrokerLimits: Sendable, Hashable {
    /// Events that the ring keeps for replays.
    package var ringEvents = BusLimits.ringEvents
    /// Bytes that the ring keeps at most, topics and payloads.
    package var ringBytes = 16 << 20
    /// The largest payload on the stream, in bytes.
    package var payloadBytes = Int(BusLimits.streamFrame)
    /// Deltas behind one put.
    package var deltasPerPut = 256
    /// Retained topics of one service.
    package var topicsPerService = 20_000
    /// Retained bytes of one service, topics and payloads.
    package var bytesPerService = 64 << 20
    /// Services that the bus knows by name, beside the fleet's own.
    package var services = 64
    /// A service that is not the fleet's own is forgotten when it has been down for so long.
    package var forgetAfter = Duration.seconds(60)
    /// Publishes of a service that wait for their acknowledgement.
    package var publishesPerService = BusLimits.perService
    /// Requests in flight of one client.
    package var requestsPerClient = BusLimits.requestsPerClient
    /// Requests in flight to one service.
    package var requestsPerService = BusLimits.perService
    /// Bytes of the requests in flight of one client.
    package var requestBytesPerClient = 16 << 20
    /// Bytes of the requests in flight to one service.
    package var requestBytesPerService = 64 << 20
    /// Prefixes that a FETCH may exclude, and as many that it may include.
    package var prefixesPerFetch = BusLimits.prefixesPerFetch
    /// Entries in one chunk of a replay or snapshot.
    package var entriesPerChunk = 256
    /// Bytes after which a chunk is closed.
    package var bytesPerChunk = 32 << 10
    /// The longest that a request is kept, whatever deadline it names.
    package var longestRequest = Duration.seconds(120)
    package var heartbeatInterval = Duration.milliseconds(500)
    /// A service that has said nothing for so long is down.
    package var serviceSilence = Duration.seconds(5)

    /// The messages that libzmq holds for one client. A client has room for the replies to all its requests at once; what it
    /// doesn’t take beyond that waits in `ClientOutbox`, where its bytes are bounded.
    package var messagesToClient: Int32 = 40
    /// The messages that libzmq takes from one client ahead of the bus.
    package var messagesFromClient: Int32 = 256
    /// The size of a subscription, in bytes.
    package var subscriptionBytes: Int64 = 512

    /// The limits of `bus.md`.
    package init() {}
}
