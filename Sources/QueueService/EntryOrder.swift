import WireMessages

/// A stable sort order of entries by one key; entries without a value for it are last.
struct EntryOrder {
    private let key: WireSortEntries.Key
    private let descending: Bool
    /// The name of the key in messages.
    let name: String

    /// Returns nil for an unknown key.
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

    /// Returns the text or the number by which an entry is sorted; nil if it has none.
    private func value(_ entry: WireQueueEntry) -> (text: String, number: Double)? {
        let episode = entry.episode
        switch key {
        case .title: return episode.title.isEmpty ? nil : (episode.title.lowercased(), 0)
        case .podcast: return episode.podcastTitle.isEmpty ? nil : (episode.podcastTitle.lowercased(), 0)
        case .published: return episode.published == 0 ? nil : ("", Double(episode.published))
        case .duration: return episode.duration > 0 ? ("", episode.duration) : nil
        case .added: return ("", Double(entry.addedAt))
        case .remaining: return episode.duration > 0 ? ("", max(0, episode.duration - episode.position)) : nil
        case .unknown, .UNRECOGNIZED: return nil
        }
    }
}
