import ZeroMQ

/// The library that carries the messages.
package enum BusLibrary {
    /// Raises the limit of descriptors as far as this user may: libzmq ends the process when it finds none left.
    package static func raiseDescriptorLimit() {
        _ = try? FileDescriptorLimit.raise()
    }

    /// A version, as libraries number theirs.
    package struct Version: Sendable, Hashable {
        /// The first number.
        package var major: Int
        package var minor: Int
        package var patch: Int

        package init(_ major: Int, _ minor: Int, _ patch: Int) {
            self.major = major
            self.minor = minor
            self.patch = patch
        }
    }

    /// The version of libzmq that this process runs with.
    package static var version: Version {
        let (major, minor, patch) = ZeroMQLibrary.version
        return Version(major, minor, patch)
    }
}
