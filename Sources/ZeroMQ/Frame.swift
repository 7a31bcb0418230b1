import LibC

/// One part of a message: immutable bytes, copied once from libzmq and then shared.
///
/// The bytes aren’t in libzmq’s memory: a received libzmq message can retain the whole 8 KiB read buffer, which a ring
/// of small events must not do.
package struct Frame: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    package let bytes: [UInt8]

    package static let empty = Frame([])

    /// Creates a frame that shares `bytes`.
    @inlinable
    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Creates a frame with a copy of `bytes`, such as `Data`, a slice or borrowed memory.
    @inlinable
    package init(copying bytes: some Collection<UInt8>) {
        self.bytes = Array(bytes)
    }

    /// Creates a frame with the text in UTF-8.
    @inlinable
    package init(_ text: String) {
        self.bytes = Array(text.utf8)
    }

    package init(stringLiteral text: String) {
        self.init(text)
    }

    @inlinable package var count: Int { bytes.count }
    @inlinable package var isEmpty: Bool { bytes.isEmpty }

    /// Hashes all bytes in one call, which is faster than the array’s hashing of each byte.
    @inlinable
    package func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    package func isEqual(to memory: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count == memory.count, let start = memory.baseAddress else { return bytes.count == memory.count }
        return bytes.withUnsafeBytes { $0.baseAddress.map { memcmp($0, start, memory.count) == 0 } ?? true }
    }

    package func starts(with prefix: [UInt8]) -> Bool {
        guard prefix.count <= bytes.count else { return false }
        return withUnsafeBytes { bytes in
            prefix.withUnsafeBytes { prefix in
                guard let start = bytes.baseAddress, let other = prefix.baseAddress else { return true }
                return memcmp(start, other, prefix.count) == 0
            }
        }
    }

    /// The bytes as text; nil if they are not UTF-8.
    package var text: String? { String(validating: bytes, as: UTF8.self) }

    /// Calls `body` with the bytes, which are valid during the call.
    @inlinable
    package func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try bytes.withUnsafeBytes(body)
    }

    package var description: String { text ?? "\(count) bytes" }
}

/// The parts of one message, in order.
package typealias Message = [Frame]
