import PodcastModel
import WireMessages
import ZeroMQ

/// The topics that a service may publish to: only under its own name, telemetry only on `live/`, at most 255 bytes, no
/// empty part, no control character. It checks the bytes without creating text.
struct TopicRule: Sendable {
    private let streamPrefix: [UInt8]
    private let livePrefix: [UInt8]

    init(owner: ServiceName) {
        streamPrefix = Array("stream/\(owner.text)/".utf8)
        livePrefix = Array("live/\(owner.text)/".utf8)
    }

    /// Whether the owner may publish a message of this kind to the topic.
    func allows(_ topic: UnsafeRawBufferPointer, kind: MessageKind) -> Bool {
        let prefix = kind == .live ? livePrefix : streamPrefix
        guard topic.count > prefix.count, topic.count <= Topic.limit else { return false }
        for index in prefix.indices where topic[index] != prefix[index] { return false }
        var previous = UInt8(ascii: "/")
        var ascii = true
        for byte in topic[prefix.count...] {
            if byte <= 0x20 || byte == 0x7f { return false }
            if byte == UInt8(ascii: "/"), previous == byte { return false }
            if byte >= 0x80 { ascii = false }
            previous = byte
        }
        return previous != UInt8(ascii: "/") && (ascii || String(validating: topic, as: UTF8.self) != nil)
    }
}
