import LibC

/// One part of a message: immutable bytes, copied out of libzmq once and shared from then on.
///
/// The bytes are the program's own rather than libzmq's: a received libzmq message can keep the whole
/// 8 KiB read buffer alive that it arrived in, which a ring of small events must not do.
public struct Frame: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The bytes.
    public let bytes: [UInt8]

    /// A frame of no bytes.
    public static let empty = Frame([])

    /// A frame that shares `bytes`.
    @inlinable
    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// A frame of a copy of `bytes`, such as `Data` or a slice.
    @inlinable
    public init(copying bytes: some Collection<UInt8>) {
        self.bytes = Array(bytes)
    }

    /// A frame of a copy of the memory.
    @inlinable
    public init(copying memory: UnsafeRawBufferPointer) {
        self.bytes = Array(memory)
    }

    /// A frame of the text in UTF-8.
    @inlinable
    public init(_ text: String) {
        self.bytes = Array(text.utf8)
    }

    /// A frame of the text in UTF-8.
    public init(stringLiteral text: String) {
        self.bytes = Array(text.utf8)
    }

    /// The number of bytes.
    @inlinable public var count: Int { bytes.count }
    /// Whether there are no bytes.
    @inlinable public var isEmpty: Bool { bytes.isEmpty }

    /// Hashes the bytes at once; an array would hash them one by one.
    @inlinable
    public func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    /// Whether these are the bytes.
    public func isEqual(to memory: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count == memory.count, let start = memory.baseAddress else { return bytes.count == memory.count }
        return bytes.withUnsafeBytes { $0.baseAddress.map { memcmp($0, start, memory.count) == 0 } ?? true }
    }

    /// Whether the first bytes are these.
    public func starts(with prefix: [UInt8]) -> Bool {
        guard prefix.count <= bytes.count else { return false }
        return withUnsafeBytes { bytes in
            prefix.withUnsafeBytes { prefix in
                guard let start = bytes.baseAddress, let other = prefix.baseAddress else { return true }
                return memcmp(start, other, prefix.count) == 0
            }
        }
    }

    /// The bytes as text; nil if they are not UTF-8.
    public var text: String? { String(validating: bytes, as: UTF8.self) }

    /// Lends the bytes for the length of the call.
    @inlinable
    public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try bytes.withUnsafeBytes(body)
    }

    /// The text, or the number of bytes if they are none.
    public var description: String { text ?? "\(count) bytes" }
}

/// The parts of one message, in order.
public typealias Message = [Frame]
