public import BusKit
import Dispatch
import Logging
import NIOConcurrencyHelpers
import PodcastModel
public import ServiceLifecycle
import WireMessages

/// The database's service on the bus: a loop that feeds the machine and performs what it decides.
///
/// One queue writes, a few threads answer questions beside it, one makes copies; none of them is waited for.
public final class PersistenceShell: Service {
    private let context: ServiceContext

    /// The service in this context. Opens nothing yet.
    public init(_ context: ServiceContext) {
        self.context = context
    }

    /// Opens the database and serves until graceful shutdown or cancellation.
    ///
    /// - Throws: `newerDatabase`, `diskFull` or `storageFailed` when the database cannot be opened; `databaseDamaged` when
    ///   damage shows later (the next start looks for the newest good copy); `fenced`.
    public func run() async throws {
        let files = StoreFiles(database: context.home.database, backups: context.home.backupDirectory)
        let opened = try Store.open(files, now: SystemClocks.wall())
        defer { opened.store.close() }
        if let recovery = opened.recovery { context.logger.error("\(recovery.reason)") }
        let machine = PersistenceMachine(try opened.store.facts(), now: SystemClocks.now())
        let host = ServiceHost(
            name: context.name, generation: context.generation, runDirectory: context.runDirectory,
            logger: context.logger)
        try await PersistenceLoop(machine, opened.store, host, context).run()
    }
}

/// One life of the service.
private final class PersistenceLoop: Sendable {
    private enum Item: Sendable {
        case event(PersistenceMachine.Event)
        case command(IncomingCommand)
        case pulse
        /// The connection to the bus has ended.
        case ended(Failure?)
    }

    private enum Outgoing: Sendable {
        case publish([Publication])
        case reply(IncomingCommand, Result<[UInt8], Failure>)
    }

    private let machine: NIOLockedValueBox<PersistenceMachine>
    private let store: Store
    private let host: ServiceHost
    private let context: ServiceContext
    private let items: AsyncStream<Item>
    private let input: AsyncStream<Item>.Continuation
    private let outgoing: AsyncStream<Outgoing>
    private let output: AsyncStream<Outgoing>.Continuation
    private let writer = DispatchQueue(label: "lockstep.persistence.writer")
    private let readers = DispatchQueue(label: "lockstep.persistence.readers", attributes: .concurrent)
    private let upkeep = DispatchQueue(label: "lockstep.persistence.upkeep", qos: .utility)
    private let isReady = NIOLockedValueBox(false)

    init(_ machine: PersistenceMachine, _ store: Store, _ host: ServiceHost, _ context: ServiceContext) {
        self.machine = NIOLockedValueBox(machine)
        self.store = store
        self.host = host
        self.context = context
        // Both are bounded by the requests that the bus lets be with a service, 256.
        (items, input) = AsyncStream.makeStream()
        (outgoing, output) = AsyncStream.makeStream()
    }

