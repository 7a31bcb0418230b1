/// Puts the bytes of keys together: an arrow has three or more, and those of unknown keys must not pass for others. Pure.
struct KeySequence: Sendable {
    private var count = 0

    /// The key that `byte` completes; nil: none yet, or one without a meaning.
    mutating func take(_ byte: UInt8) -> PlayerKey? {
        switch (count, byte) {
        case (_, 0x1b):
            count = 1
            return nil
        case (1, UInt8(ascii: "[")), (1, UInt8(ascii: "O")):
            count = 2
            return nil
        // Parameters of the sequence.
        case (2, 0x20...0x3f): return nil
        case (2, _):
            count = 0
            return Self.arrow(byte)
        case (1, _):
            // A key with Alt.
            count = 0
            return nil
        default: return byte < 0x80 ? TerminalKeys.character(UInt32(byte)) : nil
        }
    }

    /// No byte follows: an escape alone means nothing.
    mutating func end() { count = 0 }

    private static func arrow(_ byte: UInt8) -> PlayerKey? {
        switch byte {
        case UInt8(ascii: "A"): .up
        case UInt8(ascii: "B"): .down
        case UInt8(ascii: "C"): .right
        case UInt8(ascii: "D"): .left
        case UInt8(ascii: "H"): .home
        case UInt8(ascii: "F"): .end
        default: nil
        }
    }
}
