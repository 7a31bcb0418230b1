/// An identifier. Each kind has its own type.
///
/// On the wire and on the command line it is its `text`: the letter of its kind, then lower-case base 32 or hexadecimal
/// digits, so that it never looks like a number.
public protocol Identifier: Sendable, Hashable, Comparable, Codable, CustomStringConvertible {
    /// The letter that every identifier of this kind begins with.
    static var prefix: Character { get }
    /// The identifier for users and the wire.
    var text: String { get }
    /// Creates an identifier; nil unless `text` is the kind’s letter and 1 to 63 ASCII letters and digits.
    init?(_ text: String)
}

extension Identifier {
    /// The identifier as text.
    public var description: String { text }

    /// Orders identifiers by their text.
    public static func < (left: Self, right: Self) -> Bool { left.text < right.text }

    /// Whether `text` has the form of an identifier of this kind.
    static func accepts(_ text: String) -> Bool {
        text.first == prefix && (2...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0.isASCIIDigit || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
    }

    /// Derives an identifier from `seed`: the same for the same seed, on every machine.
    ///
    /// 80 bits of two FNV-1a hashes over different offsets: stable and short, not for security.
    public static func derived(from seed: String) -> Self {
        with(
            fnv1a(seed.utf8, basis: 0xcbf2_9ce4_8422_2325), fnv1a(seed.utf8.reversed(), basis: 0x8422_2325_cbf2_9ce4))
    }

    /// Creates a random identifier.
    public static func random() -> Self {
        with(.random(in: .min ... .max), .random(in: .min ... .max))
    }

    /// Creates an identifier from 80 bits: all of `high` and the last 16 of `low`.
    private static func with(_ high: UInt64, _ low: UInt64) -> Self {
        let text = padded(String(high, radix: 16), 16) + padded(String(low & 0xffff, radix: 16), 4)
        guard let id = Self(String(prefix) + text) else { preconditionFailure("20 hexadecimal digits are accepted") }
        return id
    }
}

/// FNV-1a, 64 bits (constants from draft-eastlake-fnv), followed by a mixing of its bits.
private func fnv1a(_ bytes: some Sequence<UInt8>, basis: UInt64) -> UInt64 {
    var hash = basis
    for byte in bytes {
        hash ^= UInt64(byte)
        hash = hash &* 0x0000_0100_0000_01b3
    }
    // SplitMix64’s finaliser: FNV alone gives similar texts similar prefixes, and users type prefixes of IDs.
    hash = (hash ^ hash >> 30) &* 0xbf58_476d_1ce4_e5b9
    hash = (hash ^ hash >> 27) &* 0x94d0_49bb_1331_11eb
    return hash ^ hash >> 31
}

/// The ID of a current or former subscription. Begins with `p`.
public struct PodcastID: Identifier {
    /// The letter of this kind.
    public static let prefix: Character = "p"
    /// The identifier for users and the wire.
    public let text: String
    /// Creates an ID; nil unless `text` has this kind’s form.
    public init?(_ text: String) {
        guard Self.accepts(text) else { return nil }
        self.text = text
    }
}

/// The ID of an episode. Begins with `e`; doesn’t change when the feed moves or changes its GUIDs.
public struct EpisodeID: Identifier {
    /// The letter of this kind.
    public static let prefix: Character = "e"
    /// The identifier for users and the wire.
    public let text: String
    /// Creates an ID; nil unless `text` has this kind’s form.
    public init?(_ text: String) {
        guard Self.accepts(text) else { return nil }
        self.text = text
    }
}

/// The ID of a queue entry. Begins with `q`; each added episode gets a new one.
public struct QueueEntryID: Identifier {
    /// The letter of this kind.
    public static let prefix: Character = "q"
    /// The identifier for users and the wire.
    public let text: String
    /// Creates an ID; nil unless `text` has this kind’s form.
    public init?(_ text: String) {
        guard Self.accepts(text) else { return nil }
        self.text = text
    }
}

/// The ID of one occurrence of an alert. Begins with `a`.
public struct AlertID: Identifier {
    /// The letter of this kind.
    public static let prefix: Character = "a"
    /// The identifier for users and the wire.
    public let text: String
    /// Creates an ID; nil unless `text` has this kind’s form.
    public init?(_ text: String) {
        guard Self.accepts(text) else { return nil }
        self.text = text
    }
}

/// The ID of a job, which goes on without the client that requested it. Begins with `j`.
public struct JobID: Identifier {
    /// The letter of this kind.
    public static let prefix: Character = "j"
    /// The identifier for users and the wire.
    public let text: String
    /// Creates an ID; nil unless `text` has this kind’s form.
    public init?(_ text: String) {
        guard Self.accepts(text) else { return nil }
        self.text = text
    }
}

/// The ID of a load of an episode into the engine. Begins with `l`; repeating an episode is another load.
public struct LoadID: Identifier {
    /// The letter of this kind.
    public static let prefix: Character = "l"
    /// The identifier for users and the wire.
    public let text: String

    /// The load that the queue starts automatically when another one has ended.
    public static func advance(after load: String) -> LoadID { derived(from: "advance/\(load)") }

    /// Creates an ID; nil unless `text` has this kind’s form.
    public init?(_ text: String) {
        guard Self.accepts(text) else { return nil }
        self.text = text
    }
}

/// The ID of a bookmark. Begins with `b`.
public struct BookmarkID: Identifier {
    /// The letter of this kind.
    public static let prefix: Character = "b"
    /// The identifier for users and the wire.
    public let text: String
    /// Creates an ID; nil unless `text` has this kind’s form.
    public init?(_ text: String) {
        guard Self.accepts(text) else { return nil }
        self.text = text
    }
}

/// The ID of a play session: a period in which an episode was heard. Begins with `s`.
public struct PlaySessionID: Identifier {
    /// The letter of this kind.
    public static let prefix: Character = "s"
    /// The identifier for users and the wire.
    public let text: String
    /// Creates an ID; nil unless `text` has this kind’s form.
    public init?(_ text: String) {
        guard Self.accepts(text) else { return nil }
        self.text = text
    }
}
