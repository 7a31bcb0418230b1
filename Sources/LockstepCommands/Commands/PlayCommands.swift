import ArgumentParser
import BusKit
import LockstepClient
import PodcastModel
import WireMessages

struct Play: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "play",
        abstract: "Play an episode or an entry of a queue; without one, resume.",
        discussion: """
            Returns when it plays, or when it can’t be played. A number is that of an entry of Up Next, as `lockstep queue`
            lists it, or of the queue named with --queue; while another queue than Up Next is playing, say which one.
            """)
    @Argument(help: "An ID, the beginning of one, a part of a title, or an entry’s number.", completion: .episodes)
    var episode: String?
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let view = try await session.view(of: [.playback, .queue])
            let queue = try queue.name.map { name throws(Failure) in try view.queue(name) }
            guard let episode else {
                // Another queue than that of what is loaded is begun, or gone on with, for its own sake.
                let goesOn = queue == nil || queue?.name == view.playingQueue.name
                if goesOn, let player = view.player, player.status == .playing {
                    return try session.report(player, to: context.output, already: true)
                }
                guard let queue, !goesOn else {
                    return try Self.report(try await session.resume(context.output), session, context.output)
                }
                let load = AwaitedLoad(
                    try await session.start(queue, in: view), in: queue.name, after: view.player)
                return try Self.report(
                    try await session.settled(load, output: context.output), session, context.output)
            }
            let load = try await session.play(episode, of: queue, in: view)
            try Self.report(try await session.settled(load, output: context.output), session, context.output)
        }
    }

    static func report(_ state: WirePlaybackState?, _ session: Session, _ output: Output) throws {
        let state = state ?? WirePlaybackState()
        let snapshot = session.snapshot(state)
        try output.change(state.nowJSON, Sentence.status(snapshot) + Sentence.home(snapshot))
    }
}

struct Next: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "next",
        abstract: "Go to the next entry of the queue that is playing. What is paused stays paused.")
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { try await $0.step(in: queue.name, context.output) { $0.next = WireNext() } }
    }
}

struct Previous: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "previous",
        abstract: "Go to the previous entry of the queue that is playing. What is paused stays paused.",
        aliases: ["prev"])
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession {
            try await $0.step(in: queue.name, context.output) { $0.previous = WirePrevious() }
        }
    }
}

extension Session {
    /// Plays an episode or an entry: of `queue`, or where none is named of the queue that is playing or of Up Next.
    fileprivate func play(
        _ text: String, of queue: WireQueueState?, in view: FleetView
    ) async throws(Failure) -> AwaitedLoad {
        let candidates = queue.map { [$0] } ?? view.queuesToPlayFrom
        if let (queue, entry) = try EntryReference.numberOrEntry(text, in: candidates) {
            let reply = try await self.queue(named: queue.name) { $0.play.entry = entry.id }
            return AwaitedLoad(reply, in: queue.name, after: view.player)
        }
        let found = try await findEpisode(text)
        // What is in neither goes to Up Next: no other queue changes unless it is named.
        let holder = candidates.first { $0.entries.contains { $0.episode.id == found.id } } ?? candidates.last
        let name = holder?.name ?? FleetView.usualQueue
        let reply = try await self.queue(named: name) { $0.play.episode = found.id }
        return AwaitedLoad(reply, in: name, after: view.player)
    }

    /// Starts a queue: its current entry, else the first one.
    ///
    /// - Throws: `queueEmpty`.
    fileprivate func start(_ queue: WireQueueState, in view: FleetView) async throws(Failure) -> WireQueueReply {
        guard let entry = queue.entries.first(where: { $0.id == queue.current }) ?? queue.entries.first else {
            let others = queue.name == FleetView.usualQueue ? 0 : view.mainQueue?.entries.count ?? 0
            throw Failure(
                .queueEmpty,
                "\(queue.shownName) is empty. Add something with `lockstep queue add --queue \(queue.name) EPISODE`"
                    + (others > 0 ? ", or go on with Up Next: `lockstep play --queue \(FleetView.usualQueue)`." : "."))
        }
        return try await self.queue(named: queue.name) { $0.play.entry = entry.id }
    }

