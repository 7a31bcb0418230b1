package import SwiftProtobuf

/// A message that is assembled from encoded parts.
///
/// The fields of a message may be in any order, and repeated fields are concatenated: a long list need not be encoded
/// again each time that it is sent.
package struct WireFields: Sendable {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    /// Creates a message that begins with the fields of `beginning`.
    package init(_ beginning: some SwiftProtobuf.Message, reserving capacity: Int = 0) {
        bytes.reserveCapacity(capacity)
        bytes += beginning.wireBytes
    }

    /// Appends the field `number`, 1 to 15, with a message, bytes or a text.
    package mutating func append(_ number: UInt8, _ value: [UInt8]) {
        begin(number, count: value.count)
        bytes.append(contentsOf: value)
    }

    package mutating func append(_ number: UInt8, _ text: String) {
        var text = text
        text.withUTF8 { utf8 in
            begin(number, count: utf8.count)
            bytes.append(contentsOf: utf8)
        }
    }

    /// Begins a field with a message of `count` bytes, whose fields are appended next.
    package mutating func begin(_ number: UInt8, count: Int) {
        bytes.append(number << 3 | 2)
        var left = UInt(count)
        while left > 0x7F {
            bytes.append(UInt8(truncatingIfNeeded: left) | 0x80)
            left >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: left))
    }

    /// The encoded size of a field with a message, a text or bytes of `count` bytes.
    package static func size(of count: Int) -> Int {
        let digits = max(1, UInt.bitWidth - UInt(count).leadingZeroBitCount)
        return 1 + (digits + 6) / 7 + count
    }
}
