import BusKit
import LibC

/// Notifies the process’s parent of its state by systemd’s notification protocol (`man sd_notify`): datagrams to the
/// socket that `NOTIFY_SOCKET` names. Without one, it does nothing.
package struct ProcessNotifier: Sendable {
    private let address: [UInt8]?

    /// Creates a notifier for the socket in the environment; a name that begins with `@` is an abstract address.
    package init(environment: [String: String] = ProcessEnvironment.current) {
        guard let name = environment["NOTIFY_SOCKET"], name.hasPrefix("/") || name.hasPrefix("@"),
            name.utf8.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path)
        else {
            address = nil
            return
        }
        var bytes = Array(name.utf8)
        if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
        address = bytes
    }

    package var isListenedTo: Bool { address != nil }

    /// Reports that this process is ready. It waits, at most a second, while the receiver’s queue is full.
    package func ready() { send("READY=1", waits: true) }
    /// Reports liveness, from the work loop. It never waits, because another report follows.
    package func watchdog() { send("WATCHDOG=1") }
    /// Reports that this process begins to stop. It waits, at most a second, while the receiver’s queue is full.
    package func stopping() { send("STOPPING=1", waits: true) }
    /// Reports the current activity in a line of text. It never waits.
    package func status(_ line: String) { send("STATUS=\(line.split(separator: "\n").joined(separator: " "))") }

    /// Sends a datagram. The kernel queues only a few (`net.unix.max_dgram_qlen`, 10 by default): essential messages
    /// wait for room, but only briefly, because no process may depend on a reader.
    private func send(_ message: String, waits: Bool = false) {
        guard let address else { return }
        #if canImport(Glibc)
        let kind = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        #else
        let kind = SOCK_DGRAM
        #endif
        let descriptor = socket(AF_UNIX, kind, 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        if waits {
            var limit = timeval(tv_sec: 1, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &target.sun_path) { path in
            path.copyBytes(from: address)
        }
        // The length ends an abstract name, a zero byte ends a path.
        let pathOffset = MemoryLayout<sockaddr_un>.size - MemoryLayout.size(ofValue: target.sun_path)
        let length = socklen_t(pathOffset + address.count + (address[0] == 0 ? 0 : 1))
        withUnsafePointer(to: &target) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                let flags = waits ? 0 : Int32(MSG_DONTWAIT)
                while sendto(descriptor, message, message.utf8.count, flags, pointer, length) < 0, errno == EINTR {}
            }
        }
    }
}
