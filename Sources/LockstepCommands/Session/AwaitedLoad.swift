import BusKit
import LockstepClient
import PodcastModel
import WireMessages

/// The load that a command has asked for, and what the stream says of it. Pure.
struct AwaitedLoad: Sendable, Hashable {
    /// What is seen of it.
    enum Outlook: Sendable, Hashable {
        /// It is still to come, or opens.
        case coming
        /// It plays, is paused, or has failed.
        case settled
        /// Something else was decided in its queue since, and may still be to come itself.
        case overtaken
        /// Something else is settled that was not there before. It may have been on its way already when this load was
        /// asked for, which then follows at once.
        case doubtful
    }

    /// The id that the player will show; empty: whatever is loaded.
    let load: String
    /// The load that was there when it was asked for.
    var before = ""
    /// Its queue; empty: it is not known which.
    var queue = ""
    /// Its entry; empty: it is not known which.
    var entry = ""
    /// The queue's revision with it.
    var revision: UInt64 = 0

    /// A load of the player's, from no queue.
    init(_ load: String) {
        self.load = load
    }

    /// What a queue has answered.
    ///
    /// - Parameter player: the player before it was asked.
    init(_ reply: WireQueueReply, in queue: String = "", after player: WirePlaybackState?) {
        load = reply.loadID
        before = player?.loadID ?? ""
        self.queue = queue
        entry = reply.entries.first?.id ?? ""
        revision = reply.revision
    }

    /// How it stands by what a view shows.
    func outlook(in view: FleetView) -> Outlook {
        guard view.connection == .live, !view.isStale(.playback), let player = view.player else { return .coming }
        if isMeant(player.loadID), player.status != .loading { return .settled }
        // It has ended, and what follows it is there.
        if player.loadID == LoadID.advance(after: load).text { return .settled }
        guard !load.isEmpty, !view.isStale(.queue) else { return .coming }
        if isMarkElsewhere(in: view) { return .overtaken }
        let isOther = player.loadID != load && player.loadID != before && !player.loadID.isEmpty
        return isOther && player.status != .loading && !view.isStale(.persistence) ? .doubtful : .coming
    }

    /// Whether a load that the player shows is this one.
    func isMeant(_ shown: String) -> Bool { load.isEmpty || shown == load }

    /// Whether the queue marks another entry, or none, in a revision after that of the answer: nothing leads back to this
    /// load then.
    private func isMarkElsewhere(in view: FleetView) -> Bool {
        guard !entry.isEmpty else { return false }
        let home =
            view.queues[queue] ?? view.queues.values.first { state in state.entries.contains { $0.id == entry } }
        guard let home, home.revision > revision else { return false }
        // What opens goes on opening when its entry is taken away.
        return home.current != entry && !(home.current.isEmpty && view.player?.loadID == load)
    }
}
