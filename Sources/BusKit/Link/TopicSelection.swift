package import WireMessages

/// Which topics an observer of the stream keeps. Of the others only the places count, so that it knows of each gap.
package struct TopicSelection: Sendable, Hashable {
    /// Topics that begin with one of these are kept; nil: every topic.
    private let prefixes: [[UInt8]]?
    /// Topics that begin with one of these are left out all the same.
    private let excludedPrefixes: [[UInt8]]

    /// Every topic, and telemetry.
    package static let all = TopicSelection(nil, except: [])

    /// The topics that begin with one of these, and the states of the services. The bus leaves the others out of its snapshots.
    package init(prefixes: [String]) {
        self.init((prefixes + [Replica.servicePrefix]).map { Array($0.utf8) }, except: [])
    }

    /// Every topic that begins with none of these. Telemetry is left out too. The bus leaves them out of its snapshots.
    package static func all(except prefixes: [String]) -> TopicSelection {
        TopicSelection(nil, except: prefixes.map { Array($0.utf8) })
    }

    private init(_ prefixes: [[UInt8]]?, except excluded: [[UInt8]]) {
        self.prefixes = prefixes
        excludedPrefixes = excluded
    }

    /// The prefixes that the bus is asked to leave out of a snapshot.
    var prefixesToExclude: [[UInt8]] { excludedPrefixes.count <= BusLimits.prefixesPerFetch ? excludedPrefixes : [] }

    /// The only prefixes that the bus is asked for in a snapshot; nil: for all.
    var prefixesToInclude: [[UInt8]]? {
        prefixes.flatMap {
            $0.count <= BusLimits.prefixesPerFetch ? $0.filter { !$0.starts(with: Self.telemetry) } : nil
        }
    }

    /// The prefixes of the telemetry that is kept.
    var telemetryPrefixes: [[UInt8]] {
        guard let prefixes else { return isAll ? [Self.telemetry] : [] }
        return prefixes.filter { $0.starts(with: Self.telemetry) }
    }

    private static let telemetry = Array("live/".utf8)

    /// Whether nothing is left out.
    var isAll: Bool { prefixes == nil && excludedPrefixes.isEmpty }

    /// Whether the topic is kept.
    package func contains(_ topic: Topic) -> Bool {
        // The topic of an event that is not kept isn't read; no other is empty.
        guard isAll || !topic.text.isEmpty else { return false }
        guard !excludedPrefixes.contains(where: { topic.text.utf8.starts(with: $0) }) else { return false }
        return prefixes?.contains { topic.text.utf8.starts(with: $0) } ?? true
    }

    /// Whether the topic of these bytes is kept.
    func contains(topic: UnsafeRawBufferPointer) -> Bool {
        guard !excludedPrefixes.contains(where: { topic.starts(with: $0) }) else { return false }
        return prefixes?.contains { topic.starts(with: $0) } ?? true
    }
}
