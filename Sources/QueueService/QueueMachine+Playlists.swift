import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// Executes the commands to playlists.

extension QueueMachine {
    mutating func execute(
        _ request: WirePlaylistRequest, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        let id = request.playlist
        if case .create(let create) = request.command { return try self.create(id, create, context, &effects) }
        if case .find(let find) = request.command {
            let positions = playlists.positions(of: find.episode)
            return reply(context.answer(.with { $0.positions = positions }, about: QueueName.default), &effects)
        }
        if case .resolve(let resolve) = request.command {
            let lists = RuleLists(queues: Set(queues.keys), playlists: playlists)
            let rule = try lists.resolved(try EpisodeRule(resolve.rule)).description
            return reply(context.answer(.with { $0.rule = rule }, about: QueueName.default), &effects)
        }
        if case .undelete(let undelete) = request.command { return try self.undelete(undelete, context, &effects) }
        let playlist = try playlists.existing(id)
        if request.hasIfRevision { try playlist.requireRevision(request.ifRevision) }
        switch request.command {
        case .change(let change): try self.change(playlist, change, context, &effects)
        case .play, .items:
            guard playlist.hasItems else { return try awaitItems(of: playlist, context) }
            try read(request, playlist, context, &effects)
        case .delete(let deletion): try delete(playlist, deletion, context, &effects)
        case .history(let query):
            let limit = query.limit == 0 ? QueueHistory.limit : Int(query.limit)
            reply(context.answer(.with { $0.history = playlist.history.newest(limit) }, aboutPlaylist: id), &effects)
        default: try edit(playlist, request, context, &effects)
        }
    }

    /// Changes the items of a playlist.
    private mutating func edit(
        _ playlist: Playlist, _ request: WirePlaylistRequest, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        if let smart = playlist.smart {
            throw Failure(
                .notApplicable,
                "\(playlist.shown) is a smart playlist, whose rule chooses the episodes: \(smart.wire.rule). To change the rule, use `lockstep playlist edit \(playlist.name) --where RULE`."
            )
        }
        var edit = ListEdit(list: playlist, context: context, player: nil, forgotten: rules.forgottenPodcasts)
        if case .move(let move) = request.command {
            try edit.move(move)
        } else {
            try edit.apply(request.command?.edit)
        }
        commit(edit.list, edit.change, answering: context.answer(edit.reply, aboutPlaylist: playlist.name), &effects)
        // The restored episodes may have been played in the meantime.
        refreshEpisodes(edit.restoredEpisodes, &effects)
    }

    private mutating func create(
        _ id: String, _ create: WireCreatePlaylist, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        guard playlists[id] == nil else { return reply(context.answer(aboutPlaylist: id), &effects) }
        guard QueueName.isValid(id) else {
            throw Failure(.invalidArgument, "“\(id)” can’t be a playlist’s ID; an ID has \(QueueName.rule).")
        }
        guard queues[id] == nil else {
            throw Failure(
                .invalidArgument, "“\(id)” is the name of a queue; rules couldn’t distinguish them. Use another ID.")
        }
        try requireRoom()
        let title = create.title.isEmpty ? PlaylistName.title(id) : try PlaylistName.checked(title: create.title)
        let smart: SmartList? =
            create.hasSmart
            ? try SmartList(create.smart, of: id, queues: Set(queues.keys), playlists: playlists) : nil
        // In a rule, a smart playlist would be without episodes.
        if smart != nil { try requireNoRule(contains: id) }
        let playlist = Playlist(id, title: title, smart: smart, createdAt: context.now.wall)
        if smart != nil { smartPlaylists.schedule.change(id, after: .zero, now: context.now.monotonic) }
        var change = playlist.headerChange
        var deleted = state.current.deleted
        // The records of a deleted playlist with this ID would become the new one’s.
        let released = deleted.release(id) { playlists[$0] != nil || queues[$0] != nil }
        change.changes = released + change.changes
        commit(change, answering: context.answer(aboutPlaylist: id), &effects) {
            $0.playlists[id] = playlist
            $0.deleted = deleted
        }
    }

    private mutating func delete(
        _ playlist: Playlist, _ deletion: WireDeletePlaylist, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        guard playlist.name != PlaylistName.favourites else {
            throw Failure(
                .notApplicable,
                "The favourites always exist. To remove all of them, use `lockstep playlist clear favourites`.")
        }
        try requireNoRule(contains: playlist.name)
        // The rule of a smart playlist is all that it has, and the reply contains it.
        guard playlist.queue.entries.isEmpty || deletion.withItems || playlist.smart != nil else {
            throw Failure(
                .notApplicable,
                "\(playlist.shown) contains \(playlist.queue.counted). To delete it with them, add --force; `lockstep playlist undo \(playlist.name)` restores it for a day."
            )
        }
        var removed = playlist
        var change = removed.delete(now: context.now.wall)
        var deleted = state.current.deleted
        deleted.add(removed)
        change.changes += deleted.removeOld(now: context.now.wall)
        var rules = rules
        rules.smartFound.remove(playlist.name, &change.changes)
        smartPlaylists.schedule.remove(playlist.name)
        for waiting in smartPlaylists.release(playlist.name) {
            let failure = Failure(.notFound, "\(playlist.shown) was deleted.")
            effects.append(.reply(waiting.command.id, .failure(failure)))
        }
        commit(change, answering: context.answer(aboutPlaylist: playlist.name), &effects) {
            $0.playlists[playlist.name] = nil
            $0.deleted = deleted
            $0.rules = rules
        }
        scheduleErasure(now: context.now, &effects)
    }

