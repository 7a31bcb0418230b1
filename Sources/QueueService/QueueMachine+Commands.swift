import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// Executes commands.

extension QueueMachine {
    static let queueLimit = 50

    static let unknownCommand = Failure(
        .unknownCommand, "The queue service doesn’t know this command; it may come from a newer version.")

    mutating func handle(_ command: Command, now: Moment, _ effects: inout [Effect]) {
        do throws(Failure) {
            guard let unresolved = try? WireQueueRequest(wireBytes: command.payload) else {
                throw Failure(.malformed, "The request to the queue can’t be read.")
            }
            run(try resolved(unresolved), of: command, now: now, &effects)
        } catch {
            effects.append(.reply(command.id, .failure(error)))
        }
    }

    /// Executes a command after a lookup of the episodes that it names.
    mutating func run(
        _ request: WireQueueRequest, of command: Command, now: Moment, _ effects: inout [Effect]
    ) {
        let context = CommandContext(command: command, request: request, now: now)
        let named = request.episodes
        guard named.count <= Queue.limit else {
            let failure = Failure(.limitReached, "At most \(Queue.limit) episodes can be added at once.")
            return effects.append(.reply(command.id, .failure(failure)))
        }
        let list: Queue? =
            if case .playlist(let playlist) = request.command {
                playlists[playlist.playlist]?.queue
            } else {
                queues[name(request)]?.queue
            }
        let unknown = list?.absent(among: named) ?? named
        guard !unknown.isEmpty else { return perform(context, &effects) }
        lookUp(unknown, for: .command(context), &effects)
    }

    mutating func perform(_ context: CommandContext, _ effects: inout [Effect]) {
        do throws(Failure) {
            try execute(context, &effects)
        } catch {
            effects.append(.reply(context.command.id, .failure(error)))
        }
    }

    private mutating func execute(_ context: CommandContext, _ effects: inout [Effect]) throws(Failure) {
        let request = context.request
        let name = name(request)
        switch request.command {
        case .create: return try create(name, context, &effects)
        case .setSetting(let setting): return try set(setting, context, &effects)
        case .answerAlert(let answer): return try self.answer(answer, context, &effects)
        case .playlist(let request): return try execute(request, context, &effects)
        default: break
        }
        let named = try queues.existing(name)
        if request.hasIfRevision { try named.requireRevision(request.ifRevision) }
        switch request.command {
        case .play(let play): try self.play(play, in: name, context, &effects)
        case .next(let next): try step(from: next.from, in: named, forward: true, context, &effects)
        case .previous(let previous): try step(from: previous.from, in: named, forward: false, context, &effects)
        case .toggle: try toggle(named, context, &effects)
        case .delete: try delete(named, context, &effects)
        case .rename(let rename): try self.rename(named, to: rename.name, context, &effects)
        case .history(let query):
            let limit = query.limit == 0 ? QueueHistory.limit : Int(query.limit)
            reply(context.answer(.with { $0.history = named.history.newest(limit) }, about: name), &effects)
        case .setModes(let modes): try set(modes, of: named, context, &effects)
        default:
            var edit = ListEdit(list: named, context: context, player: player, forgotten: rules.forgottenPodcasts)
            try edit.apply(request.command)
            commit(edit.list, edit.change, answering: context.answer(edit.reply, about: name), &effects)
            // The restored episodes may have been played in the meantime.
            refreshEpisodes(edit.restoredEpisodes, &effects)
        }
    }

    private mutating func set(
        _ set: WireSetModes, of named: NamedQueue, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        var named = named
        let modes = try named.modes.applying(set)
        guard modes != named.modes else { return reply(context.answer(about: named.name), &effects) }
        named.modes = modes
        let change = named.modesChange()
        commit(named, change, answering: context.answer(about: named.name), &effects)
    }

    // MARK: - Creating and deleting

    private mutating func create(
        _ name: String, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        guard queues[name] == nil else { return reply(context.answer(about: name), &effects) }
        try requireNewName(name)
        guard queues.count < Self.queueLimit else {
            throw Failure(
                .limitReached, "There are already \(Self.queueLimit) queues, which is the limit. Delete one first.")
        }
        var named = NamedQueue(name: name)
        let change = named.modesChange()
        commit(named, change, answering: context.answer(about: name), &effects)
    }

    private func requireNewName(_ name: String) throws(Failure) {
        guard QueueName.isValid(name) else {
            throw Failure(.invalidArgument, "“\(name)” can’t be a queue’s name; a name has \(QueueName.rule).")
        }
        guard playlists[name] == nil else {
            throw Failure(
                .invalidArgument,
                "“\(name)” is the ID of a playlist; rules couldn’t distinguish them. Use another name.")
        }
    }

