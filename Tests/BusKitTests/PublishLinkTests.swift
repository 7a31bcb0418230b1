import PodcastModel
import Testing
import WireMessages

@testable import BusKit

struct PublishLinkTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)
    private let put = Publication(.put, .playbackState, [1])

    /// Returns a link that the bus has welcomed in epoch 5.
    private func welcomed(window: Int = 256) -> PublishLink {
        var limits = PublishLink.Limits()
        limits.window = window
        var link = PublishLink(generation: 3, limits: limits)
        _ = link.handle(.start, now: start)
        _ = link.handle(.welcome(generation: 3, epoch: 5, head: 100), now: start)
        return link
    }

    private func origins(_ effects: [PublishLink.Effect]) -> [UInt64] {
        effects.compactMap {
            if case .send(.publish(_, _, _, let origin, _)) = $0 { origin } else { nil }
        }
    }

    private func hellos(_ effects: [PublishLink.Effect]) -> Int {
        effects.count { if case .send(.hello) = $0 { true } else { false } }
    }

    private func positions(_ effects: [PublishLink.Effect]) -> [StreamPosition] {
        effects.compactMap { if case .published(_, let position) = $0 { position } else { nil } }
    }

    private func dropped(_ effects: [PublishLink.Effect]) -> [FailureCode?] {
        effects.compactMap { if case .dropped(_, let failure) = $0 { .some(failure.known) } else { nil } }
    }

    private func answers(_ effects: [PublishLink.Effect]) -> [StreamPosition] {
        effects.compactMap { if case .send(.answer(_, _, _, let position)) = $0 { position } else { nil } }
    }

    @Test func `hello is sent first and a welcome starts publishing`() {
        var link = PublishLink(generation: 3)
        #expect(hellos(link.handle(.start, now: start)) == 1)
        #expect(dropped(link.handle(.publish(1, [put], wall: 0), now: start)) == [.unavailable])
        let effects = link.handle(.welcome(generation: 3, epoch: 5, head: 0), now: start)
        guard case .begin(epoch: 5) = effects.first else {
            Issue.record("\(effects)")
            return
        }
    }

    @Test func `publishes are numbered from one and get their sequences from the acknowledgement`() {
        var link = welcomed()
        #expect(origins(link.handle(.publish(1, [put, put], wall: 0), now: start)) == [1, 2])
        #expect(origins(link.handle(.publish(2, [put], wall: 0), now: start)) == [3])
        let first = link.handle(.acknowledge(epoch: 5, count: 2, origin: 2, sequence: 108), now: start)
        #expect(positions(first) == [StreamPosition(epoch: 5, sequence: 108)])
        let second = link.handle(.acknowledge(epoch: 5, count: 1, origin: 3, sequence: 110), now: start)
        #expect(positions(second) == [StreamPosition(epoch: 5, sequence: 110)])
    }

    @Test func `a full window delays publishes, and ready and replies keep their order`() {
        var link = welcomed(window: 2)
        #expect(origins(link.handle(.publish(1, [put, put, put, put], wall: 0), now: start)) == [1, 2])
        #expect(link.handle(.ready, now: start).isEmpty)
        let reply = PublishLink.Event.reply(ReplyTicket(epoch: 5, number: 9), .random(), .success([]))
        #expect(link.handle(reply, now: start).isEmpty)
        let effects = link.handle(.acknowledge(epoch: 5, count: 2, origin: 2, sequence: 102), now: start)
        #expect(origins(effects) == [3, 4])
        guard case .send(.ready(_, _, origin: 4)) = effects.last else {
            Issue.record("\(effects)")
            return
        }
        let last = link.handle(.acknowledge(epoch: 5, count: 2, origin: 4, sequence: 104), now: start)
        #expect(answers(last) == [StreamPosition(epoch: 5, sequence: 104)])
    }

    @Test func `a reply without an earlier publish has the head’s position`() {
        var link = welcomed()
        let effects = link.handle(.reply(ReplyTicket(epoch: 5, number: 1), .random(), .success([])), now: start)
        #expect(answers(effects) == [StreamPosition(epoch: 5, sequence: 100)])
    }

    @Test func `a new epoch drops unacknowledged publishes and sends hello again`() {
        var link = welcomed()
        _ = link.handle(.publish(1, [put], wall: 0), now: start)
        let effects = link.handle(.epochSeen(6), now: start)
        #expect(dropped(effects) == [.lostInFlight])
        #expect(hellos(effects) == 1)
        _ = link.handle(.welcome(generation: 3, epoch: 6, head: 0), now: start)
        #expect(origins(link.handle(.publish(2, [put], wall: 0), now: start)) == [1])
        let late = link.handle(.acknowledge(epoch: 5, count: 1, origin: 1, sequence: 101), now: start)
        #expect(positions(late).isEmpty)
        let stale = link.handle(.reply(ReplyTicket(epoch: 5, number: 1), .random(), .success([])), now: start)
        #expect(answers(stale).isEmpty)
    }

    @Test func `HELLO_REQUIRED makes the service register again, once`() {
        var link = welcomed()
        _ = link.handle(.publish(1, [put, put], wall: 0), now: start)
        #expect(hellos(link.handle(.reject(code: "helloRequired", epoch: 6, origin: 1), now: start)) == 1)
        #expect(hellos(link.handle(.reject(code: "helloRequired", epoch: 6, origin: 2), now: start)) == 0)
    }

    @Test func `a link that is fenced by a newer process ends`() {
        var link = welcomed()
        let effects = link.handle(.reject(code: "fenced", epoch: 5, origin: 0, generation: 9), now: start)
        #expect(
            effects.contains { if case .fenced(let failure) = $0 { failure.fencingGeneration == 9 } else { false } })
        #expect(dropped(link.handle(.publish(1, [put], wall: 0), now: start)) == [.fenced])
        #expect(link.deadline == nil)
    }

    @Test func `a refused publication consumes its number and the others remain`() {
        var link = welcomed()
        _ = link.handle(.publish(1, [put], wall: 0), now: start)
        _ = link.handle(.publish(2, [put], wall: 0), now: start)
        let effects = link.handle(.reject(code: "noPut", epoch: 5, origin: 1), now: start)
        #expect(effects.contains { if case .rejected(_, code: "noPut") = $0 { true } else { false } })
        #expect(dropped(effects).count == 1)
        let last = link.handle(.acknowledge(epoch: 5, count: 1, origin: 2, sequence: 101), now: start)
        #expect(positions(last) == [StreamPosition(epoch: 5, sequence: 101)])
    }

    @Test func `pings keep the service registered and silence makes it reconnect`() {
        var link = welcomed()
        let ping = link.handle(.tick, now: start.advanced(by: .milliseconds(500)))
        #expect(ping.contains { if case .send(.ping) = $0 { true } else { false } })
        _ = link.handle(.pong(epoch: 5), now: start.advanced(by: .milliseconds(501)))
        let quiet = link.handle(.tick, now: start.advanced(by: .milliseconds(1_900)))
        #expect(hellos(quiet) == 0)
        let silent = link.handle(.tick, now: start.advanced(by: .milliseconds(2_001)))
        #expect(hellos(silent) == 1)
        #expect(silent.contains { if case .open = $0 { true } else { false } })
    }

    private func pings(_ effects: [PublishLink.Effect]) -> [Bool] {
        effects.compactMap { if case .send(.ping(_, _, let wantsPong)) = $0 { wantsPong } else { nil } }
    }

    @Test func `an idle service pings at every third heartbeat and requests one PONG in three`() {
        var link = welcomed()
        var sent: [Bool] = []
        for count in 1...40 {
            let now = start.advanced(by: .milliseconds(500 * count))
            if let deadline = link.deadline { #expect(deadline >= now) }
            let effects = link.handle(.heartbeat(epoch: 5), now: now)
            sent += pings(effects)
            if pings(effects) == [true] { _ = link.handle(.pong(epoch: 5), now: now) }
            #expect(hellos(link.handle(.tick, now: now)) == 0)
        }
        #expect(sent.count == 13 && sent.count { $0 } == 4)
    }

    @Test func `a broken service socket is detected while the heartbeat continues`() {
        var link = welcomed()
        var noticed: Int?
        for count in 1...100 where noticed == nil {
            let now = start.advanced(by: .milliseconds(100 * count))
            if count % 5 == 0 { _ = link.handle(.heartbeat(epoch: 5), now: now) }
            if hellos(link.handle(.tick, now: now)) > 0 { noticed = 100 * count }
        }
        // The third PING, after 4.5 s, stays unanswered for 1.5 s.
        #expect(noticed == 6_000)
    }

    @Test func `a broken service socket is detected by an unacknowledged publish within 1.5 s`() {
        var link = welcomed()
        _ = link.handle(.publish(1, [put], wall: 0), now: start)
        for count in 1...2 {
            _ = link.handle(.heartbeat(epoch: 5), now: start.advanced(by: .milliseconds(500 * count)))
        }
        #expect(hellos(link.handle(.tick, now: start.advanced(by: .milliseconds(1_499)))) == 0)
        #expect(hellos(link.handle(.tick, now: start.advanced(by: .milliseconds(1_500)))) == 1)
    }

    @Test func `a bus that answers no PING is detected after 1.5 s of silence`() {
        var link = welcomed()
        _ = link.handle(.heartbeat(epoch: 5), now: start)
        // One PING is sent while it is silent.
        let asked = link.handle(.tick, now: start.advanced(by: .milliseconds(1_000)))
        #expect(pings(asked) == [true])
        #expect(hellos(link.handle(.tick, now: start.advanced(by: .milliseconds(1_499)))) == 0)
        #expect(hellos(link.handle(.tick, now: start.advanced(by: .milliseconds(1_500)))) == 1)
    }

    @Test func `a heartbeat of another epoch is ignored`() {
        var link = welcomed()
        for count in 1...2 {
            _ = link.handle(.heartbeat(epoch: 4), now: start.advanced(by: .milliseconds(500 * count)))
        }
        #expect(hellos(link.handle(.tick, now: start.advanced(by: .milliseconds(1_500)))) == 1)
    }

    @Test func `telemetry is neither counted nor acknowledged`() {
        var link = welcomed()
        let live = Publication(.live, Topic("live/playback/levels"), [1])
        let effects = link.handle(.publish(1, [live], wall: 0), now: start)
        #expect(origins(effects) == [0])
        #expect(positions(effects).count == 1)
        #expect(origins(link.handle(.publish(2, [put], wall: 0), now: start)) == [1])
    }

    @Test(arguments: [UInt64(0), 4, 99])
    func `invalid acknowledgements are ignored`(_ origin: UInt64) {
        var link = welcomed()
        _ = link.handle(.publish(1, [put, put, put], wall: 0), now: start)
        #expect(
            positions(link.handle(.acknowledge(epoch: 5, count: 1, origin: origin, sequence: 1), now: start)).isEmpty)
    }
}
