import WireMessages
import ZeroMQ

/// The retained values: for each topic its newest put and the deltas that follow it.
struct RetainedStore: Sendable {
    private struct Value: Sendable {
        /// The registration that put the value; values of an older registration are deleted when the owner is ready.
        var registration: UInt64
        var owner: Int
        var put: StoredEvent
        var deltas: [StoredEvent] = []
        var cost: Int
    }

    private struct Usage: Sendable {
        var topics = 0
        var bytes = 0
    }

    private let limits: BrokerLimits
    private var values: [Frame: Value] = [:]
    /// The usage of each owner; the bus itself, −1, is first.
    private var usage: [Usage] = [Usage()]

    init(limits: BrokerLimits) {
        self.limits = limits
    }

    var count: Int { values.count }
    var bytes: Int { usage.reduce(0) { $0 + $1.bytes } }

    /// The reason why the event can’t be retained; nil if it can. `owner` is the service’s index.
    func refusal(of kind: MessageKind, topic: Frame, cost: Int, owner: Int, registration: UInt64) -> RejectCode? {
        switch kind {
        case .put:
            let used = used(by: owner)
            let replaced = values[topic].flatMap { $0.owner == owner ? $0.cost : nil } ?? 0
            guard used.bytes - replaced + cost <= limits.bytesPerService else { return .tooLarge }
            return used.topics < limits.topicsPerService || values[topic] != nil ? nil : .tooLarge
        case .delta:
            guard let value = values[topic], value.registration == registration else { return .noPut }
            guard value.deltas.count < limits.deltasPerPut else { return .tooManyDeltas }
            return used(by: owner).bytes + cost <= limits.bytesPerService ? nil : .tooLarge
        default: return nil
        }
    }

    /// Applies a put, delta or delete that `refusal` has admitted.
    mutating func apply(_ event: StoredEvent, owner: Int, registration: UInt64) {
        while usage.count <= owner + 1 { usage.append(Usage()) }
        switch event.header.kind {
        case .put:
            let cost = event.cost
            let old = values.updateValue(
                Value(registration: registration, owner: owner, put: event, cost: cost), forKey: event.topic)
            usage[owner + 1].bytes += cost - (old?.cost ?? 0)
            if old == nil { usage[owner + 1].topics += 1 }
        case .delta:
            let cost = event.cost
            values[event.topic]?.deltas.append(event)
            values[event.topic]?.cost += cost
            usage[owner + 1].bytes += cost
        case .delete:
            guard let old = values.removeValue(forKey: event.topic) else { return }
            usage[owner + 1].bytes -= old.cost
            usage[owner + 1].topics -= 1
        default: break
        }
    }

    private func used(by owner: Int) -> Usage {
        owner + 1 < usage.count ? usage[owner + 1] : Usage()
    }

    /// The topics of an owner, in byte order.
    /// - Parameter registration: the registration whose topics are omitted.
    func topics(of owner: Int, excluding registration: UInt64? = nil) -> [Frame] {
        values.filter { $0.value.owner == owner && $0.value.registration != registration }.keys
            .sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    }

    /// All retained events by topic in byte order, each put followed by its deltas.
    func events() -> [StoredEvent] {
        var events: [StoredEvent] = []
        events.reserveCapacity(values.count)
        for (_, value) in values.sorted(by: { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }) {
            events.append(value.put)
            events += value.deltas
        }
        return events
    }
}
