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
        let overtakes = overtakenLoads
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
        let others = withoutPendingLoads(but: name)
        others.forEach { change.append($0.headerChange()) }
        var reply = reply(named)
        reply.entries = [entry]
        reply.loadID = named.pending?.loadID ?? ""
        return commit(named, change, reply, answering: command, loads: true, with: others)
    }

    /// The newest decision counts over all queues: the loads that wait in others are wanted no more.
    private func withoutPendingLoads(but name: String) -> [NamedQueue] {
        queues.current.values.filter { $0.name != name && $0.pending != nil }.sorted { $0.name < $1.name }.map {
            var named = $0
            named.pending = nil
            return named
        }
    }

    /// Resumes what is loaded.
    mutating func resume(_ command: Command) -> OwnerEffect<Never> {
        let call = CallID("resume/\(command.id)")
        resuming[call] = command
        var request = WirePlaybackRequest()
        request.setPaused.paused = false
        return .call(
            Call(
                id: call, to: .playback, payload: request.wireBytes, request: command.id.derived("resume"),
                limit: .seconds(8)))
    }

    /// Asks the player for the load that is due, once that is durable, unless it is being asked already: two requests
    /// under way could overtake each other, and the older load would win.
    mutating func requestLoad() -> [OwnerEffect<Never>] {
        guard loadUnderWay == nil, !isDecidingLoad, let (queue, pending, entry) = dueLoad() else { return [] }
        var request = WirePlaybackRequest()
        request.load = Self.load(entry, of: queue, as: pending.loadID, paused: pending.paused)
        if pending.hasPosition { request.load.position = pending.position }
        loadUnderWay = pending.loadID
        return [
            .call(
                Call(
                    id: CallID("load/\(pending.loadID)"), to: .playback, payload: request.wireBytes,
                    request: RequestID(pending.requestID), limit: .seconds(5)))
        ]
    }

    /// A load as the player is asked for it.
    static func load(_ entry: WireQueueEntry, of queue: String, as loadID: String, paused: Bool) -> WireLoadEpisode {
        var load = WireLoadEpisode()
        load.episode = entry.episode
        load.loadID = loadID
        load.paused = paused
        load.queueEntry = entry.id
        load.queue = queue
        return load
    }

    /// The loads that were decided earlier and that the player may have begun, or begin yet, without its having been
    /// seen: a load that is decided now follows any of them.
    var overtakenLoads: [String] {
        let waiting = queues.current.values.sorted { $0.name < $1.name }.compactMap(\.pending).flatMap {
            $0.overtakes + [$0.loadID]
        }
        // The two that matter in this life come last, where the limit does not reach.
        let known = waiting + [acceptedLoad, loadUnderWay].compactMap(\.self)
        return Array(known.suffix(Self.overtakenLimit))
    }

    /// The load that the player has not accepted and nothing else has made void. The player's showing it is not enough:
    /// it shows a load before that is durable.
    func dueLoad() -> (queue: String, WireQueueHeaderRecord.PendingLoad, WireQueueEntry)? {
        guard playerIsReady, let player else { return nil }
        for named in queues.current.values.sorted(by: { $0.name < $1.name }) {
            guard let pending = named.pending, Self.follows(pending, player.loadID),
                let entry = named.queue.entry(pending.entry)
            else { continue }
            return (named.name, pending, entry.wire)
        }
        return nil
    }

    /// The load that is decided and that the player does not show yet.
    var comingLoad: (queue: String, pending: WireQueueHeaderRecord.PendingLoad, entry: WireQueueEntry)? {
        dueLoad().flatMap { $0.1.loadID == player?.loadID ? nil : (queue: $0.queue, pending: $0.1, entry: $0.2) }
    }

    /// The name of the queue that plays: that of the load which is decided, else of what is loaded, else the usual one.
    var playingQueue: String {
        if let coming = comingLoad { return coming.queue }
        guard let player, !player.loadID.isEmpty else { return QueueName.usual }
        return home(of: player).name
    }

    /// The queue that a load came from, also when its entry was taken away since.
    func home(of state: WirePlaybackState) -> NamedQueue {
        let named = queues.current.values.sorted { $0.name < $1.name }
        return named.first { $0.queue.index(of: state.queueEntry) != nil }
            ?? queues.current[state.queue] ?? main
    }

    /// Whether a load is still wanted when the player shows another one, or none.
    static func follows(_ pending: WireQueueHeaderRecord.PendingLoad, _ shown: String) -> Bool {
        shown.isEmpty || shown == pending.loadID || shown == pending.replacesLoad || pending.overtakes.contains(shown)
    }

    /// The player has answered, or could not be reached in time.
    mutating func loadAnswered(
        _ result: Result<[UInt8], Failure>, call: CallID, now: Moment
    ) -> [OwnerEffect<Never>] {
        guard let load = loadUnderWay, call == CallID("load/\(load)") else { return [] }
        loadUnderWay = nil
        switch result {
        case .success(let reply):
            acceptedLoad = load
            // What comes on the stream says the same; this only spares the wait for it.
            if let state = try? WirePlaybackReply(wireBytes: reply).state, state.loadID == load { player = state }
            return forget(load) + requestLoad()
        case .failure(let failure) where failure.retry:
            return [
                .log(.warning, "the player did not take load \(load) yet: \(failure)"),
                .timer(Self.reconciliation, at: now.monotonic.advanced(by: Self.retry.wait())),
            ]
        case .failure(let failure):
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
        switch event.topic {
        case .playbackState:
            guard event.header.kind == .put, let state = try? WirePlaybackState(wireBytes: event.payload) else {
                return []
            }
            return observe(state, now: now)
        case .service(.playback):
            let status = try? WireServiceStatus(wireBytes: event.payload)
            playerIsReady = event.header.kind == .put && status?.state == .ready
            if !playerIsReady { prepared = nil }
            return requestLoad()
        case .service(.feeds):
            let status = try? WireServiceStatus(wireBytes: event.payload)
            feedsIsReady = event.header.kind == .put && status?.state == .ready
            return fetchChapters()
        default:
            break
        }
        if event.topic == .episodeStates, let news = try? WireEpisodeStatesChanged(wireBytes: event.payload) {
            return refreshQueued(news.episodes)
        }
        let parts = event.topic.parts
        if parts.count == 4, parts[1] == "feeds", parts[2] == "podcast" { return observe(podcast: event, now: now) }
        guard parts.count == 4, event.header.kind == .event else { return [] }
        if parts[1] == "playback", parts[2] == "episode", let state = try? WireEpisodeState(wireBytes: event.payload) {
            return observe(state)
        }
        if parts[1] == "feeds", parts[2] == "episodes", let news = try? WireEpisodesChanged(wireBytes: event.payload) {
            return observe(news)
        }
        return []
    }

    private mutating func observe(_ state: WirePlaybackState, now: Moment) -> [OwnerEffect<Never>] {
        let left = player?.episode.id
        player = state
        failures.observe(
            state, isByItself: isByItself(state),
            isNew: [loadUnderWay, acceptedLoad].contains(state.loadID))
        var effects: [OwnerEffect<Never>] = []
        if let saved = loadedEpisodeState, saved.episode == left, saved.episode != state.episode.id {
            loadedEpisodeState = nil
            effects += update(saved)
        }
        return effects + reconcile(now: now) + fetchChapters()
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
