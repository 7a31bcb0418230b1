/// How much the bus holds at most, and how long it waits. The numbers are part of the protocol where `bus.md` names
/// them; tests make them small.
public struct BrokerLimits: Sendable, Hashable {
    /// Events that the ring keeps for replays.
    public var ringEvents = 16_384
    /// Bytes that the ring keeps at most, topics and payloads.
    public var ringBytes = 16 << 20
    /// The largest payload on the stream, in bytes.
    public var payloadBytes = 1 << 20
    /// Deltas behind one put.
    public var deltasPerPut = 256
    /// Retained topics of one service.
    public var topicsPerService = 20_000
    /// Retained bytes of one service, topics and payloads.
    public var bytesPerService = 64 << 20
    /// Services that the bus knows by name, beside the fleet's own.
    public var services = 64
    /// A service that is not the fleet's own is forgotten when it has been down for so long.
    public var forgetAfter = Duration.seconds(60)
    /// Publishes of a service that wait for their acknowledgement.
    public var publishesPerService = 256
    /// Requests in flight of one client.
    public var requestsPerClient = 32
    /// Requests in flight to one service.
    public var requestsPerService = 256
    /// Bytes of the requests in flight of one client.
    public var requestBytesPerClient = 16 << 20
    /// Bytes of the requests in flight to one service.
    public var requestBytesPerService = 64 << 20
    /// Prefixes that a FETCH may exclude, and as many that it may include.
    public var prefixesPerFetch = 16
    /// Entries in one chunk of a replay or snapshot.
    public var entriesPerChunk = 256
    /// Bytes after which a chunk is closed.
    public var bytesPerChunk = 32 << 10
    /// The longest that a request is kept, whatever deadline it names.
    public var longestRequest = Duration.seconds(120)
    /// Between heartbeats.
    public var heartbeatInterval = Duration.milliseconds(500)
    /// A service that has said nothing for so long is down.
    public var serviceSilence = Duration.seconds(5)

    /// The limits of `bus.md`.
    public init() {}
}
