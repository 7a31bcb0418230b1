import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// New episodes of a podcast enter a queue by themselves, where the listener has said so.
//
// The news of them on the stream can be missed; so a rule remembers, for each podcast, which episodes it has dealt with,
// and what counts is the library: whatever was first seen after those is new. What is there when a rule begins, or when a
// podcast is first met, is not.

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

    /// A podcast is gone, with what is set for it.
    mutating func bury(podcast: String) -> OwnerChange {
        var change = forget(podcast: podcast)
        if let settings = settings.forget(podcast: podcast) { change.append(settings) }
        if forgotten.insert(podcast).inserted { change.changes.append(Self.tombstone(podcast)) }
        return change
    }

    /// It is there again.
    mutating func unearth(podcast: String) -> OwnerChange {
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

extension QueueMachine {
    /// When to ask the library again that did not answer.
    static let ruleRepetition = TimerName("rules")
    private static let ruleRetry = Backoff.constant(.seconds(5))
    /// The newest episodes of a podcast among which new ones are looked for.
    private static let ruleWindow = UInt32(RequestSizes.episodes)
    /// What was published so long before the last new episode is no news, but a feed that shows its past; in ms.
    private static let newsAge: Int64 = 7 * 24 * 3_600 * 1_000

    /// Sets or takes back a setting; podcasts to which a rule applies now begin with what is there.
    mutating func set(_ setting: WireSetSetting, of command: Command) throws(Failure) -> [OwnerEffect<Never>] {
        if setting.key == SettingKey.autoEnqueueQueue.rawValue, !setting.value.isEmpty,
            QueueName.isValid(setting.value), queues.current[setting.value] == nil
        {
            throw noQueue(setting.value)
        }
        var rules = rules.current
        let changed = try rules.settings.set(setting)
        var reply = reply(main)
        reply.setting = rules.settings.reply(to: setting, changed: changed != nil)
        guard var change = changed else { return commit(main, OwnerChange(), reply, answering: command) }
        for podcast in rules.marks.keys.sorted() where rules.rule(of: podcast) == nil {
            let forgotten = rules.forget(podcast: podcast)
            change.append(forgotten)
        }
        let effects = commit(main, change, reply, answering: command, rules: rules)
        let concerned = episodeCounts.keys.filter { setting.podcast.isEmpty || $0 == setting.podcast }.sorted()
        return effects
            + concerned.filter { rules.marks[$0] == nil }.flatMap { check(podcast: $0) }
    }

    /// A podcast's metadata: also the first sign of it, and after an absence the sign that something is new.
    mutating func observe(podcast event: StreamEvent, now: Moment) -> [OwnerEffect<Never>] {
        let id = String(event.topic.parts[3])
        guard event.header.kind == .put, let podcast = try? WirePodcast(wireBytes: event.payload) else {
            let effects = stopChecking(podcast: id)
            return effects + (event.header.kind == .delete ? change { $0.bury(podcast: id) } : [])
        }
        guard podcast.subscribed else {
            // Subscribing again begins anew: what comes in between is no news.
            let effects = stopChecking(podcast: id)
            return effects
                + change { rules in
                    var change = rules.unearth(podcast: id)
                    change.append(rules.forget(podcast: id))
                    return change
                }
        }
        let effects = change { $0.unearth(podcast: id) }
        let before = episodeCounts.updateValue(podcast.episodeCount, forKey: id)
        return before == podcast.episodeCount ? effects : effects + check(podcast: id)
    }

    /// Nobody is interested in a podcast’s episodes any more, nor in an answer about them that is under way.
    private mutating func stopChecking(podcast: String) -> [OwnerEffect<Never>] {
        episodeCounts[podcast] = nil
        if ruleChecks.first == podcast { checking = nil }
        ruleChecks.removeAll { $0 == podcast }
        return checkNextPodcast()
    }

    private mutating func change(_ change: (inout QueueRules) -> OwnerChange) -> [OwnerEffect<Never>] {
        var rules = rules.current
        let change = change(&rules)
        return commit(main, change, rules: rules)
    }

    /// Looks for new episodes of a podcast, if it is subscribed to and a rule is interested in them.
    mutating func check(podcast: String) -> [OwnerEffect<Never>] {
        // One that isn’t known yet is looked at when it is.
        guard episodeCounts[podcast] != nil, rules.current.rule(of: podcast) != nil else { return [] }
        // One that is being asked about may have got more since: once more.
        if !ruleChecks.dropFirst(checking == nil ? 0 : 1).contains(podcast) { ruleChecks.append(podcast) }
        return checkNextPodcast()
    }

    mutating func checkNextPodcast() -> [OwnerEffect<Never>] {
        guard checking == nil, let podcast = ruleChecks.first else { return [] }
        var request = WirePersistenceRequest()
        request.episodes.podcast = podcast
        request.episodes.limit = Self.ruleWindow
        let call = nextCall("rule")
        checking = call
        return [.call(Call(id: call, to: .persistence, payload: request.wireBytes))]
    }

    mutating func podcastChecked(_ result: Result<[UInt8], Failure>, now: Moment) -> [OwnerEffect<Never>] {
        checking = nil
        guard let podcast = ruleChecks.first else { return [] }
        do {
            let episodes = try WirePersistenceReply(wireBytes: result.get()).episodes.episodes
            ruleChecks.removeFirst()
            return enqueue(episodes, of: podcast, now: now) + checkNextPodcast()
        } catch {
            if let failure = error as? Failure, failure.retry {
                return [repeatChecks(now: now)]
            }
            ruleChecks.removeFirst()
            return [.log(.error, "new episodes of \(podcast) could not be looked for: \(error)")] + checkNextPodcast()
        }
    }

    // MARK: - Adding

    private mutating func enqueue(
        _ episodes: [WireEpisode], of podcast: String, now: Moment
    ) -> [OwnerEffect<Never>] {
        guard let rule = rules.current.rule(of: podcast), let since = episodes.map(\.firstSeen).max() else { return [] }
        let before = rules.current.marks[podcast]
        var mark = WireQueueRuleRecord()
        mark.since = max(since, before?.since ?? 0)
        mark.dealt = episodes.filter { $0.firstSeen == mark.since }.map(\.id)
        if mark.since == before?.since { mark.dealt = Array(Set(mark.dealt + (before?.dealt ?? []))).sorted() }
        guard mark != before else { return [] }
        var rules = rules.current
        rules.marks[podcast] = mark
        var named = queues.current[rule.queue] ?? main
        var change = OwnerChange()
        var logs: [OwnerEffect<Never>] = []
        if let before {
            let (news, old) = news(among: episodes, since: before)
            logs = old.map {
                .log(.info, "“\($0.title)” enters no queue by rule: it was published long before it came")
            }
            let room = max(0, named.limit - named.queue.entries.count)
            change = named.enter(news.prefix(room).map { entry($0, by: rule, now: now) }, at: rule.place, now: now.wall)
            let left = Array(news.dropFirst(room))
            change.append(rules.alerts.raiseFull(named, left, of: podcast, now: now.wall))
        }
        change.changes.append(.putting("rule", podcast, mark))
        return commit(named, change, rules: rules, checking: podcast) + logs
    }

    /// What was found new of a podcast could not be saved: it is looked for again.
    mutating func checkAgain(podcast: String, now: Moment) -> [OwnerEffect<Never>] {
        guard episodeCounts[podcast] != nil else { return [] }
        if !ruleChecks.contains(podcast) { ruleChecks.append(podcast) }
        return [repeatChecks(now: now)]
    }

    private func repeatChecks(now: Moment) -> OwnerEffect<Never> {
        .timer(Self.ruleRepetition, at: now.monotonic.advanced(by: Self.ruleRetry.wait()))
    }

    // MARK: - Alerts

    mutating func answer(
        _ answer: WireAnswerAlert, of command: Command, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        var rules = rules.current
        let done = try rules.alerts.answer(answer, at: now.wall)
        var reply = reply(main)
        reply.alertAnswered = answer.answered(changed: done != nil)
        var change = OwnerChange()
        if let done { change.append(done) }
        return commit(main, change, reply, answering: command, rules: rules)
    }

    /// The alerts about entries that were passed over end when their episode plays, or is in no queue any more.
    mutating func endPastAlerts() -> [OwnerEffect<Never>] {
        guard rules.current.alerts.hasPassedOver else { return [] }
        let playing = player?.status == .playing ? player?.episode.id : nil
        var rules = rules.current
        let change = rules.alerts.endPassedOver { episode in
            episode == playing || !queues.current.values.contains { $0.queue.entry(episode: episode) != nil }
        }
        return change.isEmpty ? [] : commit(main, change, rules: rules)
    }

    /// Those that no rule has dealt with, the oldest first, without those that are heard or stand in a queue already; and
    /// those of them that are too old to be news.
    private func news(
        among episodes: [WireEpisode], since mark: WireQueueRuleRecord
    ) -> (news: [WireEpisode], old: [WireEpisode]) {
        let dealt = Set(mark.dealt)
        func isNew(_ episode: WireEpisode) -> Bool {
            episode.firstSeen > mark.since || episode.firstSeen == mark.since && !dealt.contains(episode.id)
        }
        // The newest of all is news, however late its feed shows it.
        let newest = episodes.map(\.published).max() ?? 0
        func isOld(_ episode: WireEpisode) -> Bool {
            episode.published != 0 && episode.published < mark.since - Self.newsAge && episode.published != newest
        }
        let found = episodes.filter { episode in
            isNew(episode) && !episode.state.played && !episode.enclosureURL.isEmpty
                && !queues.current.values.contains { $0.queue.entry(episode: episode.id) != nil }
        }.sorted { ($0.published, $0.id) < ($1.published, $1.id) }
        return (found.filter { !isOld($0) }, found.filter(isOld))
    }

    private func entry(_ episode: WireEpisode, by rule: QueueRules.Rule, now: Moment) -> WireQueueEntry {
        var entry = WireQueueEntry()
        entry.id = QueueEntryID.derived(from: "rule/\(episode.id)/\(now.wall.milliseconds)").text
        entry.episode = WireEpisodeSummary(episode)
        entry.addedAt = now.wall.milliseconds
        let podcast = episode.podcastTitle.isEmpty ? episode.podcastID : episode.podcastTitle
        let place =
            switch rule.place {
            case "top": "the top"
            case "next": "the place after the current entry"
            default: "the bottom"
            }
        entry.reason = "by a rule, as new episodes of “\(podcast)” go to \(place)"
        return entry
    }
}

extension NamedQueue {
    /// New entries in the place that a rule says.
    fileprivate mutating func enter(_ entries: [WireQueueEntry], at place: String, now: Timestamp) -> OwnerChange {
        guard let first = entries.first else { return OwnerChange() }
        var after =
            switch place {
            case "top": ""
            case "next": anchor
            default: queue.entries.last?.id ?? ""
            }
        var steps: [WireQueueStep] = []
        for entry in entries {
            steps.append(.inserting(entry, after: after))
            after = entry.id
        }
        let what = entries.count == 1 ? "“\(first.episode.title)”" : "\(entries.count) new episodes"
        return edit(steps, "Added \(what) by rule", origin: CommandOrigin.rule.text, now: now)
    }

    /// Behind which entry the next one stands.
    private var anchor: String {
        queue.current ?? queue.successor.flatMap { queue.entry(before: $0)?.id } ?? ""
    }
}
