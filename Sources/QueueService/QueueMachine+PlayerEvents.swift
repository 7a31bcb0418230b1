import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// Requests loads from the player and handles changes of the player’s state.

extension QueueMachine {
    // MARK: - Loading

    /// Makes an entry current and decides its load in one commit. If `position` is nil, playback starts where it last
    /// stopped.
    mutating func load(
        _ entry: WireQueueEntry, in name: String, _ steps: [WireQueueStep], _ description: String,
        at position: PlaybackPosition? = nil, paused: Bool = false, _ context: CommandContext,
        _ effects: inout [Effect]
    ) {
        let command = context.command
        var named = queues.named(name)
        let superseded = queues.loadsToSupersede(loads.latest)
        named.pending = .with {
            $0.entry = entry.id
            $0.loadID = LoadID.derived(from: command.id.description).text
            $0.requestID = command.id.derived("load").data
            $0.paused = paused
            $0.replacesLoad = player?.loadID ?? ""
            $0.overtakes = superseded
            if let position { $0.position = position.seconds }
        }
        var change = named.edit(steps, description, origin: command.origin, now: context.now.wall)
        if change.isEmpty { change = named.headerChange() }
        let others = queues.withoutPendingLoads(except: name)
        others.forEach { change.append($0.headerChange()) }
        let reply = WireQueueReply.with {
            $0.entries = [entry]
            $0.loadID = named.pending?.loadID ?? ""
        }
        commit(change, as: .load, answering: context.answer(reply, about: name), &effects) { state in
            for named in others + [named] { state.queues[named.name] = named }
        }
    }

    /// Requests the due load from the player, unless its commit or another request is pending.
    mutating func requestLoad(_ effects: inout [Effect]) {
        guard !loads.isRequesting, !isDecidingLoad, let due = dueLoad else { return }
        effects.append(.call(loads.request(due)))
    }

    mutating func loadAnswered(
        _ load: String, _ answer: Result<WirePlaybackState?, Failure>, now: Moment, _ effects: inout [Effect]
    ) {
        switch answer {
        case .success(let state):
            // The same state is published on the stream; using the reply saves the wait for the event.
            if let state, state.revision > player?.revision ?? 0 { player = renamed(state) }
            pauseBeforeUpcoming(&effects)
        case .failure(let failure) where failure.retry:
            effects.append(.log(.warning, "the player didn’t accept load \(load) yet: \(failure)"))
            return effects.append(.timer(.reconcile, at: now.monotonic.advanced(by: Self.retryBackoff.wait())))
        case .failure(let failure):
            // Another request would be refused again; the entry remains current, and `play` tries again.
            effects.append(.log(.error, "the player refused load \(load): \(failure)"))
        }
        if var named = queues.values.first(where: { $0.pending?.loadID == load }) {
            named.pending = nil
            commit(named, named.headerChange(), &effects)
        }
        requestLoad(&effects)
    }

    // MARK: - Observing

    /// Handles the events of other services, and ignores malformed ones.
    mutating func observe(_ event: StreamEvent, now: Moment, _ effects: inout [Effect]) {
        let parts = event.topic.parts.map(String.init)
        let payload = event.payload
        switch (parts.dropFirst().first, parts.dropFirst(2).first, parts.count, event.header.kind) {
        case ("playback", "state", 3, .put):
            if let state = try? WirePlaybackState(wireBytes: payload) { observe(state, now: now, &effects) }
        case ("playback", "states", 3, _):
            let changed = try? WireEpisodeStatesChanged(wireBytes: payload)
            refreshQueued(changed?.episodes ?? [], &effects)
            smartPlaylistsChanged([.marks, .positions], now: now)
        case ("playback", "episode", 4, .event):
            guard let state = try? WireEpisodeState(wireBytes: payload) else { break }
            observe(state, &effects)
            smartPlaylistsObserve(state, now: now)
        case ("playback", "bookmarks", 4, _): smartPlaylistsChanged(.bookmarks, now: now)
        case ("downloads", "download", 4, _): smartPlaylistsChanged(.downloads, now: now)
        case ("feeds", "inbox", 3, _): smartPlaylistsChanged(nil, now: now)
        case ("bus", "service", 4, _):
            let isReady = (try? WireServiceStatus(wireBytes: payload))?.state == .ready
            if parts[3] == ServiceName.playback.text { playerChanged(isReady: isReady, now: now, &effects) }
            if parts[3] == ServiceName.feeds.text {
                feedsIsReady = isReady
                fetchChapters(&effects)
            }
        case ("feeds", "podcast", 4, let kind):
            observe(kind == .put ? try? WirePodcast(wireBytes: payload) : nil, id: parts[3], &effects)
            smartPlaylistsChanged(nil, now: now)
        case ("feeds", "episodes", 4, .event):
            if let news = try? WireEpisodesChanged(wireBytes: payload) { observe(news, &effects) }
            smartPlaylistsChanged(nil, now: now)
        default: break
        }
    }

