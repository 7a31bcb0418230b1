import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// Determines the next entry, which is published as `stream/queue/next` and prepared by the player.

extension QueueMachine {
    /// The value of `stream/queue/next`: the entry that plays next, and the outcomes of the newest loads.
    var next: WireQueueNext {
        var next = WireQueueNext()
        let following = following
        next.queue = following.queue
        let queue = queues.named(next.queue).queue
        if let current = queue.current.flatMap({ queue.entry($0) }) { next.current = current.wire }
        if let entry = following.entry { next.following = entry } else { next.reason = following.reason }
        next.loads = loads.decided
        return next
    }

    /// The playing queue and the entry that plays next, or the reason why none does.
    var following: (queue: String, entry: WireQueueEntry?, reason: WireQueueNext.Reason) {
        if let upcoming = upcomingLoad { return (upcoming.queue, upcoming.entry, .unknown) }
        guard let player else { return (QueueName.default, nil, .unknown) }
        guard !player.loadID.isEmpty else { return (QueueName.default, nil, .nothingLoaded) }
        let source = queues.source(of: player)
        guard player.status != .idle else { return (source.named.name, nil, .nothingLoaded) }
        let following = source.named.following(player, at: source.index)
        return (source.named.name, following.entry, following.reason)
    }

    /// The name of the playing queue: that of the decided load, else of the loaded episode, else the default one.
    var playingQueue: String {
        if let upcoming = upcomingLoad { return upcoming.queue }
        guard let player, !player.loadID.isEmpty else { return QueueName.default }
        return queues.source(of: player).named.name
    }

    /// The decided load that the player hasn’t accepted and whose entry still exists. The player may show it already,
    /// because it publishes a load before the load is durable.
    private var decidedLoad: DecidedLoad? {
        for (queue, pending) in queues.pendingLoads(whileShowing: player?.loadID) {
            guard let entry = queues[queue]?.queue.entry(pending.entry) else { continue }
            return DecidedLoad(queue: queue, pending: pending, entry: entry.wire)
        }
        return nil
    }

    /// The load that can be requested from the player now.
    var dueLoad: DecidedLoad? { playerIsReady && player != nil ? decidedLoad : nil }

    /// The decided load that the player doesn’t show yet.
    var upcomingLoad: DecidedLoad? { decidedLoad.flatMap { $0.pending.loadID == player?.loadID ? nil : $0 } }

    mutating func prepareNext(_ effects: inout [Effect]) {
        guard playerIsReady, let player, player.canStillEnd, !loads.isRequesting, !isDecidingLoad, dueLoad == nil
        else { return }
        let next = nextEntry(after: player)
        guard let call = loads.prepare(next.entry?.wire, of: next.queue.name, after: player.loadID) else { return }
        effects.append(.call(call))
    }

    mutating func fetchChapters(_ effects: inout [Effect]) {
        guard feedsIsReady, let player, player.canStillEnd, !player.episode.id.isEmpty,
            player.loadID != chaptersRequested
        else { return }
        chaptersRequested = player.loadID
        let message = WireFeedsRequest.with { $0.fetchChapters.episode = player.episode.id }
        send(.feeds, message.wireBytes, &effects)
    }

    /// Sends a request whose reply is ignored.
    func send(_ service: ServiceName, _ payload: [UInt8], _ effects: inout [Effect]) {
        effects.append(.call(Call(.unawaited, to: service, payload: payload, limit: .seconds(20))))
    }
}

extension WirePlaybackState {
    /// Whether an episode is loaded that can still end.
    fileprivate var canStillEnd: Bool { !loadID.isEmpty && [.playing, .paused, .loading].contains(status) }
}
