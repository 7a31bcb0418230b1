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
    /// Whether the queue is started where nothing is loaded.
    var startsQueue: Bool
}

/// What an answer about episodes is for.
enum LookupPurpose: Sendable {
    case command(Command, WireQueueRequest)
    case refresh
}
