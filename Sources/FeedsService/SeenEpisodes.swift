package import PodcastModel

/// The known episodes of a podcast, with a fingerprint of the feed’s data on each and the time at which it was first
/// seen. Each episode needs 22 bytes, so that a podcast’s episodes fit in one record, and those of all podcasts in
/// memory.
package struct SeenEpisodes: Sendable, Hashable {
    package struct Entry: Sendable, Hashable {
        /// `goneFingerprint` if the feed no longer contains the episode.
        package var fingerprint: UInt64
        /// The time at which the episode was first seen, in seconds since 1970.
        package var firstSeen: UInt32
    }

    /// The 80 bits of a derived ID.
    package struct Key: Sendable, Hashable {
        let high: UInt64
        let low: UInt16

        /// Returns nil for an ID that wasn’t derived.
        package init?(_ id: EpisodeID) {
            let digits = id.text.dropFirst()
            guard digits.utf8.count == 20, let high = UInt64(digits.prefix(16), radix: 16),
                let low = UInt16(digits.suffix(4), radix: 16)
            else { return nil }
            self.init(high: high, low: low)
        }

        init(high: UInt64, low: UInt16) {
            self.high = high
            self.low = low
        }

        package var id: EpisodeID? {
            let high = String(high, radix: 16)
            let low = String(low, radix: 16)
            let zeros = String(repeating: "0", count: 16)
            return EpisodeID("e" + zeros.dropFirst(high.count) + high + zeros.dropFirst(12 + low.count) + low)
        }
    }

    /// The fingerprint of an episode that has vanished from the feed: it counts as changed when it returns.
    package static let goneFingerprint: UInt64 = 1

    private static let stride = 22
    package private(set) var packed: [UInt8]

    package init() {
        packed = []
    }

    /// Decodes the stored form; bytes after the last whole entry are ignored.
    package init(packed: [UInt8]) {
        self.packed = Array(packed.prefix(packed.count / Self.stride * Self.stride))
    }

    package init(_ entries: [Key: Entry]) {
        packed = []
        packed.reserveCapacity(entries.count * Self.stride)
        for (key, entry) in entries.sorted(by: { ($0.key.high, $0.key.low) < ($1.key.high, $1.key.low) }) {
            append(key.high)
            append(key.low)
            append(entry.fingerprint)
            append(entry.firstSeen)
        }
    }

    private mutating func append(_ value: some FixedWidthInteger & UnsignedInteger) {
        for shift in Swift.stride(from: value.bitWidth - 8, through: 0, by: -8) {
            packed.append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }

    package var count: Int { packed.count / Self.stride }

    /// The episodes by key.
    package var entries: [Key: Entry] {
        var entries: [Key: Entry] = [:]
        entries.reserveCapacity(count)
        for start in Swift.stride(from: 0, to: packed.count, by: Self.stride) {
            func number(_ offset: Int, _ length: Int) -> UInt64 {
                packed[(start + offset)..<(start + offset + length)].reduce(0) { $0 << 8 | UInt64($1) }
            }
            let key = Key(high: number(0, 8), low: UInt16(truncatingIfNeeded: number(8, 2)))
            entries[key] = Entry(
                fingerprint: number(10, 8), firstSeen: UInt32(truncatingIfNeeded: number(18, 4)))
        }
        return entries
    }

    package var ids: [String] { entries.keys.compactMap { $0.id?.text }.sorted() }

    /// The same episodes without fingerprints, so that each counts as changed.
    package var withoutFingerprints: SeenEpisodes {
        SeenEpisodes(entries.mapValues { Entry(fingerprint: 0, firstSeen: $0.firstSeen) })
    }
}
