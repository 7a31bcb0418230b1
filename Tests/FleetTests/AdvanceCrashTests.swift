import BusKit
import EngineDouble
import LockstepClient
import NIOConcurrencyHelpers
import PlaybackService
import PodcastModel
import TestSupport
import Testing
import WireMessages

/// Tests the advance from a finished episode to the next one, with a crash at each step.
@Suite(.timeLimit(.minutes(5)))
struct AdvanceCrashTests {
    /// The step at which the crash happens.
    enum Step: Sendable, CaseIterable {
        /// The crash happens while the episode’s end, the advance or the next load is committed, before the reply.
        case firstCommit, secondCommit, thirdCommit
        /// The crash happens at the first event on the stream that shows the step.
        case finishedSeen, advanceSeen, loadSeen, playingSeen

        /// The index of the commit after the episode’s end at which the crash happens.
        var commit: Int? {
            switch self {
            case .firstCommit: 1
            case .secondCommit: 2
            case .thirdCommit: 3
            default: nil
            }
        }

        /// Whether the stream shows this step for `entry`.
        func isSeen(_ view: FleetView, entry: String) -> Bool {
            switch self {
            case .finishedSeen: view.player?.queueEntry == entry && view.player?.status == .finished
            case .advanceSeen: view.mainQueue.map { queue in !queue.entries.contains { $0.id == entry } } ?? false
            case .loadSeen: view.player.map { $0.queueEntry != entry } ?? false
            case .playingSeen: view.player.map { $0.queueEntry != entry && $0.status == .playing } ?? false
            default: false
            }
        }
    }

    /// The services that are killed.
    enum Victim: Sendable, CaseIterable {
        case player, queue, database, bus, all

        var services: [ServiceName] {
            switch self {
            case .player: [.playback]
            case .queue: [.queue]
            case .database: [.persistence]
            case .bus: []
            case .all: [.queue, .playback, .persistence]
            }
        }
    }

    @Test(arguments: Victim.allCases)
    func `a crash at any step of an advance neither skips nor repeats an episode`(victim: Victim) async throws {
        let count = 2 * Step.allCases.count + 1
        try await WholeFleet.with(files: WholeFleet.files(count)) { fleet in
            let crash = Crash(fleet, victim)
            try await fleet.restart(.persistence)
            try await fleet.untilReady([.persistence])
            try await fleet.fillLibrary(episodes: count)
            let episodes = (1...count).map(WholeFleet.episode)
            try await fleet.queue { $0.add.episodes = episodes }
            try await fleet.queue { $0.play.episode = episodes[0] }
            for (number, step) in Step.allCases.enumerated() {
                let index = 2 * number
                try await fleet.watcher.until("episode \(index) plays") {
                    $0.player?.episode.id == episodes[index] && $0.player?.status == .playing
                }
                let entry = try #require(fleet.watcher.view.player).queueEntry
                try await crash.inject(at: step, entry: entry)
                let view = try await fleet.watcher.until("the advance, after a crash of \(victim) at \(step)") { view in
                    view.connection == .live && view.player?.episode.id == episodes[index + 1]
                        && view.player?.status == .playing
                        && view.mainQueue?.current == view.player?.queueEntry
                }
                #expect(view.mainQueue?.entries.map(\.episode.id) == Array(episodes[(index + 1)...]), "at \(step)")
                #expect(view.alerts.isEmpty, "at \(step)")
                let expected = Set(episodes[...index])
                #expect(try await Self.played(of: episodes, until: expected, fleet) == expected, "at \(step)")
                // A second crash during one episode would pause it, so the next episode ends without a crash.
                try fleet.engine().advance(seconds: 1_000)
            }
            try await fleet.watcher.until("the last episode plays") {
                $0.player?.episode.id == episodes[count - 1] && $0.player?.status == .playing
            }
            // No episode is skipped, and none is played again after its successor.
            let loads = fleet.watcher.loads
            #expect(loads.count == Set(loads).count && loads.count <= count)
        }
    }

