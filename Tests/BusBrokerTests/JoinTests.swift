import PodcastModel
import Testing
import WireMessages
import ZeroMQ

@testable import BusBroker

@Suite struct JoinTests {
    // SYNC is published in the stream’s own order, when the subscription is received.
    @Test func `SYNC contains the head at the time of the subscription`() throws {
        var bench = MachineBench()
        bench.hello("queue")
        bench.publish(.event, "stream/queue/a")
        bench.subscribe("sync/0123456789abcdef")
        bench.publish(.event, "stream/queue/b")
        let kinds = bench.published.map(\.header.kind)
        #expect(kinds == [.put, .event, .sync, .event])
        let sync = try #require(bench.published.first { $0.header.kind == .sync })
        #expect(sync.topic.text == "sync/0123456789abcdef")
        #expect(sync.header.epoch == 1_000 && sync.header.sequence == 2)
    }

    @Test(arguments: [
        "short", "0123456789ABCDEF", "0123456789abcde-", String(repeating: "a", count: 65), "",
    ])
    func `an invalid nonce is counted and not answered`(_ nonce: String) {
        var bench = MachineBench()
        bench.subscribe("sync/\(nonce)")
        #expect(bench.published.isEmpty)
        #expect(bench.machine.malformed.total == 1)
    }

