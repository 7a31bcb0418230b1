public import WireMessages
import ZeroMQ

/// Which topics an observer of the stream keeps. Of the others only the places count, so that it knows of each gap.
public struct TopicSelection: Sendable, Hashable {
    /// The beginnings, in UTF-8; nil: every topic.
    private let prefixes: [[UInt8]]?

    /// Every topic, and telemetry.
    public static let all = TopicSelection(nil)

    /// The topics that begin with one of these, and the states of the services.
    public init(prefixes: [String]) {
        self.init((prefixes + [Replica.servicePrefix]).map { Array($0.utf8) })
    }

    private init(_ prefixes: [[UInt8]]?) {
        self.prefixes = prefixes
    }

    /// Whether nothing is left out.
    var isAll: Bool { prefixes == nil }

    /// Whether the topic is kept.
    public func contains(_ topic: Topic) -> Bool {
        prefixes?.contains { topic.text.utf8.starts(with: $0) } ?? true
    }

    func contains(_ topic: Frame) -> Bool {
        guard let prefixes else { return true }
        return topic.withUnsafeBytes { topic in
            prefixes.contains { prefix in
                prefix.count <= topic.count
                    && prefix.withUnsafeBytes {
                        $0.elementsEqual(UnsafeRawBufferPointer(rebasing: topic.prefix($0.count)))
                    }
            }
        }
    }
}
