import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The settings of the queue, and how far each podcast's episodes have been dealt with.
struct QueueRules: Sendable {
    var settings = OwnerSettings(.queue)
    var marks: [String: WireQueueRuleRecord] = [:]
    /// Podcasts that were forgotten, with their episodes: the past of a queue does not bring those back.
    private(set) var forgotten: Set<String> = []
    /// What did not fit, and what was passed over.
    var alerts = OwnerAlerts(.queue)

    init() {}

    /// The stored ones.
    init(_ records: [StoredRecord], unreadable: (StoredRecord, any Error) -> Void) {
        for record in records where !settings.restore(record) {
            do {
                switch record.collection {
                case "rule": marks[record.key] = try WireQueueRuleRecord(wireBytes: record.value)
                case Self.forgottenKey: forgotten.insert(record.key)
                default: _ = try alerts.restore(record)
                }
            } catch {
                unreadable(record, error)
            }
        }
    }

    /// Where new episodes go.
    struct Rule: Sendable {
        var place: String
        var queue: String

        /// A new entry that holds the episode.
        func entry(_ episode: WireEpisode, now: Moment) -> WireQueueEntry {
            var entry = WireQueueEntry()
            entry.id = QueueEntryID.derived(from: "rule/\(episode.id)/\(now.wall.milliseconds)").text
            entry.episode = WireEpisodeSummary(episode)
            entry.addedAt = now.wall.milliseconds
            let podcast = episode.podcastTitle.isEmpty ? episode.podcastID : episode.podcastTitle
            let position =
                switch place {
                case "top": "the top"
                case "next": "the place after the current entry"
                default: "the bottom"
                }
            entry.reason = "by a rule, as new episodes of “\(podcast)” go to \(position)"
            return entry
        }
    }

    /// What holds for a podcast; nil: nothing happens by itself.
    func rule(of podcast: String) -> Rule? {
        let place = settings.value(.autoEnqueue, podcast: podcast)
        guard place != "off" else { return nil }
        return Rule(place: place, queue: settings.value(.autoEnqueueQueue, podcast: podcast))
    }

    /// Whether a setting names the queue.
    func names(queue: String) -> Bool {
        ([""] + settings.podcasts).contains { settings.own(.autoEnqueueQueue, podcast: $0) == queue }
    }

    var everything: [WireChange] {
        settings.everything + marks.sorted { $0.key < $1.key }.map { .putting("rule", $0.key, $0.value) }
            + forgotten.sorted().map(Self.tombstone) + alerts.everything
    }

    var retained: [Publication] { settings.retained + alerts.retained }

    private static let forgottenKey = "forgotten"

    private static func tombstone(_ podcast: String) -> WireChange {
        .putting(forgottenKey, podcast, WireQueueRuleRecord())
    }

    /// A podcast is forgotten, with what is set for it.
    mutating func markForgotten(podcast: String) -> OwnerChange {
        var change = forget(podcast: podcast)
        if let settings = settings.forget(podcast: podcast) { change.append(settings) }
        if forgotten.insert(podcast).inserted { change.changes.append(Self.tombstone(podcast)) }
        return change
    }

    /// A podcast that was forgotten is there again.
    mutating func unmarkForgotten(podcast: String) -> OwnerChange {
        guard forgotten.remove(podcast) != nil else { return OwnerChange() }
        return OwnerChange(changes: [.deleting(Self.forgottenKey, podcast)])
    }

    /// No rule is interested in a podcast any more.
    mutating func forget(podcast: String) -> OwnerChange {
        var change = OwnerChange()
        if marks.removeValue(forKey: podcast) != nil { change.changes.append(.deleting("rule", podcast)) }
        change.append(alerts.clear(podcast: podcast))
        return change
    }
}

extension NamedQueue {
    /// Adds new entries in the place that a rule says.
    mutating func enter(_ entries: [WireQueueEntry], by rule: QueueRules.Rule, now: Timestamp) -> OwnerChange {
        guard let first = entries.first else { return OwnerChange() }
        let after =
            switch rule.place {
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