    /// The episodes that are stored as played. A state that a stopped database refused is saved within seconds.
    private static func played(
        of episodes: [String], until expected: Set<String>, _ fleet: WholeFleet
    ) async throws -> Set<String> {
        let end = ContinuousClock.now + .seconds(40)
        while true {
            let states = try await fleet.database.episodes(ids: episodes)
            let played = Set(states.filter(\.state.played).map(\.id))
            if played == expected || ContinuousClock.now > end { return played }
            try await ContinuousClock().sleep(for: .milliseconds(20))
        }
    }
}

/// Kills services at a step of an advance and restarts them.
private final class Crash: Sendable {
    private let fleet: WholeFleet
    private let victim: AdvanceCrashTests.Victim
    private let files: NIOLockedValueBox<WatchedFiles?>
    private struct State {
        /// The number of commits until the crash; nil means no crash at a commit.
        var remaining: Int?
        /// Whether the process that opened the database’s files was killed: every operation then fails.
        var isDead = false
        var killed: AsyncStream<Void>.Continuation?
    }
    private let state = NIOLockedValueBox(State())

    init(_ fleet: WholeFleet, _ victim: AdvanceCrashTests.Victim) {
        self.fleet = fleet
        self.victim = victim
        files = NIOLockedValueBox(nil)
        let watched = WatchedFiles(fleet.bus.home.database) { [weak self] event in
            self?.result(of: event) ?? WatchedFiles.proceed
        }
        files.withLockedValue { $0 = watched }
    }

    /// Runs on the database’s thread, before the operation.
    private func result(of event: WatchedFiles.Event) -> Int32 {
        let isLastCommit = state.withLockedValue { state in
            guard event.operation == .sync, event.path.hasSuffix("-wal"), let remaining = state.remaining else {
                return false
            }
            state.remaining = remaining > 1 ? remaining - 1 : nil
            return remaining == 1
        }
        if isLastCommit { killServices() }
        return state.withLockedValue(\.isDead) ? WatchedFiles.ioError : WatchedFiles.proceed
    }

    private func killServices() {
        for service in victim.services { fleet.kill(service) }
        state.withLockedValue { state in
            // The current write never reaches the disk, and no error is reported.
            state.isDead = victim.services.contains(.persistence)
            state.killed?.finish()
            state.killed = nil
        }
    }

    /// Ends the episode, kills the service under test at the step, and restarts it.
    func inject(at step: AdvanceCrashTests.Step, entry: String) async throws {
        // Once this commit is durable, so are all earlier ones: only commits after the episode’s end are counted.
        try await fleet.player { $0.setVolume.volume = Double(40 + entry.utf8.reduce(0) { ($0 + Int($1)) % 50 }) }
        let killed = AsyncStream<Void>.makeStream()
        state.withLockedValue { state in
            state.killed = killed.continuation
            state.remaining = step.commit
        }
        if step.commit == nil {
            let once = NIOLockedValueBox(false)
            fleet.watcher.each { view in
                guard step.isSeen(view, entry: entry), !once.withLockedValue({ $0 }) else { return }
                once.withLockedValue { $0 = true }
                self.killServices()
            }
        }
        try fleet.engine().advance(seconds: 1_000)
        for await _ in killed.stream {}
        fleet.watcher.each(nil)
        for service in victim.services { await fleet.untilStopped(service) }
        state.withLockedValue { $0.isDead = false }
        if victim == .bus { try await fleet.bus.restartBus() }
        for service in victim.services.reversed() { try fleet.start(service) }
        try await fleet.untilReady(victim.services)
        // A player that was killed before the end was durable plays the episode again to its end.
        if victim.services.contains(.playback) {
            try await fleet.watcher.until("the player is ready again") { $0.player?.status != .loading }
            let player = fleet.watcher.view.player
            if player?.queueEntry == entry, player?.status == .playing { try fleet.engine().advance(seconds: 1_000) }
        }
    }
}