    @Test func `an observer that joins late receives the put and its deltas in order`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.publish(.put, "stream/queue/main", "old")
        bench.publish(.delta, "stream/queue/main", "old delta")
        bench.publish(.put, "stream/queue/main", "whole")
        for number in 1...5 { bench.publish(.delta, "stream/queue/main", Frame("delta \(number)")) }
        bench.publish(.event, "stream/queue/happened", "event")
        let live = bench.published
        bench.forget()
        bench.fetch()
        let main = bench.fetched.filter { $0.topic.text == "stream/queue/main" }
        #expect(main.map { String(decoding: $0.payload, as: UTF8.self) } == ["whole"] + (1...5).map { "delta \($0)" })
        #expect(main.map(\.header) == live.filter { $0.topic.text == "stream/queue/main" }.suffix(6).map(\.header))
        #expect(!bench.fetched.contains { $0.header.kind == .event })
    }

    @Test func `a snapshot names the services that are ready`() throws {
        var bench = MachineBench()
        bench.serving("queue", 5)
        bench.serving("feeds", 9)
        bench.hello("playback", 2)
        bench.fetch()
        let snapshot = try #require(bench.toClients.first)
        #expect(snapshot.header.kind == .snapshot && snapshot.header.sequence == bench.machine.head)
        #expect(snapshot.frames[0] == MachineBench.nonce)
        #expect(snapshot.frames[1].text == "feeds#9\nqueue#5")
    }

    @Test func `an observer that missed a few events receives exactly those events from the ring`() {
        var bench = MachineBench()
        bench.hello("queue")
        for number in 0..<20 { bench.publish(.event, "stream/queue/a", Frame("\(number)")) }
        let live = bench.published
        bench.forget()
        bench.fetch(epoch: 1_000, from: 8)
        #expect(bench.toClients.map(\.header.kind) == [.replay])
        #expect(bench.fetched == Array(live[7...]))
    }

    @Test func `an observer that missed nothing receives an empty replay`() {
        var bench = MachineBench()
        bench.hello("queue")
        bench.fetch(epoch: 1_000, from: bench.machine.head + 1)
        #expect(bench.toClients.map(\.header.kind) == [.replay])
        #expect(bench.toClients.map(\.header.sequence) == [bench.machine.head])
        #expect(bench.fetched.isEmpty)
    }

    @Test(
        arguments: [
            (999, 3, []), (1_001, 3, []), (1_000, 0, []), (0, 0, []), (1_000, 900, []), (1_000, UInt64.max, []),
            (1_000, 3, BusHeader.Flags.forceSnapshot), (1_000, 1, []),
        ] as [(UInt64, UInt64, BusHeader.Flags)])
    func `a fetch beyond the ring is answered with a snapshot`(
        _ epoch: UInt64, _ from: UInt64, _ flags: BusHeader.Flags
    ) {
        var limits = BrokerLimits()
        limits.ringEvents = 10
        var bench = MachineBench(limits: limits)
        bench.hello("queue")
        for _ in 0..<11 { bench.publish(.event, "stream/queue/a") }
        bench.fetch(epoch: epoch, from: from, flags: flags)
        #expect(bench.toClients.map(\.header.kind) == [.snapshot])
        #expect(bench.toClients.map(\.header.sequence) == [12])
    }

    @Test(arguments: [(256, 1), (257, 2), (1_000, 4)])
    func `long answers are sent in chunks with the same head`(_ topics: Int, _ chunks: Int) {
        var bench = MachineBench()
        bench.serving("queue")
        for number in 0..<(topics - 1) {
            bench.publish(.put, "stream/queue/\(number)")
            if number % 200 == 0 { bench.endTurn() }
        }
        bench.forget()
        bench.fetch()
        #expect(bench.toClients.count == chunks)
        #expect(Set(bench.toClients.map(\.header.sequence)) == [bench.machine.head])
        #expect(bench.toClients.dropLast().allSatisfy { $0.header.flags.contains(.more) })
        #expect(bench.toClients.last?.header.flags == [])
        #expect(bench.fetched.count == topics)
        #expect(Set(bench.toClients.map { $0.frames[1] }).count == 1)
    }

    @Test func `chunks are also limited in bytes`() {
        var limits = BrokerLimits()
        limits.bytesPerChunk = 1_000
        var bench = MachineBench(limits: limits)
        bench.hello("queue")
        for _ in 0..<10 { bench.publish(.event, "stream/queue/a", Frame([UInt8](repeating: 1, count: 600))) }
        bench.fetch(epoch: 1_000, from: 2)
        #expect(bench.toClients.count == 5)
        #expect(bench.fetched.count == 10)
    }

    @Test func `a snapshot omits the topics that the client excludes, a replay omits nothing`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.publish(.put, "stream/queue/main")
        bench.publish(.delta, "stream/queue/main")
        bench.publish(.put, "stream/queue/other")
        bench.forget()
        bench.fetch(except: ["stream/queue/main", "stream/feeds/"])
        #expect(bench.fetched.map(\.topic.text) == ["stream/bus/service/queue", "stream/queue/other"])
        #expect(bench.toClients.map(\.header.sequence) == [bench.machine.head])
        bench.forget()
        bench.fetch(epoch: 1_000, from: 3, except: ["stream/queue/"])
        #expect(bench.fetched.map(\.topic.text) == ["stream/queue/main", "stream/queue/main", "stream/queue/other"])
    }

    @Test func `a snapshot contains the included topics that aren’t excluded`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.publish(.put, "stream/queue/main")
        bench.publish(.delta, "stream/queue/main")
        bench.publish(.put, "stream/queue/other")
        bench.forget()
        bench.fetch(only: ["stream/queue/"])
        #expect(
            bench.fetched.map(\.topic.text) == ["stream/queue/main", "stream/queue/main", "stream/queue/other"])
        bench.forget()
        bench.fetch(except: ["stream/queue/main"], only: ["stream/queue/", "stream/feeds/"])
        #expect(bench.fetched.map(\.topic.text) == ["stream/queue/other"])
        #expect(bench.toClients.map(\.header.sequence) == [bench.machine.head])
        bench.forget()
        bench.fetch(only: ["stream/feeds/"])
        #expect(bench.fetched.isEmpty && bench.toClients.map(\.header.kind) == [.snapshot])
        bench.forget()
        bench.fetch(epoch: 1_000, from: 3, only: ["stream/feeds/"])
        #expect(bench.fetched.count == 3, "a replay leaves nothing out")
    }

    static let hostilePrefixes: [[Frame]] = [
        [Frame](repeating: "stream/", count: 17), [""], ["stream/", ""], [Frame([UInt8](repeating: 0x61, count: 256))],
        [Frame([0x73, 0xff])], [Frame([0xed, 0xa0, 0x80])],
    ]

    @Test(arguments: hostilePrefixes)
    func `a fetch with too many, too long, empty or malformed prefixes is counted and not answered`(
        _ prefixes: [Frame]
    ) {
        var bench = MachineBench()
        bench.fetch(except: prefixes)
        bench.fetch(only: prefixes)
        bench.fetch(except: ["stream/queue/"], only: prefixes)
        bench.fetch(except: prefixes, only: ["stream/queue/"])
        #expect(bench.toClients.isEmpty)
        #expect(bench.machine.malformed.total == 4)
    }

    @Test func `a fetch may name sixteen prefixes of each kind, of 255 bytes each`() {
        var bench = MachineBench()
        let longest = Frame([UInt8](repeating: 0x61, count: 255))
        bench.fetch(except: [Frame](repeating: longest, count: 16), only: [Frame](repeating: longest, count: 16))
        #expect(bench.toClients.map(\.header.kind) == [.snapshot])
        #expect(bench.machine.malformed.total == 0)
    }

    @Test func `an empty bus answers a fetch at once`() {
        var bench = MachineBench()
        bench.fetch()
        #expect(bench.toClients.map(\.header.kind) == [.snapshot])
        #expect(bench.toClients.first?.frames.count == 2)
    }
}

