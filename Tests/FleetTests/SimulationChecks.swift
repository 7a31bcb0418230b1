import BusKit
import EngineDouble
import OwnerKit
import PlaybackService
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Checks the invariants that hold in every state.
struct SimulationChecks {
    private(set) var violations: [String] = []
    private(set) var advances = 0
    /// The number of stream retries, of failed episodes, and of skips by a client.
    private(set) var retries = 0
    private(set) var failures = 0
    private(set) var skips = 0
    /// The number of failed episodes that were skipped automatically.
    private(set) var automaticSkips = 0
    /// The number of refused writes, of fallbacks to a stream, and of devices lost without message delays.
    var refusals = 0
    var fallbacks = 0
    var losses = 0

    private var shownLoads: [String] = []
    private var leftLoads: Set<String> = []
    private var hasSaved = false
    /// The loads that a client requested, or that follow an episode that ended or was skipped.
    private var expectedLoads: Set<String> = []
    /// The most recent events, which each violation lists.
    private var trail: [String] = []
    var time = MonotonicTime(nanoseconds: 0)

    mutating func log(_ text: String) {
        trail.append("\(Double(time.nanoseconds / 100_000_000 % 1_000_000) / 10) \(text)")
        if trail.count > 80 { trail.removeFirst() }
    }

    /// Logs the text and the message on one line.
    mutating func log(_ text: String, _ message: any Message) {
        log(
            "\(text) \(message.textFormatString().split(whereSeparator: \.isWhitespace).joined(separator: " ").prefix(160))"
        )
    }

    mutating func recordViolation(_ text: String) {
        violations.append(([text] + trail).joined(separator: "\n    "))
    }

    /// Records a request to the queue, which may start playback.
    mutating func recordExpectation(_ request: RequestID) {
        expectedLoads.insert(LoadID.derived(from: request.description).text)
    }

    /// Records that the request was refused: its effect must not appear.
    mutating func dropExpectation(_ request: RequestID) {
        expectedLoads.remove(LoadID.derived(from: request.description).text)
    }

    /// Permits the unsaved loads of a killed player, and the saved one, to be shown again.
    /// Records a violation if the saved load was never shown, unless none was ever saved.
    mutating func permitLoads(since load: String?) {
        hasSaved = hasSaved || load != nil
        let saved = shownLoads.lastIndex { $0 == load }
        if saved == nil, hasSaved { recordViolation("the saved load \(load ?? "none") was never shown") }
        leftLoads.subtract(shownLoads[(saved ?? 0)...])
    }

    /// Compares the player’s published state with the previous state.
    mutating func compare(_ before: WirePlaybackState, with screen: SimulatedScreen, isRestarting: Bool) {
        let player = screen.player
        if before.loadID != player.loadID || before.status != player.status || before.retry != player.retry {
            let details = "at \(player.anchor.position), retry \(player.retry.attempt)"
            log("shown: \(player.status) \(player.loadID) \(player.episode.title) \(details)")
            if isRestarting { log("(during the start)") }
        }
        // An episode that failed permanently is skipped automatically, unless a client has just played it.
        if player.status == .finished || player.skip || player.status == .failed && !player.error.retry {
            expectedLoads.insert(LoadID.advance(after: player.loadID).text)
        }
        if before.loadID != player.loadID { shownLoads.append(player.loadID) }
        guard !isRestarting, !before.loadID.isEmpty else { return }
        if before.loadID == player.loadID {
            compareSame(before, screen)
        } else {
            if before.status == .finished { advances += 1 }
            if before.skip { skips += 1 }
            let follows = player.loadID == LoadID.advance(after: before.loadID).text
            if before.status == .failed, !before.skip, follows { automaticSkips += 1 }
            leftLoads.insert(before.loadID)
            if leftLoads.contains(player.loadID) {
                recordViolation("load \(player.loadID) was shown again after \(before.loadID)")
            }
            if !expectedLoads.contains(player.loadID) {
                recordViolation("\(player.loadID) was shown unrequested after \(before.status) \(before.loadID)")
            }
        }
        if player.status == .idle { recordViolation("idle after \(before.status) of \(before.loadID)") }
    }

