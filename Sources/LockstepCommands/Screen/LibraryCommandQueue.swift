import PodcastModel

/// The commands of the library’s pages: one in flight, those that wait for it, and the reversals of the last ones.
struct LibraryCommandQueue: Sendable {
    enum Decision: Sendable, Hashable {
        /// The command must be sent now.
        case begins
        /// The command is sent after those before it.
        case waits
        case refused(String)
    }

    static let undoLimit = 50
    static let waitingLimit = 9

    private var current: LibraryCommand?
    private var waiting: [LibraryCommand] = []
    private var undos: [LibraryUndo] = []

    /// The reversal of the last command; nil if there is nothing to undo.
    var undo: LibraryUndo? { undos.last }

    mutating func begin(_ command: LibraryCommand) -> Decision {
        guard current != nil else {
            current = command
            return .begins
        }
        // What it would undo depends on the command in flight.
        if case .undo = command { return .refused("The last command is still running; this key was ignored.") }
        guard waiting.count < Self.waitingLimit else {
            return .refused("\(Self.waitingLimit) commands are waiting; this key was ignored.")
        }
        waiting.append(command)
        return .waits
    }

    /// Handles the success of the command in flight.
    ///
    /// - Parameter undo: its reversal; nil if nothing was changed.
    /// - Returns: the next command to send.
    mutating func succeeded(undo: LibraryUndo?) -> LibraryCommand? {
        if let undo { undos = undos.suffix(Self.undoLimit - 1) + [undo] }
        return next()
    }

    /// Handles the success of an undo.
    ///
    /// - Returns: the next command to send.
    mutating func undone() -> LibraryCommand? {
        _ = undos.popLast()
        return next()
    }

    /// Handles the failure of the command in flight: those that wait may depend on it, and are dropped.
    mutating func failed(_ command: LibraryCommand, _ failure: Failure) {
        // What can’t be undone must not prevent the undo of earlier commands.
        if case .undo = command, !failure.retry || failure.known == .revisionMismatch { _ = undos.popLast() }
        (current, waiting) = (nil, [])
    }

    private mutating func next() -> LibraryCommand? {
        current = waiting.isEmpty ? nil : waiting.removeFirst()
        return current
    }
}
