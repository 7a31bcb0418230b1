import PodcastModel
import TestSupport
import Testing
import WireMessages
import ZeroMQ

@testable import BusKit

/// A reducer with a clock, and its output.
struct ReducerTrial {
    var reducer: StreamReducer
    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    var opened: [String] = []
    var fetches: [FetchRequest] = []
    var events: [StreamEvent] = []
    var connections: [ConnectionState] = []
    var snapshots = 0
    /// The events, with nil for each snapshot between them.
    var output: [StreamEvent?] = []

    init(selection: TopicSelection = .all, limits: StreamReducer.Limits = StreamReducer.Limits()) {
        reducer = StreamReducer(seed: 7, selection: selection, limits: limits)
    }

    mutating func handle(_ event: StreamReducer.Event) {
        for effect in reducer.handle(event, now: now) {
            switch effect {
            case .open(let nonce): opened.append(nonce)
            case .fetch(let request): fetches.append(request)
            case .update(.event(let event)):
                events.append(event)
                output.append(event)
            case .update(.snapshot):
                snapshots += 1
                output.append(nil)
            case .update(.connection(let state)): connections.append(state)
            case .update(.live): break
            }
        }
    }

    mutating func pass(_ duration: Duration) {
        now = now.advanced(by: duration)
        handle(.tick)
    }

    /// Performs SYNC, FETCH and its answer.
    mutating func join(_ bus: ModelBus) {
        handle(.sync(nonce: opened.last ?? "", epoch: bus.epoch, head: bus.head))
        answer(bus)
    }

    mutating func answer(_ bus: ModelBus) {
        guard let request = fetches.last else { return }
        for chunk in bus.answer(request) { handle(.chunk(chunk)) }
    }

    var sequence: UInt64 { reducer.replica.position.sequence }
}

struct StreamReducerTests {
    private let state = Topic.playbackState
    private let queue = Topic.queue("main")

    private func live(_ bus: inout ModelBus) -> ReducerTrial {
        var trial = ReducerTrial()
        trial.handle(.start)
        trial.join(bus)
        return trial
    }

    @Test func `joining fetches everything only after the sync`() {
        var bus = ModelBus(epoch: 5)
        _ = bus.publish(.put, state, [1])
        var trial = ReducerTrial()
        trial.handle(.start)
        #expect(trial.opened.count == 1)
        #expect(trial.fetches.isEmpty)
        trial.handle(.sync(nonce: "somebody else's", epoch: 5, head: 1))
        #expect(trial.fetches.isEmpty)
        trial.join(bus)
        #expect(trial.fetches.first?.from == StreamPosition(epoch: 0, sequence: 0))
        #expect(trial.reducer.replica.entries[state]?.put.payload == [1])
        #expect(trial.connections == [.connecting, .live])
    }

    @Test func `events between the sync and the answer are applied once`() {
        var bus = ModelBus(epoch: 5)
        _ = bus.publish(.put, state, [1])
        var trial = ReducerTrial()
        trial.handle(.start)
        let inBoth = bus.publish(.put, state, [2])
        trial.handle(.stream(inBoth))
        trial.handle(.sync(nonce: trial.opened[0], epoch: 5, head: 2))
        let answer = bus.answer(trial.fetches[0])
        let after = bus.publish(.put, state, [3])
        trial.handle(.stream(after))
        for chunk in answer { trial.handle(.chunk(chunk)) }
        #expect(trial.events == [after])
        #expect(trial.sequence == 3)
    }

    @Test func `an observer that joins late receives the put and its deltas in order`() {
        var bus = ModelBus(epoch: 5)
        _ = bus.publish(.put, queue, [1])
        _ = bus.publish(.delta, queue, [2])
        _ = bus.publish(.delta, queue, [3])
        let trial = live(&bus)
        #expect(trial.reducer.replica.entries[queue]?.deltas.map(\.payload) == [[2], [3]])
    }

    @Test func `a gap is filled from the ring`() {
        var bus = ModelBus(epoch: 5)
        var trial = live(&bus)
        let lost = bus.publish(.put, state, [1])
        let next = bus.publish(.put, state, [2])
        trial.handle(.stream(next))
        #expect(trial.fetches.last?.from == StreamPosition(epoch: 5, sequence: 1))
        trial.answer(bus)
        #expect(trial.events == [lost, next])
        #expect(trial.snapshots == 1)
    }

