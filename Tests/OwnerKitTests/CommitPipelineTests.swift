import FoundationEssentials
import OwnerKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

/// A pipeline against a scripted database, one batch at a time.
struct PipelineTrial {
    var pipeline: CommitPipeline
    var database = ScriptedDatabase()
    var batches: [WireCommitBatch] = []
    var committed: [UInt64] = []
    var refused: [UInt64] = []
    var failures: [Failure] = []
    var stored: [[UInt8]] = []
    var fenced = false
    var everything: [WireChange] = []

    init(limits: CommitPipeline.Limits = CommitPipeline.Limits()) {
        pipeline = CommitPipeline(owner: .queue, generation: 1, seed: 7, limits: limits)
        handle(.loaded(revision: 0, incarnation: "one"))
    }

    mutating func handle(_ event: CommitPipeline.Event) {
        for effect in pipeline.handle(event) {
            switch effect {
            case .send(let batch): batches.append(batch)
            case .committed(let transaction): committed.append(transaction.id.number)
            case .refused(let transaction, let failure, let reply):
                refused.append(transaction.id.number)
                failures.append(failure)
                if let reply { stored.append(reply) }
            case .fenced: fenced = true
            case .collectEverything: handle(.everything(everything))
            }
        }
    }

    mutating func commit(_ number: UInt64, _ word: String, request: RequestID? = nil) {
        let transaction = NumberedTransaction(
            TransactionID(number), changes: [Self.change(number, word)],
            answering: request.map { ($0, [UInt8(number)]) })
        handle(.enqueue(transaction))
    }

    static func change(_ number: UInt64, _ word: String) -> WireChange {
        var change = WireChange()
        change.put.collection = "word"
        change.put.key = String(number + 1_000)
        change.put.value = Data(word.utf8)
        return change
    }

    /// Processes the batch in flight in the database and handles the answer.
    mutating func answer() {
        if let event = take() { handle(event) }
    }

    /// Processes the batch in flight in the database and returns the answer.
    mutating func take() -> CommitPipeline.Event? {
        guard let batch = batches.last else { return nil }
        var request = WirePersistenceRequest()
        request.commit = batch
        switch database.answer(request) {
        case .success(let reply): return .outcomes(reply.outcomes)
        case .failure(let failure): return .failed(failure)
        }
    }
}

struct CommitPipelineTests {
    @Test func `transactions that arrive while a batch is in flight form the next one, in order`() {
        var trial = PipelineTrial()
        for number in 1...5 { trial.commit(UInt64(number), "w\(number)") }
        #expect(trial.batches.map(\.commits.count) == [1])
        trial.answer()
        #expect(trial.batches.map(\.commits.count) == [1, 4])
        #expect(trial.batches[1].commits.map(\.expectedRevision) == [1, 2, 3, 4])
        trial.answer()
        #expect(trial.committed == [1, 2, 3, 4, 5])
        #expect(trial.database.words == ["w1", "w2", "w3", "w4", "w5"])
        #expect(trial.pipeline.isIdle)
    }

    @Test func `batches are bounded`() {
        var limits = CommitPipeline.Limits()
        limits.batchCount = 3
        limits.batchBytes = 400
        var trial = PipelineTrial(limits: limits)
        trial.commit(1, "a")
        for number in 2...6 { trial.commit(UInt64(number), "b") }
        trial.commit(7, String(repeating: "c", count: 1_000))
        var counts: [Int] = []
        while !trial.pipeline.isIdle {
            counts.append(trial.batches.last?.commits.count ?? 0)
            trial.answer()
        }
        #expect(counts == [1, 3, 2, 1])
    }

