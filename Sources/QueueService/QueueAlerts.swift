import OwnerKit
import PodcastModel
import WireMessages

private let fullCode = "queueFull"
private let passedOverCode = "passedOver"

/// The alerts of the queue: new episodes didn’t fit (one alert per podcast, until the podcast or its rule is removed),
/// or an entry was skipped.
extension OwnerAlerts {
    /// Raises the alert that new episodes of a podcast didn’t fit. It replaces an earlier one of the podcast.
    mutating func raiseFull(
        _ queue: NamedQueue, _ episodes: [WireEpisode], of podcast: String, now: Timestamp
    ) -> OwnerChange {
        guard let first = episodes.first else { return OwnerChange() }
        var change = clear(podcast: podcast)
        let title = first.podcastTitle.isEmpty ? podcast : first.podcastTitle
        let what =
            episodes.count == 1
            ? "“\(first.title)” of “\(title)” was" : "\(episodes.count) new episodes of “\(title)” were"
        change.append(
            raise(
                WireAlert(
                    fullCode, of: .queue, named: "\(fullCode)/\(podcast)/\(now.milliseconds)",
                    title: "\(QueueName.shown(queue.name)) is full",
                    message:
                        "\(what) not added: it takes at most \(queue.limit) entries. Remove some, or raise its limit, and add what you want to hear.",
                    episode: episodes.count == 1 ? first.id : "", podcast: podcast, at: now)))
        return change
    }

    /// Ends the alert that new episodes of a podcast didn’t fit.
    mutating func clear(podcast: String) -> OwnerChange { end { $0.code == fullCode && $0.podcast == podcast } }

    /// Raises the alert that an entry was skipped. It replaces an earlier one of the episode.
    mutating func raisePassedOver(_ state: WirePlaybackState, in queue: NamedQueue, now: Timestamp) -> OwnerChange {
        var change = endPassedOver { $0 == state.episode.id }
        change.append(
            raise(
                WireAlert(
                    passedOverCode, of: .queue, named: "\(passedOverCode)/\(state.loadID)",
                    title: "Passed over “\(state.episode.title)”",
                    message:
                        "\(state.error.message) The next entry played in its place; this one stays in \(QueueName.shown(queue.name)) where it is.",
                    episode: state.episode.id, podcast: state.episode.podcastID, at: now)))
        return change
    }

    var hasPassedOver: Bool { standing.values.contains { $0.code == passedOverCode } }

    /// Ends alerts about skipped entries, by their episodes.
    mutating func endPassedOver(where isOver: (String) -> Bool) -> OwnerChange {
        end { $0.code == passedOverCode && isOver($0.episode) }
    }
}
