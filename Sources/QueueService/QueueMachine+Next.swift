import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// What plays next, told to observers (`stream/queue/next`) and in good time to the player.

extension QueueMachine {
    /// What plays next, and what has become of the loads that were decided.
    var next: WireQueueNext {
        var next = WireQueueNext()
        next.queue = playingQueue
        let queue = named(next.queue).queue
        if let current = queue.current.flatMap({ queue.entry($0) }) { next.current = current.wire }
        let following = following
        if let entry = following.entry { next.following = entry } else { next.reason = following.reason }
        next.loads = loads.decided
        return next
    }

    /// The entry that follows, or why none does.
    var following: (entry: WireQueueEntry?, reason: WireQueueNext.Reason) {
        if let upcoming = upcomingLoad { return (upcoming.entry, .unknown) }
        guard let player else { return (nil, .unknown) }
        guard !player.loadID.isEmpty, player.status != .idle else { return (nil, .nothingLoaded) }
        return queues.current.source(of: player).following(player)
    }

    /// Tells the player what it will be asked for at the end of what is loaded, when that has changed.
    mutating func prepareNext() -> [OwnerEffect<Never>] {
        guard playerIsReady, let player, !player.loadID.isEmpty, !loads.isAsking, !isDecidingLoad,
            [.playing, .paused, .loading].contains(player.status), dueLoad == nil
        else { return [] }
        let next = queues.current.source(of: player).nextEntry(after: player.queueEntry, skipping: false)
        let call = nextCall("prepare")
        return loads.prepare(next.entry?.wire, of: next.queue.name, after: player.loadID, as: call).map { [.call($0)] }
            ?? []
    }

    // MARK: - Chapters

    /// Has the chapters of what is loaded fetched, once for each load. Nobody waits for it.
    mutating func fetchChapters() -> [OwnerEffect<Never>] {
        guard feedsIsReady, let player, !player.loadID.isEmpty, !player.episode.id.isEmpty,
            player.loadID != chaptersAsked, [.playing, .paused, .loading].contains(player.status)
        else { return [] }
        chaptersAsked = player.loadID
        var message = WireFeedsRequest()
        message.fetchChapters.episode = player.episode.id
        return [ask(.feeds, message.wireBytes, as: "chapters")]
    }

    /// The library knows more of the loaded episode now.
    mutating func refreshPlayer(_ episode: String) -> OwnerEffect<Never> {
        var message = WirePlaybackRequest()
        message.refreshEpisode.episode = episode
        return ask(.playback, message.wireBytes, as: "refresh")
    }

    /// Asks a service for something whose answer nobody waits for.
    mutating func ask(_ service: ServiceName, _ payload: [UInt8], as name: String) -> OwnerEffect<Never> {
        .call(Call(id: nextCall(name), to: service, payload: payload, limit: .seconds(20)))
    }
}
