import CZeroMQ

/// Information about the loaded library.
package enum ZeroMQLibrary {
    /// The version at run time, which may differ from the one at compile time.
    package static var version: (major: Int, minor: Int, patch: Int) {
        var (major, minor, patch): (Int32, Int32, Int32) = (0, 0, 0)
        zmq_version(&major, &minor, &patch)
        return (Int(major), Int(minor), Int(patch))
    }
}
