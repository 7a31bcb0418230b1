import TestSupport
import ZeroMQ

extension TemporaryFolder {
    /// The endpoint of a socket in the folder.
    func endpoint(_ name: String = "socket") throws -> IPCEndpoint {
        try IPCEndpoint(path: path + "/" + name)
    }
}
