import BusKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// How the queue makes the player play, and how the player's end of an episode moves the queue on.

extension QueueMachine {
    // MARK: - Loading

    /// Moves the mark and has the player load the entry, both decided in one commit.
    mutating func load(
        _ entry: WireQueueEntry, in name: String, of command: Command, _ steps: [WireQueueStep], _ description: String,
        paused: Bool, now: Moment
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
        }
        var change = named.edit(steps, description, origin: command.origin, now: now.wall)
        if change.isEmpty { change = named.headerChange() }
        var reply = reply(named)
        reply.entries = [entry]
        reply.loadID = named.pending?.loadID ?? ""
        return commit(named, change, reply, answering: command, loads: true)
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
        guard loadUnderWay == nil, !isDecidingLoad, let (pending, entry) = dueLoad() else { return [] }
        var request = WirePlaybackRequest()
        request.load.episode = entry.episode
        request.load.loadID = pending.loadID
        request.load.paused = pending.paused
        request.load.queueEntry = entry.id
        loadUnderWay = pending.loadID
        return [
            .call(
                Call(
                    id: CallID("load/\(pending.loadID)"), to: .playback, payload: request.wireBytes,
                    request: RequestID(pending.requestID) ?? .random(), limit: .seconds(5)))
        ]
    }

    /// The loads that were decided earlier and that the player may have begun, or begin yet, without its having been
    /// seen: a load that is decided now follows any of them.
    private var overtakenLoads: [String] {
        let waiting = queues.current.values.compactMap(\.pending).flatMap { $0.overtakes + [$0.loadID] }
        // The two that matter in this life come last, where the limit does not reach.
        let known = waiting + [acceptedLoad, loadUnderWay].compactMap(\.self)
        return Array(known.suffix(Self.overtakenLimit))
    }

    /// The load that the player has not accepted and nothing else has made void. The player's showing it is not enough:
    /// it shows a load before that is durable.
    private func dueLoad() -> (WireQueueHeaderRecord.PendingLoad, WireQueueEntry)? {
        guard playerIsReady, let player else { return nil }
        for named in queues.current.values {
            guard let pending = named.pending, Self.follows(pending, player.loadID),
                let entry = named.queue.entry(pending.entry)
            else { continue }
            return (pending, entry.wire)
        }
        return nil
    }

    /// The load that is decided and that the player does not show yet.
    var comingLoad: (pending: WireQueueHeaderRecord.PendingLoad, entry: WireQueueEntry)? {
        dueLoad().flatMap { $0.0.loadID == player?.loadID ? nil : (pending: $0.0, entry: $0.1) }
    }

    /// Whether a load is still wanted when the player shows another one, or none.
    private static func follows(_ pending: WireQueueHeaderRecord.PendingLoad, _ shown: String) -> Bool {
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
                .timer(Self.reconciliation, at: now.monotonic.advanced(by: .seconds(1))),
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
            return requestLoad()
        default:
            break
        }
        let parts = event.topic.parts
        guard parts.count == 4, event.header.kind == .event else { return [] }
        if parts[1] == "playback", parts[2] == "episode", let state = try? WireEpisodeState(wireBytes: event.payload) {
            return observe(state)
        }
        if parts[1] == "feeds", let news = try? WireEpisodesChanged(wireBytes: event.payload) {
            let queued = Set(queues.current.values.flatMap { $0.queue.entries.map(\.episode) })
            return refreshEpisodes(queued.intersection(news.updated))
        }
        return []
    }

    private mutating func observe(_ state: WirePlaybackState, now: Moment) -> [OwnerEffect<Never>] {
        let left = player?.episode.id
        player = state
        var effects: [OwnerEffect<Never>] = []
        if let saved = loadedEpisodeState, saved.episode == left, saved.episode != state.episode.id {
            loadedEpisodeState = nil
            effects += update(saved)
        }
        return effects + reconcile(now: now)
    }

    /// Does what the player's state asks for and has not been done yet.
    mutating func reconcile(now: Moment) -> [OwnerEffect<Never>] {
        var effects: [OwnerEffect<Never>] = []
        if let player, player.status == .finished, !player.loadID.isEmpty {
            effects += advance(from: player, now: now)
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

    // MARK: - Advancing

    /// An episode was played to its end: its entry leaves, the one behind it becomes current and plays. Committed
    /// once for each load, whatever crashes: the player shows `finished` until it has got its next load.
    private mutating func advance(from state: WirePlaybackState, now: Moment) -> [OwnerEffect<Never>] {
        let home = queues.current.values.first { $0.queue.index(of: state.queueEntry) != nil } ?? main
        guard home.advancedLoad != state.loadID else { return [] }
        var named = home
        let queue = named.queue
        let moved = queue.current != nil && queue.current != state.queueEntry
        let next = moved ? queue.current.flatMap { queue.entry($0) } : queue.entry(after: state.queueEntry)
        named.advancedLoad = state.loadID
        let overtakes = overtakenLoads
        // What was asked for while the end came, and leads to the same entry, needs no second load.
        let asked = named.pending.flatMap { Self.follows($0, state.loadID) && $0.entry == next?.id ? $0 : nil }
        named.pending = asked
        var steps: [WireQueueStep] = []
        if queue.index(of: state.queueEntry) != nil { steps.append(.removing(state.queueEntry)) }
        if let next {
            steps.append(.settingCurrent(next.id))
            named.pending =
                asked
                ?? .with {
                    $0.entry = next.id
                    $0.loadID = LoadID.advance(after: state.loadID).text
                    $0.requestID = RequestID(high: 0, low: 0).derived("advance/\(state.loadID)").data
                    $0.replacesLoad = state.loadID
                    $0.overtakes = overtakes
                }
        }
        var change = named.edit(steps, "Finished “\(state.episode.title)”", origin: "advance", now: now.wall)
        if change.isEmpty { change = named.headerChange() }
        return commit(named, change, loads: true)
    }
}
