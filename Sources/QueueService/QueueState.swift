import BusKit
import PodcastModel
import WireMessages

struct QueueState: Sendable {
    var queues: Queues = [QueueName.default: NamedQueue(name: QueueName.default)]
    var playlists: Playlists = [PlaylistName.favourites: .favourites]
    /// The playlists whose deletion can be undone.
    var deleted = DeletedPlaylists()
    var rules = QueueRules()
}

struct CommandContext: Sendable {
    var command: Command
    var request: WireQueueRequest
    /// The episodes that were looked up in the library, by ID.
    var episodes: [String: WireEpisodeSummary] = [:]
    var now: Moment

    func answer(_ reply: WireQueueReply = WireQueueReply(), about queue: String) -> Answer {
        Answer(command: command, list: .queue(queue), reply: reply)
    }

    func answer(_ reply: WireQueueReply = WireQueueReply(), aboutPlaylist id: String) -> Answer {
        Answer(command: command, list: .playlist(id), reply: reply)
    }
}

/// A reply to a command, before the fields with the list’s new state are added.
struct Answer: Sendable {
    var command: Command
    /// The queue or playlist that the reply is about.
    var list: ListID
    var reply: WireQueueReply
}

/// A command that was forwarded to the player.
package struct PlayerCommand: Sendable {
    var command: Command
    /// The original request, which is executed again if the player has nothing loaded any more.
    var request: WireQueueRequest
    /// The ID of the player’s load when the command was forwarded.
    var load: String
    /// The player’s request, and the step of the command that derives its ID.
    var forwarded: WirePlaybackRequest.OneOf_Command
    var step: String
    /// The reply, to which the player’s answer is added.
    var reply = WireQueueReply()
}
