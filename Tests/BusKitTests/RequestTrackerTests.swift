import BusKit
import PodcastModel
import Testing
import WireMessages

struct RequestTrackerTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)
    private let id = RequestID(high: 1, low: 1)

    private func at(_ milliseconds: Int) -> MonotonicTime { start.advanced(by: .milliseconds(milliseconds)) }

    private func asking(_ id: RequestID, limit: Duration? = .seconds(10), mayBeRepeat: Bool = false)
        -> RequestTracker.Event
    {
        .ask(
            RequestTracker.Asking(
                id: id, service: .queue, payload: [1], deadline: limit.map { start.advanced(by: $0) },
                mayBeRepeat: mayBeRepeat))
    }

    private func sendings(_ effects: [RequestTracker.Effect]) -> [RequestTracker.Sending] {
        effects.compactMap { if case .send(let sending) = $0 { sending } else { nil } }
    }

    private func results(_ effects: [RequestTracker.Effect]) -> [Result<Answer, Failure>] {
        effects.compactMap { if case .finish(_, let result) = $0 { result } else { nil } }
    }

    @Test func `a request that nobody waits for any more says whether it may have had an effect`() {
        func code(_ effects: [RequestTracker.Effect]) -> [FailureCode?] {
            results(effects).map { if case .failure(let failure) = $0 { failure.known } else { nil } }
        }
        var tracker = RequestTracker(hasJoined: false)
        _ = tracker.handle(asking(id), now: start)
        #expect(code(tracker.handle(.cancel(id), now: at(1))) == [.unavailable])
        tracker = RequestTracker()
        _ = tracker.handle(asking(id), now: start)
        #expect(code(tracker.handle(.cancel(id), now: at(1))) == [.outcomeUnknown])
        _ = tracker.handle(asking(id), now: start)
        _ = tracker.handle(.failure(id, Failure(.unavailable, "down")), now: at(1))
        #expect(code(tracker.handle(.cancel(id), now: at(2))) == [.unavailable])
        #expect(tracker.count == 0 && tracker.deadline == nil)
    }

    @Test func `a reply ends the request`() {
        var tracker = RequestTracker()
        #expect(sendings(tracker.handle(asking(id), now: start)).map(\.mayBeRepeat) == [false])
        let answer = Answer(payload: [2], position: StreamPosition(epoch: 1, sequence: 2))
        #expect(results(tracker.handle(.reply(id, answer), now: at(1))) == [.success(answer)])
        #expect(tracker.handle(.reply(id, answer), now: at(2)).isEmpty)
        #expect(tracker.deadline == nil)
    }

    @Test(arguments: [FailureCode.unavailable, .busy, .lostInFlight, .helloRequired])
    func `passing refusals are retried under the same ID with growing waits`(_ code: FailureCode) {
        var tracker = RequestTracker()
        _ = tracker.handle(asking(id), now: start)
        var now = start
        for wait in [50, 100, 200, 400, 800, 1_000, 1_000] {
            #expect(tracker.handle(.failure(id, Failure(code, "")), now: now).isEmpty)
            now = now.advanced(by: .milliseconds(wait))
            #expect(tracker.deadline == now)
            let sent = sendings(tracker.handle(.tick, now: now))
            #expect(sent.map(\.id) == [id])
            #expect(sent.map(\.mayBeRepeat) == [true])
        }
    }

    @Test(arguments: [FailureCode.notFound, .revisionMismatch, .notSaved, .expired])
    func `other refusals are final`(_ code: FailureCode) {
        var tracker = RequestTracker()
        _ = tracker.handle(asking(id), now: start)
        let effects = tracker.handle(.failure(id, Failure(code, "")), now: start)
        #expect(results(effects) == [.failure(Failure(code, ""))])
    }

    @Test func `a new bus ends the attempt and the request is sent again`() {
        var tracker = RequestTracker()
        _ = tracker.handle(asking(id), now: start)
        #expect(tracker.handle(.connectionLost, now: at(1)).isEmpty)
        #expect(tracker.handle(.tick, now: at(51)).isEmpty)
        let sent = sendings(tracker.handle(.joined, now: at(60)))
        #expect(sent.map(\.id) == [id])
        #expect(sent.map(\.mayBeRepeat) == [true])
    }

    @Test func `nothing is sent to a bus that has not been heard`() {
        var tracker = RequestTracker(hasJoined: false)
        #expect(tracker.handle(asking(id), now: start).isEmpty)
        #expect(tracker.handle(.ready(.queue), now: at(1)).isEmpty)
        #expect(sendings(tracker.handle(.joined, now: at(2))).map(\.mayBeRepeat) == [false])
        var late = RequestTracker(hasJoined: false)
        _ = late.handle(asking(id), now: start)
        let results = results(late.handle(.tick, now: at(10_000)))
        guard case .failure(let failure) = results.first else { return #expect(Bool(false)) }
        #expect(failure.known == .unavailable)
    }

    @Test func `the first sending of an ID from an earlier life says so`() {
        var tracker = RequestTracker()
        #expect(sendings(tracker.handle(asking(id, mayBeRepeat: true), now: start)).map(\.mayBeRepeat) == [true])
    }

    @Test func `at the deadline the outcome is unknown if anyone may have begun`() {
        var tracker = RequestTracker()
        _ = tracker.handle(asking(id), now: start)
        _ = tracker.handle(.failure(id, Failure(.lostInFlight, "")), now: start)
        _ = tracker.handle(.tick, now: at(50))
        _ = tracker.handle(.failure(id, Failure(.unavailable, "")), now: at(60))
        guard case .failure(let failure) = results(tracker.handle(.tick, now: at(10_000))).first else {
            Issue.record("not finished")
            return
        }
        #expect(failure.known == .outcomeUnknown)
    }

    @Test func `at the deadline a request that nobody took is unavailable`() {
        var tracker = RequestTracker()
        _ = tracker.handle(asking(id), now: start)
        _ = tracker.handle(.failure(id, Failure(.unavailable, "down")), now: start)
        #expect(
            results(tracker.handle(.tick, now: at(10_000))) == [.failure(Failure(.unavailable, "down"))])
    }

    @Test func `a request that reaches nobody ends at its own limit and one that may have had an effect does not`() {
        let asking = RequestTracker.Event.ask(
            RequestTracker.Asking(
                id: id, service: .queue, payload: [1], deadline: at(10_000), reachDeadline: at(2_000)))
        let down = Failure(.unavailable, "down")
        var tracker = RequestTracker()
        _ = tracker.handle(asking, now: start)
        #expect(tracker.deadline == at(5_000))
        _ = tracker.handle(.failure(id, down), now: at(1_990))
        #expect(tracker.deadline == at(2_000))
        #expect(results(tracker.handle(.tick, now: at(2_000))) == [.failure(down)])

        tracker = RequestTracker()
        _ = tracker.handle(asking, now: start)
        _ = tracker.handle(.connectionLost, now: at(1))
        _ = tracker.handle(.joined, now: at(2))
        _ = tracker.handle(.failure(id, down), now: at(1_990))
        #expect(results(tracker.handle(.tick, now: at(2_000))).isEmpty)
        #expect(tracker.count == 1)

        tracker = RequestTracker(hasJoined: false)
        _ = tracker.handle(asking, now: start)
        #expect(results(tracker.handle(.tick, now: at(2_000))).count == 1)
    }

    @Test func `a request without a limit is repeated for ever`() {
        var tracker = RequestTracker()
        _ = tracker.handle(asking(id, limit: nil), now: start)
        var now = start
        for round in 0..<100 {
            let codes: [FailureCode] = [.expired, .unavailable, .outcomeUnknown]
            let code = codes[round % 3]
            #expect(results(tracker.handle(.failure(id, Failure(code, "")), now: now)).isEmpty)
            now = now.advanced(by: .seconds(1))
            #expect(sendings(tracker.handle(.tick, now: now)).count == 1)
        }
    }

    @Test func `silence is broken by the same request`() {
        var tracker = RequestTracker()
        _ = tracker.handle(asking(id, limit: nil), now: start)
        #expect(sendings(tracker.handle(.tick, now: at(4_999))).isEmpty)
        #expect(sendings(tracker.handle(.tick, now: at(5_000))).map(\.mayBeRepeat) == [true])
    }

    @Test func `thirty two are on their way and the next follows when one is answered`() {
        var tracker = RequestTracker()
        var sent = 0
        for index in 0..<40 {
            sent += sendings(tracker.handle(asking(RequestID(high: 9, low: UInt64(index))), now: start)).count
        }
        #expect(sent == 32)
        let effects = tracker.handle(.reply(RequestID(high: 9, low: 0), Answer(payload: [])), now: start)
        #expect(sendings(effects).map(\.id.low) == [32])
    }

    @Test func `a service that becomes ready is asked at once`() {
        var tracker = RequestTracker()
        _ = tracker.handle(asking(id), now: start)
        _ = tracker.handle(.failure(id, Failure(.unavailable, "")), now: start)
        #expect(sendings(tracker.handle(.ready(.playback), now: at(1))).isEmpty)
        #expect(sendings(tracker.handle(.ready(.queue), now: at(2))).count == 1)
    }

    @Test func `a refusal from before the service was ready is not followed by a long wait`() {
        var tracker = RequestTracker()
        _ = tracker.handle(asking(id), now: start)
        for milliseconds in [0, 50, 150, 350, 750] {
            _ = tracker.handle(.tick, now: at(milliseconds))
            _ = tracker.handle(.failure(id, Failure(.unavailable, "")), now: at(milliseconds))
        }
        _ = tracker.handle(.tick, now: at(1_550))
        // The stream is read before the refusal that was sent earlier.
        #expect(tracker.handle(.ready(.queue), now: at(1_551)).isEmpty)
        _ = tracker.handle(.failure(id, Failure(.unavailable, "")), now: at(1_552))
        #expect(sendings(tracker.handle(.tick, now: at(1_602))).map(\.id) == [id])
    }

    @Test func `closing answers everyone`() {
        var tracker = RequestTracker()
        _ = tracker.handle(asking(id), now: start)
        #expect(results(tracker.close(Failure(.unavailable, "bye"))) == [.failure(Failure(.unavailable, "bye"))])
        #expect(tracker.count == 0)
    }
}
