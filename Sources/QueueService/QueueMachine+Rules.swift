import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// What the queue does by rule: new episodes of a podcast enter it, and what is forgotten leaves it.

extension QueueMachine {
    /// When to ask the library again that did not answer.
    static let ruleRepetition = TimerName("rules")
    private static let ruleRetry = Backoff.constant(.seconds(5))

    /// Sets or takes back a setting; podcasts to which a rule applies now begin with what is there.
    mutating func set(_ setting: WireSetSetting, of command: Command) throws(Failure) -> [OwnerEffect<Never>] {
        if setting.key == SettingKey.autoEnqueueQueue.rawValue, QueueName.isValid(setting.value) {
            _ = try queues.current.existing(setting.value)
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
        let concerned = autoEnqueue.podcasts.filter { setting.podcast.isEmpty || $0 == setting.podcast }
        return effects + concerned.filter { rules.marks[$0] == nil }.flatMap { check(podcast: $0) }
    }

    /// A podcast's metadata: also the first sign of it, and after an absence the sign that something is new.
    mutating func observe(_ podcast: WirePodcast?, id: String, isGone: Bool) -> [OwnerEffect<Never>] {
        guard let podcast else {
            autoEnqueue.drop(id)
            return checkNextPodcast() + (isGone ? change { $0.markForgotten(podcast: id) } : [])
        }
        guard podcast.subscribed else {
            // Subscribing again begins anew: what comes in between is no news.
            autoEnqueue.drop(id)
            return checkNextPodcast()
                + change { rules in
                    var change = rules.unmarkForgotten(podcast: id)
                    change.append(rules.forget(podcast: id))
                    return change
                }
        }
        let effects = change { $0.unmarkForgotten(podcast: id) }
        return autoEnqueue.update(id, episodeCount: podcast.episodeCount) ? effects + check(podcast: id) : effects
    }

    private mutating func change(_ change: (inout QueueRules) -> OwnerChange) -> [OwnerEffect<Never>] {
        var rules = rules.current
        let change = change(&rules)
        return commit(main, change, rules: rules)
    }

    // MARK: - New episodes

    /// Looks for new episodes of a podcast, if it is subscribed to and a rule is interested in them.
    mutating func check(podcast: String) -> [OwnerEffect<Never>] {
        // One that isn’t known yet is looked at when it is.
        guard autoEnqueue.knows(podcast), rules.current.rule(of: podcast) != nil else { return [] }
        autoEnqueue.check(podcast)
        return checkNextPodcast()
    }

    mutating func checkNextPodcast() -> [OwnerEffect<Never>] {
        let call = nextCall("rule")
        return autoEnqueue.ask(as: call).map { [.call($0)] } ?? []
    }

    mutating func podcastChecked(_ answer: AutoEnqueue.Answer, now: Moment) -> [OwnerEffect<Never>] {
        switch answer {
        case .void: return []
        case .retry: return [repeatChecks(now: now)]
        case .failed(let failure, let podcast):
            return [.log(.error, "new episodes of \(podcast) could not be looked for: \(failure)")] + checkNextPodcast()
        case .episodes(let episodes, let podcast):
            return enqueue(episodes, of: podcast, now: now) + checkNextPodcast()
        }
    }

    private mutating func enqueue(
        _ episodes: [WireEpisode], of podcast: String, now: Moment
    ) -> [OwnerEffect<Never>] {
        guard let rule = rules.current.rule(of: podcast),
            let news = AutoEnqueue.news(
                among: episodes, since: rules.current.marks[podcast],
                isQueued: queues.current.hold(episode:))
        else { return [] }
        var rules = rules.current
        rules.marks[podcast] = news.mark
        var named = queues.current[rule.queue] ?? main
        let room = max(0, named.limit - named.queue.entries.count)
        var change = named.enter(news.episodes.prefix(room).map { rule.entry($0, now: now) }, by: rule, now: now.wall)
        let left = Array(news.episodes.dropFirst(room))
        change.append(rules.alerts.raiseFull(named, left, of: podcast, now: now.wall))
        change.changes.append(.putting("rule", podcast, news.mark))
        return commit(named, change, rules: rules, checking: podcast)
            + news.old.map {
                .log(.info, "“\($0.title)” enters no queue by rule: it was published long before it came")
            }
    }

    /// What was found new of a podcast could not be saved: it is looked for again.
    mutating func checkAgain(podcast: String, now: Moment) -> [OwnerEffect<Never>] {
        guard autoEnqueue.knows(podcast) else { return [] }
        autoEnqueue.checkAgain(podcast)
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
        return commit(main, done ?? OwnerChange(), reply, answering: command, rules: rules)
    }

    /// The alerts about entries that were passed over end when their episode plays, or is in no queue any more.
    mutating func endPastAlerts() -> [OwnerEffect<Never>] {
        guard rules.current.alerts.hasPassedOver else { return [] }
        let playing = player?.status == .playing ? player?.episode.id : nil
        var rules = rules.current
        let change = rules.alerts.endPassedOver { episode in
            episode == playing || !queues.current.hold(episode: episode)
        }
        return change.isEmpty ? [] : commit(main, change, rules: rules)
    }
}
