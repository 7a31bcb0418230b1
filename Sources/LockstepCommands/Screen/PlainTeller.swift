import BusKit
import LockstepClient
import NIOConcurrencyHelpers
import PodcastModel
import WireMessages

/// A player in words: says what the stream brings, and which digits answer its alerts, one thing after the other.
actor PlainTeller {
    private let output: Output
    private let keys: NIOLockedValueBox<PlayerMachine>?
    private let now: @Sendable () -> Moment
    private let say: @Sendable (String) throws -> Void
    private var view = FleetView()
    private var narrator = PlainNarrator()

    /// A teller; `keys` is the player behind the keys, where somebody can press any.
    init(
        _ output: Output, keys: NIOLockedValueBox<PlayerMachine>?,
        now: @escaping @Sendable () -> Moment = { SystemClocks.now() },
        say: @escaping @Sendable (String) throws -> Void
    ) {
        (self.output, self.keys, self.now, self.say) = (output, keys, now, say)
    }

    /// Says what an update changes.
    ///
    /// - Returns: whether what there is has been said.
    func apply(_ update: ReplicaUpdate) throws -> Bool {
        let changes = view.apply(update)
        keys?.withLockedValue { $0.apply(update) }
        let snapshot = snapshot(at: now())
        // The first word is said once there is something to say.
        if case .connection(.connecting) = update { return false }
        guard !changes.isEmpty else { return false }
        if !output.json {
            try tell(snapshot)
        } else if changes.contains(where: \.concernsPlayer) {
            let alerts = JSONValue.array(view.alertsInOrder.map(\.json))
            try say((view.player ?? WirePlaybackState()).nowJSON.adding("alerts", alerts).line)
        }
        return snapshot.link == .live
    }

    /// Gives digits that have become free to the answers that wait for one, and says so.
    func giveDigits() throws {
        if keys != nil, !output.json { try tell(snapshot(at: now())) }
    }

    /// How long until the next digit becomes free; nil: none is kept back.
    var nextDigit: Duration? {
        let release = keys?.withLockedValue(\.nextDigit)
        return release.map { max(.zero, $0.since(now().monotonic)) }
    }

    private func tell(_ snapshot: PlayerSnapshot) throws {
        for line in narrator.lines(for: snapshot, now: now().monotonic) { try say(line) }
    }

    private func snapshot(at now: Moment) -> PlayerSnapshot {
        let numbered = keys?.withLockedValue { keys in
            keys.tick(now: now)
            return keys.snapshot(at: now)
        }
        return numbered ?? PlayerSnapshot(view, now: now, bootID: SystemClocks.bootID)
    }
}

extension FleetView.Change {
    /// Whether a player that prints JSON says it.
    fileprivate var concernsPlayer: Bool {
        switch self {
        case .player, .everything, .alert: true
        default: false
        }
    }
}
