import BusKit
import SwiftProtobuf
import WireMessages

// Publishes a queue on the stream: a delta for each change, and at intervals a put of the whole queue.

extension NamedQueue {
    /// The maximum number of steps in a delta; a longer change is published as a put of the whole queue.
    private static let deltaLimit = 256
    /// The number of deltas after which the whole queue is put again. The bus stores at most 256 deltas after a put,
    /// including those that continue the put.
    private static let deltasPerPut = 200
    /// The size in bytes at which a put is continued in a delta. The chunks of a queue that needs more than
    /// `chunkLimit` are larger, but at most `largestChunk`, which the bus’s limit permits.
    private static let chunkBytes = 384 * 1_024
    private static let largestChunk = 960 * 1_024
    private static let chunkLimit = 16

    /// Returns a delta with these steps, or a put of the whole queue if the delta would exceed a limit.
    mutating func publications(of steps: [WireQueueStep]) -> [Publication] {
        guard steps.reduce(0, { $0 + $1.weight }) <= Self.deltaLimit, deltas < Self.deltasPerPut else {
            return wholePut()
        }
        var delta = WireQueueDelta()
        delta.revision = queue.revision
        delta.steps = steps
        // The removal of an entry may change which entry is current.
        if !steps.contains(where: { $0.step == .setCurrent(queue.current ?? "") }) {
            delta.steps.append(.settingCurrent(queue.current ?? ""))
        }
        let bytes = delta.wireBytes
        // A client that joins reads all deltas: together they must not be larger than a put.
        guard deltaBytes + bytes.count <= max(Self.chunkBytes, putBytes) else { return wholePut() }
        deltas += 1
        deltaBytes += bytes.count
        return [Publication(.delta, .queue(name), bytes)]
    }

    mutating func wholePut() -> [Publication] {
        let publications = wholePublications
        deltas = publications.count - 1
        deltaBytes = 0
        putBytes = publications.reduce(0) { $0 + $1.payload.count }
        return publications
    }

    /// A put of the whole queue, continued in deltas if the queue is long. It is assembled from entries that are
    /// already encoded, so that it is as fast as any other change.
    var wholePublications: [Publication] {
        let chunks = chunks
        var state = WireQueueState()
        state.name = name
        state.revision = queue.revision
        state.current = queue.current ?? ""
        state.modes = modes
        state.more = chunks.count > 1
        var put = WireFields(state, reserving: Self.chunkBytes)
        for entry in chunks[0] { put.append(3, entry.wireBytes) }
        var publications = [Publication(.put, .queue(name), put.bytes)]
        var last = chunks[0].last?.id ?? ""
        for (index, chunk) in chunks.enumerated().dropFirst() {
            let delta = WireQueueDelta.with { ($0.revision, $0.more) = (queue.revision, index + 1 < chunks.count) }
            var message = WireFields(delta, reserving: Self.chunkBytes)
            for entry in chunk {
                let insert = WireFields.size(of: entry.wireBytes.count) + WireFields.size(of: last.utf8.count)
                message.begin(2, count: WireFields.size(of: insert))
                message.begin(1, count: insert)
                message.append(1, entry.wireBytes)
                message.append(2, last)
                last = entry.id
            }
            publications.append(Publication(.delta, .queue(name), message.bytes))
        }
        return publications
    }

    /// The entries in chunks, one for each message; at least one chunk, which may be empty.
    private var chunks: [ArraySlice<Queue.Entry>] {
        // The size includes an entry’s own ID and that of the one before it.
        let entries = Array(queue.entries)
        let sizes = entries.map { $0.wireBytes.count + $0.id.utf8.count + 24 }
        let limit = min(Self.largestChunk, max(Self.chunkBytes, sizes.reduce(0, +) / Self.chunkLimit))
        var chunks: [ArraySlice<Queue.Entry>] = []
        var (start, size) = (0, 0)
        for (index, bytes) in sizes.enumerated() {
            if size + bytes > limit, index > start {
                chunks.append(entries[start..<index])
                (start, size) = (index, 0)
            }
            size += bytes
        }
        return chunks + [entries[start...]]
    }
}
