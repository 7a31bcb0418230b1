import LockstepClient
import NIOConcurrencyHelpers
import PodcastModel

/// Prints a player as plain text or JSON, and the digits that answer alerts.
actor PlainPlayer {
    private let output: Output
    private let keys: NIOLockedValueBox<PlayerMachine>?
    private let now: @Sendable () -> Moment
    private let say: @Sendable (String) throws -> Void
    private var state: FleetState?
    private var narrator = PlainSentences()
    private var isFinished = false

    /// Creates a printer; `keys` is the machine that handles keys, or nil.
    init(
        _ output: Output, keys: NIOLockedValueBox<PlayerMachine>?,
        now: @escaping @Sendable () -> Moment = { SystemClocks.now() },
        say: @escaping @Sendable (String) throws -> Void
    ) {
        (self.output, self.keys, self.now, self.say) = (output, keys, now, say)
    }

    /// - Returns: whether the live state has been printed.
    func handle(_ update: FleetUpdate) throws -> Bool {
        guard !isFinished else { return true }
        keys?.withLockedValue { $0.apply(update, now: now()) }
        let snapshot = apply(update.state)
        if !output.json {
            try printChanges(snapshot)
        } else if update.changes.contains(where: \.concernsPlayer) {
            let alerts = JSONValue.array(update.state.alerts.map(\.json))
            try say(update.state.player.json(at: now()).adding("alerts", alerts).line)
        }
        return snapshot.connection == .live
    }

    /// Prints the changes up to the last state. Later updates, which may be older, are ignored.
    func finish(_ state: FleetState) throws {
        isFinished = true
        if !output.json { try printChanges(apply(state)) }
    }

    private func apply(_ state: FleetState) -> PlayerSnapshot {
        self.state = state
        keys?.withLockedValue { $0.apply(state) }
        return snapshot(of: state, at: now())
    }

    /// Assigns released digits to answers without one, and prints them.
    func assignDigits() throws {
        if keys != nil, !output.json, let state { try printChanges(snapshot(of: state, at: now())) }
    }

    /// The time until the next digit is released; nil if none is reserved.
    var nextDigit: Duration? {
        let release = keys?.withLockedValue(\.nextDigit)
        return release.map { max(.zero, $0.since(now().monotonic)) }
    }

    private func printChanges(_ snapshot: PlayerSnapshot) throws {
        for line in narrator.lines(for: snapshot, now: now().monotonic) { try say(line) }
    }

    private func snapshot(of state: FleetState, at now: Moment) -> PlayerSnapshot {
        let numbered = keys?.withLockedValue { keys in
            keys.tick(now: now)
            return keys.snapshot(at: now)
        }
        return numbered ?? PlayerSnapshot(state, now: now)
    }
}

extension FleetChange {
    fileprivate var concernsPlayer: Bool {
        switch self {
        case .player, .everything, .alert: true
        default: false
        }
    }
}