    @Test func `the loss of the newest event is detected by the heartbeat`() {
        var bus = ModelBus(epoch: 5)
        var trial = live(&bus)
        let lost = bus.publish(.put, state, [1])
        trial.handle(.heartbeat(epoch: 5, head: bus.head))
        trial.answer(bus)
        #expect(trial.events == [lost])
    }

    @Test func `unselected topics still advance the sequence`() {
        var bus = ModelBus(epoch: 5)
        _ = bus.publish(.put, queue, [1])
        let before = bus.publish(.put, state, [2])
        var trial = ReducerTrial(selection: TopicSelection(prefixes: ["stream/playback/"]))
        trial.handle(.start)
        trial.join(bus)
        #expect(trial.reducer.replica.entries.keys.map(\.text) == [state.text])
        #expect(trial.reducer.replica.entries[state]?.put == before)
        // The loop doesn’t read topic and payload of unselected messages.
        let passed = bus.publish(.delta, queue, [3])
        trial.handle(.stream(StreamEvent(topic: Topic(""), header: passed.header, payload: [])))
        let seen = bus.publish(.put, state, [4])
        trial.handle(.stream(seen))
        // One of these two is lost, and it might have been a selected one.
        _ = bus.publish(.put, queue, [5])
        let late = bus.publish(.put, state, [6])
        trial.handle(.stream(late))
        trial.answer(bus)
        let ready = bus.makeReady(.queue)
        trial.handle(.stream(ready))
        #expect(trial.events == [seen, late, ready])
        #expect(trial.fetches.count == 2)
        #expect(trial.sequence == bus.head)
        #expect(trial.reducer.replica.entries[queue] == nil)
        #expect(trial.reducer.replica.ready.keys.contains(.queue))
    }

    @Test func `a client neither reports nor stores unselected topics, and detects every gap`() {
        var bus = ModelBus(epoch: 5)
        _ = bus.publish(.put, queue, [1])
        let before = bus.publish(.put, state, [2])
        var trial = ReducerTrial(selection: TopicSelection(prefixes: ["stream/playback/"]))
        trial.handle(.start)
        trial.join(bus)
        #expect(trial.reducer.replica.entries.mapValues(\.put) == [state: before])
        // The loop doesn’t read topic and payload of unselected messages.
        let passed = bus.publish(.put, queue, [3])
        trial.handle(.stream(StreamEvent(topic: Topic(""), header: passed.header, payload: [])))
        #expect(trial.events.isEmpty && trial.reducer.replica.entries.count == 1)
        _ = bus.publish(.put, queue, [4])
        let late = bus.publish(.put, state, [5])
        trial.handle(.stream(late))
        trial.answer(bus)
        #expect(trial.events == [late])
        #expect(trial.sequence == bus.head)
        #expect(trial.reducer.replica.entries[queue] == nil)
    }

    @Test func `a client that selects prefixes requests only these and the states of the services`() {
        var bus = ModelBus(epoch: 5)
        _ = bus.publish(.put, queue, [1])
        let before = bus.publish(.put, state, [2])
        var trial = ReducerTrial(selection: TopicSelection(prefixes: ["stream/playback/"]))
        trial.handle(.start)
        trial.join(bus)
        let asked = trial.fetches[0]
        #expect(asked.includedPrefixes == ["stream/playback/", "stream/bus/service/"].map { Array($0.utf8) })
        #expect(asked.message.dropFirst(2).map(\.text) == ["", "stream/playback/", "stream/bus/service/"])
        #expect(bus.answer(asked).flatMap(\.entries) == [before])
        #expect(trial.reducer.replica.entries.mapValues(\.put) == [state: before])
        #expect(trial.reducer.connection == .live)
    }

