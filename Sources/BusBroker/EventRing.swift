/// The newest events in order, so that an observer that missed a few events needs no snapshot.
///
/// It is bounded by count and by bytes; its sequences have no gap.
struct EventRing: Sendable {
    private let eventLimit: Int
    private let byteLimit: Int
    /// The event of sequence s is in slot (s − 1) modulo `eventLimit`.
    private var slots: [StoredEvent?] = []
    private(set) var bytes = 0
    /// The sequence of the oldest event; one more than `last` when there is none.
    private(set) var first: UInt64 = 1
    /// The sequence of the newest event; 0 before the first.
    private(set) var last: UInt64 = 0

    init(eventLimit: Int, byteLimit: Int) {
        self.eventLimit = max(1, eventLimit)
        self.byteLimit = byteLimit
    }

    var count: Int { Int(last + 1 - first) }

    /// Appends the event that follows `last`; the oldest ones are evicted to make room.
    mutating func append(_ event: StoredEvent) {
        while count > 0, count >= eventLimit || bytes + event.cost > byteLimit { removeFirst() }
        last += 1
        let slot = slot(of: last)
        if slot < slots.count { slots[slot] = event } else { slots.append(event) }
        bytes += event.cost
    }

    /// Whether the ring has every event from `sequence` to the newest; true if there are no such events.
    func holdsEvents(from sequence: UInt64) -> Bool {
        sequence >= first && sequence <= last + 1
    }

    /// The events from `sequence` to the newest, in order.
    func events(from sequence: UInt64) -> some Sequence<StoredEvent> {
        (max(sequence, first)..<max(last + 1, max(sequence, first))).lazy.compactMap { slots[slot(of: $0)] }
    }

    private mutating func removeFirst() {
        let slot = slot(of: first)
        bytes -= slots[slot]?.cost ?? 0
        slots[slot] = nil
        first += 1
    }

    /// Sequences begin at 1, so that the slots fill from 0.
    private func slot(of sequence: UInt64) -> Int {
        Int((sequence - 1) % UInt64(eventLimit))
    }
}
