import FleetHome
package import ZeroMQ

/// The three sockets of a bus in its run directory.
package struct BusEndpoints: Sendable, Hashable {
    /// The stream: `pub.sock`, for all processes.
    package let stream: IPCEndpoint
    /// The services’ socket: `svc.sock`.
    package let services: IPCEndpoint
    /// The socket for clients’ fetches and requests: `cli.sock`.
    package let clients: IPCEndpoint

    /// Creates the endpoints in a directory.
    ///
    /// - Throws: if the directory’s path is too long for a socket’s path.
    package init(runDirectory: String) throws(ZeroMQError) {
        stream = try IPCEndpoint(path: runDirectory + "/pub.sock")
        services = try IPCEndpoint(path: runDirectory + "/svc.sock")
        clients = try IPCEndpoint(path: runDirectory + "/" + LockstepHome.clientSocket)
    }

    package var all: [IPCEndpoint] { [stream, services, clients] }
}
