import BusKit
import OwnerKit
import PodcastModel
import QueueService
import WireMessages

/// Runs the queue’s steps and their effects.
extension QueueSimulation {
    func command(_ fill: (inout WireQueueRequest) -> Void) {
        var request = WireQueueRequest()
        fill(&request)
        guard request.command != nil else { return }
        requests += 1
        let id = RequestID(high: 5, low: requests)
        checks.recordExpectation(id)
        guarantees.recordQueueRequest(id)
        queueInbox.append(.command(Command(id: id, origin: "test", payload: request.wireBytes)))
    }

    func handleQueue() {
        if !queueInbox.isEmpty { handle(queueInbox.removeFirst()) }
    }

    func handle(_ event: QueueMachine.Event) {
        var models = speculative
        switch event {
        case .command(let command):
            guard let request = try? WireQueueRequest(wireBytes: command.payload) else { return }
            checks.log("queue handles", request)
            models.apply(request, command.id, titles: sources.episodes, player: seenByQueue)
        case .observed(let event) where event.topic == .playbackState:
            if let state = try? WirePlaybackState(wireBytes: event.payload) {
                seenByQueue = state
                models.observe(state)
            }
        case .answered(.load(let load), .success(let reply)):
            if let state = try? WirePlaybackReply(wireBytes: reply).state, state.loadID == load,
                state.revision > seenByQueue.revision
            {
                seenByQueue = state
            }
        case .timer: models.observe(seenByQueue)
        default: break
        }
        perform(queue.handle(event, now: now), models: models)
    }

    func perform(_ effects: [QueueMachine.Effect], models: QueueModels?) {
        var models = models
        for effect in effects {
            switch effect {
            case .commit(let transaction):
                if var changed = models, changed != speculative, matchesModels(transaction) {
                    changed.record(transaction)
                    speculative = changed
                    models = nil
                }
                queueCommits.add(transaction, speculative)
            case .reply(let request, .success(let reply)):
                if let models, models.lists != speculative.lists {
                    checks.recordViolation("\(request) was acknowledged and not done")
                }
                if !queueCommits.hold(request, reply) { answerClient(request, .success(reply)) }
            case .reply(let request, let result): answerClient(request, result)
            case .call(let call) where call.service == .persistence:
                perform(queue.handle(.answered(call.query, lookUp(call)), now: now), models: models)
                models = nil
            case .call(let call) where call.service == .playback:
                let request = call.request ?? .random()
                callCount += 1
                calls[request] = (callCount, call)
                deliver(call.payload, as: request)
            case .publish(let publications): try? publish(publications)
            case .timer(let name, let time): queueTimers[name] = time
            case .log(_, let text): checks.log("queue: \(text)")
            default: break
            }
        }
    }

    /// Whether the transaction stores the change that the models have just applied, for a command or an advance.
    private func matchesModels(_ transaction: QueueMachine.Transaction) -> Bool {
        if transaction.answer != nil { return true }
        return transaction.changes.contains { change in
            guard case .put(let record)? = change.change, record.collection == "queue" else { return false }
            return (try? WireQueueHeaderRecord(wireBytes: Array(record.value)).advancedLoad) == seenByQueue.loadID
        }
    }

    func settleQueue() throws {
        guard !queueCommits.isEmpty else { return }
        if fullDiskSteps > 0 { return refuseQueue() }
        let (waiting, held) = queueCommits.takeFirst()
        store(waiting.transaction.changes, in: &queueRecords)
        durable = waiting.models ?? durable
        try publish(waiting.transaction.publications)
        if let answered = waiting.transaction.answer { answerClient(answered.request, .success(answered.reply)) }
        held.forEach { answerClient($0.id, .success($0.reply)) }
        queueInbox.append(.committed(waiting.transaction.step))
        checkLists("after a commit")
    }

    /// Refuses pending changes because the disk is full, and rolls the models back.
    private func refuseQueue() {
        checks.log("the disk refuses the queue")
        checks.refusals += 1
        for case .committed(let id) in queueInbox.removeCommitted() { handle(QueueMachine.Event.committed(id)) }
        speculative = durable
        for (transaction, failure, held) in queueCommits.refuseAll() {
            for held in held { answerClient(held.id, .failure(SimulationChecks.follows)) }
            handle(QueueMachine.Event.refused(transaction.step, failure))
            if let answer = transaction.answer { answerClient(answer.request, .failure(failure)) }
        }
        checkLists("after a refusal")
    }

    /// Delivers the result of a client’s request to the queue.
    private func answerClient(_ request: RequestID, _ result: Result<[UInt8], Failure>) {
        if !guarantees.recordQueueReply(request) {
            checks.recordViolation("\(request) was answered without a request, or twice")
        }
        if case .failure = result { checks.dropExpectation(request) }
    }
}
