import WireMessages
import ZeroMQ

/// The answer to a FETCH, cut into chunks as its reader takes them. All its chunks end at the same head.
package struct FetchAnswer: Sendable {
    /// The client's routing id.
    let client: Frame
    let nonce: Frame
    let kind: MessageKind
    let epoch: UInt64
    let head: UInt64
    /// The frames between the nonce and the entries: of a snapshot the list of ready services.
    let ahead: [Frame]
    /// Shared with the answers to others who ask at the same head.
    let events: [StoredEvent]
    let entriesPerChunk: Int
    let bytesPerChunk: Int
    private var start = 0
    /// Whether the last chunk has been sent.
    private(set) var isComplete = false

    init(
        _ kind: MessageKind, _ events: [StoredEvent], to client: Frame, nonce: Frame, epoch: UInt64, head: UInt64,
        ahead: [Frame] = [], limits: BrokerLimits
    ) {
        self.client = client
        self.nonce = nonce
        self.kind = kind
        self.epoch = epoch
        self.head = head
        self.ahead = ahead
        self.events = events
        entriesPerChunk = limits.entriesPerChunk
        bytesPerChunk = limits.bytesPerChunk
    }

    /// Sends chunks until one isn't taken; the outcome of the last one. There is at least one, be it empty.
    mutating func send(_ send: (Message) throws -> SendOutcome) rethrows -> SendOutcome {
        while !isComplete {
            let end = endOfChunk
            let outcome = try send(chunk(upTo: end))
            guard outcome == .sent else { return outcome }
            start = end
            isComplete = end == events.count
        }
        return .sent
    }

    private var endOfChunk: Int {
        var end = start
        var bytes = 0
        while end < events.count, end - start < entriesPerChunk, bytes < bytesPerChunk {
            bytes += events[end].cost
            end += 1
        }
        return end
    }

    private func chunk(upTo end: Int) -> Message {
        let header = BusHeader(kind, flags: end < events.count ? .more : [], epoch: epoch, sequence: head)
        var chunk: Message = []
        chunk.reserveCapacity(3 + ahead.count + 3 * (end - start))
        chunk.append(client)
        chunk.append(Frame(header.encoded))
        chunk.append(nonce)
        chunk += ahead
        for event in events[start..<end] { event.append(to: &chunk) }
        return chunk
    }
}
