import LibC

/// The path of a Unix socket; its length is validated.
package struct IPCEndpoint: Sendable, Hashable, CustomStringConvertible {
    package let path: String

    /// The maximum length of a path in bytes, which `sun_path` holds with its terminating zero.
    package static let maximumPathLength: Int = {
        #if os(Linux)
        107
        #else
        103
        #endif
    }()

    /// Creates an endpoint.
    /// - Throws: if the path is empty, has a zero byte or is longer than `maximumPathLength`.
    package init(path: String) throws(ZeroMQError) {
        let length = path.utf8.count
        guard length <= Self.maximumPathLength else {
            throw ZeroMQError(
                call: "ipc endpoint", endpoint: path, errno: ENAMETOOLONG,
                text: "the path of the socket is \(length) bytes long and the system allows "
                    + "\(Self.maximumPathLength): choose a folder with a shorter path")
        }
        guard length > 0, !path.utf8.contains(0) else {
            throw ZeroMQError(
                call: "ipc endpoint", endpoint: path, errno: EINVAL,
                text: "the path of the socket is empty or has a zero byte")
        }
        self.path = path
    }

    /// The endpoint for libzmq: `ipc://` and the path.
    package var text: String { "ipc://" + path }

    package var description: String { text }

    /// Removes the socket’s file, if there is one. Only the holder of the folder’s lock may call it.
    package func removeStaleFile() throws(ZeroMQError) {
        if unlink(path) == 0 || errno == ENOENT { return }
        throw ZeroMQError(call: "unlink", endpoint: path, number: errno)
    }
}
