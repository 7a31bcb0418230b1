import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import BusKit

struct RequestDeduplicatorTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)
    private let id = RequestID(high: 1, low: 1)

    private func arrival(_ ticket: UInt64, mayBeRepeat: Bool = false, limit: Duration = .seconds(10))
        -> RequestDeduplicator.Event
    {
        .arrived(
            IncomingCommand(
                ticket: ReplyTicket(epoch: 5, number: ticket),
                command: command(mayBeRepeat: mayBeRepeat), deadline: start.advanced(by: limit)))
    }

    private func command(mayBeRepeat: Bool) -> Command {
        Command(id: id, origin: "test", payload: [1], mayBeRepeat: mayBeRepeat)
    }
    private var command: Command { command(mayBeRepeat: false) }
    private func ticket(_ number: UInt64) -> ReplyTicket { ReplyTicket(epoch: 5, number: number) }

    @Test func `a repeat of a running request receives the same reply`() {
        var requests = RequestDeduplicator()
        #expect(requests.handle(arrival(1), now: start) == [.start(command)])
        #expect(requests.handle(arrival(2, mayBeRepeat: true), now: start).isEmpty)
        let effects = requests.handle(.answered(id, .success([9])), now: start)
        #expect(effects == [.answer(ticket(1), id, .success([9])), .answer(ticket(2), id, .success([9]))])
    }

    @Test func `a repeat of a finished request is answered from the cache`() {
        var requests = RequestDeduplicator()
        _ = requests.handle(arrival(1), now: start)
        _ = requests.handle(.answered(id, .success([9])), now: start)
        #expect(requests.handle(arrival(2, mayBeRepeat: true), now: start) == [.answer(ticket(2), id, .success([9]))])
    }

    @Test func `a repeat that isn’t cached is looked up in the database`() {
        var requests = RequestDeduplicator()
        #expect(requests.handle(arrival(1, mayBeRepeat: true), now: start) == [.lookUp(id)])
        #expect(requests.handle(.found(id, .success([7])), now: start) == [.answer(ticket(1), id, .success([7]))])
    }

    @Test func `a repeat without a stored reply is executed`() {
        var requests = RequestDeduplicator()
        _ = requests.handle(arrival(1, mayBeRepeat: true), now: start)
        #expect(requests.handle(.found(id, .success(nil)), now: start) == [.start(command(mayBeRepeat: true))])
    }

    @Test func `a repeat whose reply can’t be looked up is refused`() {
        var requests = RequestDeduplicator()
        _ = requests.handle(arrival(1, mayBeRepeat: true), now: start)
        let down = Failure(.unavailable, "down")
        #expect(
            requests.handle(.found(id, .failure(down)), now: start) == [.answer(ticket(1), id, .failure(down))])
        #expect(requests.handle(arrival(2, mayBeRepeat: true), now: start) == [.lookUp(id)])
    }

    @Test func `refusals aren’t cached`() {
        var requests = RequestDeduplicator()
        _ = requests.handle(arrival(1), now: start)
        _ = requests.handle(.answered(id, .failure(Failure(.notFound, ""))), now: start)
        #expect(requests.handle(arrival(2), now: start) == [.start(command)])
    }

    @Test func `an expired request is refused and not executed`() {
        var requests = RequestDeduplicator()
        let effects = requests.handle(arrival(1, limit: .seconds(1)), now: start.advanced(by: .seconds(1)))
        guard case .answer(_, _, .failure(let failure)) = effects.first else {
            Issue.record("\(effects)")
            return
        }
        #expect(failure.known == .expired)
    }

    @Test func `a new bus invalidates the tickets, and the request continues`() {
        var requests = RequestDeduplicator()
        _ = requests.handle(arrival(1), now: start)
        _ = requests.handle(.connectionLost, now: start)
        #expect(requests.handle(arrival(2, mayBeRepeat: true), now: start).isEmpty)
        #expect(requests.handle(.answered(id, .success([9])), now: start) == [.answer(ticket(2), id, .success([9]))])
    }

    @Test func `a client receives “not saved” before it times out, and a repeat still joins the request`() {
        var requests = RequestDeduplicator()
        _ = requests.handle(arrival(1), now: start)
        _ = requests.handle(.committing(id), now: start)
        #expect(requests.deadline == start.advanced(by: .seconds(5)))
        let effects = requests.handle(.tick, now: start.advanced(by: .seconds(5)))
        guard case .answer(let told, _, .failure(let failure)) = effects.first else {
            Issue.record("\(effects)")
            return
        }
        #expect(told == ticket(1))
        #expect(failure.known == .notSaved)
        #expect(requests.handle(arrival(2, mayBeRepeat: true), now: start).isEmpty)
        #expect(requests.handle(.answered(id, .success([9])), now: start) == [.answer(ticket(2), id, .success([9]))])
    }

    @Test func `the cache of replies is bounded`() {
        var requests = RequestDeduplicator(capacity: 2, byteCapacity: 10)
        for low in 0..<5 as Range<UInt64> {
            let id = RequestID(high: 3, low: low)
            let command = Command(id: id, origin: "", payload: [])
            _ = requests.handle(
                .arrived(
                    IncomingCommand(ticket: ticket(low), command: command, deadline: start.advanced(by: .seconds(1)))),
                now: start)
            _ = requests.handle(.answered(id, .success([1, 2, 3])), now: start)
        }
        let first = Command(id: RequestID(high: 3, low: 0), origin: "", payload: [])
        let again = IncomingCommand(ticket: ticket(9), command: first, deadline: start.advanced(by: .seconds(1)))
        #expect(requests.handle(.arrived(again), now: start) == [.start(first)])
    }
}
