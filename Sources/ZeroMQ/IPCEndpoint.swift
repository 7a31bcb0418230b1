import LibC

/// A Unix socket's path that is known to fit.
package struct IPCEndpoint: Sendable, Hashable, CustomStringConvertible {
    package let path: String

    /// The longest path in bytes that the system's `sun_path` holds with its closing zero.
    package static let maximumPathLength: Int = {
        #if os(Linux)
        107
        #else
        103
        #endif
    }()

    /// Refuses an empty path, one with a zero byte and one that is longer than `maximumPathLength`.
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
                call: "ipc endpoint", endpoint: path, errno: EINVAL, text: "the path of the socket is empty or broken")
        }
        self.path = path
    }

    /// The endpoint as libzmq takes it: `ipc://` and the path.
    package var text: String { "ipc://" + path }

    package var description: String { text }

    /// Removes the socket's file, if there is one. Only for the holder of the folder's lock.
    package func removeStaleFile() throws(ZeroMQError) {
        if unlink(path) == 0 || errno == ENOENT { return }
        throw ZeroMQError(call: "unlink", endpoint: path, number: errno)
    }
}
