// Re-exports the platform’s C library under one name.

#if canImport(Glibc)
@_exported public import Glibc
#elseif canImport(Musl)
@_exported public import Musl
#else
@_exported public import Darwin
#endif

/// Calls `close(2)`, under a name that doesn’t conflict with members named `close`.
package func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }

extension stat {
    /// The time of the file’s last modification.
    package var modified: timespec {
        #if canImport(Darwin)
        st_mtimespec
        #else
        st_mtim
        #endif
    }
}

/// A failed call of the C library.
package struct SystemError: Error {
    package let number: Int32
    package var reason: String { Self.reason(number) }

    package init(number: Int32) { self.number = number }

    /// The description of an error number.
    package static func reason(_ number: Int32 = errno) -> String { String(cString: strerror(number)) }
}
