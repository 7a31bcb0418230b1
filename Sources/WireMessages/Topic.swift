package import PodcastModel

/// The address of an event: `stream/<owner>/…`, `live/<owner>/…`, `bus/heartbeat` or `sync/<nonce>`.
package struct Topic: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The maximum length of a published topic, in bytes.
    package static let limit = 255
    package let text: String

    /// Creates a topic from any text without a check: the bus checks publishes (`TopicRule`).
    package init(_ text: String) { self.text = text }

    package static func stream(_ owner: ServiceName, _ rest: String) -> Topic { Topic("stream/\(owner.text)/\(rest)") }
    package static func live(_ owner: ServiceName, _ rest: String) -> Topic { Topic("live/\(owner.text)/\(rest)") }

    package static let heartbeat = Topic("bus/heartbeat")
    /// The prefix that every observer subscribes to.
    package static let streamPrefix = "stream/"
    /// The status of a service, put by the bus.
    package static func service(_ name: ServiceName) -> Topic { stream(.bus, "service/\(name.text)") }
    package static let playbackState = stream(.playback, "state")
    package static let playbackOutput = stream(.playback, "output")
    /// An event: an episode’s position or played mark changed.
    package static func episodeState(_ episode: String) -> Topic { stream(.playback, "episode/\(episode)") }
    /// An event: the positions or played marks of many episodes changed.
    package static let episodeStates = stream(.playback, "states")
    /// An event: a play session has ended.
    package static let playSession = stream(.playback, "session")
    /// A queue, by name; the default one is `main`.
    package static func queue(_ name: String) -> Topic { stream(.queue, "queue/\(name)") }
    /// The entry that plays next.
    package static let queueNext = stream(.queue, "next")
    /// A playlist’s title, settings and revision, without its items.
    package static func playlist(_ id: String) -> Topic { stream(.queue, "playlist/\(id)") }
    /// A podcast’s metadata and status.
    package static func podcast(_ id: String) -> Topic { stream(.feeds, "podcast/\(id)") }
    /// An event: episodes of a podcast were added, changed or removed.
    package static func episodes(of podcast: String) -> Topic { stream(.feeds, "episodes/\(podcast)") }
    /// An event: episodes were removed from the inbox.
    package static let inbox = stream(.feeds, "inbox")
    package static func bookmarks(of episode: String) -> Topic { stream(.playback, "bookmarks/\(episode)") }
    /// The state of an episode’s file.
    package static func download(_ episode: String) -> Topic { stream(.downloads, "download/\(episode)") }
    /// Telemetry: the progress of a file’s download.
    package static func downloadProgress(_ episode: String) -> Topic { live(.downloads, episode) }
    /// The settings of an owner, for a podcast or, with an empty ID, for all.
    package static func settings(_ owner: ServiceName, podcast: String) -> Topic {
        stream(owner, "settings/\(podcast.isEmpty ? "all" : podcast)")
    }
    package static let persistenceStatus = stream(.persistence, "status")
    /// A job of an owner, which is deleted a minute after it has ended.
    package static func job(_ owner: ServiceName, _ id: String) -> Topic { stream(owner, "job/\(id)") }
    package static func alert(_ owner: ServiceName, _ id: String) -> Topic { stream(owner, "alert/\(id)") }

    package var parts: [Substring] { text.split(separator: "/", omittingEmptySubsequences: false) }

    /// The owner of a `stream/` or `live/` topic.
    package var owner: ServiceName? {
        let parts = self.parts
        guard parts.count >= 3, parts[0] == "stream" || parts[0] == "live" else { return nil }
        return ServiceName(String(parts[1]))
    }

    package static func < (left: Topic, right: Topic) -> Bool { left.text < right.text }
    package var description: String { text }
}

/// A message of the stream, or of telemetry, as received.
package struct StreamEvent: Sendable, Hashable {
    package var topic: Topic
    package var header: BusHeader
    /// A Protobuf message; its type depends on the topic.
    package var payload: [UInt8]

    package init(topic: Topic, header: BusHeader, payload: [UInt8]) {
        self.topic = topic
        self.header = header
        self.payload = payload
    }

    package var position: StreamPosition { StreamPosition(epoch: header.epoch, sequence: header.sequence) }
}

/// A position in the stream. Positions compare by epoch, then by sequence.
package struct StreamPosition: Sendable, Hashable, Comparable {
    package var epoch: UInt64
    /// The sequence of the event in its epoch, from 1; 0 before the first event.
    package var sequence: UInt64

    package init(epoch: UInt64, sequence: UInt64) {
        self.epoch = epoch
        self.sequence = sequence
    }

    package static func < (left: StreamPosition, right: StreamPosition) -> Bool {
        (left.epoch, left.sequence) < (right.epoch, right.sequence)
    }
}

/// An ID of 128 bits for a request and all its repeats.
package struct RequestID: Sendable, Hashable, CustomStringConvertible {
    /// The length on the wire, in bytes.
    package static let length = 16
    /// The first eight bytes, big-endian; `low` holds the last eight.
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    package static func random() -> RequestID {
        RequestID(high: .random(in: .min ... .max), low: .random(in: .min ... .max))
    }

    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.length else { return nil }
        var high: UInt64 = 0
        var low: UInt64 = 0
        for (index, byte) in bytes.enumerated() {
            if index < 8 { high = high << 8 | UInt64(byte) } else { low = low << 8 | UInt64(byte) }
        }
        self.init(high: high, low: low)
    }

    package var bytes: [UInt8] {
        [high, low].flatMap { value in (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) } }
    }

    package var description: String {
        bytes.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
    }
}
