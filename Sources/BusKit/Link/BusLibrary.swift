import ZeroMQ

/// The library that carries the messages.
package enum BusLibrary {
    /// Raises the limit of descriptors as far as this user may: libzmq ends the process when it finds none left.
    package static func raiseDescriptorLimit() {
        _ = try? FileDescriptorLimit.raise()
    }

    /// The version of libzmq that this process runs with.
    package static var version: (major: Int, minor: Int, patch: Int) { ZeroMQLibrary.version }
}
