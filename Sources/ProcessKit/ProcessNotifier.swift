import BusKit
import LibC

/// Tells whoever started this process about its state, by systemd's notification protocol (`man sd_notify`): datagrams to
/// the socket that `NOTIFY_SOCKET` names. Without one, nothing happens.
package struct ProcessNotifier: Sendable {
    private let address: [UInt8]?

    /// Speaks to the socket that the environment names; a name that begins with `@` is an abstract one.
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

    /// Whether there is a socket to report to.
    package var isListenedTo: Bool { address != nil }

    /// Reports that the process serves now.
    package func ready() { send("READY=1") }
    /// Reports that the process is alive; to be called from the loop that does the work.
    package func watchdog() { send("WATCHDOG=1") }
    /// Reports that the process is about to end.
    package func stopping() { send("STOPPING=1") }
    /// Reports what the process is doing, in a line for people.
    package func status(_ line: String) { send("STATUS=\(line.split(separator: "\n").joined(separator: " "))") }

    /// Sends a datagram. What cannot be delivered is dropped: nobody may hang on whether anybody listens.
    private func send(_ message: String) {
        guard let address else { return }
        #if canImport(Glibc)
        let kind = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        #else
        let kind = SOCK_DGRAM
        #endif
        let descriptor = socket(AF_UNIX, kind, 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &target.sun_path) { path in
            path.copyBytes(from: address)
        }
        // An abstract name ends where the length says, a path at its zero byte.
        let pathOffset = MemoryLayout<sockaddr_un>.size - MemoryLayout.size(ofValue: target.sun_path)
        let length = socklen_t(pathOffset + address.count + (address[0] == 0 ? 0 : 1))
        withUnsafePointer(to: &target) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                _ = sendto(descriptor, message, message.utf8.count, Int32(MSG_DONTWAIT), pointer, length)
            }
        }
    }
}
