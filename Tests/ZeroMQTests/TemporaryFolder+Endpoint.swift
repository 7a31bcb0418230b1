import TestSupport
import ZeroMQ

extension TemporaryFolder {
    /// A place for a socket.
    func endpoint(_ name: String = "socket") throws -> IPCEndpoint {
        try IPCEndpoint(path: path + "/" + name)
    }
}
