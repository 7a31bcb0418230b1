import PodcastModel
import Testing
import WireMessages

@testable import PersistenceService

struct BatchIntakeTests {
    private var intake = BatchIntake()

    private func batch(_ sequence: UInt64, generation: UInt32 = 1, _ commits: [WireCommit] = []) -> WireCommitBatch {
        var batch = WireCommitBatch("queue", generation: generation, commits)
        batch.sequence = sequence
        return batch
    }

    private func part(_ number: UInt32, more: Bool) -> WireCommit {
        var commit = WireCommit("part \(number)", at: 0, [.put("entry", "q\(number)", "x")])
        commit.parts = number
        commit.more = more
        commit.replacesEverything = !more
        return commit
    }

    private mutating func accept(_ batch: WireCommitBatch, _ ticket: UInt64) -> BatchIntake.Decision {
        intake.accept(batch, .init(ticket), incarnation: "d1")
    }

    private func kinds(_ decision: BatchIntake.Decision) throws -> [WireCommitOutcome.Kind] {
        guard case .reply(.success(let bytes)) = decision else { return [] }
        let outcomes = try WirePersistenceReply(wireBytes: bytes).outcomes
        #expect(outcomes.incarnation == "d1")
        return outcomes.outcomes.map(\.kind)
    }

    private func written(_ decision: BatchIntake.Decision) -> [WireChange]? {
        guard case .write(let batch) = decision else { return nil }
        return batch.commits.flatMap(\.changes)
    }

    @Test mutating func `a copy of a refused batch is refused too and not written`() {
        #expect(written(accept(batch(1), 1)) != nil)
        // A copy that arrives while the first is being written waits for its answer.
        guard case .wait = accept(batch(1), 2) else {
            Issue.record("the copy does not wait")
            return
        }
        let refusal: Result<[UInt8], Failure> = .success([7])
        #expect(intake.answered(.init(1), refusal) == [.init(2)])
        guard case .reply(let again) = accept(batch(1), 3) else {
            Issue.record("the copy is not answered")
            return
        }
        #expect(again == refusal)
        #expect(written(accept(batch(2), 4)) != nil)
        guard case .reply(.failure) = accept(batch(1), 5) else {
            Issue.record("what is overtaken is not refused")
            return
        }
        // A new generation restarts the sequence; the store decides about an older generation.
        #expect(written(accept(batch(1, generation: 2), 6)) != nil)
        #expect(written(accept(batch(9), 7)) != nil)
        #expect(intake.answered(.init(7), refusal).isEmpty)
    }

    @Test mutating func `parts take effect together`() throws {
        #expect(try kinds(accept(batch(1, [part(0, more: true)]), 1)) == [.staged])
        // A repeated part counts once.
        #expect(try kinds(accept(batch(1, [part(0, more: true)]), 2)) == [.staged])
        #expect(try kinds(accept(batch(2, [part(1, more: true)]), 3)) == [.staged])
        let other = WireCommit("other", at: 1, [.put("entry", "q9", "y")])
        let whole = written(accept(batch(3, [part(2, more: false), other]), 4))
        #expect(whole?.map(\.put.key) == ["q0", "q1", "q2", "q9"])
        // No part remains for the next state.
        #expect(written(accept(batch(4, [other]), 5))?.count == 1)
    }

    @Test mutating func `a state with a missing part is refused`() throws {
        #expect(try kinds(accept(batch(1, [part(0, more: true)]), 1)) == [.staged])
        var restarted = self
        restarted.intake = BatchIntake()
        #expect(
            try kinds(restarted.accept(batch(2, [part(1, more: false), part(5, more: false)]), 2)) == [
                .refused, .refused,
            ])
        #expect(try kinds(accept(batch(3, [part(2, more: true)]), 3)) == [.refused])
        // A state that starts again at part 0 is accepted.
        #expect(try kinds(accept(batch(4, [part(0, more: true)]), 4)) == [.staged])
        #expect(written(accept(batch(5, [part(1, more: false)]), 5))?.count == 2)
        // An ordinary batch between two parts means that the rest will not arrive.
        #expect(try kinds(accept(batch(6, [part(0, more: true)]), 6)) == [.staged])
        #expect(written(accept(batch(7), 7)) != nil)
        #expect(try kinds(accept(batch(8, [part(1, more: false)]), 8)) == [.refused])
    }
}
