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

/// A reply to a command, without the fields that describe the state after it.
struct Answer: Sendable {
    var command: Command
    /// The name of the queue that the reply is about.
    var queue: String
    var reply: WireQueueReply
}

/// A command that the player answers.
package struct PlayerCommand: Sendable {
    var command: Command
    /// The request, to be decided again if nothing is loaded any more.
    var request: WireQueueRequest
    /// The load that the player showed when the request was sent.
    var load: String
}
