import BusKit
import PodcastModel
import WireMessages

struct QueueState: Sendable {
    var queues: Queues = [QueueName.default: NamedQueue(name: QueueName.default)]
    var rules = QueueRules()
}

struct CommandContext: Sendable {
    var command: Command
    var request: WireQueueRequest
    /// The episodes that were looked up in the library, by ID.
    var episodes: [String: WireEpisodeSummary] = [:]
    var now: Moment

    func answer(_ reply: WireQueueReply = WireQueueReply(), about queue: String) -> Answer {
        Answer(command: command, queue: queue, reply: reply)
    }
}

/// A reply to a command, before the fields with the queue’s new state are added.
struct Answer: Sendable {
    var command: Command
    /// The name of the queue that the reply is about.
    var queue: String
    var reply: WireQueueReply
}

/// A command that was forwarded to the player.
package struct PlayerCommand: Sendable {
    var command: Command
    /// The original request, which is executed again if the player has nothing loaded any more.
    var request: WireQueueRequest
    /// The ID of the player’s load when the command was forwarded.
    var load: String
}
