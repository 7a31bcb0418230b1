import BusKit
import OwnerKit
import WireMessages

/// Queues out of their records.
struct StoredQueues {
    private(set) var queues: [String: NamedQueue] = [:]

    init(_ records: [StoredRecord], report: (String) -> Void) {
        var headers: [String: WireQueueHeaderRecord] = [:]
        var entries: [String: [Queue.Entry]] = [:]
        var histories: [String: QueueHistory] = [:]
        for record in records {
            let parts = record.collection.split(separator: "/", maxSplits: 1).map(String.init)
            do {
                switch (parts.first, parts.count) {
                case ("queue", 1):
                    headers[record.key] = try WireQueueHeaderRecord(wireBytes: record.value)
                case ("entry", 2):
                    let stored = try WireQueueEntryRecord(wireBytes: record.value)
                    entries[parts[1], default: []].append(Queue.Entry(stored.entry, rank: stored.rank))
                case ("history", 2):
                    histories[parts[1], default: QueueHistory()].restore(
                        try WireQueueHistoryRecord(wireBytes: record.value), key: record.key, size: record.value.count)
                default:
                    continue
                }
            } catch {
                report("record \(record.collection)/\(record.key) is unreadable: \(error)")
            }
        }
        for name in Set(headers.keys).union(entries.keys) {
            let header = headers[name] ?? WireQueueHeaderRecord()
            var history = histories[name] ?? QueueHistory()
            for revision in history.restored(undone: header.hasUndone ? Int(header.undone) : nil) {
                report("the queue \(name) cannot be taken back to before revision \(revision): a part of it is missing")
            }
            queues[name] = NamedQueue(name: name, header: header, entries: entries[name] ?? [], history: history)
        }
    }
}