    func run() async throws {
        // The connection ends after the loop, not with the process's graceful shutdown: what is being written is answered.
        let connection = Task.detached { await self.connect() }
        let commands = Task.detached {
            for await command in self.host.commands { self.input.yield(.command(command)) }
        }
        let sender = Task.detached { await self.send() }
        host.ready()
        let failure = await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                await self.loop()
            } onGracefulShutdown: {
                self.input.yield(.event(.stopping))
            }
        } onCancel: {
            self.input.finish()
        }
        input.finish()
        output.finish()
        await sender.value
        host.shutdown()
        await connection.value
        commands.cancel()
        await commands.value
        await drain()
        if let failure { throw failure }
    }

    private func connect() async {
        do {
            try await host.run(pulse: { self.input.yield(.pulse) }, retained: { self.retained() })
            input.yield(.ended(nil))
        } catch {
            input.yield(
                .ended(error as? Failure ?? Failure(.internalError, "The connection to the bus ended: \(error)")))
        }
    }

    private func retained() -> [Publication] {
        let isFirst = isReady.withLockedValue { isReady in
            defer { isReady = true }
            return !isReady
        }
        if isFirst { context.notifyReady() }
        return machine.withLockedValue { $0.retained() }
    }

    /// Publishes and answers in order, so that an answer never comes before what it is about.
    private func send() async {
        for await message in outgoing {
            switch message {
            case .publish(let publications):
                // Without a bus nothing is lost: everything that is retained is put again when there is one.
                _ = try? await host.publish(publications)
            case .reply(let command, let result):
                host.reply(command, result)
            }
        }
    }

    /// Waits for what the queues still do, before the store is closed.
    private func drain() async {
        for queue in [writer, readers, upkeep] {
            await withCheckedContinuation { continuation in
                queue.async(flags: .barrier) { continuation.resume() }
            }
        }
    }

    // MARK: The loop

    private struct LoopState {
        var commands: [PersistenceMachine.Ticket: IncomingCommand] = [:]
        var count: UInt64 = 0
        var alarm: Task<Void, Never>?
        var isOver = false
        var failure: Failure?
    }

    /// Why it ended; nil as it was asked to.
    private func loop() async -> Failure? {
        var state = LoopState()
        defer { state.alarm?.cancel() }
        handle(.started, &state)
        for await item in items {
            switch item {
            case .event(let event):
                handle(event, &state)
            case .command(let command):
                state.count += 1
                let ticket = PersistenceMachine.Ticket(state.count)
                state.commands[ticket] = command
                handle(.request(ticket, command.payload, deadline: command.deadline), &state)
            case .pulse:
                context.notifyAlive()
            case .ended(let failure):
                state.isOver = true
                state.failure = failure
            }
            if state.isOver { break }
        }
        return state.failure
    }

    private func handle(_ event: PersistenceMachine.Event, _ state: inout LoopState) {
        let effects = machine.withLockedValue { $0.handle(event, now: SystemClocks.now()) }
        for effect in effects { perform(effect, &state) }
    }

    private func perform(_ effect: PersistenceMachine.Effect, _ state: inout LoopState) {
        switch effect {
        case .reply(let ticket, let result):
            if let command = state.commands.removeValue(forKey: ticket) { output.yield(.reply(command, result)) }
        case .publish(let publications):
            output.yield(.publish(publications))
        case .wake(let moment):
            state.alarm?.cancel()
            state.alarm = alarm(at: moment)
        case .log(let level, let text):
            context.logger.log(level: Self.level(level), "\(text)")
        case .suspect:
            store.suspect()
        case .stop(let failure):
            state.isOver = true
            state.failure = failure
        case .write, .ask, .copy, .prune, .count, .check, .rebuild:
            start(effect)
        }
    }

    private func alarm(at moment: MonotonicTime) -> Task<Void, Never> {
        let delay = max(.zero, moment.since(SystemClocks.monotonic()))
        let input = input
        return Task.detached {
            do { try await Task.sleep(for: delay, clock: .continuous) } catch { return }
            input.yield(.event(.wake))
        }
    }

    /// Begins what takes time; its end is an event.
    private func start(_ effect: PersistenceMachine.Effect) {
        let store = store
        let input = input
        func run(_ queue: DispatchQueue, _ work: @escaping @Sendable () -> PersistenceMachine.Event) {
            queue.async { input.yield(.event(work())) }
        }
        switch effect {
        case .write(let purposes, let writes):
            run(writer) { .wrote(purposes, store.write(writes, now: SystemClocks.wall())) }
        case .ask(let ticket, let question):
            run(readers) { .answered(ticket, outcome { () throws(Failure) in try store.answer(question) }) }
        case .copy(.backup):
            run(upkeep) {
                .copied(.backup, outcome { () throws(Failure) in try store.backup(now: SystemClocks.wall()) })
            }
        case .copy(.snapshot):
            run(upkeep) {
                .copied(.snapshot, outcome { () throws(Failure) in try store.sideSnapshot(now: SystemClocks.wall()) })
            }
        case .prune(let before):
            run(writer) { .pruned(outcome { () throws(Failure) in try store.prune(before: before) }) }
        case .count:
            run(readers) { .counted(outcome { () throws(Failure) in try store.counts() }) }
        case .check:
            run(upkeep) { .checked(store.damage()) }
        case .rebuild:
            run(writer) {
                .rebuilt(
                    outcome { () throws(Failure) in
                        try store.rebuildSearch()
                        return true
                    })
            }
        case .suspect, .reply, .publish, .wake, .log, .stop:
            break
        }
    }

    private static func level(_ level: LogLevel) -> Logger.Level {
        switch level {
        case .debug: .debug
        case .info: .info
        case .warning: .warning
        case .error: .error
        }
    }
}

/// What `work` gave or threw.
private func outcome<Value>(_ work: () throws(Failure) -> Value) -> Result<Value, Failure> {
    do throws(Failure) { return .success(try work()) } catch { return .failure(error) }
}
