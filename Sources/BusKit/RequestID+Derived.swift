import Crypto
public import WireMessages

extension RequestID {
    /// The id of a request that this one causes: the same for the same step, so that a repeated cause repeats no effect.
    ///
    /// A UUID of version 5 (RFC 9562, section 5.5) with this id as its name space.
    public func derived(_ step: String) -> RequestID {
        var hash = Insecure.SHA1()
        hash.update(data: bytes)
        hash.update(data: Array(step.utf8))
        var bytes = Array(hash.finalize().prefix(Self.length))
        bytes[6] = bytes[6] & 0x0f | 0x50
        bytes[8] = bytes[8] & 0x3f | 0x80
        return RequestID(bytes) ?? self
    }
}