    @Test func `more prefixes than the bus accepts are filtered by the client`() {
        var bus = ModelBus(epoch: 5)
        let before = bus.publish(.put, state, [1])
        _ = bus.publish(.put, queue, [2])
        var trial = ReducerTrial(
            selection: TopicSelection(prefixes: (1...16).map { "stream/other\($0)/" } + ["stream/playback/"]))
        trial.handle(.start)
        trial.join(bus)
        #expect(trial.fetches.map { $0.includedPrefixes != nil } == [false])
        #expect(trial.reducer.replica.entries.mapValues(\.put) == [state: before])
    }

    @Test func `telemetry is subscribed to by its own prefixes and never fetched`() {
        let selection = TopicSelection(prefixes: ["stream/downloads/download/", "live/downloads/"])
        #expect(selection.telemetryPrefixes == [Array("live/downloads/".utf8)])
        #expect(selection.prefixesToInclude?.contains { $0.starts(with: Array("live/".utf8)) } == false)
        #expect(TopicSelection.all.telemetryPrefixes == [Array("live/".utf8)])
        #expect(TopicSelection(prefixes: ["stream/queue/"]).telemetryPrefixes.isEmpty)
    }

    @Test func `a bus that doesn’t support prefixes in a fetch receives a fetch without them`() {
        var bus = ModelBus(epoch: 5)
        _ = bus.publish(.put, queue, [1])
        let before = bus.publish(.put, state, [2])
        var trial = ReducerTrial(selection: TopicSelection(prefixes: ["stream/playback/"]))
        trial.handle(.start)
        trial.handle(.sync(nonce: trial.opened.last ?? "", epoch: 5, head: bus.head))
        // This is early enough for a command, which waits for two seconds.
        trial.pass(.milliseconds(400))
        #expect(trial.opened.count == 2)
        trial.join(bus)
        #expect(trial.fetches.map { $0.includedPrefixes != nil } == [true, false])
        #expect(trial.reducer.replica.entries.mapValues(\.put) == [state: before])
        #expect(trial.reducer.connection == .live)
    }

    @Test func `a bus that did not answer a fetch with prefixes receives them again in its next epoch`() {
        var bus = ModelBus(epoch: 5)
        var trial = ReducerTrial(selection: TopicSelection(prefixes: ["stream/playback/"]))
        trial.handle(.start)
        trial.handle(.sync(nonce: trial.opened.last ?? "", epoch: 5, head: bus.head))
        trial.pass(.milliseconds(400))
        trial.join(bus)
        bus = ModelBus(epoch: 6)
        trial.handle(.heartbeat(epoch: 6, head: 0))
        trial.join(bus)
        #expect(trial.fetches.map { $0.includedPrefixes != nil } == [true, false, true])
        #expect(trial.reducer.connection == .live)
    }

    @Test func `after a reconnection within an answer, the answer isn’t mixed with the next one`() {
        var bus = ModelBus(epoch: 5)
        for number in 0..<12 { _ = bus.publish(.put, .queue("q\(number)"), [1]) }
        var trial = ReducerTrial()
        trial.handle(.start)
        trial.handle(.sync(nonce: trial.opened[0], epoch: 5, head: bus.head))
        let first = bus.answer(trial.fetches[0])
        #expect(first.count > 1)
        trial.handle(.chunk(first[0]))
        trial.handle(.sync(nonce: trial.opened[0], epoch: 5, head: bus.head))
        for chunk in first.dropFirst() { trial.handle(.chunk(chunk)) }
        if trial.opened.count > 1 { trial.join(bus) }
        #expect(trial.snapshots == 1)
        #expect(trial.reducer.replica.entries.count == 12)
    }

    @Test func `duplicate events are dropped`() {
        var bus = ModelBus(epoch: 5)
        var trial = live(&bus)
        let event = bus.publish(.put, state, [1])
        trial.handle(.stream(event))
        trial.handle(.stream(event))
        #expect(trial.events == [event])
    }

    @Test func `two failed replays force a snapshot and report the resync`() {
        var bus = ModelBus(epoch: 5)
        var trial = live(&bus)
        _ = bus.publish(.put, state, [1])
        let second = bus.publish(.put, state, [2])
        trial.handle(.stream(second))
        for _ in 0..<2 {
            let broken = FetchChunk(
                isSnapshot: false, nonce: trial.opened[0], epoch: 5, head: 2, entries: [second])
            #expect(trial.fetches.last?.forceSnapshot == false)
            trial.handle(.chunk(broken))
        }
        #expect(trial.fetches.last?.forceSnapshot == true)
        #expect(trial.connections.last == .resyncing)
        trial.answer(bus)
        #expect(trial.sequence == 2)
        #expect(trial.connections.last == .live)
    }

