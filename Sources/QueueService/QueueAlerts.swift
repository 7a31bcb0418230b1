import OwnerKit
import PodcastModel
import WireMessages

private let fullCode = "queueFull"
private let passedOverCode = "passedOver"

/// What the queue tells its listener without having been asked: that new episodes did not fit (one alert a podcast at a
/// time, until its podcast or rule is gone), and that an entry was passed over.
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
        var alert = Self.warning(
            fullCode, "\(podcast)/\(now.milliseconds)", title: "\(QueueName.shown(queue.name)) is full",
            "\(what) not added: it takes at most \(queue.limit) entries. Remove some, or raise its limit, and add what you want to hear.",
            now: now)
        alert.podcast = podcast
        if episodes.count == 1 { alert.episode = first.id }
        change.append(raise(alert))
        return change
    }

    /// What was said of a podcast is over.
    mutating func clear(podcast: String) -> OwnerChange { end { $0.code == fullCode && $0.podcast == podcast } }

    /// An entry can’t be played, and the next one plays in its place. Takes the place of what was said of its episode before.
    mutating func raisePassedOver(_ state: WirePlaybackState, in queue: NamedQueue, now: Timestamp) -> OwnerChange {
        var change = endPassedOver { $0 == state.episode.id }
        var alert = Self.warning(
            passedOverCode, state.loadID, title: "Passed over “\(state.episode.title)”",
            "\(state.error.message) The next entry played in its place; this one stays in \(QueueName.shown(queue.name)) where it is.",
            now: now)
        alert.episode = state.episode.id
        alert.podcast = state.episode.podcastID
        change.append(raise(alert))
        return change
    }

    /// An alert of the queue that can only be dismissed; its ID follows from the code and `subject`.
    private static func warning(
        _ code: String, _ subject: String, title: String, _ message: String, now: Timestamp
    ) -> WireAlert {
        var alert = WireAlert()
        alert.id = AlertID.derived(from: "\(code)/\(subject)").text
        alert.code = code
        alert.title = title
        alert.message = message
        alert.severity = .warning
        alert.actions = ["dismiss"]
        alert.raisedAt = now.milliseconds
        alert.owner = ServiceName.queue.text
        return alert
    }

    /// Whether anything is told of an entry that was passed over.
    var hasPassedOver: Bool { standing.values.contains { $0.code == passedOverCode } }

    /// What was said of passed over episodes is over.
    mutating func endPassedOver(where isOver: (String) -> Bool) -> OwnerChange {
        end { $0.code == passedOverCode && isOver($0.episode) }
    }
}
