import BusKit
import EngineDouble
import OwnerKit
import PlaybackService
import PodcastModel
import WireMessages

extension QueueSimulation {
    /// Runs one random step.
    func step() throws {
        if fullDiskSteps > 0 { fullDiskSteps -= 1 }
        if stepsUntilKill > 0 {
            stepsUntilKill -= 1
            if stepsUntilKill == 0 { try restart() }
        }
        switch random.below(100) {
        case 0: try restart()
        case 1: injectFault()
        case 2...11: queueCommand()
        case 12...15: playerCommand()
        case 16...27: try pass([0.3, 1, 3, 8, 30, 100, 300, Double(random.below(600))][random.below(8)])
        case 28: engine.setStalled(random.below(4) == 0)
        case 29...52: try settleQueue()
        case 53...70: try settlePlayer()
        case 71...85: handleQueue()
        default: handlePlayer()
        }
        collect()
    }

    /// Restarts either service from its durable state. A start writes, so the disk gets space first.
    private func restart() throws {
        fullDiskSteps = 0
        if random.below(2) == 0 { try restartQueue() } else { try restartPlayer() }
    }

    private func restartQueue() throws {
        checks.log("the queue is killed")
        try startQueue()
    }

    func restartPlayer() throws {
        checks.log("the player is killed")
        dropUnsavedPositions()
        let session = playerRecords["session/current"].flatMap { try? WireSessionRecord(wireBytes: $0.value) }
        checks.permitLoads(since: session?.loadID)
        isRestarting = true
        try announcePlayer(.down)
        try startPlayer()
        listening.recordRestart(session: session)
        isRestarting = false
    }

    /// Delivers all messages and advances the time until every load plays or has failed.
    func settle() throws {
        var rests = 0
        (fullDiskSteps, stepsUntilKill) = (0, 0)
        for _ in 0..<250 where rests < 3 {
            try pass(1.5)
            try arrive()
            let isSaved = playerTimers[.retry] == nil
            rests = early.player.status == .loading || !isSaved ? 0 : rests + 1
        }
        if rests == 0 { checks.recordViolation("it never stops loading") }
        checkSettled()
        checkNext()
    }

    /// Checks that the published next entry agrees with the queues and the player while no message is in flight.
    private func checkNext() {
        let next = early.next
        let queue = early.queues[.queue(next.queue)]
        let loaded = early.player.queueEntry
        if next.queue != early.player.queue, queue?.entries.contains(where: { $0.id == loaded }) != true,
            !early.player.loadID.isEmpty, early.queues[.queue(early.player.queue)] != nil
        {
            checks.recordViolation("“\(next.queue)” is published as playing, but “\(early.player.queue)” plays")
        }
        if next.current.id != queue?.current ?? "" { checks.recordViolation("another entry is published as current") }
        if next.hasFollowing, queue?.entries.contains(where: { $0.id == next.following.id }) != true {
            checks.recordViolation("a missing entry is published as the next one")
        }
        if next.hasFollowing == (next.reason != .unknown) {
            checks.recordViolation("exactly one of the next entry and the reason for its absence must be published")
        }
        if next.loads.contains(where: { $0.outcome == .pending }) { checks.recordViolation("a load stays pending") }
    }

    func arrive() throws {
        for _ in 0..<10_000 {
            collect()
            guard !isIdle else { return }
            handlePlayer()
            handleQueue()
            try settlePlayer()
            try settleQueue()
        }
        checks.recordViolation("it never comes to rest")
    }

    // MARK: Commands

    private func queueCommand() {
        let all = sources.episodes.keys.sorted()
        let name = random.below(4) == 0 ? "work" : "main"
        let entries = early.entries(name)
        let entry = entries.isEmpty ? "" : entries[random.below(entries.count)].id
        let models = speculative
        command { request in
            request.queue = name
            switch random.below(24) {
            case 0...2: request.add.episodes = [all[random.below(all.count)], all[random.below(all.count)]]
            case 3:
                request.add.episodes = [all[random.below(all.count)]]
                request.add.next = true
            case 4: if !entry.isEmpty { request.remove.entries = [entry] }
            case 5, 6:
                if !entry.isEmpty {
                    request.move.entry = entry
                    request.move.index = UInt32(random.below(entries.count))
                }
            case 7: request.undo = WireUndo()
            case 8: request.redo = WireRedo()
            case 9, 10: if !entry.isEmpty { request.play.entry = entry }
            case 11: request.play.episode = all[random.below(all.count)]
            case 12...14: step(&request) { $0.next = WireNext() }
            case 15, 16: step(&request) { $0.previous = WirePrevious() }
            case 17...19: step(&request) { $0.play.resume = true }
            case 20:
                request.sort.by = .title
                request.sort.descending = random.below(2) == 0
            case 21:
                request.setModes.repeat = [.off, .all, .one][random.below(3)]
                request.setModes.consume = random.below(3) > 0
            case 22: if random.below(3) == 0 { request.clear = WireClearQueue() }
            default: models.chooseRevision(&request, &random)
            }
        }
    }

    /// Adds to the command the name of its queue, or leaves it empty for the playing queue.
    private func step(_ request: inout WireQueueRequest, _ fill: (inout WireQueueRequest) -> Void) {
        if random.below(2) == 0 { request.queue = "" }
        fill(&request)
    }

    private func playerCommand() {
        let alerts = early.alerts.values.sorted { $0.id < $1.id }
        var request = WirePlaybackRequest()
        switch random.below(12) {
        case 0...4:
            guard !alerts.isEmpty else { return }
            let alert = alerts[random.below(alerts.count)]
            request.answerAlert.alert = alert.id
            request.answerAlert.action = alert.actions[random.below(alert.actions.count)]
        case 5: request.setPaused.paused = true
        case 6, 7: request.setPaused.paused = false
        case 8, 9: request.seek.position = Double([random.below(600), 540 + random.below(60)][random.below(2)])
        case 10: request.stop = WireStopPlayback()
        default:
            switch random.below(4) {
            case 0: request.setSleep.seconds = Double(1 + random.below(300))
            case 1: request.setSleep.episodes = UInt32(1 + random.below(2))
            default: request.setSleep.endOfChapter = false
            }
        }
        requests += 1
        let id = RequestID(high: 6, low: requests)
        guarantees.recordPlayerRequest(id, request)
        playerInbox.append(.command(Command(id: id, origin: "test", payload: request.wireBytes)))
    }
}
