import LibC
package import PodcastModel

/// Detects a running fleet at once, without a connection to the bus.
package enum FleetPresence {
    /// Throws for a home in which neither a supervisor nor a bus answers.
    package static func require(_ home: LockstepHome) throws(Failure) {
        try home.checkSocketPaths()
        // The supervisor answers while it restarts the bus; a bus that was started by hand has no supervisor.
        guard answers(home.controlSocket) || answers(home.runFile(LockstepHome.clientSocket)) else {
            throw noFleet(in: home)
        }
    }

    /// Whether a process listens on a socket.
    package static func answers(_ path: String) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        #if canImport(Darwin)
        let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        #else
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_UNIX, kind, 0)
        #endif
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let outcome = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        // `EAGAIN` means that the backlog is full, so the socket is listening.
        return outcome == 0 || errno == EAGAIN || errno == EINPROGRESS
    }

    /// The failure if no socket answers: `noFleet`, or `alreadyRunning` if a supervisor can’t be reached, for example
    /// while it starts or ends, or if its run directory was removed or isn’t visible (in a container).
    package static func noFleet(in home: LockstepHome) -> Failure {
        guard FileLock.isHeld(home.fleetLock) else { return noFleet }
        let process = FileLock.holder(of: home.fleetLock).map { " (process \($0))" } ?? ""
        return Failure(
            .alreadyRunning,
            "A fleet is running\(process), but its sockets in \(home.runDirectory) don’t answer. If it isn’t starting or stopping just now, end that process, then run `lockstep up --detach`."
        )
    }

    package static let noFleet = Failure(.noFleet, "No fleet is running. Start one with `lockstep up --detach`.")
}