    @Test func `replays that each bring new events are never followed by a snapshot`() {
        var bus = ModelBus(epoch: 5)
        var trial = live(&bus)
        var events: [StreamEvent] = []
        for number in 1...20 { events.append(bus.publish(.event, state, [UInt8(number)])) }
        trial.handle(.stream(events[4]))
        // The stream is faster than the observer: after each replay more is missing.
        for count in 1...5 {
            #expect(trial.fetches.last?.forceSnapshot == false)
            let first = Int(trial.fetches.last?.from.sequence ?? 0)
            #expect(first == 3 * count - 2)
            let chunk = FetchChunk(
                isSnapshot: false, nonce: trial.opened[0], epoch: 5, head: UInt64(first + 2),
                entries: Array(events[first - 1..<first + 2]))
            trial.handle(.stream(events[first + 4]))
            trial.handle(.chunk(chunk))
        }
        #expect(trial.fetches.allSatisfy { !$0.forceSnapshot })
        #expect(trial.events == Array(events[..<15]))
    }

    @Test func `old and new observers agree on the values of a service that never returns`() {
        var bus = ModelBus(epoch: 5)
        _ = bus.publish(.put, state, [1])
        _ = bus.publish(.put, queue, [2])
        _ = bus.makeReady(.playback)
        _ = bus.makeReady(.queue)
        var old = live(&bus)
        var next = ModelBus(epoch: 6)
        _ = next.publish(.put, queue, [3])
        old.handle(.sync(nonce: old.opened[0], epoch: 6, head: next.head))
        old.join(next)
        #expect(old.reducer.replica.entries[state]?.put.payload == [1])
        #expect(old.reducer.replica.isStale(state))
        for _ in 0..<59 {
            old.pass(.seconds(1))
            old.handle(.heartbeat(epoch: 6, head: next.head))
        }
        #expect(old.reducer.replica.entries[queue]?.put.payload == [2])
        let snapshots = old.snapshots
        old.pass(.seconds(1))
        #expect(old.snapshots == snapshots + 1)
        var new = ReducerTrial()
        new.handle(.start)
        new.join(next)
        #expect(old.reducer.replica.entries == new.reducer.replica.entries)
        #expect(old.reducer.replica.entries[state] == nil)
        // A service that returns later is seen the same by all.
        let event = next.publish(.put, state, [4])
        old.handle(.stream(event))
        #expect(old.reducer.replica.entries[state]?.put.payload == [4])
    }

    @Test func `silence closes the sockets and joins under a new nonce with backoff`() {
        var bus = ModelBus(epoch: 5)
        var trial = live(&bus)
        trial.pass(.milliseconds(1_400))
        trial.handle(.heartbeat(epoch: 5, head: 0))
        trial.pass(.milliseconds(1_499))
        #expect(trial.opened.count == 1)
        trial.pass(.milliseconds(1))
        #expect(trial.opened.count == 2)
        #expect(Set(trial.opened).count == 2)
        guard case .disconnected = trial.reducer.connection else {
            Issue.record("\(trial.reducer.connection)")
            return
        }
        trial.pass(.milliseconds(2_900))
        #expect(trial.opened.count == 2)
        trial.pass(.milliseconds(100))
        #expect(trial.opened.count == 3)
        trial.join(bus)
        #expect(trial.connections.suffix(2) == [.resyncing, .live])
    }

    enum Sign: CaseIterable { case heartbeat, event, sync }

