package import FoundationEssentials
package import SwiftProtobuf

extension SwiftProtobuf.Message {
    /// The message as the bus and the database carry it.
    package var wireBytes: [UInt8] {
        // A proto3 message without `Any` has nothing that could refuse to be written.
        (try? serializedBytes()) ?? []
    }

    /// The message as a `bytes` field of another one carries it.
    package var wireData: Data { (try? serializedData()) ?? Data() }

    /// Reads a message; unknown fields are kept, as a later version may have written them.
    package init(wireBytes: [UInt8]) throws { try self.init(serializedBytes: wireBytes) }
}

extension WireEpisodeSummary {
    /// The summary of an episode that a queue entry and the player carry.
    package init(_ episode: WireEpisode) {
        self.init()
        id = episode.id
        title = episode.title
        podcastID = episode.podcastID
        podcastTitle = episode.podcastTitle
        duration = episode.state.duration > 0 ? episode.state.duration : episode.duration
        position = episode.state.position
        enclosureURL = episode.enclosureURL
        enclosureType = episode.enclosureType
        imageURL = episode.imageURL
        played = episode.state.played
        published = episode.published
    }
}

extension RequestID {
    /// The 16 bytes as a `bytes` field carries them.
    package var data: Data { Data(bytes) }
}
