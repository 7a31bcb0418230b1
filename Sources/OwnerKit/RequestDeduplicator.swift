package import BusKit
package import PodcastModel
package import WireMessages

/// Deduplicates an owner’s requests: an ID takes effect once, however often it is sent. Replies are cached.
package struct RequestDeduplicator: Sendable {
    package enum Event: Sendable {
        case arrived(IncomingCommand)
        /// Persistence answered a `lookUp`: the stored reply, or nil if there is none.
        case found(RequestID, Result<[UInt8]?, Failure>)
        case answered(RequestID, Result<[UInt8], Failure>)
        /// The reply waits for the database from now on.
        case committing(RequestID)
        /// The bus was replaced, and the new bus doesn’t know the tickets.
        case connectionLost
        case tick
    }

    package enum Effect: Sendable, Hashable {
        case start(Command)
        case lookUp(RequestID)
        case answer(ReplyTicket, RequestID, Result<[UInt8], Failure>)
    }

    private enum Phase {
        case lookingUp
        case running
        case committing(until: MonotonicTime)
    }

    private struct Running {
        var first: IncomingCommand
        var tickets: [(ticket: ReplyTicket, deadline: MonotonicTime)]
        var phase: Phase
    }

    /// The time after which a client is notified that its change isn’t saved yet.
    package static let commitTimeout = Duration.seconds(5)
    private static let margin = Duration.milliseconds(250)

    private let capacity: Int
    private let byteCapacity: Int
    private var running: [RequestID: Running] = [:]
    private var finished: [RequestID: [UInt8]] = [:]
    private var finishedOrder: [RequestID] = []
    private var finishedBytes = 0

    /// - Parameters:
    ///   - capacity: the maximum number of cached replies.
    ///   - byteCapacity: the maximum size of the cached replies in bytes.
    package init(capacity: Int = 1_024, byteCapacity: Int = 4 << 20) {
        self.capacity = capacity
        self.byteCapacity = byteCapacity
    }

    /// The time at which `tick` is due; nil means never.
    package var deadline: MonotonicTime? {
        running.values.flatMap { running in running.tickets.compactMap { Self.due($0.deadline, running.phase) } }.min()
    }

    package mutating func handle(_ event: Event, now: MonotonicTime) -> [Effect] {
        switch event {
        case .arrived(let command): return handle(command, now)
        case .found(let id, let result): return found(id, result, now)
        case .answered(let id, let result): return answered(id, result)
        case .committing(let id):
            running[id]?.phase = .committing(until: now.advanced(by: Self.commitTimeout))
            return []
        case .connectionLost:
            for id in running.keys { running[id]?.tickets = [] }
            return []
        case .tick: return tick(now)
        }
    }
}

extension RequestDeduplicator {
    private mutating func handle(_ command: IncomingCommand, _ now: MonotonicTime) -> [Effect] {
        let id = command.id
        if running[id] != nil {
            running[id]?.tickets.append((command.ticket, command.deadline))
            return []
        }
        if let reply = finished[id] { return [.answer(command.ticket, id, .success(reply))] }
        guard now < command.deadline else { return [.answer(command.ticket, id, .failure(Self.expired))] }
        running[id] = Running(
            first: command, tickets: [(command.ticket, command.deadline)],
            phase: command.command.mayBeRepeat ? .lookingUp : .running)
        return [command.command.mayBeRepeat ? .lookUp(id) : .start(command.command)]
    }

    private mutating func found(
        _ id: RequestID, _ result: Result<[UInt8]?, Failure>, _ now: MonotonicTime
    ) -> [Effect] {
        guard let waiting = running[id], case .lookingUp = waiting.phase else { return [] }
        switch result {
        case .success(let reply?): return answered(id, .success(reply))
        case .failure(let failure): return answered(id, .failure(failure))
        case .success(nil):
            let latest = waiting.tickets.map(\.deadline).max()
            guard let latest, now < latest else { return answered(id, .failure(Self.expired)) }
            running[id]?.phase = .running
            return [.start(waiting.first.command)]
        }
    }

    private mutating func answered(_ id: RequestID, _ result: Result<[UInt8], Failure>) -> [Effect] {
        guard let done = running.removeValue(forKey: id) else { return [] }
        if case .success(let reply) = result { remember(id, reply) }
        return done.tickets.map { .answer($0.ticket, id, result) }
    }

    /// Notifies clients before they time out. The change remains, and a repeat of the request still joins it.
    private mutating func tick(_ now: MonotonicTime) -> [Effect] {
        var effects: [Effect] = []
        for (id, request) in running {
            guard case .committing = request.phase else { continue }
            let late = request.tickets.filter { Self.due($0.deadline, request.phase).map { now >= $0 } ?? false }
            guard !late.isEmpty else { continue }
            let gone = Set(late.map(\.ticket))
            running[id]?.tickets.removeAll { gone.contains($0.ticket) }
            effects += late.map { .answer($0.ticket, id, .failure(Self.notSaved)) }
        }
        return effects
    }

    private static func due(_ deadline: MonotonicTime, _ phase: Phase) -> MonotonicTime? {
        guard case .committing(let until) = phase else { return nil }
        return min(until, deadline.advanced(by: .zero - margin))
    }

    private mutating func remember(_ id: RequestID, _ reply: [UInt8]) {
        guard finished.updateValue(reply, forKey: id) == nil else { return }
        finishedOrder.append(id)
        finishedBytes += reply.count
        while finishedOrder.count > capacity || (finishedBytes > byteCapacity && finishedOrder.count > 1) {
            let oldest = finishedOrder.removeFirst()
            finishedBytes -= finished.removeValue(forKey: oldest)?.count ?? 0
        }
    }

    private static let expired = Failure(.expired, "The command arrived too late; nothing was done.")
    private static let notSaved = Failure(
        .notSaved, "The database isn’t responding. The change is kept and will be saved once the database responds.")
}
