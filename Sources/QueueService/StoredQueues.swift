import BusKit
import OwnerKit
import WireMessages

/// Collects the records of the queues, and creates the queues from them.
struct StoredQueues: Sendable {
    private var headers: [String: WireQueueHeaderRecord] = [:]
    private var entries: [String: [Queue.Entry]] = [:]
    private var histories: [String: QueueHistory] = [:]

    /// Restores a record; returns false if it isn’t part of a queue.
    mutating func restore(_ record: StoredRecord) throws -> Bool {
        let parts = record.collection.split(separator: "/", maxSplits: 1).map(String.init)
        switch (parts.first, parts.count) {
        case ("queue", 1): headers[record.key] = try WireQueueHeaderRecord(wireBytes: record.value)
        case ("entry", 2):
            let stored = try WireQueueEntryRecord(wireBytes: record.value)
            entries[parts[1], default: []].append(Queue.Entry(stored.entry, rank: stored.rank))
        case ("history", 2):
            histories[parts[1], default: QueueHistory()].restore(
                try WireQueueHistoryRecord(wireBytes: record.value), key: record.key, size: record.value.count)
        default: return false
        }
        return true
    }

    /// - Parameter report: Receives messages about missing records.
    func queues(report: (String) -> Void) -> Queues {
        var queues: Queues = [:]
        for name in Set(headers.keys).union(entries.keys) {
            let header = headers[name] ?? WireQueueHeaderRecord()
            var history = histories[name] ?? QueueHistory()
            for revision in history.restored(undone: header.hasUndone ? Int(header.undone) : nil) {
                report("the history of the queue \(name) before revision \(revision) is incomplete")
            }
            queues[name] = NamedQueue(name: name, header: header, entries: entries[name] ?? [], history: history)
        }
        return queues
    }
}
