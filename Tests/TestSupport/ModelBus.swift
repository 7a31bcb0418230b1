package import BusKit
package import PodcastModel
package import WireMessages

/// A model of the bus for tests of clients: the order, the retained values and a short ring of events.
package struct ModelBus {
    package let epoch: UInt64
    package private(set) var head: UInt64 = 0
    package private(set) var retained: [Topic: RetainedValue] = [:]
    package private(set) var ready: [ServiceName: UInt32] = [:]
    private var ring: [StreamEvent] = []
    private let ringSize: Int

    package init(epoch: UInt64, ringSize: Int = 16) {
        self.epoch = epoch
        self.ringSize = ringSize
    }

    package mutating func publish(_ kind: MessageKind, _ topic: Topic, _ payload: [UInt8] = []) -> StreamEvent {
        head += 1
        let event = StreamEvent(
            topic: topic, header: BusHeader(kind, epoch: epoch, sequence: head), payload: payload)
        switch kind {
        case .put: retained[topic] = RetainedValue(put: event)
        case .delta: retained[topic]?.deltas.append(event)
        case .delete: retained[topic] = nil
        default: break
        }
        ring.append(event)
        if ring.count > ringSize { ring.removeFirst() }
        return event
    }

    package mutating func makeReady(_ service: ServiceName, generation: UInt32 = 1) -> StreamEvent {
        ready[service] = generation
        return status(service, .ready, generation)
    }

    package mutating func makeDown(_ service: ServiceName) -> StreamEvent {
        ready[service] = nil
        return status(service, .down, 1)
    }

    private mutating func status(
        _ service: ServiceName, _ state: WireServiceStatus.State, _ generation: UInt32
    ) -> StreamEvent {
        var status = WireServiceStatus()
        status.name = service.text
        status.state = state
        status.generation = generation
        return publish(.put, .service(service), status.wireBytes)
    }

    /// Returns the chunks of the reply to a fetch, with at most `size` entries each.
    package func answer(_ request: FetchRequest, size: Int = 5) -> [FetchChunk] {
        let first = ring.first?.header.sequence ?? head + 1
        let from = request.from
        let isCovered = from.epoch == epoch && from.sequence >= first && from.sequence <= head + 1
        if isCovered, !request.forceSnapshot {
            let events = ring.filter { $0.header.sequence >= from.sequence }
            return chunks(of: events, isSnapshot: false, request.nonce, size)
        }
        let values = retained.values.sorted { $0.put.position < $1.put.position }.filter { value in
            let topic = value.put.topic.text.utf8
            return request.includedPrefixes?.contains { topic.starts(with: $0) } ?? true
        }
        return chunks(of: values.flatMap { [$0.put] + $0.deltas }, isSnapshot: true, request.nonce, size)
    }

    private func chunks(
        of events: [StreamEvent], isSnapshot: Bool, _ nonce: String, _ size: Int
    ) -> [FetchChunk] {
        let starts = events.isEmpty ? [0] : Array(stride(from: 0, to: events.count, by: size))
        return starts.map { start in
            let end = min(start + size, events.count)
            return FetchChunk(
                isSnapshot: isSnapshot, nonce: nonce, epoch: epoch, head: head, more: end < events.count,
                ready: isSnapshot ? ready : [:], entries: Array(events[start..<end]))
        }
    }
}
