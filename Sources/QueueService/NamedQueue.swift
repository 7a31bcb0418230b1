import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// A queue with its name, history and modes, its last advance and its pending load.
struct NamedQueue: EditableList {
    let name: String
    var queue = Queue()
    var history = QueueHistory()
    /// The last load whose end, failure or skip has been handled, in one of the forms in `Queues.isAdvance`.
    var advancedLoad = ""
    /// The decided load that the player hasn’t accepted yet.
    var pending: WireQueueHeaderRecord.PendingLoad?
    var modes = WireQueueModes()
    /// The number of deltas since the last put, and the bytes of those that don’t continue it.
    var deltas = 0
    var deltaBytes = 0
    /// The bytes of the last put and of the deltas that continue it.
    var putBytes = 0

    init(name: String) {
        self.name = name
    }

    init(name: String, header: WireQueueHeaderRecord, entries: [Queue.Entry], history: QueueHistory) {
        self.name = name
        queue = Queue(
            entries: entries, current: header.current.isEmpty ? nil : header.current,
            successor: header.successor.isEmpty ? nil : header.successor, revision: header.revision)
        self.history = history
        advancedLoad = header.advancedLoad
        modes = header.modes
        pending = header.hasPending ? header.pending : nil
    }

    static func id(_ name: String) -> ListID { .queue(name) }
    var shown: String { QueueName.shown(name) }
    var limit: Int { modes.limit == 0 ? Queue.limit : min(Int(modes.limit), Queue.limit) }

    func headerChange() -> OwnerChange {
        OwnerChange(changes: [.putting("queue", name, header)])
    }

    /// Returns the change of the modes, which aren’t part of the history.
    mutating func modesChange() -> OwnerChange {
        OwnerChange(changes: [.putting("queue", name, header)], publications: wholePut())
    }

    var deletion: OwnerChange {
        OwnerChange(
            changes: [.deleting("queue", name)] + entryDeletion, publications: [Publication(.delete, .queue(name))])
    }

    private var header: WireQueueHeaderRecord {
        var header = WireQueueHeaderRecord()
        header.revision = queue.revision
        header.current = queue.current ?? ""
        header.successor = queue.successor ?? ""
        header.advancedLoad = advancedLoad
        header.modes = modes
        header.undone = UInt32(clamping: history.undone)
        if let pending { header.pending = pending }
        return header
    }

    var everything: [WireChange] { [.putting("queue", name, header)] + entryRecords }

    mutating func header(after outcome: Queue.Outcome, at time: Timestamp?) -> OwnerChange {
        // A load whose entry was removed is cancelled, even if the entry is restored. Its ID remains, because the
        // player may have started it.
        if let entry = pending?.entry, outcome.removed.contains(entry) { pending?.entry = "" }
        var change = headerChange()
        change.publications = publications(of: outcome.steps)
        return change
    }
}
