import BusKit
import PodcastModel
import WireMessages

private let fullCode = "queueFull"

/// What the queue tells its listener without having been asked: that new episodes did not fit. One alert a podcast at a
/// time; each stands until it is answered, or its podcast or rule is gone.
extension OwnerAlerts {
    /// New episodes of a podcast did not fit into the queue of its rule. Takes the place of what was said of it before.
    mutating func raiseFull(
        _ queue: NamedQueue, _ episodes: [WireEpisode], of podcast: String, now: Timestamp
    ) -> OwnerChange {
        guard let first = episodes.first else { return OwnerChange() }
        var change = clear(podcast: podcast)
        let title = first.podcastTitle.isEmpty ? podcast : first.podcastTitle
        let what =
            episodes.count == 1
            ? "“\(first.title)” of “\(title)” was" : "\(episodes.count) new episodes of “\(title)” were"
        var alert = WireAlert()
        alert.id = AlertID.derived(from: "\(fullCode)/\(podcast)/\(now.milliseconds)").text
        alert.code = fullCode
        alert.title = "\(QueueName.shown(queue.name)) is full"
        alert.message =
            "\(what) not added: it takes at most \(queue.limit) entries. Remove some, or raise its limit, and add what you want to hear."
        alert.severity = .warning
        alert.actions = ["dismiss"]
        alert.raisedAt = now.milliseconds
        alert.owner = ServiceName.queue.text
        alert.podcast = podcast
        if episodes.count == 1 { alert.episode = first.id }
        change.append(raise(alert))
        return change
    }

    /// What was said of a podcast is over.
    mutating func clear(podcast: String) -> OwnerChange { end { $0.podcast == podcast } }
}
