import CZeroMQ

/// Facts about the library that is loaded.
package enum ZeroMQLibrary {
    /// The version that was found at run time, which may be another than the one that was compiled with.
    package static var version: (major: Int, minor: Int, patch: Int) {
        var (major, minor, patch): (Int32, Int32, Int32) = (0, 0, 0)
        zmq_version(&major, &minor, &patch)
        return (Int(major), Int(minor), Int(patch))
    }
}