    @Test func `the unknown fields of an episode state count toward the size of a batch`() throws {
        var limits = CommitPipeline.Limits()
        limits.batchBytes = 2_000
        var trial = PipelineTrial(limits: limits)
        // Field 1000 with 1,000 bytes, as a newer version could have stored it.
        let unknown = [0xC2, 0x3E, 0xE8, 0x07] + [UInt8](repeating: 0x61, count: 1_000)
        let state = try WireEpisodeState(wireBytes: unknown)
        #expect(state.unknownFields.data.count == unknown.count)
        trial.commit(1, "one")
        for number in 2...4 as ClosedRange<UInt64> {
            let change = WireChange.with { $0.putEpisodeState = state }
            trial.handle(.enqueue(NumberedTransaction(TransactionID(number), changes: [change], answering: nil)))
        }
        trial.answer()
        #expect(trial.batches.count == 2)
        #expect(trial.batches.last?.commits.count == 1)
    }

    @Test func `a refusal also refuses all later transactions, in order`() {
        var trial = PipelineTrial()
        trial.database.refusedWords["bad"] = Failure(.diskFull, "full")
        trial.commit(1, "a")
        trial.commit(2, "b")
        trial.commit(3, "bad")
        trial.commit(4, "d")
        trial.answer()
        let answer = trial.take()
        trial.commit(5, "e")
        if let answer { trial.handle(answer) }
        #expect(trial.committed == [1, 2])
        #expect(trial.refused == [3, 4, 5])
        #expect(trial.failures.map(\.known) == [.diskFull, .busy, .busy])
        trial.commit(6, "f")
        trial.answer()
        #expect(trial.committed == [1, 2, 6])
        #expect(trial.database.words == ["a", "b", "f"])
    }

    @Test func `a batch whose answer was lost is repeated and takes effect once`() {
        var trial = PipelineTrial()
        trial.commit(1, "a")
        _ = trial.take()
        trial.answer()
        #expect(trial.committed == [1])
        #expect(trial.database.commits == 1)
    }

    @Test func `a request that was answered before receives its first reply`() {
        var trial = PipelineTrial()
        let request = RequestID(high: 4, low: 4)
        trial.commit(1, "a", request: request)
        trial.answer()
        trial.commit(2, "b", request: request)
        trial.answer()
        #expect(trial.refused == [2])
        #expect(trial.failures.map(\.known) == [.busy])
        #expect(trial.stored == [[1]])
        trial.commit(3, "c")
        trial.answer()
        #expect(trial.committed == [1, 3])
    }

    @Test func `a stale generation is fenced`() {
        var trial = PipelineTrial()
        trial.database.generation = 2
        trial.commit(1, "late")
        trial.answer()
        #expect(trial.fenced)
        #expect(trial.database.commits == 0)
    }

    @Test func `a restored backup receives the whole state before any other write`() {
        var trial = PipelineTrial()
        trial.commit(1, "a")
        trial.answer()
        trial.commit(2, "b")
        trial.answer()
        trial.database = ScriptedDatabase()
        trial.database.incarnation = "two"
        trial.everything = [PipelineTrial.change(1, "a"), PipelineTrial.change(2, "b"), PipelineTrial.change(3, "c")]
        trial.commit(3, "c")
        trial.commit(4, "d")
        while !trial.pipeline.isIdle { trial.answer() }
        #expect(trial.refused.isEmpty)
        #expect(trial.committed == [1, 2, 3, 4])
        #expect(trial.database.words == ["a", "b", "c", "d"])
    }

    @Test func `a probe of an idle owner detects a restored backup`() {
        var trial = PipelineTrial()
        trial.commit(1, "a")
        trial.answer()
        trial.database = ScriptedDatabase()
        trial.database.incarnation = "two"
        trial.everything = [PipelineTrial.change(1, "a")]
        trial.handle(.probe)
        while !trial.pipeline.isIdle { trial.answer() }
        #expect(trial.database.words == ["a"])
    }

    @Test func `the queue of transactions for an unavailable database is bounded`() {
        var limits = CommitPipeline.Limits()
        limits.waitingCount = 3
        var trial = PipelineTrial(limits: limits)
        for number in 1...6 { trial.commit(UInt64(number), "w") }
        #expect(trial.refused == [5, 6])
        #expect(trial.failures.map(\.known) == [.notSaved, .notSaved])
        while !trial.pipeline.isIdle { trial.answer() }
        #expect(trial.committed == [1, 2, 3, 4])
    }