    /// Renames a queue, with the settings that name it, in one commit.
    private mutating func rename(
        _ named: NamedQueue, to name: String, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        guard named.name != QueueName.default else {
            throw Failure(.notApplicable, "“main” is Up Next, which can’t be renamed.")
        }
        guard name != named.name else { return reply(context.answer(about: name), &effects) }
        try requireNewName(name)
        guard queues[name] == nil else {
            throw Failure(.invalidArgument, "There is already a queue “\(name)”. Use another name.")
        }
        var playlists = playlists
        var change = OwnerChange()
        for playlist in self.playlists.inOrder {
            var playlist = playlist
            change.append(playlist.rename(queue: named.name, to: name, now: context.now.wall))
            playlists[playlist.name] = playlist
        }
        try rename(named, to: name, with: change, playlists, answering: context.answer(about: name), &effects)
    }

    /// Renames the queues that have the ID of a playlist, which earlier versions didn’t refuse: rules mean the playlist.
    mutating func renameCollidingQueues(_ effects: inout [Effect]) {
        for named in queues.inOrder where playlists[named.name] != nil {
            let numbered = sequence(first: 2) { $0 + 1 }.lazy.map { "\(named.name.prefix(30))-queue-\($0)" }
            let name = (["\(named.name.prefix(33))-queue"] + numbered.prefix(Self.queueLimit)).first {
                queues[$0] == nil && playlists[$0] == nil
            }
            do throws(Failure) {
                guard let name else { continue }
                try rename(named, to: name, with: OwnerChange(), playlists, answering: nil, &effects)
                effects.append(
                    .log(
                        .warning, "the queue “\(named.name)” is renamed to “\(name)”: a playlist has its name as its ID"
                    ))
            } catch {
                effects.append(
                    .log(
                        .error, "the queue “\(named.name)”, which has the ID of a playlist, can’t be renamed: \(error)")
                )
            }
        }
    }

    /// - Parameter change: the change of the playlists that name the queue.
    private mutating func rename(
        _ named: NamedQueue, to name: String, with playlistChange: OwnerChange, _ playlists: Playlists,
        answering answer: Answer?, _ effects: inout [Effect]
    ) throws(Failure) {
        var renamed = NamedQueue(name: name)
        (renamed.queue, renamed.history, renamed.modes) = (named.queue, named.history, named.modes)
        (renamed.advancedLoad, renamed.pending) = (named.advancedLoad, named.pending)
        var change = named.deletion
        change.append(OwnerChange(changes: renamed.everything, publications: renamed.wholePut()))
        var rules = rules
        change.append(try rules.rename(queue: named.name, to: name))
        change.append(playlistChange)
        commit(change, as: .rename(named.name), answering: answer, &effects) { state in
            state.queues[named.name] = nil
            state.queues[name] = renamed
            state.rules = rules
            state.playlists = playlists
        }
        renamedQueues = renamedQueues.mapValues { $0 == named.name ? name : $0 }
        renamedQueues[named.name] = name
        if player?.queue == named.name { player?.queue = name }
    }

    private mutating func delete(
        _ named: NamedQueue, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        guard named.name != QueueName.default else {
            throw Failure(.notApplicable, "“main” is Up Next, which always exists; it can’t be deleted.")
        }
        guard named.queue.entries.isEmpty else {
            throw Failure(
                .notApplicable,
                "“\(named.name)” holds \(named.queue.counted); only an empty queue can be deleted.")
        }
        guard !rules.names(queue: named.name) else {
            throw Failure(
                .notApplicable,
                "The setting autoEnqueueQueue adds new episodes to “\(named.name)”; change the setting first.")
        }
        try requireNoRule(contains: named.name)
        if let playlist = playlists.inOrder.first(where: { $0.smart?.wire.queue == named.name }) {
            throw Failure(
                .notApplicable,
                "The smart playlist \(playlist.shown) adds episodes to “\(named.name)”; end that first with `lockstep playlist edit \(playlist.name) --no-add`."
            )
        }
        commit(named.deletion, answering: context.answer(about: named.name), &effects) { $0.queues[named.name] = nil }
    }
}

extension WireQueueRequest {
    /// The IDs of the episodes that the command names.
    fileprivate var episodes: [String] {
        switch command {
        case .add(let add): add.episodes
        case .play(let play): play.episode.isEmpty ? [] : [play.episode]
        case .playlist(let playlist):
            if case .add(let add) = playlist.command { add.episodes } else { [] }
        default: []
        }
    }
}
