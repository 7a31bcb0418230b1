import BusKit
import WireMessages

/// The state of one player’s screen.
struct SimulatedScreen: Equatable {
    var queues: [Topic: WireQueueState] = [:]
    var player = WirePlaybackState()
    var alerts: [Topic: WireAlert] = [:]
    var next = WireQueueNext()

    /// The alerts for episodes whose playback has failed.
    var failures: [WireAlert] { alerts.values.filter { $0.actions.contains("skip") } }

    func entries(_ name: String) -> [WireQueueEntry] { queues[.queue(name)]?.entries ?? [] }

    mutating func apply(_ publication: Publication) throws {
        let parts = publication.topic.parts
        switch (publication.topic, publication.kind) {
        case (.playbackState, .put): player = try WirePlaybackState(wireBytes: publication.payload)
        case (.queueNext, .put): next = try WireQueueNext(wireBytes: publication.payload)
        case (let topic, .put) where parts.prefix(3) == ["stream", "queue", "queue"]:
            queues[topic] = try WireQueueState(wireBytes: publication.payload)
        case (let topic, .delta) where parts.prefix(3) == ["stream", "queue", "queue"]:
            queues[topic]?.apply(try WireQueueDelta(wireBytes: publication.payload))
        case (let topic, .put) where parts.prefix(3) == ["stream", "playback", "alert"]:
            alerts[topic] = try WireAlert(wireBytes: publication.payload)
        case (let topic, .delete): alerts[topic] = nil
        default: break
        }
    }
}
