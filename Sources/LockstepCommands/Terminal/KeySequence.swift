/// Assembles the bytes of a key press: an arrow key sends three or more, and unknown sequences aren’t other keys.
struct KeySequence: Sendable {
    private var count = 0

    /// Returns the key that `byte` completes; nil if it is incomplete or unknown.
    mutating func handle(_ byte: UInt8) -> PlayerKey? {
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
            // The sequence is a key with Alt.
            count = 0
            return nil
        default: return byte < 0x80 ? TerminalKeys.character(UInt32(byte)) : nil
        }
    }

    /// Handles the end of the input.
    ///
    /// - Returns: the Escape key if nothing follows it.
    @discardableResult
    mutating func end() -> PlayerKey? {
        defer { count = 0 }
        return count == 1 ? .escape : nil
    }

    private static func arrow(_ byte: UInt8) -> PlayerKey? {
        switch byte {
        case UInt8(ascii: "A"): .up
        case UInt8(ascii: "B"): .down
        case UInt8(ascii: "C"): .right
        case UInt8(ascii: "D"): .left
        case UInt8(ascii: "H"): .home
        case UInt8(ascii: "F"): .end
        case UInt8(ascii: "Z"): .backTab
        default: nil
        }
    }
}