    /// Goes from the entry that is current when the queue gets the request to a neighbour, and says what is loaded then.
    /// Several at once go one after the other; each has succeeded, also where a later one was quicker than its load.
    fileprivate func step(
        in name: String?, _ output: Output, _ build: (inout WireQueueRequest) -> Void
    ) async throws {
        let view = try await view(of: [.playback, .queue])
        let queue = try name.map { name throws(Failure) in try view.queue(name) } ?? view.playingQueue
        let reply = try await self.queue(named: queue.name, build)
        let load = AwaitedLoad(reply, in: queue.name, after: view.player)
        var passed = ""
        var state = WirePlaybackState()
        switch await outcome(of: load, output) {
        case .success(let player): state = player ?? state
        case .failure(let failure):
            guard failure.known == .revisionMismatch else { throw failure }
            state = try await self.view(of: [.playback, .queue]).player ?? state
            passed = "Went to “\(DisplayText.sanitised(reply.entries.first?.episode.title ?? ""))” and on. "
        }
        let snapshot = snapshot(state)
        try output.change(state.nowJSON, passed + Sentence.status(snapshot) + Sentence.home(snapshot))
    }

    private func outcome(of load: AwaitedLoad, _ output: Output) async -> Result<WirePlaybackState?, Failure> {
        do throws(Failure) { return .success(try await settled(load, output: output)) } catch { return .failure(error) }
    }
}

/// An entry of Up Next as users name it: its number, its id or the beginning of one, its episode's, or a part of the title.
enum EntryReference {
    /// The entry that `text` means.
    ///
    /// - Throws: `notFound`; `ambiguous` with the candidates.
    static func resolve(_ text: String, in queue: WireQueueState) throws(Failure) -> WireQueueEntry {
        let text = CommandLineWords.typed(text)
        if let entry = try numberOrEntry(text, in: queue) { return entry }
        let wanted = text.lowercased()
        var found = queue.entries.filter { $0.id.hasPrefix(text) || $0.episode.id.hasPrefix(text) }
        if found.isEmpty { found = queue.entries.filter { $0.episode.title.lowercased() == wanted } }
        if found.isEmpty { found = queue.entries.filter { $0.episode.title.lowercased().contains(wanted) } }
        guard let first = found.first, !text.isEmpty else {
            let option = queue.name.isEmpty || queue.name == FleetView.usualQueue ? "" : " --queue \(queue.name)"
            throw Failure(
                .notFound, "Nothing in \(queue.shownName) is named “\(text)”. `lockstep queue\(option)` lists it.")
        }
        guard found.count == 1 else {
            throw Failure.ambiguous(
                "“\(text)” could be \(found.count) entries of \(queue.shownName).",
                found.prefix(20).map { ($0.id, $0.episode.title) })
        }
        return first
    }

    /// The entry of that number (from 1), or of that very ID, in one of several queues; nil when `text` is neither.
    ///
    /// - Throws: `notFound` for a number that no queue has; `ambiguous` for one that several have.
    static func numberOrEntry(
        _ text: String, in queues: [WireQueueState]
    ) throws(Failure) -> (queue: WireQueueState, entry: WireQueueEntry)? {
        var found: [(queue: WireQueueState, entry: WireQueueEntry)] = []
        var refusal: Failure?
        for queue in queues {
            do throws(Failure) {
                if let entry = try numberOrEntry(text, in: queue) { found.append((queue, entry)) }
            } catch {
                refusal = refusal ?? error
            }
        }
        guard let first = found.first else {
            if let refusal { throw refusal }
            return nil
        }
        guard found.count > 1, isNumber(text) else { return first }
        let names = found.map { "\($0.queue.shownName) (--queue \($0.queue.name))" }.joined(separator: " or ")
        throw Failure.ambiguous(
            "Number \(text) could be an entry of \(names).", found.map { ($0.entry.id, $0.entry.episode.title) })
    }

    private static func isNumber(_ text: String) -> Bool { text.utf8.count <= 6 && UInt32(text) != nil }

    /// The entry of that number (from 1), or of that very id; nil when `text` is neither.
    ///
    /// - Throws: `notFound` for a number beyond the queue.
    static func numberOrEntry(_ text: String, in queue: WireQueueState) throws(Failure) -> WireQueueEntry? {
        if isNumber(text), let number = UInt32(text) {
            guard number >= 1, number <= queue.entries.count else {
                let count = NumberText.counted(queue.entries.count, "entry", "entries")
                throw Failure(.notFound, "\(queue.shownName) has no entry \(number); it has \(count).")
            }
            return queue.entries[Int(number) - 1]
        }
        return queue.entries.first { $0.id == text || $0.episode.id == text }
    }
}
