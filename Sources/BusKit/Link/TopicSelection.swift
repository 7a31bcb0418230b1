package import WireMessages

/// The topics that an observer selects. Unselected topics still advance the sequence, so that it detects every gap.
package struct TopicSelection: Sendable, Hashable {
    /// The prefixes of the selected topics; nil if every topic is selected.
    private let prefixes: [[UInt8]]?

    /// The selection of every topic, with telemetry.
    package static let all = TopicSelection(nil)

    /// Selects the topics with these prefixes and the services’ states. The bus omits the others from its snapshots.
    package init(prefixes: [String]) {
        self.init((prefixes + [Replica.servicePrefix]).map { Array($0.utf8) })
    }

    private init(_ prefixes: [[UInt8]]?) {
        self.prefixes = prefixes
    }

    /// The prefixes to request in a snapshot; nil means all topics.
    var prefixesToInclude: [[UInt8]]? {
        prefixes.flatMap {
            $0.count <= BusLimits.prefixesPerFetch ? $0.filter { !$0.starts(with: Self.telemetry) } : nil
        }
    }

    /// The prefixes of the selected telemetry.
    var telemetryPrefixes: [[UInt8]] {
        prefixes?.filter { $0.starts(with: Self.telemetry) } ?? [Self.telemetry]
    }

    private static let telemetry = Array("live/".utf8)

    /// Whether every topic is selected.
    var isAll: Bool { prefixes == nil }

    /// Whether the topic is selected. The topic of an unselected event isn’t decoded: it is empty, unlike any other.
    package func contains(_ topic: Topic) -> Bool {
        prefixes?.contains { topic.text.utf8.starts(with: $0) } ?? true
    }

    /// Whether the topic with these bytes is selected.
    func contains(topic: UnsafeRawBufferPointer) -> Bool {
        prefixes?.contains { topic.starts(with: $0) } ?? true
    }
}