@Suite struct BoundsTests {
    @Test func `the ring evicts the oldest events by count`() {
        var ring = EventRing(eventLimit: 4, byteLimit: 1 << 20)
        for number in 1...11 { ring.append(Self.event(UInt64(number), bytes: 10)) }
        #expect(ring.count == 4)
        #expect(ring.events(from: 1).map(\.header.sequence) == [8, 9, 10, 11])
        #expect(
            !ring.holdsEvents(from: 7) && ring.holdsEvents(from: 8) && ring.holdsEvents(from: 12)
                && !ring.holdsEvents(from: 13))
    }

    @Test func `the ring evicts the oldest events by bytes`() {
        var ring = EventRing(eventLimit: 1_000, byteLimit: 1_000)
        for number in 1...50 { ring.append(Self.event(UInt64(number), bytes: 200)) }
        #expect(ring.bytes <= 1_000)
        #expect(ring.events(from: ring.first).map(\.header.sequence).last == 50)
        ring.append(Self.event(51, bytes: 5_000))
        #expect(ring.events(from: 1).map(\.header.sequence) == [51])
    }

    @Test func `the bus keeps as many bytes of events as its limit allows`() {
        var limits = BrokerLimits()
        limits.ringBytes = 10_000
        var bench = MachineBench(limits: limits)
        bench.hello("queue")
        for _ in 0..<100 { bench.publish(.event, "stream/queue/a", Frame([UInt8](repeating: 1, count: 1_000))) }
        let summary = bench.machine.summary
        #expect(summary.head >= 100 && summary.ringEvents > 2)
        #expect(summary.ringBytes <= 10_000)
    }

    @Test func `a service may retain a limited number of topics and bytes`() {
        var limits = BrokerLimits()
        limits.topicsPerService = 2
        limits.bytesPerService = 1_000
        var bench = MachineBench(limits: limits)
        bench.hello("queue")
        bench.publish(.put, "stream/queue/a")
        bench.publish(.put, "stream/queue/b")
        bench.publish(.put, "stream/queue/c")
        bench.publish(.put, "stream/queue/a", Frame([UInt8](repeating: 0, count: 950)))
        bench.publish(.delete, "stream/queue/b", "")
        bench.publish(.put, "stream/queue/c")
        #expect(bench.rejections == ["tooLarge", "tooLarge"])
        // Other services aren’t affected.
        bench.hello("feeds")
        bench.publish(.put, "stream/feeds/a", from: "feeds")
        #expect(bench.rejections.count == 2)
    }

    @Test func `a replaced value no longer counts toward the size limit`() {
        var limits = BrokerLimits()
        limits.bytesPerService = 1_000
        var bench = MachineBench(limits: limits)
        bench.hello("queue")
        for _ in 0..<3 { bench.publish(.put, "stream/queue/a", Frame([UInt8](repeating: 0, count: 900))) }
        #expect(bench.rejections == [])
    }

    @Test func `replaced and deleted values aren’t kept`() {
        var bench = MachineBench()
        bench.serving("queue")
        bench.publish(.put, "stream/queue/a", "1")
        let before = bench.machine.summary
        for _ in 0..<50 {
            bench.publish(.put, "stream/queue/b", Frame([UInt8](repeating: 0, count: 100)))
            bench.publish(.delta, "stream/queue/b", Frame([UInt8](repeating: 0, count: 100)))
        }
        bench.publish(.delete, "stream/queue/b", "")
        #expect(bench.machine.summary.retainedBytes == before.retainedBytes)
        #expect(bench.machine.summary.retainedTopics == before.retainedTopics)
    }

    private static func event(_ sequence: UInt64, bytes: Int) -> StoredEvent {
        StoredEvent(
            topic: "stream/queue/a", header: BusHeader(.event, sequence: sequence),
            payload: Frame([UInt8](repeating: 0, count: bytes)))
    }
}