    private mutating func undelete(
        _ undelete: WireUndelete, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        var deleted = state.current.deleted
        guard let found = deleted.named(undelete.text), var playlist = deleted.remove(found.name) else {
            throw Failure(
                .notFound,
                "There is no playlist “\(undelete.text)”, and none was deleted in the last day. `lockstep playlist` lists them."
            )
        }
        guard queues[playlist.name] == nil else {
            throw Failure(
                .notApplicable,
                "“\(playlist.name)” is now the name of a queue. To restore \(playlist.shown), rename the queue first: `lockstep queue rename \(playlist.name) NAME`."
            )
        }
        try requireRoom()
        var smart = playlist.smart
        if var wire = playlist.smart?.wire {
            // The lists of its rule, or its queue, may have been deleted later.
            if queues[wire.queue] == nil { wire.queue = "" }
            smart = try SmartList(wire, of: playlist.name, queues: Set(queues.keys), playlists: playlists)
            smartPlaylists.schedule.change(playlist.name, after: .zero, now: context.now.monotonic)
        }
        let change = playlist.undelete(without: rules.forgottenPodcasts, smart: smart, now: context.now.wall)
        let reply = WireQueueReply.with { $0.description_p = "Deleted the playlist \(playlist.shown)" }
        commit(change, answering: context.answer(reply, aboutPlaylist: playlist.name), &effects) {
            $0.playlists[playlist.name] = playlist
            $0.deleted = deleted
        }
        refreshEpisodes(Set(playlist.queue.entries.map(\.episode)), &effects)
    }

    private func requireRoom() throws(Failure) {
        guard playlists.count < Playlist.countLimit else {
            throw Failure(
                .limitReached,
                "There are already \(Playlist.countLimit) playlists, which is the limit. Delete one first.")
        }
    }

    /// Erases the deleted playlists that are older than a day.
    mutating func eraseDeleted(now: Moment, _ effects: inout [Effect]) {
        var deleted = state.current.deleted
        let changes = deleted.removeOld(now: now.wall)
        commit(OwnerChange(changes: changes), &effects) { $0.deleted = deleted }
        scheduleErasure(now: now, &effects)
    }

    private func scheduleErasure(now: Moment, _ effects: inout [Effect]) {
        guard !state.current.deleted.playlists.isEmpty else { return }
        // The clock may be changed, so it is read again in an hour.
        effects.append(.timer(.deletedPlaylists, at: now.monotonic.advanced(by: .seconds(3_600))))
    }

    /// Executes the command again once the rule of a smart playlist was evaluated.
    private mutating func awaitItems(of playlist: Playlist, _ context: CommandContext) throws(Failure) {
        if let smart = playlist.smart, smart.rule == nil {
            throw Failure(
                .notApplicable,
                "This version can’t read the rule of \(playlist.shown): \(smart.wire.rule). Update Lockstep, or change the rule with `lockstep playlist edit \(playlist.name) --where RULE`."
            )
        }
        smartPlaylists.waiting.append((playlist.name, context))
    }

    /// - Throws: `notApplicable` if the rule of a smart playlist contains the list, which is to be deleted.
    func requireNoRule(contains name: String) throws(Failure) {
        guard let user = playlists.inOrder.first(where: { $0.smart?.rule?.lists.contains(name) ?? false }) else {
            return
        }
        throw Failure(
            .notApplicable,
            "The rule of the smart playlist \(user.shown) contains “in \(name)”. Change the rule first, with `lockstep playlist edit \(user.name) --where RULE`."
        )
    }

    /// Returns the items of a playlist, or plays them.
    private mutating func read(
        _ request: WirePlaylistRequest, _ playlist: Playlist, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        switch request.command {
        case .play(let play): try self.play(play, of: playlist, context, &effects)
        case .items(let query):
            let limit = query.limit == 0 ? RequestSizes.episodes : min(Int(query.limit), RequestSizes.episodes)
            let items = playlist.queue.entries.dropFirst(Int(query.offset)).prefix(limit).map(\.wire).fitting
            reply(context.answer(.with { $0.entries = items }, aboutPlaylist: playlist.name), &effects)
        default: break
        }
    }

    // MARK: - Smart playlists

