import BusKit
import EngineDouble
import NIOConcurrencyHelpers
import OwnerKit
import PlaybackService
import PodcastModel
import QueueService
import SwiftProtobuf
import WireMessages

/// Connects the machines of the queue and the player through a simulated database and stream. Every message waits until
/// the seed releases it; audio, files, the sound device and the disk fail and recover; either process can be killed at
/// any moment.
final class QueueSimulation {
    var random: SeededGenerator
    var queue = QueueMachine()
    var player = PlaybackMachine(context: PlaybackContext(bootID: "boot", fleetRun: "run"))
    /// The player’s state after its last event.
    var playerState = WirePlaybackState()
    private(set) var engine: SimulatedEngine
    private let breaksGuarantee: Bool
    private let reported = NIOLockedValueBox<[EngineEvent]>([])
    private(set) var now: Moment
    var sources: SimulatedSources
    var states: [String: WireEpisodeState] = [:]

    // The state that survives a restart.
    var queueRecords: [String: StoredRecord] = [:]
    var playerRecords: [String: StoredRecord] = [:]
    var stored: [RequestID: [UInt8]] = [:]
    var retained: [Topic: [Publication]] = [:]
    var device = SimulatedDevice()
    /// The number of steps for which the database’s disk is full.
    var fullDiskSteps = 0
    /// The number of steps until a service is killed during a fault; 0 if there is none.
    var stepsUntilKill = 0

    // The messages in flight.
    var queueInbox: [QueueMachine.Event] = []
    var playerInbox: [PlaybackMachine.Event] = []
    var queueCommits = SimulatedCommits<QueueMachine.Step>()
    var playerCommits = SimulatedCommits<PlaybackMachine.Step>()
    var calls: [RequestID: (number: Int, call: QueueMachine.Call)] = [:]
    var callCount = 0
    /// The calls that the player has received and not answered.
    var runningCalls: Set<RequestID> = []
    var queueTimers: [QueueMachine.Timer: MonotonicTime] = [:]
    var playerTimers: [PlaybackMachine.Timer: MonotonicTime] = [:]

    // The state for the checks.
    var speculative = QueueModels()
    var durable = QueueModels()
    var seenByQueue = WirePlaybackState()
    var early = SimulatedScreen()
    var late = SimulatedScreen()
    var checks = SimulationChecks()
    var listening = ListeningChecks()
    var guarantees = GuaranteeChecks()
    var isRestarting = false
    var requests: UInt64 = 0

    /// - Parameter breaksGuarantee: whether the engine starts the prepared episode when something fails.
    init(seed: UInt64, episodes count: Int = 12, breaksGuarantee: Bool = false) throws {
        random = SeededGenerator(seed: seed)
        self.breaksGuarantee = breaksGuarantee
        now = Moment(
            monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000),
            wall: Timestamp(milliseconds: 1_700_000_000_000))
        engine = SimulatedEngine(observer: { _ in })
        sources = try SimulatedSources(count: count, random: &random)
        try startPlayer()
        try startQueue()
        command {
            $0.queue = "work"; $0.create = WireCreateQueue()
        }
        handleQueue()
        try settleQueue()
    }

    // MARK: Processes

    func startPlayer() throws {
        player = PlaybackMachine(context: PlaybackContext(bootID: "boot", fleetRun: "run"))
        reported.withLockedValue { $0 = [] }
        engine = SimulatedEngine(files: sources.files(&random), now: now.monotonic) { [reported] event in
            reported.withLockedValue { $0.append(event) }
        }
        if breaksGuarantee { engine.beginPreparedAfterFailure() }
        device.attach(to: engine)
        playerInbox = []
        playerCommits = .init()
        playerTimers = [:]
        runningCalls = []
        guarantees.dropPlayerRequests()
        let effects = player.restore(Self.sorted(playerRecords), now: now)
        playerState = player.state
        try publish(replacing(.playback, with: player.retained(now: now)))
        perform(effects)
        try announcePlayer(.ready)
        for (request, value) in calls.sorted(by: { $0.value.number < $1.value.number }) {
            deliver(value.call.payload, as: request)
        }
    }

    func announcePlayer(_ state: WireServiceStatus.State) throws {
        let status = WireServiceStatus.with {
            $0.name = "playback"
            $0.state = state
        }
        try publish([Publication(.put, .service(.playback), status.wireBytes)])
    }

    func startQueue() throws {
        queue = QueueMachine()
        queueInbox = []
        queueCommits = .init()
        queueTimers = [:]
        calls = [:]
        guarantees.dropQueueRequests()
        speculative = durable
        perform(queue.restore(Self.sorted(queueRecords), now: now), models: nil)
        try publish(replacing(.queue, with: queue.retained(now: now)))
        for topic in retained.keys.sorted() where topic.owner == .playback || topic == .service(.playback) {
            for publication in retained[topic] ?? [] { deliverToQueue(publication) }
        }
    }

    /// Returns publications that replace all retained values of the service’s previous process.
    private func replacing(_ owner: ServiceName, with values: [Publication]) -> [Publication] {
        let removed = Set(retained.keys.filter { $0.owner == owner }).subtracting(values.map(\.topic))
        return removed.sorted().map { Publication(.delete, $0) } + values
    }

    private static func sorted(_ records: [String: StoredRecord]) -> [StoredRecord] {
        records.values.sorted { ($0.collection, $0.key) < ($1.collection, $1.key) }
    }

    // MARK: Time

    /// Advances the time; due timers fire at their deadlines or later.
    func pass(_ seconds: Double) throws {
        let end = now.monotonic.advanced(by: .seconds(seconds))
        for _ in 0..<8 {
            let players = playerTimers.min { ($0.value, "\($0.key)") < ($1.value, "\($1.key)") }
            let queues = queueTimers.min { ($0.value, "\($0.key)") < ($1.value, "\($1.key)") }
            guard let time = [players?.value, queues?.value].compactMap({ $0 }).min(), time <= end else { break }
            try advance(to: max(now.monotonic, time))
            if let players, players.value == time {
                playerTimers[players.key] = nil
                handle(PlaybackMachine.Event.timer(players.key))
            } else if let queues {
                queueTimers[queues.key] = nil
                handle(QueueMachine.Event.timer(queues.key))
            }
        }
        try advance(to: end)
    }

    private func advance(to time: MonotonicTime) throws {
        let passed = time.since(now.monotonic)
        engine.advance(seconds: passed / .seconds(1))
        now.wall = Timestamp(milliseconds: now.wall.milliseconds + Int64(passed / .milliseconds(1)))
        now.monotonic = time
        checks.time = time
        if engine.sounding != nil { listening.recordEngine(engine.position, in: playerState, at: time) }
        collect()
    }

    func collect() {
        let events = reported.withLockedValue { events in
            defer { events = [] }
            return events
        }
        playerInbox += events.map { .input(.engine($0)) }
    }

    /// Whether no message is in flight.
    var isIdle: Bool {
        queueInbox.isEmpty && playerInbox.isEmpty && queueCommits.isEmpty && playerCommits.isEmpty
    }
}
