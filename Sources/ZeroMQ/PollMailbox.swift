import LibC
import NIOConcurrencyHelpers

/// The state that a poll thread shares with the rest of the program: waiting commands, and the thread’s start and end.
final class PollMailbox<Command: Sendable>: Sendable {
    let wakeup: WakeupDescriptor
    private let limit: Int
    private let state: NIOLockedValueBox<State>

    private struct State {
        var commands: [Command] = []
        /// Whether the descriptor is readable because of commands that the thread hasn’t read.
        var signalled = false
        var stopRequested = false
        /// Whether the handler has opened its sockets.
        var hasStarted = false
        var isFinished = false
        var failure: (any Error)?
        var thread: SystemThread?
        var startWaiters: [CheckedContinuation<Void, any Error>] = []
        var endWaiters: [CheckedContinuation<Void, Never>] = []
    }

    init(wakeup: WakeupDescriptor, limit: Int) {
        self.wakeup = wakeup
        self.limit = limit
        state = NIOLockedValueBox(State())
    }

    // Called on any thread.

    func post(_ command: Command) -> CommandOutcome {
        state.withLockedValue { state in
            if state.stopRequested || state.isFinished { return .closed }
            guard state.commands.count < limit else { return .full }
            state.commands.append(command)
            signal(&state)
            return .accepted
        }
    }

    func requestStop() {
        state.withLockedValue { state in
            state.stopRequested = true
            if !state.isFinished { signal(&state) }
        }
    }

    /// The descriptor is written under the lock, because the thread closes it under the lock.
    private func signal(_ state: inout State) {
        if state.signalled { return }
        state.signalled = true
        wakeup.signal()
    }

    func attach(_ thread: SystemThread) {
        state.withLockedValue { $0.thread = thread }
    }

    /// Stops the thread without waiting for its end, and detaches it.
    func abandon() {
        requestStop()
        state.withLockedValue { state in
            state.thread?.detach()
            state.thread = nil
        }
    }

    func started() async throws {
        try await withCheckedThrowingContinuation { (waiter: CheckedContinuation<Void, any Error>) in
            let answer: Result<Void, any Error>? = state.withLockedValue { state in
                if state.hasStarted { return .success(()) }
                if state.isFinished { return .failure(state.failure ?? CancellationError()) }
                state.startWaiters.append(waiter)
                return nil
            }
            if let answer { waiter.resume(with: answer) }
        }
    }

    func finished() async -> (any Error)? {
        await withCheckedContinuation { (waiter: CheckedContinuation<Void, Never>) in
            let done = state.withLockedValue { state in
                if !state.isFinished { state.endWaiters.append(waiter) }
                return state.isFinished
            }
            if done { waiter.resume() }
        }
        return state.withLockedValue { state in
            // The thread has released the lock for the last time and ends within microseconds.
            state.thread?.join()
            state.thread = nil
            return state.failure
        }
    }

    // Called on the poll thread.

    func take() -> (commands: [Command], stop: Bool) {
        wakeup.clear()
        return state.withLockedValue { state in
            var commands: [Command] = []
            swap(&commands, &state.commands)
            state.signalled = false
            return (commands, state.stopRequested)
        }
    }

    func didStart() {
        let waiters = state.withLockedValue { state in
            state.hasStarted = true
            defer { state.startWaiters = [] }
            return state.startWaiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Records the end of the thread; called last, when no socket is open.
    func finish(_ error: (any Error)?) {
        let (starts, ends) = state.withLockedValue { state in
            state.isFinished = true
            state.failure = error
            state.commands = []
            wakeup.close()
            defer { (state.startWaiters, state.endWaiters) = ([], []) }
            return (state.startWaiters, state.endWaiters)
        }
        for waiter in starts { waiter.resume(throwing: error ?? CancellationError()) }
        for waiter in ends { waiter.resume() }
    }
}