    private mutating func change(
        _ playlist: Playlist, _ change: WireChangePlaylist, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        var playlist = playlist
        let before = playlist.smart?.wire
        let smart = try smartList(of: playlist, changedBy: change)
        var change = try playlist.apply(change, smart: smart, now: context.now.wall)
        var rules = rules
        if playlist.smart?.wire != before {
            // The episodes that meet the new rule already aren’t added to its queue.
            rules.smartFound.remove(playlist.name, &change.changes)
            smartPlaylists.schedule.change(playlist.name, after: .zero, now: context.now.monotonic)
        }
        commit(change, answering: context.answer(aboutPlaylist: playlist.name), &effects) {
            $0.playlists[playlist.name] = playlist
            $0.rules = rules
        }
    }

    /// Returns the changed rule of a smart playlist; nil if the request doesn’t change it.
    private func smartList(
        of playlist: Playlist, changedBy change: WireChangePlaylist
    ) throws(Failure) -> SmartList? {
        guard let smart = playlist.smart else {
            guard !change.hasRule, !change.hasOrder, !change.hasLimit, !change.hasQueue else {
                throw Failure(
                    .notApplicable,
                    "\(playlist.shown) isn’t a smart playlist; its episodes are added by commands. Create one with `lockstep playlist create TITLE --where RULE`."
                )
            }
            return nil
        }
        return try smart.changed(by: change).map { list throws(Failure) in
            try SmartList(list, of: playlist.name, queues: Set(queues.keys), playlists: playlists)
        }
    }

    /// Inserts a playlist’s items into Up Next after the current entry, and plays the first one.
    private mutating func play(
        _ play: WirePlayPlaylist, of playlist: Playlist, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        try requirePlayer()
        let items = try playlist.items(toPlay: play, request: context.command.id)
        guard let first = items.first else { return }
        try first.wire.episode.requireAudio()
        let queue = main.queue
        let current = queue.current.flatMap { queue.entry($0) }
        // The current entry stays where it is; the others are moved behind it or inserted there.
        let others = items.filter { $0.episode != current?.episode }
        let wanted = Set(others.map(\.episode))
        let held = queue.entries.filter { wanted.contains($0.episode) }
        try main.checkRoom(for: others.count - held.count)
        let known = Dictionary(held.map { ($0.episode, $0.wire) }) { first, _ in first }
        let entries = others.enumerated().map { index, item in
            known[item.episode]
                ?? .adding(item.wire.episode, index, context, reason: "Played from the playlist \(playlist.shown)")
        }
        let anchor = main.anchor(next: true, loaded: player?.queueEntry ?? "")
        var steps = main.inserting(entries, moving: held.reversed().map(\.wire), after: anchor)
        let description = "Played the playlist \(playlist.shown)"
        guard let start = first.episode == current?.episode ? current?.wire : entries.first else { return }
        if let player, upcomingLoad == nil, player.isLoaded, player.queueEntry == start.id {
            return resume(player, adding: steps, description, context, &effects)
        }
        steps.append(.settingCurrent(start.id))
        load(start, in: QueueName.default, steps, description, context, &effects)
    }

    /// Adds the items after the loaded entry, which is the first one, and resumes it without loading it again. If it is
    /// paused, the player answers the command, once the added items are durable.
    private mutating func resume(
        _ player: WirePlaybackState, adding steps: [WireQueueStep], _ description: String, _ context: CommandContext,
        _ effects: inout [Effect]
    ) {
        var named = main
        let change = named.edit(steps, description, origin: context.command.origin, now: context.now.wall)
        let reply = WireQueueReply.with {
            $0.entries = [named.queue.entry(player.queueEntry)?.wire].compactMap(\.self)
            $0.loadID = player.loadID
            $0.player = player
            $0.changed = !change.isEmpty
            $0.undo = named.history.change(since: main.history)
        }
        guard player.status != .playing else {
            return commit(named, change, answering: context.answer(reply, about: named.name), &effects)
        }
        let command = PlayerCommand(
            command: context.command, request: context.request, load: player.loadID,
            forwarded: .setPaused(WireSetPaused()), step: "resume", reply: reply)
        guard !change.isEmpty else { return forward(command, &effects) }
        commit(named, change, as: .resume(command), &effects)
    }
}

extension WirePlaylistRequest.OneOf_Command {
    /// The same command to a queue, for the commands that queues and playlists share.
    fileprivate var edit: WireQueueRequest.OneOf_Command? {
        switch self {
        case .add(let add): .add(add)
        case .remove(let remove): .remove(remove)
        case .clear(let clear): .clear(clear)
        case .sort(let sort): .sort(sort)
        case .deduplicate(let deduplicate): .deduplicate(deduplicate)
        case .undo(let undo): .undo(undo)
        case .redo(let redo): .redo(redo)
        case .restore(let restore): .restore(restore)
        case .create, .change, .delete, .move, .history, .play, .items, .find, .resolve, .undelete: nil
        }
    }
}

extension Playlists {
    /// The positions of an episode, in order of the playlists’ IDs.
    fileprivate func positions(of episode: String) -> [WirePlaylistPosition] {
        inOrder.compactMap { playlist in
            guard let entry = playlist.queue.entry(episode: episode), let index = playlist.queue.index(of: entry.id)
            else { return nil }
            return .with {
                $0.playlist = playlist.name
                $0.title = playlist.title
                $0.index = UInt32(clamping: index)
            }
        }
    }
}
