import BusKit
import OwnerKit
import PodcastModel
import WireMessages

typealias Queues = [String: NamedQueue]

extension Queues {
    /// Returns the queue with this name, or an empty one if it doesn’t exist.
    func named(_ name: String) -> NamedQueue { self[name] ?? NamedQueue(name: name) }

    func contain(episode: String) -> Bool { values.contains { $0.queue.entry(episode: episode) != nil } }

    /// Returns the queue from which the player’s entry was loaded, and the entry’s index, which is nil if the entry was
    /// removed.
    func source(of state: WirePlaybackState) -> (named: NamedQueue, index: Int?) {
        let loaded = self[state.queue]
        if let loaded, let index = loaded.queue.index(of: state.queueEntry) { return (loaded, index) }
        // Entry IDs are unique across queues.
        for named in values { if let index = named.queue.index(of: state.queueEntry) { return (named, index) } }
        return (loaded ?? named(QueueName.default), nil)
    }

    /// Whether the queue decided the player’s load because the previous one had ended or failed.
    func isAdvance(_ state: WirePlaybackState) -> Bool {
        // The forms are `LOAD` after an end, `skip/LOAD/ALERT`, and `failed/LOAD`.
        let mark = source(of: state).named.advancedLoad.split(separator: "/")
        guard let before = mark.dropFirst().first ?? mark.first else { return false }
        return LoadID.advance(after: String(before)).text == state.loadID
    }

    private var pendingLoads: [(queue: String, load: LoadCoordinator.PendingLoad)] {
        compactMap { name, named in named.pending.map { (name, $0) } }.sorted { $0.queue < $1.queue }
    }

    /// Returns the pending loads that are still due while the player has the load `shown`; nil if that is unknown.
    func pendingLoads(whileShowing shown: String?) -> [(queue: String, load: LoadCoordinator.PendingLoad)] {
        pendingLoads.filter { !$0.load.entry.isEmpty && shown.map($0.load.isDue(after:)) ?? true }
    }

    /// Returns the earlier loads that a new load supersedes, because the player may have started them, or may start
    /// them, before it shows them. The last requested ones are at the end, because the limit drops the first.
    func loadsToSupersede(_ latest: [String]) -> [String] {
        let waiting = pendingLoads.flatMap { $0.load.overtakes + [$0.load.loadID] }
        return Array((waiting + latest).suffix(64))
    }

    /// Cancels the pending loads of the other queues, because only the newest decision of all queues is valid. Returns
    /// the changed queues.
    func withoutPendingLoads(except name: String) -> [NamedQueue] {
        inOrder.filter { $0.pending != nil && $0.name != name }.map { named in
            var named = named
            named.pending = nil
            return named
        }
    }
}

extension WireQueueHeaderRecord.PendingLoad {
    /// Whether the load is still due while the player has the load `shown`, which may be empty.
    func isDue(after shown: String) -> Bool {
        shown.isEmpty || shown == loadID || shown == replacesLoad || overtakes.contains(shown)
    }
}