    private func trialOfParts() -> PipelineTrial {
        var limits = CommitPipeline.Limits()
        limits.partBytes = 200
        var trial = PipelineTrial(limits: limits)
        trial.database.incarnation = "two"
        trial.everything = (1...20).map { PipelineTrial.change($0, "word \($0)") }
        trial.handle(.probe)
        trial.answer()
        return trial
    }

    @Test func `a whole state too large for one message is sent in several and applied atomically`() {
        var trial = trialOfParts()
        trial.commit(21, "later")
        while trial.database.commits == 0 {
            #expect(trial.database.words.isEmpty)
            trial.answer()
        }
        #expect(trial.batches.count > 4)
        #expect(trial.batches.dropFirst().dropLast().allSatisfy { $0.commits.count == 1 })
        #expect(trial.database.words.count >= 20)
        while !trial.pipeline.isIdle { trial.answer() }
        #expect(trial.database.words.count == 21)
        #expect(trial.committed == [21])
        #expect(trial.batches.map(\.sequence) == trial.batches.indices.map { UInt64($0) + 1 })
    }

    @Test func `a whole state whose parts were lost is written again`() {
        var trial = trialOfParts()
        trial.answer()
        trial.answer()
        trial.database.restart()
        while !trial.pipeline.isIdle { trial.answer() }
        #expect(trial.database.words.isEmpty)
        #expect(trial.pipeline.needsRepair)
        trial.handle(.repair)
        while !trial.pipeline.isIdle { trial.answer() }
        #expect(trial.database.words.count == 20)
        #expect(trial.database.commits == 1)
    }

    private func trialOfALongCommit() -> PipelineTrial {
        var limits = CommitPipeline.Limits()
        limits.partBytes = 200
        var trial = PipelineTrial(limits: limits)
        trial.commit(1, "before")
        let changes = (2...21).map { PipelineTrial.change($0, "word \($0)") }
        trial.handle(
            .enqueue(
                NumberedTransaction(
                    TransactionID(2), changes: changes, answering: (RequestID(high: 1, low: 2), [UInt8(2)]))))
        trial.commit(22, "after")
        return trial
    }

    @Test func `a commit too large for one message is sent in several and applied atomically`() {
        var trial = trialOfALongCommit()
        trial.answer()
        while trial.database.commits == 1 {
            #expect(trial.database.words == ["before"])
            trial.answer()
        }
        #expect(trial.batches.count > 4)
        #expect(trial.batches.allSatisfy { $0.commits.count == 1 })
        #expect(trial.database.words.count == 21)
        #expect(trial.database.replies.count == 1)
        while !trial.pipeline.isIdle { trial.answer() }
        #expect(trial.committed == [1, 2, 22])
    }

    @Test(arguments: 1...6) func `a commit whose parts were lost is sent again under its ID`(answered: Int) throws {
        var trial = trialOfALongCommit()
        for _ in 0..<answered { trial.answer() }
        trial.database.restart()
        while !trial.pipeline.isIdle { trial.answer() }
        #expect(trial.committed == [1, 2, 22] && trial.refused.isEmpty)
        #expect(trial.database.commits == 3)
        #expect(trial.database.words.count == 22)
        let ids = Set(trial.batches.flatMap(\.commits).filter { !$0.requestID.isEmpty }.map(\.id))
        #expect(ids.count == 1)
    }

    @Test func `a commit whose parts are lost every time is refused`() {
        var trial = trialOfALongCommit()
        var rounds = 0
        while !trial.pipeline.isIdle, rounds < 100 {
            trial.answer()
            trial.database.restart()
            rounds += 1
        }
        #expect(trial.committed == [1])
        #expect(trial.refused == [2, 22])
        #expect(trial.database.words == ["before"])
    }
}
