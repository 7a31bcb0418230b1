import BusKit
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

struct FleetViewTests {
    private func entry(_ id: String) -> WireQueueEntry {
        var entry = WireQueueEntry()
        entry.id = id
        entry.episode.id = "e" + id
        return entry
    }

    @Test func `the JSON of a player that has published no state shows the default speed and volume`() {
        let json = PlayerState.unknown.json().line
        #expect(json.contains(#""speed":1,"volume":100,"#))
    }

    @Test func `a queue is read with its deltas from a snapshot and from events`() {
        var bus = ModelBus(epoch: 5)
        var state = WireQueueState()
        state.name = "main"
        state.revision = 1
        state.entries = [entry("q1")]
        _ = bus.publish(.put, .queue("main"), state.wireBytes)
        var step = WireQueueStep()
        step.insert.entry = entry("q2")
        step.insert.after = "q1"
        var delta = WireQueueDelta()
        delta.revision = 2
        delta.steps = [step]
        _ = bus.publish(.delta, .queue("main"), delta.wireBytes)
        var replica = Replica()
        let values = bus.retained.values.flatMap { [$0.put] + $0.deltas }
        replica.replace(at: StreamPosition(epoch: 5, sequence: 2), ready: [.queue: 1], entries: values)
        var view = FleetView()
        #expect(view.apply(.snapshot(replica)) == [.everything])
        #expect(view.mainQueue?.entries.map(\.id) == ["q1", "q2"])
        step.insert.entry = entry("q3")
        step.insert.after = ""
        delta.steps = [step]
        delta.revision = 3
        #expect(view.apply(.event(bus.publish(.delta, .queue("main"), delta.wireBytes))) == [.queue("main")])
        #expect(view.mainQueue?.entries.map(\.id) == ["q3", "q1", "q2"])
        #expect(view.mainQueue?.revision == 3)
        #expect(view.queueStates["main"]?.entries.map(\.id) == ["q3", "q1", "q2"])
    }

    @Test func `an alert is shown from its put to its delete`() {
        var bus = ModelBus(epoch: 5)
        var view = FleetView()
        var alert = WireAlert()
        alert.id = "a1"
        let topic = Topic.alert(.playback, "a1")
        #expect(view.apply(.event(bus.publish(.put, topic, alert.wireBytes))) == [.alert])
        #expect(view.alertsInOrder.map(\.id) == ["a1"])
        #expect(view.apply(.event(bus.publish(.delete, topic))) == [.alert])
        #expect(view.alertsInOrder.isEmpty)
    }

    @Test func `errors come before warnings, and of each kind the oldest comes first`() {
        var bus = ModelBus(epoch: 5)
        var view = FleetView()
        for (id, severity, at) in [("a1", .warning, 1), ("a2", .error, 3), ("a3", .info, 0), ("a4", .error, 2)]
            as [(String, WireAlert.Severity, Int64)]
        {
            let alert = WireAlert.with {
                $0.id = id
                $0.severity = severity
                $0.raisedAt = at
            }
            view.apply(.event(bus.publish(.put, .alert(.playback, id), alert.wireBytes)))
        }
        #expect(view.alertsInOrder.map(\.id) == ["a4", "a2", "a1", "a3"])
    }

    @Test func `downloads, bookmarks and settings are shown from their put to their delete`() {
        var bus = ModelBus(epoch: 5)
        var view = FleetView()
        var download = WireDownload()
        download.episode = "e1"
        download.state = .paused
        let file = Topic.download("e1")
        #expect(view.apply(.event(bus.publish(.put, file, download.wireBytes))) == [.download("e1")])
        #expect(view.downloads["e1"]?.state == .paused)
        let marks = WireBookmarks.with { $0.bookmarks = [.with { $0.id = "b1" }] }
        let places = Topic.bookmarks(of: "e1")
        #expect(view.apply(.event(bus.publish(.put, places, marks.wireBytes))) == [.bookmarks("e1")])
        #expect(view.bookmarks["e1"]?.bookmarks.map(\.id) == ["b1"])
        let own = Topic.settings(.queue, podcast: "p1")
        let state = WireSettingsState.with { $0.podcast = "p1" }
        #expect(view.apply(.event(bus.publish(.put, own, state.wireBytes))) == [.settings])
        #expect(view.settings[own]?.podcast == "p1")
        for topic in [file, places, own] { _ = view.apply(.event(bus.publish(.delete, topic))) }
        #expect(view.downloads.isEmpty && view.bookmarks.isEmpty && view.settings.isEmpty)
    }

    @Test(arguments: [
        "x", "stream", "stream/playback", "stream/playback/state", "", "stream//", "stream/queue/queue/main",
        "stream/downloads/download/e1", "stream/playback/bookmarks/e1", "stream/queue/settings/all",
    ])
    func `an unreadable payload counts as absent`(_ topic: String) {
        var bus = ModelBus(epoch: 5)
        var view = FleetView()
        _ = view.apply(.event(bus.publish(.put, Topic(topic), [0xff, 0xff, 0xff])))
        _ = view.apply(.event(bus.publish(.delta, Topic(topic), [0xff])))
        #expect(view.player == nil)
        #expect(view.mainQueue == nil)
    }

    @Test func `an episode’s new position is reported as a change and isn’t kept`() {
        var bus = ModelBus(epoch: 5)
        var view = FleetView()
        var state = WireEpisodeState()
        state.episode = "e1"
        state.position = 12
        #expect(view.apply(.event(bus.publish(.event, .episodeState("e1"), state.wireBytes))) == [.episode("e1")])
    }
}
