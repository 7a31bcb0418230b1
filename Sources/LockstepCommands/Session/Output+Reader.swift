import Dispatch
import LibC

extension Output {
    /// Runs `body` until it ends or standard output’s reader closes it, which is detected at once.
    ///
    /// - Throws: `Closed` if the reader has closed standard output; the errors of `body`.
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

    /// - Returns: false if the task was cancelled before.
    private static func untilUnread() async -> Bool {
        let wake = WakePipe()
        defer { wake.close() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // A separate thread is needed, because tasks must not block their threads.
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
            // Errors are reported even if no event is requested.
            pollfd(fd: STDOUT_FILENO, events: 0, revents: 0),
        ]
        while true {
            if poll(&waiting, nfds_t(waiting.count), -1) < 0 {
                guard errno == EINTR else { return false }
                continue
            }
            if waiting[0].revents != 0 { return false }
            if waiting[1].revents & Int16(POLLERR | POLLHUP) != 0 { return true }
            // Standard output is a file, which has no reader.
            waiting[1].fd = -1
        }
    }
}
