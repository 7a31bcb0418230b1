import ZeroMQ

/// The most recently published topics, so that consecutive events of a topic share its frame.
struct TopicCache: Sendable {
    private var frames = [Frame](repeating: .empty, count: 64)

    /// Returns the cached frame with these bytes, or a new one.
    mutating func frame(of topic: UnsafeRawBufferPointer) -> Frame {
        let index = Self.index(of: topic) % frames.count
        if frames[index].isEqual(to: topic) { return frames[index] }
        let frame = Frame(copying: topic)
        // Publishes to longer topics are refused, and a refused topic must not be cached.
        if topic.count <= 255 { frames[index] = frame }
        return frame
    }

    /// A hash of the last bytes, where topics differ.
    private static func index(of topic: UnsafeRawBufferPointer) -> Int {
        var sum = UInt64(topic.count)
        for byte in topic.suffix(16) { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return Int(truncatingIfNeeded: (sum ^ sum >> 32) & 0xffff)
    }
}
