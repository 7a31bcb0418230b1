import FleetHome
package import ZeroMQ

/// The three sockets of a bus in its run directory.
package struct BusEndpoints: Sendable, Hashable {
    /// `pub.sock`: the stream, for everyone.
    package let stream: IPCEndpoint
    /// `svc.sock`: the services.
    package let services: IPCEndpoint
    /// `cli.sock`: the clients, which fetch and ask.
    package let clients: IPCEndpoint

    /// The sockets in a directory.
    ///
    /// - Throws: when the directory’s path leaves no room for a socket’s name.
    package init(runDirectory: String) throws(ZeroMQError) {
        stream = try IPCEndpoint(path: runDirectory + "/pub.sock")
        services = try IPCEndpoint(path: runDirectory + "/svc.sock")
        clients = try IPCEndpoint(path: runDirectory + "/" + LockstepHome.clientSocket)
    }

    package var all: [IPCEndpoint] { [stream, services, clients] }
}
