import LibC
import LockstepClient
import PodcastModel

/// Runs a player on a terminal: waits for events, passes them to the machine, and draws.
final class PlayerLoop {
    private let terminal: any PlayerTerminal
    private let events: TerminalEvents
    private let ask: (PlayerTask) -> Void
    private var machine: PlayerMachine
    private var firstFrame = FirstFrame()

    /// `ask` begins a task and returns at once.
    init(
        _ machine: PlayerMachine, on terminal: any PlayerTerminal, events: TerminalEvents,
        ask: @escaping (PlayerTask) -> Void
    ) {
        (self.machine, self.terminal, self.events, self.ask) = (machine, terminal, events, ask)
    }

    /// - Returns: the exit status: 0, or 128 and the number of the signal that ended it.
    /// - Throws: the failure that ended the connection.
    func run() throws(Failure) -> Int32 {
        defer { terminal.close() }
        while true {
            let now = SystemClocks.now()
            machine.tick(now: now)
            while let load = machine.nextLoad(now: now) { ask(load) }
            let change = draw(at: now)
            let limit = change.map { Int32(($0 * 1_000).rounded(.up)) } ?? -1
            guard let batch = events.next(within: limit) else { return 1 }
            if let status = events.handle(batch.signals, for: terminal) { return status }
            for item in batch.news { try handle(item) }
            if batch.isHungUp { return 128 + SIGHUP }
            while let key = terminal.nextKey() {
                switch machine.press(key, now: SystemClocks.now()) {
                case .quit: return 0
                case .ask(let task): ask(task)
                case .none: break
                }
            }
        }
    }

    static let connectionEnded = Failure(.internalError, "The connection to the fleet has ended.")

    /// Draws, unless the first frame still waits for the state.
    ///
    /// - Returns: the seconds until the screen changes without an event; nil if it doesn’t.
    private func draw(at now: Moment) -> Double? {
        let screen = machine.screen(at: now)
        if let wait = firstFrame.wait(screen.snapshot.connection, now: now.monotonic) { return wait }
        terminal.draw(screen)
        return machine.nextChange(after: now)
    }

    private func handle(_ item: PlayerInbox.Item) throws(Failure) {
        switch item {
        case .update(let update): machine.apply(update, now: SystemClocks.now())
        case .library(let task, let result):
            if case .ask(let next) = machine.finished(task, result, now: SystemClocks.now()) { ask(next) }
        case .finished(let task, let failure, let effect):
            if case .ask(let next) = machine.finished(task, failure, effect: effect, now: SystemClocks.now()) {
                ask(next)
            }
        case .ended(let failure): throw failure ?? Self.connectionEnded
        }
    }
}

/// Delays the first frame until the fleet’s state is known, because it would be empty before.
struct FirstFrame: Sendable {
    static let limit = Duration.milliseconds(300)

    private var until: MonotonicTime?
    private var isDue = false

    /// Returns the seconds until the first frame is due; nil if it is due, or was drawn.
    mutating func wait(_ link: Connection, now: MonotonicTime) -> Double? {
        let end = until ?? now.advanced(by: Self.limit)
        until = end
        guard !isDue, link == .connecting, now < end else {
            isDue = true
            return nil
        }
        return end.since(now) / .seconds(1)
    }
}
