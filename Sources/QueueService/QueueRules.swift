import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// The queue’s settings and alerts, and the newest episodes that the rule of each podcast has handled.
struct QueueRules: Sendable {
    var settings = OwnerSettings(.queue)
    var marks = KeyedRecords<WireQueueRuleRecord>("rule")
    /// The forgotten podcasts, whose episodes a queue’s history doesn’t restore.
    private var forgotten = KeyedRecords<WireQueueRuleRecord>("forgotten")
    /// The episodes that each smart playlist has found since it adds them to a queue.
    var smartFound = KeyedRecords<WireSmartFoundRecord>("smart")
    var alerts = OwnerAlerts(.queue)

    mutating func restore(_ record: StoredRecord) throws {
        if settings.restore(record) { return }
        _ =
            try marks.restore(record) || forgotten.restore(record) || smartFound.restore(record)
            || alerts.restore(record)
    }

    var forgottenPodcasts: Set<String> { Set(forgotten.keys) }

    /// The podcasts with a stored setting, mark or alert.
    var podcasts: [String] { settings.podcasts + marks.keys + alerts.active.values.map(\.podcast) }

    /// The queue and the position at which new episodes are enqueued.
    struct Rule: Sendable {
        var position: String
        var queue: String

        func entry(_ episode: WireEpisode, now: Moment) -> WireQueueEntry {
            let podcast = episode.podcastTitle.isEmpty ? episode.podcastID : episode.podcastTitle
            let positions = ["top": "at the top", "next": "after the current entry"]
            return .with {
                $0.id = QueueEntryID.derived(from: "rule/\(episode.id)/\(now.wall.milliseconds)").text
                $0.episode = WireEpisodeSummary(episode)
                $0.addedAt = now.wall.milliseconds
                $0.reason =
                    "by the rule that adds new episodes of “\(podcast)” \(positions[position] ?? "at the bottom")"
            }
        }
    }

    func rule(of podcast: String) -> Rule? {
        let position = settings.value(.autoEnqueue, podcast: podcast)
        guard position != "off" else { return nil }
        return Rule(position: position, queue: settings.value(.autoEnqueueQueue, podcast: podcast))
    }

    /// Whether the setting `autoEnqueueQueue` names the queue, in general or for a podcast.
    func names(queue: String) -> Bool {
        ([""] + settings.podcasts).contains { settings.own(.autoEnqueueQueue, podcast: $0) == queue }
    }

    /// Makes the settings `autoEnqueueQueue` that name a queue name another one.
    mutating func rename(queue: String, to name: String) throws(Failure) -> OwnerChange {
        var change = OwnerChange()
        let key = SettingKey.autoEnqueueQueue
        for podcast in [""] + settings.podcasts where settings.own(key, podcast: podcast) == queue {
            let setting = WireSetSetting.with { ($0.podcast, $0.key, $0.value) = (podcast, key.rawValue, name) }
            if let renamed = try settings.set(setting) { change.append(renamed) }
        }
        return change
    }

    var everything: [WireChange] {
        settings.everything + marks.everything + forgotten.everything + smartFound.everything + alerts.everything
    }

    var retained: [Publication] { settings.retained + alerts.retained }

    /// Deletes the settings of a forgotten podcast.
    mutating func markForgotten(podcast: String, _ change: inout OwnerChange) {
        endRule(of: podcast, &change)
        if let settings = settings.forget(podcast: podcast) { change.append(settings) }
        if forgotten[podcast] == nil { forgotten.put(podcast, WireQueueRuleRecord(), &change.changes) }
    }

    mutating func unmarkForgotten(podcast: String, _ change: inout OwnerChange) {
        forgotten.remove(podcast, &change.changes)
    }

    mutating func endRule(of podcast: String, _ change: inout OwnerChange) {
        marks.remove(podcast, &change.changes)
        change.append(alerts.clear(podcast: podcast))
    }
}

extension NamedQueue {
    /// Adds new entries at the position of a rule.
    mutating func enqueue(_ entries: [WireQueueEntry], by rule: QueueRules.Rule, now: Timestamp) -> OwnerChange {
        guard let first = entries.first else { return OwnerChange() }
        let after =
            switch rule.position {
            case "top": ""
            case "next": queue.current ?? queue.successor.flatMap { queue.entry(before: $0)?.id } ?? ""
            default: queue.entries.last?.id ?? ""
            }
        let what = entries.count == 1 ? "“\(first.episode.title)”" : "\(entries.count) new episodes"
        return edit(
            WireQueueStep.inserting(entries, after: after), "Added \(what) by rule", origin: CommandOrigin.rule.text,
            now: now)
    }
}
