import PodcastModel
import Testing
import WireMessages
import ZeroMQ

@testable import BusBroker

@Suite struct ReplyOutboxTests {
    private static let start = MonotonicTime(nanoseconds: 1_000_000_000)

    /// A client that accepts a limited number of messages until it is given more space.
    private struct Reader {
        var room: Int
        var taken: [Message] = []

        mutating func take(_ message: Message) -> SendOutcome {
            guard room > 0 else { return .wouldBlock }
            room -= 1
            taken.append(message)
            return .sent
        }
    }

    private static func answer(_ chunks: Int, to client: Frame = "a", nonce: Frame = "n1") -> FetchAnswer {
        var limits = BrokerLimits()
        limits.entriesPerChunk = 1
        let events = (1...chunks).map {
            StoredEvent(topic: "stream/queue/a", header: BusHeader(.put, sequence: UInt64($0)), payload: "x")
        }
        return FetchAnswer(
            kind: .replay, events: events, client: client, nonce: nonce, epoch: 1, head: 99, readyList: nil,
            limits: limits)
    }

    private static func sequences(_ messages: [Message]) throws -> [UInt64] {
        try messages.map { try BusHeader(decoding: $0[4].bytes).sequence }
    }

    @Test func `a stalled reader of a fetch answer buffers no more than it has accepted`() throws {
        var outbox = ReplyOutbox()
        var reader = Reader(room: 3)
        outbox.send(Self.answer(10), now: Self.start) { reader.take($0) }
        #expect(reader.taken.count == 3 && outbox.count == 1)
        reader.room = 100
        outbox.flush(now: Self.start.advanced(by: .milliseconds(2))) { reader.take($0) }
        #expect(try Self.sequences(reader.taken) == Array(1...10))
        #expect(outbox.count == 0 && outbox.deadline == nil)
    }

    @Test func `a client that accepts nothing for two seconds is dropped`() {
        var outbox = ReplyOutbox()
        var reader = Reader(room: 1)
        outbox.send(Self.answer(10), now: Self.start) { reader.take($0) }
        outbox.flush(now: Self.start.advanced(by: .milliseconds(1_999))) { reader.take($0) }
        #expect(outbox.count == 1)
        outbox.flush(now: Self.start.advanced(by: .milliseconds(2_100))) { reader.take($0) }
        #expect(outbox.count == 0 && outbox.dropped == 1)
    }

    @Test func `an answer that is read chunk by chunk ends within a minute, and waiting messages follow`() {
        var outbox = ReplyOutbox()
        var reader = Reader(room: 1)
        outbox.send(Self.answer(1_000), now: Self.start) { reader.take($0) }
        outbox.send(["a", "reply"], now: Self.start) { reader.take($0) }
        for second in 1...59 {
            reader.room = 1
            outbox.flush(now: Self.start.advanced(by: .seconds(second))) { reader.take($0) }
        }
        #expect(reader.taken.count == 60 && outbox.count == 1)
        reader.room = 1
        outbox.flush(now: Self.start.advanced(by: .seconds(60))) { reader.take($0) }
        #expect(reader.taken.count == 61 && reader.taken.last == ["a", "reply"])
        #expect(outbox.count == 0 && outbox.dropped == 1)
    }

    @Test func `dropped messages are reported at intervals`() {
        var outbox = ReplyOutbox()
        func drop(at second: Int) -> String? {
            let now = Self.start.advanced(by: .seconds(second))
            outbox.send(["a", "reply"], now: now) { _ in .wouldBlock }
            outbox.flush(now: now.advanced(by: .milliseconds(2_100))) { _ in .wouldBlock }
            return outbox.report(now: now.advanced(by: .milliseconds(2_100)))
        }
        #expect(outbox.report(now: Self.start) == nil)
        #expect(drop(at: 0) == "dropped 1 replies and answers that clients do not read, 1 in all")
        #expect(drop(at: 3) == nil)
        #expect(drop(at: 12) == "dropped 2 replies and answers that clients do not read, 3 in all")
        #expect(outbox.report(now: Self.start.advanced(by: .seconds(60))) == nil)
    }

    @Test func `replies wait for an unfinished answer and arrive in order`() {
        var outbox = ReplyOutbox()
        var reader = Reader(room: 1)
        outbox.send(Self.answer(3), now: Self.start) { reader.take($0) }
        reader.room = 1
        outbox.send(["a", "reply"], now: Self.start) { reader.take($0) }
        #expect(reader.taken.count == 1)
        reader.room = 9
        outbox.flush(now: Self.start.advanced(by: .milliseconds(2))) { reader.take($0) }
        #expect(reader.taken.count == 4 && reader.taken.last == ["a", "reply"])
        #expect(outbox.bytes == 0)
    }

    @Test func `a new fetch replaces the unfinished answer to an old one`() {
        var outbox = ReplyOutbox()
        var reader = Reader(room: 1)
        outbox.send(Self.answer(5), now: Self.start) { reader.take($0) }
        outbox.send(Self.answer(2, nonce: "n2"), now: Self.start) { reader.take($0) }
        reader.room = 99
        outbox.flush(now: Self.start.advanced(by: .milliseconds(2))) { reader.take($0) }
        #expect(reader.taken.map { $0[2] } == ["n1", "n2", "n2"])
    }

    @Test func `unread replies are bounded for one client and for all`() {
        var limits = ReplyOutbox.Limits()
        limits.bytes = 1_000
        limits.totalBytes = 1_500
        var outbox = ReplyOutbox(limits: limits)
        for client in ["a", "b", "c"] as [Frame] {
            for _ in 0..<20 {
                outbox.send([client, Frame([UInt8](repeating: 0, count: 199))], now: Self.start) { _ in .wouldBlock }
            }
        }
        #expect(outbox.bytes <= 1_500)
        #expect(outbox.dropped == 60 - 7)
        outbox.flush(now: Self.start.advanced(by: .seconds(3))) { _ in .wouldBlock }
        #expect(outbox.bytes == 0 && outbox.count == 0)
    }

    @Test func `the messages of a client that has left are released`() {
        var outbox = ReplyOutbox()
        var reader = Reader(room: 1)
        outbox.send(Self.answer(5), now: Self.start) { reader.take($0) }
        outbox.flush(now: Self.start.advanced(by: .milliseconds(2))) { _ in .unreachable }
        #expect(outbox.count == 0)
    }

    @Test func `clients that fetch at the same head share the snapshot`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.publish(.put, "stream/queue/a", Frame([UInt8](repeating: 1, count: 100_000)))
        bench.fetch()
        bench.fetch()
        let payloads = bench.fetched.filter { $0.topic.text == "stream/queue/a" }.map(\.payload)
        let addresses = payloads.map { $0.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } }
        #expect(addresses.count == 2 && addresses[0] == addresses[1])
    }
}

@Suite struct MemoryReleaseTests {
    @Test func `memory is released half a minute after many observers have left`() {
        var memory = MemoryRelease()
        func isDue(_ seconds: Int) -> Bool {
            memory.isDue(now: MonotonicTime(nanoseconds: 1).advanced(by: .seconds(seconds)))
        }
        memory.observersLeft(1_000)
        #expect([0, 29, 30, 90].map(isDue) == [false, false, true, false])
        memory.carried(8 << 20)
        #expect([91, 120, 121].map(isDue) == [false, false, true])
    }
}
