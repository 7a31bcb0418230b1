import BusKit

/// The limits of the bus. Those that `bus.md` names are part of the protocol; tests use smaller ones.
package struct BrokerLimits: Sendable, Hashable {
    /// The maximum number of events in the ring for replays.
    package var ringEvents = BusLimits.ringEvents
    /// The maximum size of the ring’s topics and payloads, in bytes.
    package var ringBytes = 16 << 20
    /// The maximum size of a payload on the stream, in bytes.
    package var payloadBytes = Int(BusLimits.streamFrame)
    /// The maximum number of deltas that follow one put.
    package var deltasPerPut = 256
    /// The maximum number of retained topics of one service.
    package var topicsPerService = 20_000
    /// The maximum size of one service’s retained topics and payloads, in bytes.
    package var bytesPerService = 64 << 20
    /// The maximum number of registered services outside the fleet.
    package var services = 64
    /// The time after which a service outside the fleet that is down is forgotten.
    package var forgetAfter = Duration.seconds(60)
    /// The maximum number of unacknowledged publishes of one service.
    package var publishesPerService = BusLimits.perService
    /// The maximum number of requests in flight of one client.
    package var requestsPerClient = BusLimits.requestsPerClient
    /// The maximum number of requests in flight to one service.
    package var requestsPerService = BusLimits.perService
    /// The maximum size of one client’s requests in flight, in bytes.
    package var requestBytesPerClient = 16 << 20
    /// The maximum size of the requests in flight to one service, in bytes.
    package var requestBytesPerService = 64 << 20
    /// The maximum number of excluded prefixes in a FETCH, and of included ones.
    package var prefixesPerFetch = BusLimits.prefixesPerFetch
    /// The maximum number of entries in one chunk of a replay or snapshot.
    package var entriesPerChunk = 256
    /// The size at which a chunk is closed, in bytes.
    package var bytesPerChunk = 32 << 10
    /// The maximum time that a request is in flight, even if its deadline is later.
    package var longestRequest = Duration.seconds(120)
    package var heartbeatInterval = Duration.milliseconds(500)
    /// The silence after which a service is down.
    package var serviceSilence = Duration.seconds(5)

    /// The maximum number of messages that libzmq holds for one subscriber of the stream. Further ones are dropped, and the
    /// subscriber detects the gap in the sequence.
    package var messagesToSubscriber = BusLimits.highWaterMark
    /// The maximum number of messages that libzmq holds for one client, enough for the replies to all its requests.
    /// Further ones wait in `ReplyOutbox`, which bounds their bytes.
    package var messagesToClient: Int32 = 40
    /// The maximum number of messages that libzmq reads ahead from one client.
    package var messagesFromClient: Int32 = 256
    /// The maximum size of a subscription, in bytes.
    package var subscriptionBytes: Int64 = 512

    /// Creates the limits of `bus.md`.
    package init() {}
}
