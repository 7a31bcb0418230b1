import WireMessages
import ZeroMQ

// What somebody gets who joins, or has missed something: the ring's events, or all that is retained.
extension BrokerMachine {
    mutating func fetch(_ header: BusHeader, _ message: Message, _ effects: inout [BrokerEffect]) {
        guard message.count == 3, JoinNonce.isValid(message[2].bytes) else {
            return malformed.add("cli.sock", "a FETCH of a wrong form")
        }
        let covered =
            header.epoch == epoch && header.sequence > 0 && !header.flags.contains(.forceSnapshot)
            && ring.reaches(back: header.sequence)
        if covered {
            sendChunks(.replay, Array(ring.events(from: header.sequence)), ahead: [], message, &effects)
        } else {
            sendChunks(.snapshot, store.events(), ahead: [registry.readyList], message, &effects)
        }
    }

    /// Sends the events in chunks; at least one, be it empty. All are made now, so that all end at the same head.
    private func sendChunks(
        _ kind: MessageKind, _ events: [StoredEvent], ahead: [Frame], _ fetch: Message,
        _ effects: inout [BrokerEffect]
    ) {
        var start = 0
        repeat {
            var end = start
            var bytes = 0
            while end < events.count, end - start < limits.entriesPerChunk, bytes < limits.bytesPerChunk {
                bytes += events[end].cost
                end += 1
            }
            let header = BusHeader(kind, flags: end < events.count ? .more : [], epoch: epoch, sequence: head)
            var chunk = [fetch[0], Frame(header.encoded), fetch[2]] + ahead
            chunk.reserveCapacity(chunk.count + 3 * (end - start))
            for event in events[start..<end] { event.append(to: &chunk) }
            effects.append(.toClient(chunk))
            start = end
        } while start < events.count
    }
}
