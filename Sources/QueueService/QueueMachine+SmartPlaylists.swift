import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// Evaluates the rules of smart playlists, and adds new matches to queues.

extension QueueMachine {
    /// The maximum number of found episodes that are remembered, so that none is added to a queue twice.
    private static let foundLimit = 2_000

    /// Evaluates the playlists whose results a change can affect.
    ///
    /// - Parameter dependencies: the changed facts; nil if any rule may be affected.
    mutating func smartPlaylistsChanged(
        _ dependencies: EpisodeRule.Dependencies?, after delay: Duration = SmartPlaylistSchedule.delay, now: Moment
    ) {
        for playlist in playlists.values {
            guard let smart = playlist.smart, let rule = smart.rule else { continue }
            var matters = rule.dependencies
            if smart.wire.order == .heard { matters.formUnion([.marks, .positions]) }
            guard dependencies.map({ !matters.isDisjoint(with: $0) }) ?? true else { continue }
            smartPlaylists.schedule.change(playlist.name, after: delay, now: now.monotonic)
        }
    }

    /// Evaluates the playlists that depend on a state: a position that is saved during playback changes few of them.
    mutating func smartPlaylistsObserve(_ state: WireEpisodeState, now: Moment) {
        let seen = (state.episode, started: state.position > 0, played: state.played)
        let isKnown = smartPlaylists.lastState.map { $0 == seen } ?? false
        smartPlaylists.lastState = seen
        smartPlaylistsChanged(isKnown ? .positions : [.marks, .positions], now: now)
    }

    /// Begins the evaluation that is due, and sets the timer for the next one.
    mutating func runSmartPlaylists(now: Moment, _ effects: inout [Effect]) {
        while let (id, name) = smartPlaylists.schedule.next(now: now.monotonic) {
            guard let smart = playlists[name]?.smart, smart.rule != nil else {
                smartPlaylists.schedule.ended(rule: EpisodeRule(.mark(.played)), now: now.monotonic)
                continue
            }
            (smartPlaylists.queried, smartPlaylists.found) = (smart.wire, [])
            query(smart, id, after: "", &effects)
        }
        let wake = smartPlaylists.schedule.wake
        guard wake != smartPlaylists.timer else { return }
        smartPlaylists.timer = wake
        effects.append(.timer(.smartPlaylists, at: wake))
    }

    private func query(
        _ smart: SmartList, _ id: SmartPlaylistSchedule.EvaluationID, after cursor: String, _ effects: inout [Effect]
    ) {
        let rest = Int(smart.wire.limit) - smartPlaylists.found.count
        effects.append(
            .ask(.smartPlaylist(id)) {
                $0.episodes.rule = smart.wire.rule
                $0.episodes.order = smart.wire.order
                $0.episodes.limit = UInt32(clamping: min(rest, RequestSizes.episodes))
                $0.episodes.after = cursor
            })
    }

    mutating func smartPlaylistAnswered(
        _ id: SmartPlaylistSchedule.EvaluationID, _ result: Result<WirePersistenceReply, Failure>, now: Moment,
        _ effects: inout [Effect]
    ) {
        guard let name = smartPlaylists.schedule.playlist(of: id) else { return }
        // A changed rule is evaluated again anyway.
        guard let smart = playlists[name]?.smart, smart.wire == smartPlaylists.queried else {
            return smartPlaylists.schedule.ended(rule: EpisodeRule(.mark(.played)), now: now.monotonic)
        }
        switch result {
        case .success(let reply):
            let page = reply.episodes
            smartPlaylists.found += page.episodes.map { WireEpisodeSummary($0) }
            if !page.next.isEmpty, smartPlaylists.found.count < smart.wire.limit {
                return query(smart, id, after: page.next, &effects)
            }
            smartPlaylists.schedule.ended(rule: smart.rule, now: now.monotonic)
            evaluated(name, smartPlaylists.found, now: now, &effects)
            smartPlaylists.found = []
            for var context in smartPlaylists.release(name) {
                context.now = now
                perform(context, &effects)
            }
        case .failure(let failure):
            smartPlaylists.schedule.ended(rule: nil, now: now.monotonic)
            effects.append(.log(.warning, "couldn’t evaluate the smart playlist \(name): \(failure)"))
            for context in smartPlaylists.release(name) {
                effects.append(.reply(context.command.id, .failure(failure)))
            }
        }
    }

    /// Sets the items of a smart playlist, and adds those that it finds for the first time to its queue.
    private mutating func evaluated(
        _ name: String, _ found: [WireEpisodeSummary], now: Moment, _ effects: inout [Effect]
    ) {
        guard var playlist = playlists[name], let smart = playlist.smart else { return }
        var change = playlist.setItems(found, now: now.wall)
        let known = rules.smartFound[name]
        var rules = rules
        var queue: NamedQueue?
        if let target = queues[smart.wire.queue] {
            let (named, record) = add(found, to: target, by: playlist, known: known, now: now, &change)
            queue = named
            if record != known { rules.smartFound.put(name, record, &change.changes) }
        }
        guard !change.isEmpty else { return amend { $0.playlists[name] = playlist } }
        commit(change, &effects) { state in
            state.playlists[name] = playlist
            state.rules = rules
            if let queue { state.queues[queue.name] = queue }
        }
    }

    /// Adds the episodes that weren’t found before to a queue with room, and returns it with the episodes that are
    /// known then. All are known if none were: those that exist when the addition is enabled aren’t added.
    private func add(
        _ found: [WireEpisodeSummary], to target: NamedQueue, by playlist: Playlist, known: WireSmartFoundRecord?,
        now: Moment, _ change: inout OwnerChange
    ) -> (NamedQueue, WireSmartFoundRecord) {
        var named = target
        var record = known ?? WireSmartFoundRecord.with { $0.episodes = found.map(\.id) }
        let before = Set(record.episodes)
        let new = found.filter { !before.contains($0.id) }
        let addable = new.filter { (try? $0.requireAudio()) != nil && named.queue.entry(episode: $0.id) == nil }
        let added = addable.prefix(max(0, named.limit - named.queue.entries.count))
        let entries = added.map { episode in
            WireQueueEntry.with {
                $0.id =
                    QueueEntryID.derived(
                        from: "smart/\(playlist.name)/\(episode.id)/\(now.wall.milliseconds)"
                    ).text
                $0.episode = episode
                $0.addedAt = now.wall.milliseconds
                $0.reason = "by the smart playlist \(playlist.shown)"
            }
        }
        if !entries.isEmpty {
            let what = entries.count == 1 ? "“\(entries[0].episode.title)”" : Queue.counted(entries.count)
            change.append(
                named.edit(
                    WireQueueStep.inserting(entries, after: named.queue.entries.last?.id ?? ""),
                    "Added \(what) by the smart playlist \(playlist.shown)", origin: CommandOrigin.rule.text,
                    now: now.wall))
        }
        // An episode for which there was no room is found again.
        let waiting = Set(addable.dropFirst(added.count).map(\.id))
        record.episodes += new.map(\.id).filter { !waiting.contains($0) }
        record.episodes = Array(record.episodes.suffix(Self.foundLimit))
        return (named, record)
    }
}
