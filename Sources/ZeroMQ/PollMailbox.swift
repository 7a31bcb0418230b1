import LibC
import NIOConcurrencyHelpers

/// The state that a poll thread shares with the rest of the program: waiting commands, and the thread’s beginning and end.
final class PollMailbox<Command: Sendable>: Sendable {
    let wakeup: WakeupDescriptor
    private let limit: Int
    private let state: NIOLockedValueBox<State>

    private struct State {
        var commands: [Command] = []
        /// The descriptor was made readable and the thread has not taken the commands since.
        var signalled = false
        var stopRequested = false
        var phase = Phase.starting
        var thread: SystemThread?
        var startWaiters: [CheckedContinuation<Void, any Error>] = []
        var endWaiters: [CheckedContinuation<Void, Never>] = []
    }

    private enum Phase {
        case starting
        case running
        /// `beforeStart` if the handler never opened its sockets.
        case finished((any Error)?, beforeStart: Bool)
    }

    init(wakeup: WakeupDescriptor, limit: Int) {
        self.wakeup = wakeup
        self.limit = limit
        state = NIOLockedValueBox(State())
    }

    // Any thread.

    func post(_ command: Command) -> CommandOutcome {
        state.withLockedValue { state in
            if state.stopRequested { return .closed }
            if case .finished = state.phase { return .closed }
            guard state.commands.count < limit else { return .full }
            state.commands.append(command)
            signal(&state)
            return .accepted
        }
    }

    func requestStop() {
        state.withLockedValue { state in
            state.stopRequested = true
            if case .finished = state.phase { return }
            signal(&state)
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

    /// Nobody will ask for the end any more: stop, and let the system reap the thread.
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
                switch state.phase {
                case .starting:
                    state.startWaiters.append(waiter)
                    return nil
                case .running, .finished(_, beforeStart: false): return .success(())
                case .finished(let error, beforeStart: true):
                    return .failure(error ?? CancellationError())
                }
            }
            if let answer { waiter.resume(with: answer) }
        }
    }

    func finished() async -> (any Error)? {
        await withCheckedContinuation { (waiter: CheckedContinuation<Void, Never>) in
            let done = state.withLockedValue { state in
                if case .finished = state.phase { return true }
                state.endWaiters.append(waiter)
                return false
            }
            if done { waiter.resume() }
        }
        return state.withLockedValue { state in
            // The thread has left the lock for good; what is left of it ends within microseconds.
            state.thread?.join()
            state.thread = nil
            if case .finished(let error, _) = state.phase { return error }
            return nil
        }
    }

    // The poll thread.

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
            state.phase = .running
            defer { state.startWaiters = [] }
            return state.startWaiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// The last act: no socket is open any more.
    func finish(_ error: (any Error)?) {
        let (starts, ends) = state.withLockedValue { state in
            var beforeStart = false
            if case .starting = state.phase { beforeStart = true }
            state.phase = .finished(error, beforeStart: beforeStart)
            state.commands = []
            wakeup.close()
            defer {
                state.startWaiters = []
                state.endWaiters = []
            }
            return (state.startWaiters, state.endWaiters)
        }
        for waiter in starts { waiter.resume(throwing: error ?? CancellationError()) }
        for waiter in ends { waiter.resume() }
    }
}