    @Test(arguments: Sign.allCases, [UInt64(4), 9])
    func `another epoch causes a join at once, whose SYNC determines the epoch`(_ sign: Sign, _ epoch: UInt64) {
        var bus = ModelBus(epoch: 5)
        var trial = live(&bus)
        var next = ModelBus(epoch: epoch)
        let event = next.publish(.put, state, [9])
        switch sign {
        case .heartbeat: trial.handle(.heartbeat(epoch: epoch, head: 1))
        case .event: trial.handle(.stream(event))
        // The sockets have reconnected automatically, and the old subscription is in force again.
        case .sync: trial.handle(.sync(nonce: trial.opened[0], epoch: epoch, head: 1))
        }
        #expect(trial.opened.count == 2)
        #expect(trial.reducer.connection == .resyncing)
        trial.join(next)
        #expect(trial.fetches.last?.from.epoch == 0)
        #expect(trial.reducer.replica.position == StreamPosition(epoch: epoch, sequence: 1))
        #expect(trial.reducer.connection == .live)
    }

    @Test func `old values stay visible but stale until their service is ready in the new epoch`() {
        var bus = ModelBus(epoch: 5)
        _ = bus.publish(.put, state, [1])
        _ = bus.publish(.put, .playbackOutput, [2])
        _ = bus.makeReady(.playback)
        var trial = live(&bus)
        #expect(!trial.reducer.replica.isStale(state))
        var next = ModelBus(epoch: 6)
        trial.handle(.heartbeat(epoch: 6, head: 0))
        trial.join(next)
        #expect(trial.reducer.replica.entries[state]?.put.payload == [1])
        #expect(trial.reducer.replica.isStale(state))
        trial.handle(.stream(next.publish(.put, state, [7])))
        #expect(trial.reducer.replica.entries[state]?.put.payload == [1])
        trial.handle(.stream(next.makeReady(.playback)))
        #expect(trial.reducer.replica.entries[state]?.put.payload == [7])
        #expect(trial.reducer.replica.entries[.playbackOutput] == nil)
        #expect(!trial.reducer.replica.isStale(state))
    }

    @Test func `events that wait for an answer are bounded and the rest is fetched`() {
        var limits = StreamReducer.Limits()
        limits.bufferedEvents = 4
        var bus = ModelBus(epoch: 5, ringSize: 100)
        var trial = ReducerTrial(limits: limits)
        trial.handle(.start)
        trial.handle(.sync(nonce: trial.opened[0], epoch: 5, head: 0))
        let answer = bus.answer(trial.fetches[0])
        for index in 0..<20 { trial.handle(.stream(bus.publish(.event, state, [UInt8(index)]))) }
        for chunk in answer { trial.handle(.chunk(chunk)) }
        #expect(trial.sequence == 4)
        trial.handle(.heartbeat(epoch: 5, head: 20))
        trial.answer(bus)
        #expect(trial.events.map(\.header.sequence) == Array(1...20))
    }

    @Test func `an unanswered fetch causes a new join`() {
        var bus = ModelBus(epoch: 5)
        var trial = ReducerTrial()
        trial.handle(.start)
        trial.handle(.sync(nonce: trial.opened[0], epoch: 5, head: 0))
        trial.pass(.seconds(2))
        #expect(trial.opened.count == 2)
        trial.join(bus)
        #expect(trial.reducer.connection == .live)
        _ = bus.publish(.event, state)
    }

    @Test func `answers to an earlier join are ignored`() {
        var bus = ModelBus(epoch: 5)
        var trial = ReducerTrial()
        trial.handle(.start)
        trial.handle(.sync(nonce: trial.opened[0], epoch: 5, head: 0))
        let old = bus.answer(trial.fetches[0])
        trial.pass(.seconds(2))
        _ = bus.publish(.put, state, [1])
        for chunk in old { trial.handle(.chunk(chunk)) }
        #expect(trial.snapshots == 0)
        trial.join(bus)
        #expect(trial.sequence == 1)
    }

    @Test(arguments: 0..<40)
    func `after loss, repetition and restarts in any order the replica equals the bus’s state`(_ seed: Int) throws {
        for run in 0..<50 {
            var trial = RandomTrial(seed: UInt64(seed) * 1_000 + UInt64(run))
            try trial.run()
        }
    }
}

/// A reducer connected to a bus over connections that lose, repeat and break.
struct RandomTrial {
    var random: SeededGenerator
    let seed: UInt64
    var bus = ModelBus(epoch: 100)
    var trial = ReducerTrial()
    /// The messages in flight on the connection.
    var wire: [StreamReducer.Event] = []
    var answered = 0
    var joined = 0
    var seen: [StreamPosition: [UInt8]] = [:]
    var last: StreamPosition?
    var read = 0

