import CProcess
import LibC
import PodcastModel

/// Ends processes that are not children of this one, through pidfds, which never mean a later process of the same number.
package enum ProcessEnding {
    /// Sends a signal to the processes that `find` gives, and waits until they have ended.
    ///
    /// - Returns: the processes that got the signal, and those of them that still run after `limit`.
    package static func end(
        with signal: Int32, within limit: Duration, _ find: () -> [Int32]
    ) -> (signalled: [Int32], remaining: [Int32]) {
        let found = find().map { (pid: $0, descriptor: lockstep_pidfd_open($0)) }.filter { $0.descriptor >= 0 }
        defer { for process in found { close(process.descriptor) } }
        // Between the search and the open the number may have passed to another process: search again.
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
