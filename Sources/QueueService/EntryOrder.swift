import WireMessages

/// A stable order of entries by one key; those that lack it come last.
struct EntryOrder {
    private let key: WireSortEntries.Key
    private let descending: Bool
    /// The key in words.
    let name: String

    /// Nil for a key that is not known.
    init?(_ key: WireSortEntries.Key, descending: Bool) {
        self.key = key
        self.descending = descending
        switch key {
        case .title: name = "title"
        case .podcast: name = "podcast"
        case .published: name = "publication"
        case .duration: name = "length"
        case .added: name = "time of adding"
        case .remaining: name = "remaining time"
        case .unknown, .UNRECOGNIZED: return nil
        }
    }

    /// The entries in this order.
    func sorted(_ entries: [WireQueueEntry]) -> [WireQueueEntry] {
        let keys = entries.map(value)
        let order = entries.indices.sorted { left, right in
            switch (keys[left], keys[right]) {
            case (let first?, let second?) where first != second: return (first < second) != descending
            case (nil, .some): return false
            case (.some, nil): return true
            default: return left < right
            }
        }
        return order.map { entries[$0] }
    }

    private struct Value: Comparable {
        var text = ""
        var number = 0.0
        static func < (left: Value, right: Value) -> Bool {
            (left.text, left.number) < (right.text, right.number)
        }
    }

    private func value(_ entry: WireQueueEntry) -> Value? {
        let episode = entry.episode
        switch key {
        case .title: return episode.title.isEmpty ? nil : Value(text: episode.title.lowercased())
        case .podcast: return episode.podcastTitle.isEmpty ? nil : Value(text: episode.podcastTitle.lowercased())
        case .published: return episode.published == 0 ? nil : Value(number: Double(episode.published))
        case .duration: return episode.duration > 0 ? Value(number: episode.duration) : nil
        case .added: return Value(number: Double(entry.addedAt))
        case .remaining:
            return episode.duration > 0 ? Value(number: max(0, episode.duration - episode.position)) : nil
        case .unknown, .UNRECOGNIZED: return nil
        }
    }
}
