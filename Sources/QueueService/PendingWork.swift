import BusKit
import WireMessages

/// What to do once a transaction's outcome is known.
struct PendingTransaction: Sendable {
    var command: Command?
    var loads: Bool
    /// The podcast of which new episodes entered by themselves, or would have.
    var podcast: String?
}

/// A command that the player answers.
struct PlayerCommand: Sendable {
    var command: Command
    /// The request, to be decided again where nothing is loaded any more; nil: the player’s refusal is the answer.
    var request: WireQueueRequest?
    /// The load that the player showed when it was asked.
    var load: String
}

/// What an answer about episodes is for.
enum LookupPurpose: Sendable {
    case command(Command, WireQueueRequest)
    case refresh
}
