import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// Commands: which queue and entries are meant, and what is done.

extension QueueMachine {
    /// The maximum number of queues.
    static let queueLimit = 50

    static let unknownCommand = Failure(
        .unknownCommand, "The queue service doesn’t know this command; it may come from a newer version.")

    mutating func handle(_ command: Command, now: Moment, _ effects: inout [Effect]) {
        do throws(Failure) {
            guard let unresolved = try? WireQueueRequest(wireBytes: command.payload) else {
                throw Failure(.malformed, "The request to the queue can’t be read.")
            }
            let resolver = RequestResolver(queues: queues, queuesToPlayFrom: queuesToPlayFrom)
            let request = try resolver.resolved(unresolved, about: name(unresolved))
            carryOut(request, of: command, now: now, &effects)
        } catch {
            effects.append(.reply(command.id, .failure(error)))
        }
    }

    /// Carries a command out once the episodes that it names are known.
    mutating func carryOut(
        _ request: WireQueueRequest, of command: Command, now: Moment, _ effects: inout [Effect]
    ) {
        let context = CommandContext(command: command, request: request, now: now)
        let named = request.episodes
        guard named.count <= Queue.limit else {
            let failure = Failure(.limitReached, "At most \(Queue.limit) episodes can be added at once.")
            return effects.append(.reply(command.id, .failure(failure)))
        }
        let unknown = queues[name(request)]?.queue.absent(among: named) ?? named
        guard !unknown.isEmpty else { return perform(context, &effects) }
        lookUp(unknown, for: .command(context), &effects)
    }

    /// Carries a command out whose episodes are known.
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
        case .history(let query):
            var reply = WireQueueReply()
            reply.history = named.history.newest(query.limit == 0 ? QueueHistory.limit : Int(query.limit))
            self.reply(context.answer(reply, about: name), &effects)
        default:
            var edit = QueueEdit(of: named, context, player: player, forgotten: rules.forgottenPodcasts)
            try edit.apply(request)
            commit(edit.named, edit.change, answering: context.answer(edit.reply, about: name), &effects)
            // They may have been played since.
            refreshEpisodes(edit.returned, &effects)
        }
    }

    // MARK: - The queue that is meant

    /// The queue that a request is about. Without a name, playing continues in the queue that plays.
    func name(_ request: WireQueueRequest) -> String {
        guard request.queue.isEmpty else { return request.queue }
        switch request.command {
        case .play(let play): return queueToPlay(play)
        case .next, .previous, .toggle: return playingQueue
        default: return QueueName.default
        }
    }

    private func queueToPlay(_ play: WirePlay) -> String {
        let names = [playingQueue, QueueName.default] + queues.keys.sorted()
        let holder =
            switch play.what {
            case .entry(let id): names.first { queues[$0]?.queue.index(of: id) != nil }
            case .episode(let episode): names.first { queues[$0]?.queue.entry(episode: episode) != nil }
            case .resume, nil: String?.none
            }
        return holder ?? playingQueue
    }

    /// The queues that may be meant where none is named: the one that plays, if something is loaded, and the default one.
    private var queuesToPlayFrom: [NamedQueue] {
        let playing = playingQueue
        let isIdle = upcomingLoad == nil && player.map { $0.loadID.isEmpty || $0.status == .idle } ?? true
        return isIdle || playing == QueueName.default ? [main] : [queues.named(playing), main]
    }

    // MARK: - Creating and deleting

    private mutating func create(
        _ name: String, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        guard queues[name] == nil else { return reply(context.answer(about: name), &effects) }
        guard QueueName.isValid(name) else {
            throw Failure(.invalidArgument, "“\(name)” can’t be a queue’s name; a name has \(QueueName.rule).")
        }
        guard queues.count < Self.queueLimit else {
            throw Failure(
                .limitReached, "There are already \(Self.queueLimit) queues, which is the limit. Delete one first.")
        }
        var named = NamedQueue(name: name)
        let change = named.modesChange()
        commit(named, change, answering: context.answer(about: name), &effects)
    }

    private mutating func delete(
        _ named: NamedQueue, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        guard named.name != QueueName.default else {
            throw Failure(.invalidArgument, "“main” is Up Next, which always exists; it can’t be deleted.")
        }
        guard named.queue.entries.isEmpty else {
            throw Failure(
                .invalidArgument,
                "“\(named.name)” holds \(named.queue.counted); only an empty queue can be deleted.")
        }
        guard !rules.names(queue: named.name) else {
            throw Failure(
                .invalidArgument,
                "New episodes enter the queue “\(named.name)” by the setting autoEnqueueQueue; change that first.")
        }
        commit(named.deletion, answering: context.answer(about: named.name), &effects) { $0.queues[named.name] = nil }
    }
}

extension WireQueueRequest {
    /// The IDs of the episodes that it names.
    fileprivate var episodes: [String] {
        switch command {
        case .add(let add): add.episodes
        case .play(let play): play.episode.isEmpty ? [] : [play.episode]
        default: []
        }
    }
}