    private mutating func playerChanged(isReady: Bool, now: Moment, _ effects: inout [Effect]) {
        playerIsReady = isReady
        if !isReady { loads.playerStopped() }
        requestLoad(&effects)
        decideCommandsAgain(now: now, &effects)
    }

    private mutating func observe(_ state: WirePlaybackState, now: Moment, _ effects: inout [Effect]) {
        let previous = player?.episode.id
        // The player may not have received the new name yet.
        sendNewName(of: state.queue, &effects)
        let state = renamed(state)
        player = state
        failures.observe(
            state, isAdvance: queues.isAdvance(state), isNew: loads.latest.contains(state.loadID))
        if let saved = loadedEpisodeState, saved.episode == previous, saved.episode != state.episode.id {
            loadedEpisodeState = nil
            update(saved, &effects)
        }
        reconcile(now: now, &effects)
        fetchChapters(&effects)
        decideCommandsAgain(now: now, &effects)
    }

    /// The player’s state with the present name of its queue: the player knows the name at the time of the load.
    private func renamed(_ state: WirePlaybackState) -> WirePlaybackState {
        guard queues[state.queue] == nil, let name = renamedQueues[state.queue] else { return state }
        var state = state
        state.queue = name
        return state
    }

    /// Sends the new name of a renamed queue to the player.
    mutating func sendNewName(of queue: String, _ effects: inout [Effect]) {
        guard queues[queue] == nil, let name = renamedQueues[queue] else { return }
        let request = WirePlaybackRequest.with { ($0.queueRenamed.queue, $0.queueRenamed.name) = (queue, name) }
        send(.playback, request.wireBytes, &effects)
    }

    private mutating func observe(_ news: WireEpisodesChanged, _ effects: inout [Effect]) {
        refreshQueued(news.updated, &effects)
        if let loaded = player?.episode.id, !loaded.isEmpty, news.updated.contains(loaded) {
            send(.playback, WirePlaybackRequest.with { $0.refreshEpisode.episode = loaded }.wireBytes, &effects)
        }
        if !news.added.isEmpty { check(podcast: news.podcast, &effects) }
    }

    /// Advances the queue if the player’s state requires an advance that isn’t recorded yet, and requests the due load.
    mutating func reconcile(now: Moment, _ effects: inout [Effect]) {
        if let player, !player.loadID.isEmpty {
            switch player.status {
            case .finished: advance(from: player, now: now, &effects)
            case .failed where player.skip: skip(player, now: now, &effects)
            case .failed: skipUnplayable(player, now: now, &effects)
            default: break
            }
        }
        requestLoad(&effects)
    }

    /// Updates an entry with its episode’s position and played mark, but not during playback, which changes them
    /// constantly.
    private mutating func observe(_ state: WireEpisodeState, _ effects: inout [Effect]) {
        guard player?.episode.id == state.episode else { return update(state, &effects) }
        loadedEpisodeState = state
    }

    private mutating func update(_ state: WireEpisodeState, _ effects: inout [Effect]) {
        let entry = contents.lazy.compactMap { $0.entry(episode: state.episode) }.first
        guard var episode = entry?.wire.episode else { return }
        episode.position = state.position
        episode.played = state.played
        if state.duration > 0 { episode.duration = state.duration }
        refresh(with: [episode.id: episode], &effects)
    }
}
