import BusKit
import Dispatch
import Logging
import OwnerKit
package import PodcastModel
package import ProcessKit
import ServiceLifecycle
import WireMessages

/// Runs the persistence service on the bus.
///
/// It never blocks on the queues that use the store.
package final class PersistenceShell: Service {
    package static let name = ServiceName.persistence

    private let context: ServiceContext

    package init(_ context: ServiceContext) { self.context = context }

    /// Opens the database and serves until graceful shutdown or cancellation.
    ///
    /// - Throws: `newerDatabase`, `diskFull` or `storageFailed` if the database cannot be opened; `databaseDamaged` if
    ///   damage is found later (the next start restores the newest good copy); `fenced`.
    package func run() async throws {
        let files = StoreFiles(database: context.home.database, backups: context.home.backupDirectory)
        let opened = try Store.open(
            files, now: SystemClocks.wall(), progress: OpeningProgress { [context] in context.notifyAlive() })
        let store = opened.store
        defer { store.close() }
        if let recovery = opened.recovery {
            context.logger.error("\(recovery.reason)")
            if let damage = recovery.damage { context.logger.error("All findings: \(damage.details)") }
        }
        let now = SystemClocks.now()
        let machine = PersistenceMachine(try store.facts(now: now.wall), now: now)
        let queues = StoreQueues()
        let loop = ServiceLoop<PersistenceHandler>(context, observes: nil) { inputs in
            PersistenceHandler(machine: machine, store: store, queues: queues, inputs: inputs)
        }
        do { try await loop.run() } catch {
            await queues.drain()
            throw error
        }
        await queues.drain()
    }
}

/// The queues that use the store: one writes, one answers queries concurrently, one makes copies.
private struct StoreQueues: Sendable {
    let writer = DispatchQueue(label: "lockstep.persistence.writer")
    let readers = DispatchQueue(label: "lockstep.persistence.readers", attributes: .concurrent)
    let maintenance = DispatchQueue(label: "lockstep.persistence.maintenance", qos: .utility)

    /// Waits until the work of all queues is finished, before the store is closed.
    func drain() async {
        for queue in [writer, readers, maintenance] {
            await withCheckedContinuation { continuation in
                queue.async(flags: .barrier) { continuation.resume() }
            }
        }
    }
}

/// Passes events to the machine and performs its effects.
private struct PersistenceHandler: ServiceHandler {
    typealias Effect = ServiceEffect<PersistenceMachine.Event>

    var machine: PersistenceMachine
    let store: Store
    let queues: StoreQueues
    let inputs: ServiceInputs<PersistenceMachine.Event>
    private(set) var deadline: MonotonicTime?
    var commands: [PersistenceMachine.Ticket: IncomingCommand] = [:]
    var count: UInt64 = 0
    var isReady = false

    mutating func handle(_ event: ServiceEvent<PersistenceMachine.Event>, now: Moment) -> [Effect] {
        switch event {
        case .started: return decide(.started, now)
        case .bus(.epochBegan):
            // The retained values include everything that was published before this bus started.
            isReady = true
            return [.publish(machine.retained()), .ready]
        case .bus(.command(let command)):
            count += 1
            let ticket = PersistenceMachine.Ticket(count)
            commands[ticket] = command
            return decide(.request(ticket, command.payload, deadline: command.deadline), now)
        case .bus(.timerFired):
            deadline = nil
            return decide(.wake, now)
        case .input(let event): return decide(event, now)
        case .stopping: return decide(.stopping, now)
        case .bus(.fenced(let failure)): return [.stop(failure)]
        case .bus(.update), .bus(.status), .bus(.rejected), .bus(.heartbeat): return []
        }
    }

    private mutating func decide(_ event: PersistenceMachine.Event, _ now: Moment) -> [Effect] {
        machine.handle(event, now: now).compactMap { perform($0) }
    }

    /// Starts work on the store; returns the effect that concerns the bus, or nil if there is none.
    private mutating func perform(_ effect: PersistenceMachine.Effect) -> Effect? {
        switch effect {
        case .reply(let ticket, let result):
            return commands.removeValue(forKey: ticket).map { .reply($0.ticket, $0.id, result) }
        case .publish(let publications): return isReady ? .publish(publications) : nil
        case .wake(let moment): deadline = moment
        case .log(let level, let text): return .log(level.level, text)
        case .stop(let failure): return .stop(failure)
        case .suspect: queues.writer.async { [store] in try? store.files.suspect() }
        case .write(let writes):
            run(queues.writer) { .wrote($0.write(writes, now: SystemClocks.wall())) }
        case .ask(let ticket, let question):
            run(queues.readers) { store in
                .answered(ticket, Result { () throws(Failure) in try store.answer(question) })
            }
        case .copy(let kind):
            run(queues.maintenance) { store in
                .copied(kind, Result { () throws(Failure) in try store.copy(kind, now: SystemClocks.wall()) })
            }
        case .prune(let before):
            run(queues.writer) { store in .pruned(Result { () throws(Failure) in try store.prune(before: before) }) }
        case .checkpoint: run(queues.writer) { .checkpointed(Result(catching: $0.checkpoint)) }
        case .count: run(queues.readers) { .counted(Result(catching: $0.counts)) }
        case .check: run(queues.maintenance) { .checked(Result(catching: $0.damage)) }
        case .rebuild: run(queues.writer) { .rebuilt(Result(catching: $0.rebuildSearch)) }
        }
        return nil
    }

    /// Begins work on the store; its result is sent as an event.
    private func run(_ queue: DispatchQueue, _ work: @escaping @Sendable (Store) -> PersistenceMachine.Event) {
        queue.async { [store, inputs] in inputs.send(work(store)) }
    }
}
