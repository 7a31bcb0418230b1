import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// How the queue makes the player play, and how the player's end of an episode moves the queue on.

extension QueueMachine {
    // MARK: - Loading

    /// Moves the mark and has the player load the entry, at a place or (nil) where it was left, both decided in one commit.
    mutating func load(
        _ entry: WireQueueEntry, in name: String, of command: Command, _ steps: [WireQueueStep], _ description: String,
        at place: PlaybackPosition? = nil, paused: Bool, now: Moment
    ) -> [OwnerEffect<Never>] {
        let replaces = player?.loadID ?? ""
        let overtakes = queues.current.loadsToSupersede(loads.latest)
        var named = named(name)
        named.pending = .with {
            $0.entry = entry.id
            $0.loadID = LoadID.derived(from: command.id.description).text
            $0.requestID = command.id.derived("load").data
            $0.paused = paused
            $0.replacesLoad = replaces
            $0.overtakes = overtakes
            if let place { $0.position = place.seconds }
        }
        var change = named.edit(steps, description, origin: command.origin, now: now.wall)
        if change.isEmpty { change = named.headerChange() }
        let others = queues.current.withoutPendingLoads(but: name)
        others.forEach { change.append($0.headerChange()) }
        var reply = reply(named)
        reply.entries = [entry]
        reply.loadID = named.pending?.loadID ?? ""
        return commit(named, change, reply, answering: command, loads: true, with: others)
    }

    /// Asks the player for the load that is due, once that is durable, unless it is being asked already.
    mutating func requestLoad() -> [OwnerEffect<Never>] {
        guard !loads.isAsking, !isDecidingLoad, let due = dueLoad else { return [] }
        return [.call(loads.ask(for: due.pending, of: due.entry, in: due.queue))]
    }

    /// A load that is decided, with its entry.
    typealias DecidedLoad = (queue: String, pending: LoadCoordinator.PendingLoad, entry: WireQueueEntry)

    /// The load that the player has not accepted and nothing else has made void. The player's showing it is not enough:
    /// it shows a load before that is durable.
    private var decidedLoad: DecidedLoad? {
        for (queue, pending) in queues.current.pendingLoads(whileShowing: player?.loadID) {
            if let entry = queues.current[queue]?.queue.entry(pending.entry) { return (queue, pending, entry.wire) }
        }
        return nil
    }

    /// The load that the player can be asked for now.
    var dueLoad: DecidedLoad? { playerIsReady && player != nil ? decidedLoad : nil }

    /// The load that is decided and that the player does not show yet.
    var upcomingLoad: DecidedLoad? { decidedLoad.flatMap { $0.pending.loadID == player?.loadID ? nil : $0 } }

    /// The name of the queue that plays: that of the load which is decided, else of what is loaded, else the usual one.
    var playingQueue: String {
        if let upcoming = upcomingLoad { return upcoming.queue }
        guard let player, !player.loadID.isEmpty else { return QueueName.usual }
        return queues.current.source(of: player).name
    }

    /// The player has answered, or could not be reached in time.
    mutating func loadAnswered(
        _ load: String, _ answer: LoadCoordinator.Answer, now: Moment
    ) -> [OwnerEffect<Never>] {
        switch answer {
        case .accepted(let state):
            // What comes on the stream says the same, and may have come before; this only spares the wait for it.
            if let state, state.revision > player?.revision ?? 0 { player = state }
            return pauseBeforeUpcoming() + forget(load) + requestLoad()
        case .retry(let failure):
            return [
                .log(.warning, "the player did not take load \(load) yet: \(failure)"),
                .timer(Self.reconciliation, at: now.monotonic.advanced(by: Self.retry.wait())),
            ]
        case .refused(let failure):
            // Asking again would be refused again; the mark stays, `play` tries anew.
            return [.log(.error, "the player refused load \(load): \(failure)")] + forget(load) + requestLoad()
        }
    }

    /// The load needs no more asking.
    private mutating func forget(_ load: String) -> [OwnerEffect<Never>] {
        guard var named = queues.current.values.first(where: { $0.pending?.loadID == load }) else { return [] }
        named.pending = nil
        return commit(named, named.headerChange())
    }

    // MARK: - Observing

    /// News of others.
    mutating func observe(_ event: StreamEvent, now: Moment) -> [OwnerEffect<Never>] {
        switch QueueNews(event) {
        case .player(let state): return observe(state, now: now)
        case .playerIsReady(let isReady):
            playerIsReady = isReady
            if !isReady { loads.playerIsGone() }
            return requestLoad() + decideCommandsAgain(now: now)
        case .feedsIsReady(let isReady):
            feedsIsReady = isReady
            return fetchChapters()
        case .episodeState(let state): return observe(state)
        case .episodeStates(let episodes): return refreshQueued(episodes)
        case .podcast(let id, let podcast, let isGone): return observe(podcast, id: id, isGone: isGone)
        case .podcastForgotten(let id):
            return observe(nil, id: id, isGone: true)
                + queues.current.removing(podcast: id, now: now.wall).flatMap { commit($0, $1) }
        case .episodes(let news): return observe(news)
        case nil: return []
        }
    }

    private mutating func observe(_ state: WirePlaybackState, now: Moment) -> [OwnerEffect<Never>] {
        let left = player?.episode.id
        player = state
        failures.observe(
            state, isByItself: isByItself(state),
            isNew: loads.latest.contains(state.loadID))
        var effects: [OwnerEffect<Never>] = []
        if let saved = loadedEpisodeState, saved.episode == left, saved.episode != state.episode.id {
            loadedEpisodeState = nil
            effects += update(saved)
        }
        return effects + reconcile(now: now) + fetchChapters() + decideCommandsAgain(now: now)
    }

    private mutating func observe(_ news: WireEpisodesChanged) -> [OwnerEffect<Never>] {
        var effects: [OwnerEffect<Never>] = []
        effects += refreshQueued(news.updated)
        if let loaded = player?.episode.id, !loaded.isEmpty, news.updated.contains(loaded) {
            effects.append(refreshPlayer(loaded))
        }
        return news.added.isEmpty ? effects : effects + check(podcast: news.podcast)
    }

    /// Does what the player's state asks for and has not been done yet.
    mutating func reconcile(now: Moment) -> [OwnerEffect<Never>] {
        var effects: [OwnerEffect<Never>] = []
        if let player, !player.loadID.isEmpty {
            if player.status == .finished { effects += advance(from: player, now: now) }
            if player.status == .failed { effects += player.skip ? skip(player, now: now) : passOver(player, now: now) }
        }
        return effects + requestLoad()
    }

    /// An episode's position or played mark: its entry takes it over, but not while it plays, when it changes all the time.
    private mutating func observe(_ state: WireEpisodeState) -> [OwnerEffect<Never>] {
        guard player?.episode.id == state.episode else { return update(state) }
        loadedEpisodeState = state
        return []
    }

    private mutating func update(_ state: WireEpisodeState) -> [OwnerEffect<Never>] {
        for named in queues.current.values {
            guard var episode = named.queue.entry(episode: state.episode)?.wire.episode else { continue }
            episode.position = state.position
            episode.played = state.played
            if state.duration > 0 { episode.duration = state.duration }
            return refresh(with: [episode.id: episode])
        }
        return []
    }
}
