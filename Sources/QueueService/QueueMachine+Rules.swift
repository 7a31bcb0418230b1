import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// Applies rules: new episodes of a podcast are enqueued, and those of a forgotten podcast are removed from all queues.

extension QueueMachine {
    private static let ruleCheckBackoff = Backoff.constant(.seconds(5))

    /// Sets or unsets a setting. A rule that starts to apply to a podcast treats its existing episodes as already
    /// handled.
    mutating func set(
        _ setting: WireSetSetting, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        if setting.key == SettingKey.autoEnqueueQueue.rawValue, QueueName.isValid(setting.value) {
            _ = try queues.existing(setting.value)
        }
        var rules = rules
        let changed = try rules.settings.set(setting)
        var change = changed ?? OwnerChange()
        for podcast in rules.marks.keys where rules.rule(of: podcast) == nil { rules.endRule(of: podcast, &change) }
        let reply = WireQueueReply.with { $0.setting = rules.settings.reply(to: setting, changed: changed != nil) }
        let answer = context.answer(reply, about: QueueName.default)
        commit(change, answering: answer, &effects) { $0.rules = rules }
        guard changed != nil else { return }
        for podcast in autoEnqueue.podcasts
        where rules.marks[podcast] == nil && (setting.podcast.isEmpty || podcast == setting.podcast) {
            check(podcast: podcast, &effects)
        }
    }

    /// Handles the metadata of a podcast, which may be new or have episodes that were added while the queue service was
    /// down. `podcast` is nil if it can’t be decoded or isn’t published any more.
    mutating func observe(_ podcast: WirePodcast?, id: String, _ effects: inout [Effect]) {
        if podcast != nil { changeRules(&effects) { $0.unmarkForgotten(podcast: id, &$1) } }
        guard let podcast, podcast.subscribed else {
            autoEnqueue.drop(id)
            checkNextPodcast(&effects)
            // Episodes that existed before a new subscription aren’t new.
            if podcast != nil { changeRules(&effects) { $0.endRule(of: id, &$1) } }
            return
        }
        if autoEnqueue.update(id, episodeCount: podcast.episodeCount) { check(podcast: id, &effects) }
    }

    /// Deletes the settings of a forgotten podcast, and removes its entries from all queues and playlists.
    mutating func forget(_ podcast: PodcastID, now: Moment, _ effects: inout [Effect]) {
        autoEnqueue.drop(podcast.text)
        checkNextPodcast(&effects)
        changeRules(&effects) { $0.markForgotten(podcast: podcast.text, &$1) }
        for var named in queues.inOrder {
            let change = named.removeEntries(of: podcast.text, now: now.wall)
            commit(named, change, &effects)
        }
        for var playlist in playlists.inOrder where playlist.smart == nil {
            let change = playlist.removeEntries(of: podcast.text, now: now.wall)
            commit(playlist, change, &effects)
        }
    }

    private mutating func changeRules(
        _ effects: inout [Effect], _ apply: (inout QueueRules, inout OwnerChange) -> Void
    ) {
        var rules = rules
        var change = OwnerChange()
        apply(&rules, &change)
        commit(change, &effects) { $0.rules = rules }
    }

    // MARK: - New episodes

    /// Checks a podcast for new episodes, if it is subscribed to and has a rule.
    mutating func check(podcast: String, _ effects: inout [Effect]) {
        // A podcast that isn’t published yet is checked when it is.
        guard autoEnqueue.isSubscribed(podcast), rules.rule(of: podcast) != nil else { return }
        autoEnqueue.check(podcast)
        checkNextPodcast(&effects)
    }

    mutating func checkNextPodcast(_ effects: inout [Effect]) {
        guard let next = autoEnqueue.nextQuery() else { return }
        effects.append(.ask(.newestEpisodes(next.check)) { $0.episodes = next.query })
    }

    mutating func podcastChecked(
        _ check: AutoEnqueue.CheckID, _ result: Result<WirePersistenceReply, Failure>, now: Moment,
        _ effects: inout [Effect]
    ) {
        guard let podcast = autoEnqueue.answered(check) else { return }
        switch result {
        case .success(let reply): enqueue(reply.episodes.episodes, of: podcast, now: now, &effects)
        case .failure(let failure) where failure.retry: return checkAgain(podcast: podcast, now: now, &effects)
        case .failure(let failure):
            effects.append(.log(.error, "couldn’t check for new episodes of \(podcast): \(failure)"))
        }
        checkNextPodcast(&effects)
    }

    private mutating func enqueue(
        _ episodes: [WireEpisode], of podcast: String, now: Moment, _ effects: inout [Effect]
    ) {
        guard let rule = rules.rule(of: podcast),
            let news = AutoEnqueue.news(
                among: episodes, since: rules.marks[podcast], isQueued: queues.contain(episode:))
        else { return }
        var rules = rules
        var named = queues[rule.queue] ?? main
        let room = max(0, named.limit - named.queue.entries.count)
        var change = named.enqueue(news.episodes.prefix(room).map { rule.entry($0, now: now) }, by: rule, now: now.wall)
        let left = Array(news.episodes.dropFirst(room))
        change.append(rules.alerts.raiseFull(named, left, of: podcast, now: now.wall))
        rules.marks.put(podcast, news.mark, &change.changes)
        commit(named, change, as: .enqueue(podcast: podcast), rules: rules, &effects)
        effects += news.old.map {
            .log(.info, "“\($0.title)” isn’t enqueued by a rule: it was published long before its feed listed it")
        }
    }

    /// Checks a podcast again after its new episodes couldn’t be read or saved.
    mutating func checkAgain(podcast: String, now: Moment, _ effects: inout [Effect]) {
        guard autoEnqueue.isSubscribed(podcast) else { return }
        autoEnqueue.checkAgain(podcast)
        effects.append(.timer(.ruleChecks, at: now.monotonic.advanced(by: Self.ruleCheckBackoff.wait())))
    }

    // MARK: - Alerts

    mutating func answer(
        _ answer: WireAnswerAlert, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        var rules = rules
        let change = try rules.alerts.answer(answer, at: context.now.wall)
        let reply = WireQueueReply.with { $0.alertAnswered = answer.answered(changed: change != nil) }
        commit(change ?? OwnerChange(), answering: context.answer(reply, about: QueueName.default), &effects) {
            $0.rules = rules
        }
    }

    /// Ends alerts about skipped entries whose episode plays, or is in no queue any more.
    mutating func endPastAlerts(_ effects: inout [Effect]) {
        guard rules.alerts.hasSkipped else { return }
        let playing = player?.status == .playing ? player?.episode.id : nil
        let queues = queues
        changeRules(&effects) { rules, change in
            change.append(
                rules.alerts.endSkipped { episode in episode == playing || !queues.contain(episode: episode) })
        }
    }
}
