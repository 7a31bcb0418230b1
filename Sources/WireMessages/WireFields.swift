public import SwiftProtobuf

/// A message that is put together from parts which are encoded already.
///
/// Fields of a message may come in any order, and those of a repeated field are simply added: so a long list need not be
/// encoded again each time that it is sent.
public struct WireFields: Sendable {
    /// The message so far.
    public private(set) var bytes: [UInt8] = []

    /// An empty message.
    public init() {}

    /// What `beginning` holds, to be continued.
    public init(_ beginning: some SwiftProtobuf.Message, reserving capacity: Int = 0) {
        bytes.reserveCapacity(capacity)
        bytes += beginning.wireBytes
    }

    /// Adds a field that holds a message, a text or bytes. `number` is the field's, from 1 to 15.
    public mutating func append(_ number: UInt8, _ value: some Collection<UInt8>) {
        bytes.append(number << 3 | 2)
        var count = UInt(value.count)
        while count > 0x7F {
            bytes.append(UInt8(truncatingIfNeeded: count) | 0x80)
            count >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: count))
        bytes.append(contentsOf: value)
    }

    /// An empty message again, its memory kept.
    public mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }
}
