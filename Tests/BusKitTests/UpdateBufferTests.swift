import NIOConcurrencyHelpers
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import BusKit

struct UpdateBufferTests {
    @Test func `a consumer that is too slow receives a snapshot in place of the missed updates`() async {
        let feed = UpdateBuffer(limit: 4)
        var bus = ModelBus(epoch: 5)
        var replica = Replica()
        for index in 0..<7 {
            let event = bus.publish(.put, .playbackState, [UInt8(index)])
            replica.apply(event)
            feed.push(.event(event), replica: replica, connection: .live)
        }
        guard case .snapshot(let snapshot)? = await feed.next() else {
            Issue.record("no snapshot")
            return
        }
        #expect(snapshot.position.sequence == 5)
        guard case .connection(.live)? = await feed.next(), case .event(let next)? = await feed.next() else {
            Issue.record("no event after the snapshot")
            return
        }
        #expect(next.position.sequence == 6)
    }

    @Test func `a feed is drained when its consumer requests the next update`() async {
        let feed = UpdateBuffer()
        feed.push(.connection(.live), replica: Replica(), connection: .live)
        feed.push(.connection(.resyncing), replica: Replica(), connection: .resyncing)
        let handled = NIOLockedValueBox(0)
        let consumer = Task {
            while await feed.next() != nil {
                await Task.yield()
                handled.withLockedValue { $0 += 1 }
            }
        }
        await feed.drained()
        #expect(handled.withLockedValue { $0 } == 2)
        feed.finish()
        await feed.drained()
        await consumer.value
    }

    @Test func `a replay of the whole ring isn’t an overflow`() async {
        let feed = UpdateBuffer()
        var bus = ModelBus(epoch: 5)
        var replica = Replica()
        for index in 0..<16_384 {
            let event = bus.publish(.event, .playbackState, [UInt8(truncatingIfNeeded: index)])
            replica.apply(event)
            feed.push(.event(event), replica: replica, connection: .live)
        }
        feed.finish()
        var count: UInt64 = 0
        while case .event(let event)? = await feed.next() {
            count += 1
            #expect(event.position.sequence == count)
        }
        #expect(count == 16_384)
    }

    @Test func `telemetry beyond the limit is dropped`() async {
        let feed = UpdateBuffer(limit: 2)
        var bus = ModelBus(epoch: 5)
        let event = bus.publish(.event, .playbackState)
        for _ in 0..<5 { feed.push(.live(event), replica: Replica(), connection: .live) }
        feed.finish()
        var count = 0
        while await feed.next() != nil { count += 1 }
        #expect(count == 2)
    }

    @Test func `waiting updates are also bounded in bytes`() async {
        let feed = UpdateBuffer(byteLimit: 1_000)
        var bus = ModelBus(epoch: 5)
        var replica = Replica()
        func push(_ size: Int) {
            let event = bus.publish(.put, .playbackState, [UInt8](repeating: 1, count: size))
            replica.apply(event)
            feed.push(.event(event), replica: replica, connection: .live)
        }
        // A single larger update is still delivered.
        push(5_000)
        guard case .event? = await feed.next() else {
            Issue.record("no event")
            return
        }
        push(600)
        push(600)
        guard case .snapshot(let snapshot)? = await feed.next() else {
            Issue.record("no snapshot")
            return
        }
        #expect(snapshot.position.sequence == 3)
    }

    @Test func `a consumer that waits for an update gets nil when the feed is finished`() async {
        let feed = UpdateBuffer()
        async let next = feed.next()
        feed.finish()
        let isOver = await next == nil
        #expect(isOver)
    }

    @Test func `cancelling a task ends its wait for an update`() async {
        let feed = UpdateBuffer()
        let task = Task { await feed.next() == nil }
        task.cancel()
        #expect(await task.value)
    }
}