    init(seed: UInt64) {
        self.seed = seed
        random = SeededGenerator(seed: seed)
    }

    mutating func run() throws {
        trial.handle(.start)
        for _ in 0..<150 {
            step()
            check()
        }
        settle()
        #expect(trial.reducer.replica.position == StreamPosition(epoch: bus.epoch, sequence: bus.head), "seed \(seed)")
        let visible = trial.reducer.replica.entries.filter { !trial.reducer.replica.isStale($0.key) }
        let expected = bus.retained.filter { entry in
            entry.key.owner == .bus || entry.key.owner.map { bus.ready[$0] != nil } ?? false
        }
        #expect(visible == expected, "seed \(seed)")
    }

    private mutating func step() {
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<8: publish()
        case 8: deliverSome(losing: true)
        case 9..<14: deliverSome(losing: false)
        case 14: wire.append(.heartbeat(epoch: bus.epoch, head: bus.head))
        case 15:
            // The connection was reopened automatically: its messages are lost, and the subscription is in force again.
            wire.removeAll()
            if let nonce = trial.opened.last { wire.append(.sync(nonce: nonce, epoch: bus.epoch, head: bus.head)) }
        case 16:
            if let repeated = wire.randomElement(using: &random) { wire.append(repeated) }
        case 17: trial.pass(.milliseconds(Int.random(in: 1..<2_500, using: &random)))
        case 18 where Int.random(in: 0..<3, using: &random) == 0:
            bus = ModelBus(epoch: bus.epoch + UInt64.random(in: 1...3, using: &random))
            if Bool.random(using: &random) { wire.removeAll() }
        default: wire.append(.stream(bus.makeReady([.playback, .queue][Int.random(in: 0..<2, using: &random)])))
        }
        serve()
    }

    private mutating func publish() {
        let topic = [Topic.playbackState, .queue("main"), .playbackOutput][Int.random(in: 0..<3, using: &random)]
        let kinds: [MessageKind] = bus.retained[topic] == nil ? [.put, .event] : [.put, .delta, .delete, .event]
        let kind = kinds.randomElement(using: &random) ?? .put
        wire.append(.stream(bus.publish(kind, topic, kind == .delete ? [] : [.random(in: 0...255, using: &random)])))
    }

    /// Acts as the bus: syncs a new subscription and answers a fetch.
    private mutating func serve() {
        if trial.opened.count > joined {
            joined = trial.opened.count
            wire = [.sync(nonce: trial.opened[joined - 1], epoch: bus.epoch, head: bus.head)]
        }
        while answered < trial.fetches.count {
            let request = trial.fetches[answered]
            answered += 1
            // An answer arrives on another socket: before or after the stream’s pending messages.
            let chunks = bus.answer(request).map(StreamReducer.Event.chunk)
            if Bool.random(using: &random) { wire.insert(contentsOf: chunks, at: 0) } else { wire += chunks }
        }
    }

    private mutating func deliverSome(losing: Bool) {
        for _ in 0..<Int.random(in: 1..<8, using: &random) where !wire.isEmpty {
            let event = wire.removeFirst()
            if losing, Bool.random(using: &random) { continue }
            trial.handle(event)
            serve()
        }
    }

    private mutating func settle() {
        for _ in 0..<200 {
            while !wire.isEmpty {
                trial.handle(wire.removeFirst())
                serve()
            }
            check()
            trial.now = trial.now.advanced(by: .milliseconds(500))
            trial.handle(.heartbeat(epoch: bus.epoch, head: bus.head))
            trial.handle(.tick)
            serve()
        }
    }

    /// Checks that no position has two payloads and that events are consecutive except after a resync.
    private mutating func check() {
        for event in trial.output[read...] {
            guard let event else {
                last = nil
                continue
            }
            if let payload = seen[event.position] { #expect(payload == event.payload, "seed \(seed)") }
            seen[event.position] = event.payload
            if let last {
                #expect(event.position.epoch == last.epoch, "seed \(seed)")
                #expect(event.position.sequence == last.sequence + 1, "seed \(seed)")
            }
            last = event.position
        }
        read = trial.output.count
    }
}
