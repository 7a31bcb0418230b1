import WireMessages
import ZeroMQ

// What somebody gets who joins, or has missed something: the ring's events, or all that is retained.
extension BrokerMachine {
    mutating func fetch(_ header: BusHeader, _ message: Message, _ effects: inout [BrokerEffect]) {
        guard message.count >= 3, JoinNonce.isValid(message[2].bytes) else {
            return malformed.add("cli.sock", "a FETCH of a wrong form")
        }
        let excluded = message[3...]
        guard excluded.count <= limits.excludedPrefixes,
            excluded.allSatisfy({ !$0.isEmpty && $0.count <= Topic.limit })
        else { return malformed.add("cli.sock", "a FETCH with too many or too long prefixes") }
        let covered =
            header.epoch == epoch && header.sequence > 0 && !header.flags.contains(.forceSnapshot)
            && ring.reaches(back: header.sequence)
        let events: [StoredEvent]
        if covered {
            events = Array(ring.events(from: header.sequence))
        } else {
            events = retainedEvents(except: excluded.map(\.bytes))
        }
        effects.append(
            .answer(
                FetchAnswer(
                    covered ? .replay : .snapshot, events, to: message[0], nonce: message[2], epoch: epoch, head: head,
                    ahead: covered ? [] : [registry.readyList], limits: limits)))
    }

    /// What is retained, without the topics that begin with one of `prefixes`.
    private mutating func retainedEvents(except prefixes: [[UInt8]]) -> [StoredEvent] {
        let events = retainedEvents()
        guard !prefixes.isEmpty else { return events }
        return events.filter { event in !prefixes.contains { event.topic.starts(with: $0) } }
    }

    /// All that is retained, made once for all who ask at the same head.
    private mutating func retainedEvents() -> [StoredEvent] {
        if let snapshot, snapshot.head == head { return snapshot.events }
        let events = store.events()
        snapshot = (head, events)
        return events
    }
}
