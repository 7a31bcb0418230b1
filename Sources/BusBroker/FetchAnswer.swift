import WireMessages
import ZeroMQ

/// The answer to a FETCH, sent in chunks as its client reads. All its chunks name the same head.
package struct FetchAnswer: Sendable {
    let kind: MessageKind
    /// Shared with the answers to other clients that fetch at the same head.
    let events: [StoredEvent]
    /// The client’s routing ID.
    let client: Frame
    let nonce: Frame
    let epoch: UInt64
    let head: UInt64
    /// The list of ready services, between the nonce and the entries of a snapshot.
    let readyList: Frame?
    let limits: BrokerLimits
    private(set) var start = 0
    /// Whether the last chunk has been sent.
    private(set) var isComplete = false

    /// Sends chunks until one isn’t accepted, and returns the last outcome. An empty answer is one chunk.
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
        while end < events.count, end - start < limits.entriesPerChunk, bytes < limits.bytesPerChunk {
            bytes += events[end].cost
            end += 1
        }
        return end
    }

    private func chunk(upTo end: Int) -> Message {
        let header = BusHeader(kind, flags: end < events.count ? .more : [], epoch: epoch, sequence: head)
        var chunk: Message = []
        chunk.reserveCapacity(4 + 3 * (end - start))
        chunk += [client, Frame(header.encoded), nonce]
        if let readyList { chunk.append(readyList) }
        for event in events[start..<end] { event.append(to: &chunk) }
        return chunk
    }
}
