import BusKit
import EngineDouble
import OwnerKit
import PlaybackService
import PodcastModel
import WireMessages

/// Runs the player’s steps and their effects.
extension QueueSimulation {
    func handlePlayer() {
        if !playerInbox.isEmpty { handle(playerInbox.removeFirst()) }
    }

    func handle(_ event: PlaybackMachine.Event) {
        if case .command(let command) = event, let request = try? WirePlaybackRequest(wireBytes: command.payload) {
            checks.log("player handles", request)
        }
        let before = playerState
        if isOverdue { listening.recordMissedWrite() }
        let effects = player.handle(event, now: now)
        let after = player.state
        playerState = after
        if case .command(let command) = event { guarantees.record(after, after: command.id) }
        recordViolation(listening.check(event, from: before, to: after, at: now.monotonic))
        recordViolation(device.check(event, from: before, to: after, at: now.monotonic))
        perform(effects)
        checkFallback(event, from: before, to: after)
        checkSound()
    }

    func recordViolation(_ text: String?) { if let text { checks.recordViolation(text) } }

    func perform(_ effects: [PlaybackMachine.Effect]) {
        for effect in effects {
            switch effect {
            case .commit(let transaction): playerCommits.add(transaction)
            case .publish(let publications): try? publish(publications)
            case .reply(let request, .success(let reply)):
                if !playerCommits.hold(request, reply) { answer(request, .success(reply)) }
            case .reply(let request, let result): answer(request, result)
            case .call(let call): playerInbox.append(.answered(call.query, lookUp(call)))
            case .perform(.engine(let command)):
                if command != .sample { checks.log("engine performs \(String(describing: command).prefix(150))") }
                if case .open(let load) = command {
                    device.recordOpen()
                    recordViolation(listening.checkOpen(load, of: playerState.episode))
                }
                if command == .unload { device.recordClose() }
                if command == .reloadOutput { recordViolation(device.checkReload(at: now.monotonic)) }
                engine.perform(command)
            case .perform(.examine(let load, let path)):
                playerInbox.append(.input(.examined(load, isThere: sources.exists(path))))
            case .perform(.probe(let load, let url, _, let serial)): probe(load, url, serial)
            // The simulated delays exceed this timer, which would treat the engine as hung.
            case .timer(.liveness, _): break
            case .timer(let name, let time): playerTimers[name] = time
            case .log(_, let text):
                checks.log("player: \(text)")
                device.record(log: text)
                if text.contains("playback has resumed") { listening.recordRecovery() }
            default: break
            }
        }
    }

    /// The server’s answer to a probe; nil if there is none.
    private func probe(_ load: LoadID, _ url: String, _ serial: UInt64) {
        guard random.below(2) == 0 else { return }
        let answer: ProbeAnswer
        switch sources.fault(of: url) {
        case .gone: answer = .refused(404)
        case .busy: answer = .refused(503)
        case .silent: return
        default: answer = .audio(AudioTag(etag: SimulatedSources.tag(of: url), size: 0))
        }
        playerInbox.append(.input(.probed(load, serial: serial, answer)))
    }

    func settlePlayer() throws {
        guard !playerCommits.isEmpty else { return }
        if fullDiskSteps > 0 { return refusePlayer() }
        let (waiting, held) = playerCommits.takeFirst()
        store(waiting.transaction.changes, in: &playerRecords)
        guarantees.record(playerRecords)
        listening.recordCommit(waiting.transaction.changes)
        try publish(waiting.transaction.publications)
        if let answered = waiting.transaction.answer {
            stored[answered.request] = answered.reply
            answer(answered.request, .success(answered.reply))
        }
        held.forEach { answer($0.id, .success($0.reply)) }
        playerInbox.append(.committed(waiting.transaction.step))
    }

    private func refusePlayer() {
        checks.log("the disk refuses the player")
        checks.refusals += 1
        for case .committed(let id) in playerInbox.removeCommitted() { handle(PlaybackMachine.Event.committed(id)) }
        for (transaction, failure, held) in playerCommits.refuseAll() {
            for held in held { answer(held.id, .failure(SimulationChecks.follows)) }
            handle(PlaybackMachine.Event.refused(transaction.step, failure))
            if let request = transaction.answer?.request { answer(request, transaction.onRefusal.result(failure)) }
        }
    }

    /// Delivers a request to the player, unless it is pending, and answers a durable one with its stored reply.
    func deliver(_ payload: [UInt8], as request: RequestID) {
        if let reply = stored[request] { return answer(request, .success(reply)) }
        guard runningCalls.insert(request).inserted else { return }
        playerInbox.append(.command(Command(id: request, origin: "queue", payload: payload)))
    }

    private func answer(_ request: RequestID, _ result: Result<[UInt8], Failure>) {
        runningCalls.remove(request)
        recordViolation(guarantees.checkPlayerReply(request, result, stored: playerRecords, shown: early))
        guard let call = calls.removeValue(forKey: request)?.call else { return }
        queueInbox.append(.answered(call.query, result))
    }
}
