import BusKit
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import LockstepClient

@Suite struct FleetHubTests {
    private static func player(_ status: WirePlaybackState.Status, position: Double = 0) -> WirePlaybackState {
        var state = WirePlaybackState()
        state.status = status
        state.episode.id = "e1"
        state.episode.title = "A\u{1b}[31m title"
        state.loadID = "l1"
        state.anchor.position = position
        state.anchor.bootID = SystemClocks.bootID
        return state
    }

    /// A hub that has joined a bus on which playback is ready.
    private static func joined(_ bus: inout ModelBus) -> FleetHub {
        let hub = FleetHub(observes: true)
        _ = bus.makeReady(.playback)
        let put = bus.publish(.put, .playbackState, player(.paused, position: 12).wireBytes)
        var replica = Replica()
        replica.replace(
            at: StreamPosition(epoch: bus.epoch, sequence: bus.head), ready: bus.ready, entries: [put])
        hub.apply(.snapshot(replica))
        hub.apply(.connection(.live))
        return hub
    }

    @Test func `the state is empty and stale before the first snapshot`() {
        let hub = FleetHub(observes: true)
        #expect(hub.state.connection == .connecting)
        #expect(hub.state.isStale(.player))
        #expect(hub.state.player.status == .idle)
        #expect(hub.state.player.episode == nil)
    }

    @Test func `the state shows what is loaded, safe for a terminal`() {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        #expect(hub.state.connection == .live)
        #expect(!hub.state.isStale(.player))
        #expect(hub.state.isStale(.queues))
        #expect(hub.state.player.status == .paused(by: .user))
        #expect(hub.state.player.position() == 12)
        #expect(hub.state.player.episode?.title == "A [31m title")
        #expect(hub.state.player.sentence == "Paused at 0:12: A [31m title.")
    }

    @Test func `a position moves on at the speed of the anchor`() {
        var state = Self.player(.playing, position: 10)
        let now = Moment.now
        state.anchor.running = true
        state.anchor.at = now.monotonic.nanoseconds
        state.anchor.speed = 2
        let later = Moment(monotonic: now.monotonic.advanced(by: .seconds(3)), wall: now.wall)
        #expect(PlayerState(state).position(at: later) == 16)
    }

    @Test func `changes arrive in order`() async {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        var changes = hub.changes().makeAsyncIterator()
        hub.apply(.event(bus.publish(.put, .playbackState, Self.player(.playing).wireBytes)))
        hub.apply(.connection(.resyncing))
        #expect(await changes.next() == .player)
        #expect(await changes.next() == .connection)
    }

    @Test func `a slow consumer gets everything in place of what it missed`() async {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        var changes = hub.changes().makeAsyncIterator()
        func change() { hub.apply(.event(bus.publish(.put, .playbackState, Self.player(.playing).wireBytes))) }
        for _ in 0..<(FleetHub.changeLimit + 3) { change() }
        for _ in 0..<FleetHub.changeLimit { #expect(await changes.next() == .player) }
        change()
        #expect(await changes.next() == .everything)
        change()
        #expect(await changes.next() == .player)
    }

    @Test func `a slow consumer of states gets the newest`() async {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        var states = hub.states(every: nil).makeAsyncIterator()
        hub.apply(.event(bus.publish(.put, .playbackState, Self.player(.playing).wireBytes)))
        hub.apply(.event(bus.publish(.put, .playbackState, Self.player(.finished).wireBytes)))
        #expect(await states.next()?.player.status == .finished)
    }

    @Test func `cancelling a consumer while it is told doesn’t deadlock`() async {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        let put = bus.publish(.put, .playbackState, Self.player(.playing).wireBytes)
        let teller = Task.detached { while !Task.isCancelled { hub.apply(.event(put)) } }
        for _ in 0..<2_000 {
            let consumer = Task.detached { for await _ in hub.states(every: nil) {} }
            let other = Task.detached { for await _ in hub.changes() {} }
            await Task.yield()
            consumer.cancel()
            other.cancel()
            await consumer.value
            await other.value
        }
        teller.cancel()
        await teller.value
    }

    @Test func `the sequences end with the connection`() async {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        var states = hub.states(every: nil).makeAsyncIterator()
        var changes = hub.changes().makeAsyncIterator()
        hub.end()
        #expect(await states.next() != nil)
        #expect(await states.next() == nil)
        #expect(await changes.next() == .connection)
        #expect(await changes.next() == nil)
        #expect(hub.state.connection == .reconnecting)
        var late = hub.states(every: nil).makeAsyncIterator()
        #expect(await late.next() == nil)
    }
}
