import WireMessages
import ZeroMQ

// Answers to FETCH: a replay of the ring’s events, or a snapshot of the retained ones.
extension BrokerMachine {
    mutating func fetch(_ header: BusHeader, _ message: Message, _ effects: inout [BrokerEffect]) {
        guard message.count >= 3, JoinNonce.isValid(message[2].bytes) else {
            return malformed.add("cli.sock", "a malformed FETCH")
        }
        guard let filter = SnapshotFilter(decoding: message[3...], limit: limits.prefixesPerFetch) else {
            return malformed.add("cli.sock", "a FETCH with malformed prefixes")
        }
        let covered =
            header.epoch == epoch && header.sequence > 0 && !header.flags.contains(.forceSnapshot)
            && ring.holdsEvents(from: header.sequence)
        effects.append(
            .answer(
                FetchAnswer(
                    kind: covered ? .replay : .snapshot,
                    events: covered ? Array(ring.events(from: header.sequence)) : retainedEvents(filter),
                    client: message[0], nonce: message[2], epoch: epoch, head: head,
                    readyList: covered ? nil : registry.readyList, limits: limits)))
    }

    /// The retained events of the topics that `filter` contains.
    private mutating func retainedEvents(_ filter: SnapshotFilter) -> [StoredEvent] {
        let events = retainedEvents()
        return filter.isAll ? events : events.filter { filter.contains($0.topic) }
    }

    /// All retained events; cached for other clients that fetch at the same head.
    private mutating func retainedEvents() -> [StoredEvent] {
        if let snapshot, snapshot.head == head { return snapshot.events }
        let events = store.events()
        snapshot = (head, events)
        return events
    }
}
