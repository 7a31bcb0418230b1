package import FoundationEssentials
package import SwiftProtobuf

extension SwiftProtobuf.Message {
    /// The encoded message for the bus and the database.
    package var wireBytes: [UInt8] {
        // The encoding of a proto3 message without `Any` can’t fail.
        (try? serializedBytes()) ?? []
    }

    /// The encoded message for a `bytes` field of another one.
    package var wireData: Data { (try? serializedData()) ?? Data() }

    /// Decodes a message; unknown fields are preserved, because a later version may have written them.
    package init(wireBytes: [UInt8]) throws { try self.init(serializedBytes: wireBytes) }
}

extension RequestID {
    /// The 16 bytes of the ID for a `bytes` field.
    package var data: Data { Data(bytes) }
}
