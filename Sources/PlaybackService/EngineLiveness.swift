import PodcastModel

/// Decides when the engine no longer carries out what it is told.
///
/// It counts checks, and measures no time: a process that was stopped, or a machine that slept, has not hung.
struct EngineLiveness: Sendable, Hashable {
    /// The time between two checks.
    static let interval = Duration.seconds(1)
    /// The number of checks in a row without an answer that mean a hang: more than a disk needs to spin up.
    static let limit = 10

    /// The result of a check.
    enum Verdict: Sendable, Hashable {
        /// Everything has been carried out, or may yet be.
        case isAlive
        /// The engine is to be asked with this number whether all before it has been carried out.
        case asks(UInt64)
        case hangs
    }

    /// How long the saving of the position may take when the engine hangs.
    private static let saving = Duration.seconds(2)

    /// When the process ends, as the engine hangs, saved or not; nil: it works.
    private var endsBy: MonotonicTime?
    private var isEnding = false
    /// The engine runs, and answers; it does from its first file on.
    private var isRunning = false
    /// The number of commands so far.
    private var commands: UInt64 = 0
    /// The number of commands that are known to have been carried out.
    private var answered: UInt64 = 0
    /// The number of the last question.
    private var asked: UInt64 = 0
    private var unanswered = 0

    /// Whether checks are needed.
    var isWaiting: Bool { answered < commands }

    /// Whether the engine hangs, and the process ends, so that another one goes on in its place.
    var hasHung: Bool { endsBy != nil }

    /// When the next check is due.
    ///
    /// - Parameter set: when it is now.
    func nextAt(_ set: MonotonicTime?, isStopping: Bool, now: MonotonicTime) -> MonotonicTime? {
        if let endsBy { return isEnding ? nil : endsBy }
        return isWaiting && !isStopping ? set ?? now.advanced(by: Self.interval) : nil
    }

    /// The engine has been found to hang.
    mutating func hung(now: MonotonicTime) { endsBy = now.advanced(by: Self.saving) }

    /// Whether the process is to end now: nothing is on its way to the database any more, or it took too long.
    mutating func ends(isSaving: Bool, now: MonotonicTime) -> Bool {
        guard let endsBy, !isEnding, !isSaving || now >= endsBy else { return false }
        isEnding = true
        return true
    }

    /// The engine is given a command.
    mutating func record(_ command: EngineCommand) {
        if case .open = command { isRunning = true }
        if case .ping = command { return }
        if isRunning { commands += 1 }
    }

    /// It has answered the question of this number.
    mutating func answer(_ number: UInt64) {
        answered = max(answered, min(number, commands))
        unanswered = 0
    }

    /// Nothing runs that could answer.
    mutating func reset() { self = EngineLiveness() }

    /// The interval has passed while checks were needed.
    mutating func check() -> Verdict {
        guard isWaiting, !hasHung else { return .isAlive }
        guard asked > answered else {
            asked = commands
            return .asks(asked)
        }
        unanswered += 1
        return unanswered >= Self.limit ? .hangs : .isAlive
    }
}
