import OwnerKit
import PodcastModel
import WireMessages

private let fullCode = "queueFull"
private let skippedCode = "passedOver"

/// The queue’s alerts: new episodes didn’t fit into a queue (one alert per podcast, until the podcast or its rule is
/// removed), or an entry was skipped.
extension OwnerAlerts {
    /// Raises an alert about new episodes of a podcast that didn’t fit. It replaces an earlier one about the same
    /// podcast.
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
                        "\(what) not added: the queue holds at most \(queue.limit) entries. Remove some or raise its limit, then add the episodes that you want to hear.",
                    episode: episodes.count == 1 ? first.id : "", podcast: podcast, at: now)))
        return change
    }

    /// Ends the alert about new episodes of a podcast that didn’t fit.
    mutating func clear(podcast: String) -> OwnerChange { end { $0.code == fullCode && $0.podcast == podcast } }

    /// Raises an alert about a skipped entry. It replaces an earlier one about the same episode.
    mutating func raiseSkipped(_ state: WirePlaybackState, in queue: NamedQueue, now: Timestamp) -> OwnerChange {
        var change = endSkipped { $0 == state.episode.id }
        change.append(
            raise(
                WireAlert(
                    skippedCode, of: .queue, named: "\(skippedCode)/\(state.loadID)",
                    title: "Skipped “\(state.episode.title)”",
                    message:
                        "\(state.error.message) The next entry was played instead; this one keeps its position in \(QueueName.shown(queue.name)).",
                    episode: state.episode.id, podcast: state.episode.podcastID, at: now)))
        return change
    }

    var hasSkipped: Bool { active.values.contains { $0.code == skippedCode } }

    /// Ends alerts about skipped entries whose episodes meet the condition.
    mutating func endSkipped(where condition: (String) -> Bool) -> OwnerChange {
        end { $0.code == skippedCode && condition($0.episode) }
    }
}
