import BusKit
import Logging
import PodcastModel
import SwiftProtobuf
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

    /// A hub with the snapshot of a bus on which playback is ready.
    private static func joined(_ bus: inout ModelBus) -> FleetHub {
        let hub = FleetHub(observing: .all)
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
        let hub = FleetHub(observing: .all)
        #expect(hub.state.connection == .connecting)
        #expect(hub.state.isStale(.player))
        #expect(hub.state.player.status == .idle)
        #expect(hub.state.player.episode == nil)
    }

    @Test func `the state shows the loaded episode, safe for a terminal`() {
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

    @Test func `a position advances at the speed of the anchor`() {
        var state = Self.player(.playing, position: 10)
        let now = Moment.now
        state.anchor.running = true
        state.anchor.at = now.monotonic.nanoseconds
        state.anchor.speed = 2
        let later = Moment(monotonic: now.monotonic.advanced(by: .seconds(3)), wall: now.wall)
        #expect(PlayerState(state).position(at: later) == 16)
    }

    @Test func `updates arrive in order, each with its state`() async {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        let updates = hub.updates()
        hub.apply(.event(bus.publish(.put, .playbackState, Self.player(.playing).wireBytes)))
        hub.apply(.connection(.resyncing))
        let first = await updates.next()
        #expect(first?.changes == [.everything] && first?.state.player.isPlaying == false)
        let second = await updates.next()
        #expect(second?.changes == [.player] && second?.state.connection == .live)
        let third = await updates.next()
        #expect(third?.changes == [.connection] && third?.state.connection == .reconnecting)
    }

    @Test func `a slow consumer is notified at once that it has missed updates`() async {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        let updates = hub.updates()
        #expect(await updates.next()?.changes == [.everything])
        for _ in 0..<FleetHub.updateLimit {
            hub.apply(.event(bus.publish(.put, .playbackState, Self.player(.playing).wireBytes)))
        }
        hub.apply(.event(bus.publish(.put, .playbackState, Self.player(.finished).wireBytes)))
        let update = await updates.next()
        #expect(update?.changes == [.everything] && update?.state.player.status == .finished)
        hub.apply(.event(bus.publish(.put, .playbackState, Self.player(.playing).wireBytes)))
        #expect(await updates.next()?.changes == [.player])
    }

    @Test func `a slow consumer of states gets the newest`() async {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        let states = hub.updates(limit: 1)
        hub.apply(.event(bus.publish(.put, .playbackState, Self.player(.playing).wireBytes)))
        hub.apply(.event(bus.publish(.put, .playbackState, Self.player(.finished).wireBytes)))
        hub.repeatState(in: states)
        #expect(await states.next()?.state.player.status == .finished)
    }

    @Test func `a queue that isn’t observed is stale, so that it can’t appear empty and current`() {
        var bus = ModelBus(epoch: 1)
        let hub = FleetHub(observing: Observation.player.selection)
        for service in [ServiceName.playback, .queue] { hub.apply(.event(bus.makeReady(service))) }
        hub.apply(.connection(.live))
        #expect(!hub.state.isStale(.player) && !hub.state.isStale(.next))
        #expect(hub.state.isStale(.queues) && hub.state.isReady(.queue))
    }

    @Test func `telemetry of a download is part of its state`() {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        let download = WireDownload.with {
            $0.episode = "e1"
            $0.state = .downloading
        }
        let progress = WireDownloadProgress.with {
            $0.episode = "e1"
            $0.receivedBytes = 70
            $0.bytesPerSecond = 7
        }
        hub.apply(.event(bus.publish(.put, .download("e1"), download.wireBytes)))
        hub.apply(
            .live(
                StreamEvent(
                    topic: .downloadProgress("e1"), header: BusHeader(.live, epoch: 0, sequence: 0),
                    payload: progress.wireBytes)))
        #expect(hub.state.download(of: "e1")?.receivedBytes == 70)
        #expect(hub.state.download(of: "e1")?.bytesPerSecond == 7)
    }

    @Test func `an event about many played marks is reported as a change of each episode`() async {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        let updates = hub.updates()
        let changed = WireEpisodeStatesChanged.with { $0.episodes = ["e1", "e2"] }
        hub.apply(.event(bus.publish(.event, .episodeStates, changed.wireBytes)))
        _ = await updates.next()
        #expect(await updates.next()?.changes == [.episode("e1"), .episode("e2")])
    }

    private static func download(_ episode: String, _ state: WireDownload.State = .downloaded) -> [UInt8] {
        WireDownload.with { ($0.episode, $0.state) = (episode, state) }.wireBytes
    }

    @Test func `values that a service no longer has are dropped when it is ready again after a restart of the bus`()
        async
    {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        hub.apply(.event(bus.makeReady(.downloads)))
        for episode in ["e1", "e2"] {
            hub.apply(.event(bus.publish(.put, .download(episode), Self.download(episode))))
        }
        let updates = hub.updates()
        // After a restart of the bus the service publishes only one of its values.
        var next = ModelBus(epoch: 2)
        var replica = hub.state.view.replica
        replica.replace(at: StreamPosition(epoch: 2, sequence: 0), ready: [:], entries: [])
        hub.apply(.snapshot(replica))
        hub.apply(.event(next.publish(.put, .download("e2"), Self.download("e2", .paused))))
        #expect(hub.state.isStale(.downloads))
        #expect(Set(hub.state.downloads.map(\.episode)) == ["e1", "e2"])
        hub.apply(.event(next.makeReady(.downloads)))
        #expect(!hub.state.isStale(.downloads))
        #expect(hub.state.downloads.map(\.episode) == ["e2"] && hub.state.download(of: "e2")?.status == .paused)
        for _ in 0..<2 { #expect(await updates.next()?.changes == [.everything]) }
        let last = await updates.next()
        #expect(last?.changes == [.service(.downloads), .download("e1"), .download("e2")])
        #expect(last?.state.download(of: "e1") == nil)
    }

    @Test func `values that the bus sweeps when a service is ready again are dropped`() async {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        hub.apply(.event(bus.makeReady(.downloads)))
        hub.apply(.event(bus.publish(.put, .download("e1"), Self.download("e1"))))
        hub.apply(.event(bus.makeDown(.downloads)))
        #expect(hub.state.isStale(.downloads) && hub.state.download(of: "e1") != nil)
        let updates = hub.updates()
        hub.apply(.event(bus.publish(.delete, .download("e1"))))
        hub.apply(.event(bus.makeReady(.downloads, generation: 2)))
        #expect(!hub.state.isStale(.downloads) && hub.state.downloads.isEmpty)
        #expect(await updates.next()?.changes == [.everything])
        #expect(await updates.next()?.changes == [.download("e1")])
        #expect(await updates.next()?.changes == [.service(.downloads)])
    }

    @Test func `new episodes are reported as a change with their IDs`() async {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        let updates = hub.updates()
        let news = WireEpisodesChanged.with {
            $0.podcast = "p1"
            $0.added = ["e8", "e9"]
            $0.removed = ["e1"]
        }
        hub.apply(.event(bus.publish(.event, .episodes(of: "p1"), news.wireBytes)))
        _ = await updates.next()
        guard let changes = await updates.next()?.changes, case .episodes(let change)? = changes.first else {
            Issue.record("The change didn’t arrive.")
            return
        }
        #expect(changes.count == 1 && change.podcast == "p1")
        #expect(change.added == ["e8", "e9"] && change.updated.isEmpty && change.removed == ["e1"])
    }

    @Test func `a connection that observes nothing refuses to wait for a state`() async {
        let client = BusClient(
            runDirectory: "/nonexistent", origin: "test", observes: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let fleet = Fleet(client: client, observing: Observation.nothing.selection)
        for parts in [[.player], []] as [Set<FleetPart>] {
            do throws(Failure) {
                _ = try await fleet.current(parts, services: [.playback], within: .seconds(3_600))
                Issue.record("There is no state to wait for.")
            } catch {
                #expect(error.known == .invalidArgument)
                #expect(error.message == "This connection observes nothing.")
            }
        }
        for await _ in fleet.states() { Issue.record("There is no state.") }
        await fleet.disconnect()
    }

    @Test func `waiting for a state ends when its task is cancelled`() async {
        let hub = FleetHub(observing: .all)
        let waiting = Task { await hub.first(within: .seconds(3_600)) { _ in true } }
        waiting.cancel()
        #expect(await waiting.value.isMet == false)
    }

    @Test func `cancelling a consumer during an update doesn’t deadlock`() async {
        var bus = ModelBus(epoch: 1)
        let hub = Self.joined(&bus)
        let put = bus.publish(.put, .playbackState, Self.player(.playing).wireBytes)
        let teller = Task.detached { while !Task.isCancelled { hub.apply(.event(put)) } }
        for _ in 0..<2_000 {
            let consumer = Task.detached {
                let states = hub.updates(limit: 1)
                while await states.next() != nil {}
            }
            let other = Task.detached {
                let updates = hub.updates()
                while await updates.next() != nil {}
            }
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
        let states = hub.updates(limit: 1)
        let updates = hub.updates()
        hub.end(Failure(.internalError, "It broke."))
        #expect(await states.next()?.state.connection == .ended(Failure(.internalError, "It broke.")))
        #expect(await states.next()?.state == nil)
        #expect(await updates.next()?.changes == [.everything])
        #expect(await updates.next()?.changes == [.connection])
        #expect(await updates.next()?.state == nil)
        hub.end(nil)
        #expect(hub.state.connection == .ended(Failure(.internalError, "It broke.")))
        #expect(await hub.updates().next()?.state == nil)
    }
}
