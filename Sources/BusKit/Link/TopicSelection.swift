package import WireMessages

/// Which topics an observer of the stream keeps. Of the others only the places count, so that it knows of each gap.
package struct TopicSelection: Sendable, Hashable {
    /// Topics that begin with one of these are kept; nil: every topic.
    private let prefixes: [[UInt8]]?

    /// Every topic, and telemetry.
    package static let all = TopicSelection(nil)

    /// The topics that begin with one of these, and the states of the services. The bus leaves the others out of its snapshots.
    package init(prefixes: [String]) {
        self.init((prefixes + [Replica.servicePrefix]).map { Array($0.utf8) })
    }

    private init(_ prefixes: [[UInt8]]?) {
        self.prefixes = prefixes
    }

    /// The only prefixes that the bus is asked for in a snapshot; nil: for all.
    var prefixesToInclude: [[UInt8]]? {
        prefixes.flatMap {
            $0.count <= BusLimits.prefixesPerFetch ? $0.filter { !$0.starts(with: Self.telemetry) } : nil
        }
    }

    /// The prefixes of the telemetry that is kept.
    var telemetryPrefixes: [[UInt8]] {
        prefixes?.filter { $0.starts(with: Self.telemetry) } ?? [Self.telemetry]
    }

    private static let telemetry = Array("live/".utf8)

    /// Whether nothing is left out.
    var isAll: Bool { prefixes == nil }

    /// Whether the topic is kept. That of an event that is not kept isn’t read: it is empty, which no other is.
    package func contains(_ topic: Topic) -> Bool {
        prefixes?.contains { topic.text.utf8.starts(with: $0) } ?? true
    }

    /// Whether the topic of these bytes is kept.
    func contains(topic: UnsafeRawBufferPointer) -> Bool {
        prefixes?.contains { topic.starts(with: $0) } ?? true
    }
}
