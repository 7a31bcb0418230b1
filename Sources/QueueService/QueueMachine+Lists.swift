import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// Commands about queues as a whole: which there are, their order, their modes, their past.

extension QueueMachine {
    /// The maximum number of queues.
    static let queueLimit = 50

    mutating func create(_ name: String, of command: Command) throws(Failure) -> [OwnerEffect<Never>] {
        if let named = queues.current[name] {
            return commit(named, OwnerChange(), reply(named), answering: command)
        }
        guard QueueName.isValid(name) else {
            throw Failure(.invalidArgument, "“\(name)” can’t be a queue’s name; a name has \(QueueName.rule).")
        }
        guard queues.current.count < Self.queueLimit else {
            throw Failure(
                .limitReached, "There are already \(Self.queueLimit) queues, which is the limit. Delete one first.")
        }
        var named = NamedQueue(name: name)
        let change = named.modesChange()
        return commit(named, change, reply(named), answering: command)
    }

    mutating func delete(_ named: NamedQueue, of command: Command) throws(Failure) -> [OwnerEffect<Never>] {
        guard named.name != QueueName.usual else {
            throw Failure(.invalidArgument, "“main” is Up Next, which is always there; it cannot be deleted.")
        }
        guard named.queue.entries.isEmpty else {
            throw Failure(
                .invalidArgument,
                "“\(named.name)” holds \(named.queue.counted); only an empty queue can be deleted."
            )
        }
        guard !rules.current.names(queue: named.name) else {
            throw Failure(
                .invalidArgument,
                "New episodes enter the queue “\(named.name)” by the setting autoEnqueueQueue; change that first.")
        }
        return commit(named, named.deletion, reply(named), answering: command, deleting: true)
    }

    // MARK: - Modes

    mutating func setModes(
        _ set: WireSetModes, of named: NamedQueue, _ command: Command
    ) throws(Failure) -> [OwnerEffect<Never>] {
        let modes = try named.modes.applying(set)
        guard modes != named.modes else {
            return commit(named, OwnerChange(), reply(named), answering: command)
        }
        var named = named
        named.modes = modes
        let change = named.modesChange()
        return commit(named, change, reply(named), answering: command)
    }

    // MARK: - Order

    mutating func sort(
        _ sort: WireSortEntries, _ named: NamedQueue, of command: Command, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        guard let order = EntryOrder(sort.by, descending: sort.descending) else {
            throw Failure(
                .invalidArgument,
                "Entries are sorted by title, podcast, published, duration, added or remaining.")
        }
        var named = named
        let ids = order.sorted(named.queue.entries.map(\.wire)).map(\.id)
        let change = named.edit(
            [.ordering(ids)], "Sorted by \(order.name)\(sort.descending ? ", descending" : "")",
            origin: command.origin, now: now.wall)
        return commit(named, change, reply(named), answering: command)
    }

    mutating func deduplicate(_ named: NamedQueue, of command: Command, now: Moment) -> [OwnerEffect<Never>] {
        var named = named
        // What plays stays.
        let going = named.duplicates(keeping: [player?.queueEntry, named.queue.current].compactMap(\.self))
        let change = named.edit(
            going.reversed().map { .removing($0.id) }, "Removed \(Queue.counted(going.count)) that were there twice",
            origin: command.origin, now: now.wall)
        var reply = reply(named, removing: going)
        reply.description_p = Queue.counted(going.count)
        return commit(named, change, reply, answering: command)
    }

    // MARK: - The past

    mutating func restore(
        _ revision: UInt64, _ named: NamedQueue, of command: Command, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        let (target, forgotten) = try named.entries(at: revision, without: rules.current.forgotten)
        let loaded = player.map { $0.status == .idle ? "" : $0.queueEntry } ?? ""
        var named = named
        var steps = named.queue.steps(to: target)
        if named.queue.index(of: loaded) == nil, target.contains(where: { $0.id == loaded }) {
            steps.append(.settingCurrent(loaded))
        }
        let change = named.edit(
            steps, "Restored revision \(revision)", origin: command.origin, now: now.wall)
        var reply = reply(named)
        reply.description_p = Queue.counted(target.count) + NamedQueue.staysOut(forgotten)
        return commit(named, change, reply, answering: command)
            + refreshEpisodes(Set(WireQueueStep.newcomers(of: steps).map(\.episode.id)))
    }
}
