import Dispatch
import LibC

extension Output {
    /// Runs `body` until it ends or nobody reads standard output any more, which is noticed at once and not at the next line.
    ///
    /// - Throws: `Closed` when nobody reads any more; the errors of `body`.
    func whileRead(_ body: @escaping @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask(operation: body)
            group.addTask {
                if await Self.untilUnread() { throw Closed() }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// - Returns: false when the task was cancelled before.
    private static func untilUnread() async -> Bool {
        let wake = WakePipe()
        defer { wake.close() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // A thread of its own: those of tasks must not wait.
                DispatchQueue(label: "lockstep.output").async {
                    continuation.resume(returning: isUnread(before: wake.descriptor))
                }
            }
        } onCancel: {
            wake.wake()
        }
    }

    private static func isUnread(before wake: Int32) -> Bool {
        var waiting = [
            pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
            // Errors are reported even if no event is asked for.
            pollfd(fd: STDOUT_FILENO, events: 0, revents: 0),
        ]
        while true {
            if poll(&waiting, nfds_t(waiting.count), -1) < 0 {
                guard errno == EINTR else { return false }
                continue
            }
            if waiting[0].revents != 0 { return false }
            if waiting[1].revents & Int16(POLLERR | POLLHUP) != 0 { return true }
            // A file, which has no reader.
            waiting[1].fd = -1
        }
    }
}
