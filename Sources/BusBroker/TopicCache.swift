import ZeroMQ

/// The topics that were published to lately, so that an event shares its topic's frame with the event before it.
struct TopicCache: Sendable {
    private var frames = [Frame](repeating: .empty, count: 64)

    /// A frame of these bytes: one that was made before, if it is still here.
    mutating func frame(of topic: UnsafeRawBufferPointer) -> Frame {
        let index = Self.index(of: topic) % frames.count
        if frames[index].isEqual(to: topic) { return frames[index] }
        let frame = Frame(copying: topic)
        // Nobody may publish to a longer one, and what is refused must not stay.
        if topic.count <= 255 { frames[index] = frame }
        return frame
    }

    /// Topics differ at their ends.
    private static func index(of topic: UnsafeRawBufferPointer) -> Int {
        var sum = UInt64(topic.count)
        for byte in topic.suffix(16) { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return Int(truncatingIfNeeded: (sum ^ sum >> 32) & 0xffff)
    }
}
