import CSodium
package import WireMessages

extension RequestID {
    /// Derives the ID of a request that this request causes: the same ID for the same step, which takes effect once.
    ///
    /// It is a UUID of version 8 (RFC 9562, section 5.8): the first 16 bytes are BLAKE2b of this id and the step.
    package func derived(_ step: String) -> RequestID {
        let message = bytes + Array(step.utf8)
        var hash = [UInt8](repeating: 0, count: Self.length)
        // The function fails for invalid lengths only.
        _ = crypto_generichash(&hash, hash.count, message, UInt64(message.count), nil, 0)
        hash[6] = hash[6] & 0x0f | 0x80
        hash[8] = hash[8] & 0x3f | 0x80
        return RequestID(hash) ?? self
    }
}
