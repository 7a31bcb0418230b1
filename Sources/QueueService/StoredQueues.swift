import BusKit
import OwnerKit
import WireMessages

/// Collects the records of the queues and playlists, and creates the lists from them.
struct StoredQueues: Sendable {
    private var headers: [String: WireQueueHeaderRecord] = [:]
    private var playlistHeaders: [String: WirePlaylistRecord] = [:]
    private var entries: [ListID: [Queue.Entry]] = [:]
    private var histories: [ListID: QueueHistory] = [:]

    /// Restores a record; returns false if it isn’t part of a queue.
    mutating func restore(_ record: StoredRecord) throws -> Bool {
        let parts = record.collection.split(separator: "/", maxSplits: 1).map(String.init)
        switch (parts.first, parts.count) {
        case ("queue", 1): headers[record.key] = try WireQueueHeaderRecord(wireBytes: record.value)
        case ("playlist", 1): playlistHeaders[record.key] = try WirePlaylistRecord(wireBytes: record.value)
        case ("entry", 2): try restoreEntry(record, of: .queue(parts[1]))
        case ("item", 2): try restoreEntry(record, of: .playlist(parts[1]))
        case ("history", 2): try restoreHistory(record, of: .queue(parts[1]))
        case ("playlist-history", 2): try restoreHistory(record, of: .playlist(parts[1]))
        default: return false
        }
        return true
    }

    private mutating func restoreEntry(_ record: StoredRecord, of list: ListID) throws {
        let stored = try WireQueueEntryRecord(wireBytes: record.value)
        entries[list, default: []].append(Queue.Entry(stored.entry, rank: stored.rank))
    }

    private mutating func restoreHistory(_ record: StoredRecord, of list: ListID) throws {
        histories[list, default: QueueHistory()].restore(
            try WireQueueHistoryRecord(wireBytes: record.value), key: record.key, size: record.value.count)
    }

    private func history(of list: ListID, undone: Int?, report: (String) -> Void) -> QueueHistory {
        var history = histories[list] ?? QueueHistory()
        for revision in history.restored(undone: undone) {
            report("the history of the \(list) before revision \(revision) is incomplete")
        }
        return history
    }

    /// - Parameter report: Receives messages about missing records.
    func queues(report: (String) -> Void) -> Queues {
        var queues: Queues = [:]
        let listed = entries.keys.compactMap { if case .queue(let name) = $0 { name } else { nil } }
        for name in Set(headers.keys).union(listed) {
            let header = headers[name] ?? WireQueueHeaderRecord()
            let history = history(
                of: .queue(name), undone: header.hasUndone ? Int(header.undone) : nil, report: report)
            queues[name] = NamedQueue(
                name: name, header: header, entries: entries[.queue(name)] ?? [], history: history)
        }
        return queues
    }

    /// - Parameter report: Receives messages about missing records.
    func playlists(report: (String) -> Void) -> Playlists {
        var playlists: Playlists = [:]
        let listed = entries.keys.compactMap { if case .playlist(let id) = $0 { id } else { nil } }
        for id in Set(playlistHeaders.keys).union(listed) {
            let record = playlistHeaders[id] ?? WirePlaylistRecord()
            let history = history(of: .playlist(id), undone: Int(record.undone), report: report)
            playlists[id] = Playlist(
                id, record: record, items: entries[.playlist(id)] ?? [], history: history)
        }
        return playlists
    }
}
