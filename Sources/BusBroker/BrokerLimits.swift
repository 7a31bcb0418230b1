/// How much the bus holds at most, and how long it waits. The numbers are part of the protocol where `bus.md` names
/// them; tests make them small.
package struct BrokerLimits: Sendable, Hashable {
    /// Events that the ring keeps for replays.
    package var ringEvents = 16_384
    /// Bytes that the ring keeps at most, topics and payloads.
    package var ringBytes = 16 << 20
    /// The largest payload on the stream, in bytes.
    package var payloadBytes = 1 << 20
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
    package var publishesPerService = 256
    /// Requests in flight of one client.
    package var requestsPerClient = 32
    /// Requests in flight to one service.
    package var requestsPerService = 256
    /// Bytes of the requests in flight of one client.
    package var requestBytesPerClient = 16 << 20
    /// Bytes of the requests in flight to one service.
    package var requestBytesPerService = 64 << 20
    /// Prefixes that a FETCH may exclude, and as many that it may include.
    package var prefixesPerFetch = 16
    /// Entries in one chunk of a replay or snapshot.
    package var entriesPerChunk = 256
    /// Bytes after which a chunk is closed.
    package var bytesPerChunk = 32 << 10
    /// The longest that a request is kept, whatever deadline it names.
    package var longestRequest = Duration.seconds(120)
    package var heartbeatInterval = Duration.milliseconds(500)
    /// A service that has said nothing for so long is down.
    package var serviceSilence = Duration.seconds(5)

    /// The limits of `bus.md`.
    package init() {}
}
