import ZeroMQ

/// Access to the messaging library.
package enum BusLibrary {
    /// Raises the limit of descriptors as far as this user may: libzmq aborts the process when there are none left.
    package static func raiseDescriptorLimit() {
        _ = try? FileDescriptorLimit.raise()
    }

    /// The version of libzmq that this process uses.
    package static var version: (major: Int, minor: Int, patch: Int) { ZeroMQLibrary.version }
}
