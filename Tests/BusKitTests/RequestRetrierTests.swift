import PodcastModel
import Testing
import WireMessages

@testable import BusKit

struct RequestRetrierTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)
    private let id = RequestID(high: 1, low: 1)

    private func at(_ milliseconds: Int) -> MonotonicTime { start.advanced(by: .milliseconds(milliseconds)) }

    private func asking(_ id: RequestID, limit: Duration? = .seconds(10), mayBeRepeat: Bool = false)
        -> RequestRetrier.Event
    {
        .ask(
            OutgoingRequest(
                id: id, service: .queue, payload: [1], deadline: limit.map { start.advanced(by: $0) },
                mayBeRepeat: mayBeRepeat))
    }

    private func attempts(_ effects: [RequestRetrier.Effect]) -> [OutgoingRequest] {
        effects.compactMap { if case .send(let attempt) = $0 { attempt } else { nil } }
    }

    private func results(_ effects: [RequestRetrier.Effect]) -> [Result<Answer, Failure>] {
        effects.compactMap { if case .finish(_, let result) = $0 { result } else { nil } }
    }

    @Test func `an abandoned request reports whether it may have had an effect`() {
        func code(_ effects: [RequestRetrier.Effect]) -> [FailureCode?] {
            results(effects).map { if case .failure(let failure) = $0 { failure.known } else { nil } }
        }
        var retrier = RequestRetrier(hasJoined: false)
        _ = retrier.handle(asking(id), now: start)
        #expect(code(retrier.handle(.cancel(id), now: at(1))) == [.unavailable])
        retrier = RequestRetrier()
        _ = retrier.handle(asking(id), now: start)
        #expect(code(retrier.handle(.cancel(id), now: at(1))) == [.outcomeUnknown])
        _ = retrier.handle(asking(id), now: start)
        _ = retrier.handle(.failure(id, Failure(.unavailable, "down")), now: at(1))
        #expect(code(retrier.handle(.cancel(id), now: at(2))) == [.unavailable])
        #expect(retrier.count == 0 && retrier.deadline == nil)
    }

    @Test func `a reply ends the request`() {
        var retrier = RequestRetrier()
        #expect(attempts(retrier.handle(asking(id), now: start)).map(\.mayBeRepeat) == [false])
        let answer = Answer(payload: [2], position: StreamPosition(epoch: 1, sequence: 2))
        #expect(results(retrier.handle(.reply(id, answer), now: at(1))) == [.success(answer)])
        #expect(retrier.handle(.reply(id, answer), now: at(2)).isEmpty)
        #expect(retrier.deadline == nil)
    }

    @Test(arguments: [FailureCode.unavailable, .busy, .lostInFlight, .helloRequired])
    func `transient refusals are retried under the same ID with growing delays`(_ code: FailureCode) {
        var retrier = RequestRetrier()
        _ = retrier.handle(asking(id), now: start)
        var now = start
        for wait in [50, 100, 200, 400, 800, 1_000, 1_000] {
            #expect(retrier.handle(.failure(id, Failure(code, "")), now: now).isEmpty)
            now = now.advanced(by: .milliseconds(wait))
            #expect(retrier.deadline == now)
            let sent = attempts(retrier.handle(.tick, now: now))
            #expect(sent.map(\.id) == [id])
            #expect(sent.map(\.mayBeRepeat) == [true])
        }
    }

    @Test(arguments: [FailureCode.notFound, .revisionMismatch, .notSaved, .expired])
    func `other refusals are final`(_ code: FailureCode) {
        var retrier = RequestRetrier()
        _ = retrier.handle(asking(id), now: start)
        let effects = retrier.handle(.failure(id, Failure(code, "")), now: start)
        #expect(results(effects) == [.failure(Failure(code, ""))])
    }

    @Test func `a new bus ends the attempt and the request is sent again`() {
        var retrier = RequestRetrier()
        _ = retrier.handle(asking(id), now: start)
        #expect(retrier.handle(.connectionLost, now: at(1)).isEmpty)
        #expect(retrier.handle(.tick, now: at(51)).isEmpty)
        let sent = attempts(retrier.handle(.joined, now: at(60)))
        #expect(sent.map(\.id) == [id])
        #expect(sent.map(\.mayBeRepeat) == [true])
    }

    @Test func `nothing is sent to a bus before its first message`() {
        var retrier = RequestRetrier(hasJoined: false)
        #expect(retrier.handle(asking(id), now: start).isEmpty)
        #expect(retrier.handle(.ready(.queue), now: at(1)).isEmpty)
        #expect(attempts(retrier.handle(.joined, now: at(2))).map(\.mayBeRepeat) == [false])
        var late = RequestRetrier(hasJoined: false)
        _ = late.handle(asking(id), now: start)
        let results = results(late.handle(.tick, now: at(10_000)))
        guard case .failure(let failure) = results.first else { return #expect(Bool(false)) }
        #expect(failure.known == .unavailable)
    }

    @Test func `the first attempt with an ID from an earlier process is marked as a repeat`() {
        var retrier = RequestRetrier()
        #expect(attempts(retrier.handle(asking(id, mayBeRepeat: true), now: start)).map(\.mayBeRepeat) == [true])
    }

    @Test func `at the deadline the outcome is unknown if a service may have started the request`() {
        var retrier = RequestRetrier()
        _ = retrier.handle(asking(id), now: start)
        _ = retrier.handle(.failure(id, Failure(.lostInFlight, "")), now: start)
        _ = retrier.handle(.tick, now: at(50))
        _ = retrier.handle(.failure(id, Failure(.unavailable, "")), now: at(60))
        guard case .failure(let failure) = results(retrier.handle(.tick, now: at(10_000))).first else {
            Issue.record("not finished")
            return
        }
        #expect(failure.known == .outcomeUnknown)
    }

    @Test func `at the deadline an undelivered request is unavailable`() {
        var retrier = RequestRetrier()
        _ = retrier.handle(asking(id), now: start)
        _ = retrier.handle(.failure(id, Failure(.unavailable, "down")), now: start)
        #expect(
            results(retrier.handle(.tick, now: at(10_000))) == [.failure(Failure(.unavailable, "down"))])
    }

    @Test func `an undelivered request ends at its own limit, one that may have had an effect does not`() {
        let asking = RequestRetrier.Event.ask(
            OutgoingRequest(
                id: id, service: .queue, payload: [1], deadline: at(10_000), reachDeadline: at(2_000)))
        let down = Failure(.unavailable, "down")
        var retrier = RequestRetrier()
        _ = retrier.handle(asking, now: start)
        #expect(retrier.deadline == at(5_000))
        _ = retrier.handle(.failure(id, down), now: at(1_990))
        #expect(retrier.deadline == at(2_000))
        #expect(results(retrier.handle(.tick, now: at(2_000))) == [.failure(down)])

        retrier = RequestRetrier()
        _ = retrier.handle(asking, now: start)
        _ = retrier.handle(.connectionLost, now: at(1))
        _ = retrier.handle(.joined, now: at(2))
        _ = retrier.handle(.failure(id, down), now: at(1_990))
        #expect(results(retrier.handle(.tick, now: at(2_000))).isEmpty)
        #expect(retrier.count == 1)

        retrier = RequestRetrier(hasJoined: false)
        _ = retrier.handle(asking, now: start)
        #expect(results(retrier.handle(.tick, now: at(2_000))).count == 1)
    }

    @Test func `a request without a deadline is retried until it is answered`() {
        var retrier = RequestRetrier()
        _ = retrier.handle(asking(id, limit: nil), now: start)
        var now = start
        for round in 0..<100 {
            let codes: [FailureCode] = [.expired, .unavailable, .outcomeUnknown]
            let code = codes[round % 3]
            #expect(results(retrier.handle(.failure(id, Failure(code, "")), now: now)).isEmpty)
            now = now.advanced(by: .seconds(1))
            #expect(attempts(retrier.handle(.tick, now: now)).count == 1)
        }
    }

    @Test func `an unanswered request is sent again under the same ID`() {
        var retrier = RequestRetrier()
        _ = retrier.handle(asking(id, limit: nil), now: start)
        #expect(attempts(retrier.handle(.tick, now: at(4_999))).isEmpty)
        #expect(attempts(retrier.handle(.tick, now: at(5_000))).map(\.mayBeRepeat) == [true])
    }

    @Test func `thirty-two requests are in flight and the next one follows a reply`() {
        var retrier = RequestRetrier()
        var sent = 0
        for index in 0..<40 {
            sent += attempts(retrier.handle(asking(RequestID(high: 9, low: UInt64(index))), now: start)).count
        }
        #expect(sent == 32)
        let effects = retrier.handle(.reply(RequestID(high: 9, low: 0), Answer(payload: [])), now: start)
        #expect(attempts(effects).map(\.id.low) == [32])
    }

    @Test func `a service that becomes ready receives the request at once`() {
        var retrier = RequestRetrier()
        _ = retrier.handle(asking(id), now: start)
        _ = retrier.handle(.failure(id, Failure(.unavailable, "")), now: start)
        #expect(attempts(retrier.handle(.ready(.playback), now: at(1))).isEmpty)
        #expect(attempts(retrier.handle(.ready(.queue), now: at(2))).count == 1)
    }

    @Test func `a refusal from before the service was ready causes no long delay`() {
        var retrier = RequestRetrier()
        _ = retrier.handle(asking(id), now: start)
        for milliseconds in [0, 50, 150, 350, 750] {
            _ = retrier.handle(.tick, now: at(milliseconds))
            _ = retrier.handle(.failure(id, Failure(.unavailable, "")), now: at(milliseconds))
        }
        _ = retrier.handle(.tick, now: at(1_550))
        // The stream’s message is read before the refusal that was sent earlier.
        #expect(retrier.handle(.ready(.queue), now: at(1_551)).isEmpty)
        _ = retrier.handle(.failure(id, Failure(.unavailable, "")), now: at(1_552))
        #expect(attempts(retrier.handle(.tick, now: at(1_602))).map(\.id) == [id])
    }

    @Test func `closing the connection fails all requests`() {
        var retrier = RequestRetrier()
        _ = retrier.handle(asking(id), now: start)
        #expect(results(retrier.close(Failure(.unavailable, "bye"))) == [.failure(Failure(.unavailable, "bye"))])
        #expect(retrier.count == 0)
    }
}
