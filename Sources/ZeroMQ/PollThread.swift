import CZeroMQ
import LibC
import NIOConcurrencyHelpers

/// The outcome of sending a command to a poll thread.
package enum CommandOutcome: Sendable, Hashable {
    /// The handler will receive the command, unless the handler fails first.
    case accepted
    /// Too many commands are waiting, because the thread hangs or is too slow. The command is refused.
    case full
    /// The thread is shutting down or has ended. The command is refused.
    case closed
}

/// A thread that owns sockets: it waits for messages, for commands of other threads and for a deadline, and passes each
/// to its handler.
package final class PollThread<Handler: PollHandler & ~Copyable>: Sendable {
    private let mailbox: PollMailbox<Handler.Command>

    /// Starts the thread. It runs until `shutdown()`, or until a callback throws.
    /// - Parameters:
    ///   - name: the name in debuggers and `ps -T`; its first 15 bytes on Linux.
    ///   - commandLimit: the maximum number of waiting commands.
    ///   - makeHandler: called on the thread.
    package init(
        name: String, commandLimit: Int = 65_536, makeHandler: @escaping @Sendable () throws -> Handler
    ) throws(ZeroMQError) {
        let mailbox = PollMailbox<Handler.Command>(wakeup: try WakeupDescriptor(), limit: commandLimit)
        self.mailbox = mailbox
        let started = SystemThread(stackSize: 1 << 20) {
            Self.setName(name)
            mailbox.finish(PollLoop<Handler>.run(mailbox, makeHandler))
        }
        guard let started else {
            let failure = ZeroMQError(call: "pthread_create", endpoint: name, number: errno)
            mailbox.finish(failure)
            throw failure
        }
        mailbox.attach(started)
    }

    private static func setName(_ name: String) {
        #if canImport(Darwin)
        _ = pthread_setname_np(name)
        #else
        lockstep_name_this_thread(name)
        #endif
    }

    deinit {
        mailbox.abandon()
    }

    /// Sends a command to the handler. The command is refused after a call of `shutdown()`.
    @discardableResult
    package func send(_ command: Handler.Command) -> CommandOutcome {
        mailbox.post(command)
    }

    /// Returns when the handler has opened its sockets, or throws its error.
    package func started() async throws {
        try await mailbox.started()
    }

    /// Ends the thread: earlier commands are still handled, then the handler’s `stop` runs and the sockets are closed.
    /// Returns when the thread has ended; it may be called repeatedly.
    /// - Returns: the error that ended the thread before the call, if there was one.
    @discardableResult
    package func shutdown() async -> (any Error)? {
        mailbox.requestStop()
        return await mailbox.finished()
    }

    /// Requests the end without waiting for it; `ended()` or `shutdown()` wait.
    package func requestShutdown() {
        mailbox.requestStop()
    }

    /// Returns when the thread has ended, with the error that ended it.
    package func ended() async -> (any Error)? {
        await mailbox.finished()
    }
}

/// The loop of a poll thread, on that thread.
enum PollLoop<Handler: PollHandler & ~Copyable> {
    /// The maximum number of messages that are read from one socket in a turn, so that no socket starves another.
    private static var messagesPerTurn: Int { 256 }

    /// Runs the handler until it is stopped or fails.
    /// - Returns: the failure.
    static func run(
        _ mailbox: PollMailbox<Handler.Command>, _ makeHandler: () throws -> Handler
    ) -> (any Error)? {
        do {
            let context = try ZeroMQContext()
            defer { context.terminate() }
            let sockets = SocketSet(context: context)
            defer { sockets.closeAll() }
            var handler = try makeHandler()
            defer { handler.stop(sockets) }
            try handler.start(sockets)
            mailbox.didStart()
            try turns(&handler, sockets, mailbox)
            return nil
        } catch {
            return error
        }
    }

    private static func turns(
        _ handler: inout Handler, _ sockets: SocketSet, _ mailbox: PollMailbox<Handler.Command>
    ) throws {
        var items = [
            zmq_pollitem_t(socket: nil, fd: mailbox.wakeup.readable, events: Int16(ZMQ_POLLIN), revents: 0)
        ]
        var names: [SocketID] = []
        var message = ReceivedMessage()
        var deadline = try handler.turnEnded(now: MonotonicClock.nanoseconds(), sockets)
        while true {
            sockets.fill(&items, after: 1, names: &names)
            try poll(&items, deadline: deadline)
            if items[0].revents != 0 {
                let (commands, stop) = mailbox.take()
                for command in commands { try handler.received(command, sockets) }
                if stop { return }
            }
            for index in names.indices {
                let ready = items[index + 1].revents
                if ready & Int16(ZMQ_POLLIN) != 0 {
                    try drain(names[index], &handler, sockets, through: &message)
                }
                if ready & Int16(ZMQ_POLLOUT) != 0 { try handler.writable(names[index], sockets) }
            }
            deadline = try handler.turnEnded(now: MonotonicClock.nanoseconds(), sockets)
        }
    }

    private static func drain(
        _ socket: SocketID, _ handler: inout Handler, _ sockets: SocketSet, through message: inout ReceivedMessage
    ) throws {
        defer { message.clear() }
        for _ in 0..<messagesPerTurn {
            guard try sockets.receive(into: &message, from: socket) else { return }
            try handler.received(message, from: socket, sockets)
        }
    }

    /// Waits until an item is ready or the deadline is reached, rounded up to milliseconds, the unit of zmq_poll.
    private static func poll(_ items: inout [zmq_pollitem_t], deadline: UInt64?) throws(ZeroMQError) {
        var timeout = -1
        if let deadline {
            let now = MonotonicClock.nanoseconds()
            let left = deadline > now ? deadline - now : 0
            timeout = Int(min(left / 1_000_000 + (left % 1_000_000 == 0 ? 0 : 1), 86_400_000))
        }
        for index in items.indices { items[index].revents = 0 }
        if zmq_poll(&items, Int32(items.count), timeout) < 0 {
            let number = zmq_errno()
            if number != EINTR { throw ZeroMQError(call: "zmq_poll", endpoint: "", number: number) }
        }
    }
}

/// CLOCK_MONOTONIC, the clock of all deadlines.
package enum MonotonicClock {
    /// The nanoseconds since an arbitrary start, the same in all processes of one boot.
    package static func nanoseconds() -> UInt64 {
        var time = timespec()
        _ = clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec)
    }
}
