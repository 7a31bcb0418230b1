import ZeroMQ

/// The library that carries the messages.
public enum BusLibrary {
    /// Raises the limit of descriptors as far as this user may: libzmq ends the process when it finds none left.
    public static func raiseDescriptorLimit() {
        _ = try? FileDescriptorLimit.raise()
    }

    /// A version, as libraries number theirs.
    public struct Version: Sendable, Hashable {
        /// The first number.
        public var major: Int
        /// The second.
        public var minor: Int
        /// The third.
        public var patch: Int

        /// A version.
        public init(_ major: Int, _ minor: Int, _ patch: Int) {
            self.major = major
            self.minor = minor
            self.patch = patch
        }
    }

    /// The version of libzmq that this process runs with.
    public static var version: Version {
        let (major, minor, patch) = ZeroMQLibrary.version
        return Version(major, minor, patch)
    }
}
