import CProcess
import LibC
import PodcastModel

/// Ends processes that aren’t children of this process, through pidfds, which aren’t affected by reused pids.
package enum ProcessEnding {
    /// Sends a signal to the processes that `find` returns, and waits until they have ended.
    ///
    /// - Returns: the processes that received the signal, and those of them that still run after `limit`.
    package static func end(
        with signal: Int32, within limit: Duration, _ find: () -> [Int32]
    ) -> (signalled: [Int32], remaining: [Int32]) {
        let found = find().map { (pid: $0, descriptor: lockstep_pidfd_open($0)) }.filter { $0.descriptor >= 0 }
        defer { for process in found { close(process.descriptor) } }
        // The pid may have been reused between the search and the open, so the search is repeated.
        let still = Set(find())
        let signalled = found.filter { still.contains($0.pid) }
        for process in signalled { _ = lockstep_pidfd_send_signal(process.descriptor, signal) }
        let due = SystemClocks.monotonic().advanced(by: limit)
        let remaining = signalled.filter { process in
            var waiting = pollfd(fd: process.descriptor, events: Int16(POLLIN), revents: 0)
            return poll(&waiting, 1, Int32(max(0, due.since(SystemClocks.monotonic()) / .milliseconds(1)))) == 0
        }
        return (signalled.map(\.pid), remaining.map(\.pid))
    }
}