    /// Checks that within one load the position is kept and that a failure can be answered.
    private mutating func compareSame(_ before: WirePlaybackState, _ screen: SimulatedScreen) {
        let player = screen.player
        if before.status == .finished, player.status != .finished {
            recordViolation("\(player.loadID) is \(player.status) after its end")
        }
        let attempt = player.retry.attempt
        if player.hasRetry, attempt > before.retry.attempt {
            retries += 1
            if attempt > 3 || (before.hasRetry && attempt != before.retry.attempt + 1) {
                recordViolation("retry \(attempt) after \(before.retry.attempt)")
            }
        }
        guard player.status == .failed, before.status != .failed else { return }
        failures += 1
        if !screen.failures.contains(where: { $0.episode == player.episode.id }) {
            recordViolation("\(player.loadID) failed without an alert: \(player.error.message)")
        }
        if before.hasRetry, before.retry.attempt > 0, player.anchor.position < before.anchor.position - 0.001,
            !before.anchor.running
        {
            recordViolation("\(player.loadID) failed at \(player.anchor.position), not \(before.anchor.position)")
        }
    }
}

extension QueueSimulation {
    /// Checks that the published queues equal the model’s.
    func checkLists(_ when: String) {
        for name in ["main", "work"] {
            let seen = early.entries(name).map(QueueModel.Entry.init)
            if seen != durable.list(name) {
                checks.recordViolation("\(name) is \(titles(seen)) instead of \(titles(durable.list(name))) \(when)")
            }
        }
    }

    private func titles(_ entries: [QueueModel.Entry]) -> String {
        "\(entries.map { sources.episodes[$0.episode]?.title.suffix(3) ?? "?" })"
    }

    /// Checks that only the episode that the player reports is audible.
    func checkSound() {
        guard let sounding = engine.sounding else { return }
        let state = playerState
        let mayBeAudible = state.status == .playing || state.status == .loading && state.willPlay
        if state.loadID != sounding.text || !mayBeAudible {
            checks.recordViolation("\(sounding) sounds while the player shows \(state.status) \(state.loadID)")
        }
    }

    /// Checks the invariants that hold when no message is in flight and no load is pending.
    func checkSettled() {
        checkLists("at the end")
        checkPositions()
        recordViolation(guarantees.checkAlerts(early))
        if guarantees.isWaiting { checks.recordViolation("a request was never answered") }
        let player = early.player
        checkStored(player)
        if player.status != .failed || player.skip, !early.failures.isEmpty {
            checks.recordViolation("\(player.status), but there are alerts: \(early.failures.map(\.message))")
        }
        if player.status == .playing, player.anchor.running {
            let elapsed = now.monotonic.since(MonotonicTime(nanoseconds: player.anchor.at)) / .seconds(1)
            let shown = player.anchor.position + elapsed * player.anchor.speed
            if engine.sounding?.text != player.loadID || abs(engine.position - shown) > 0.1 {
                checks.recordViolation("shown at \(shown), but the engine is at \(engine.position)")
            }
        }
        for name in ["main", "work"] {
            guard let record = queueRecords["queue/\(name)"],
                let header = try? WireQueueHeaderRecord(wireBytes: record.value), header.hasPending,
                early.entries(name).contains(where: { $0.id == header.pending.entry }),
                [header.pending.loadID, header.pending.replacesLoad, ""].contains(player.loadID)
                    || header.pending.overtakes.contains(player.loadID)
            else { continue }
            checks.recordViolation(
                "load \(header.pending.loadID) is due in \(name), but the player shows \(player.loadID)")
        }
    }

    /// Checks that the published state is stored.
    private func checkStored(_ player: WirePlaybackState) {
        guard !player.loadID.isEmpty, let record = playerRecords["session/current"],
            let session = try? WireSessionRecord(wireBytes: record.value)
        else { return }
        guard session.loadID == player.loadID, (session.status == .playing) == player.intendsToPlay,
            (session.status == .finished) == (player.status == .finished),
            (session.status == .failed) == (player.status == .failed)
        else {
            return checks.recordViolation(
                "\(player.status) \(player.loadID) is shown, and \(session.status) \(session.loadID) is stored")
        }
    }
}
