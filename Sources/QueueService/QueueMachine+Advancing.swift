import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// What follows an episode, and how the player is told of it in good time.

extension QueueMachine {
    /// What follows the end of a loaded entry in its queue.
    struct Succession {
        var queue: NamedQueue
        /// The entry that plays next; nil: nothing follows.
        var next: Queue.Entry?
        /// Whether the entry that has ended leaves.
        var leaves: Bool
    }

    /// What follows the loaded entry when it has ended, or when it is passed over because it failed.
    func succession(of state: WirePlaybackState, skipping: Bool = false) -> Succession {
        let named = home(of: state)
        let queue = named.queue
        let own = queue.entry(state.queueEntry)
        let leaves = own != nil && !skipping && !named.modes.keep && named.modes.repeat != .one
        // The mark stands elsewhere already: something else was asked for while the end came.
        if let current = queue.current, current != state.queueEntry {
            return Succession(queue: named, next: queue.entry(current), leaves: leaves)
        }
        if let own, named.modes.repeat == .one, !skipping { return Succession(queue: named, next: own, leaves: false) }
        var next = queue.entry(after: state.queueEntry)
        if next == nil, named.modes.repeat == .all, let first = queue.entries.first,
            first.id != state.queueEntry || !leaves && !skipping
        {
            next = first
        }
        return Succession(queue: named, next: next, leaves: leaves)
    }

    /// An episode was played to its end: its entry leaves, the one behind it becomes current and plays. Committed
    /// once for each load, whatever crashes: the player shows `finished` until it has got its next load.
    mutating func advance(from state: WirePlaybackState, now: Moment) -> [OwnerEffect<Never>] {
        let succession = succession(of: state)
        guard succession.queue.advancedLoad != state.loadID else { return [] }
        return proceed(
            succession, from: state, marking: state.loadID, "Finished “\(state.episode.title)”", now: now)
    }

    /// The alert of a failed episode was answered with `skip`: the next one plays, and the entry stays where it is.
    mutating func skip(_ state: WirePlaybackState, now: Moment) -> [OwnerEffect<Never>] {
        let succession = succession(of: state, skipping: true)
        // The same load may fail, and be skipped, again.
        let mark = "skip/\(state.loadID)/\(state.skippedAlert)"
        // Dealt with also where nothing follows: what is added later must not play by itself.
        guard succession.queue.advancedLoad != mark else { return [] }
        return proceed(succession, from: state, marking: mark, "Passed over “\(state.episode.title)”", now: now)
    }

    /// What plays without anybody's attention has failed for good: the next one plays, and the entry stays where it is. An
    /// alert says so, as the player's own goes with the load.
    mutating func passOver(_ state: WirePlaybackState, now: Moment) -> [OwnerEffect<Never>] {
        // What somebody has decided meanwhile is newer.
        guard state.error.isLasting, comingLoad == nil else { return [] }
        let succession = succession(of: state, skipping: true)
        let mark = "failed/\(state.loadID)"
        guard succession.queue.advancedLoad != mark else { return [] }
        guard let next = succession.next, next.id != state.queueEntry,
            failures.givesWay(state.queueEntry, to: next.id)
        else {
            failures.stay()
            return []
        }
        failures.passOver(state.queueEntry)
        var rules = rules.current
        let alert = rules.alerts.raisePassedOver(state, in: succession.queue, now: now.wall)
        return proceed(
            succession, from: state, marking: mark, "Passed over “\(state.episode.title)”, which can’t be played",
            alert, rules, now: now)
    }

    /// Whether the queue has decided a load when the one before it had ended or failed.
    func isByItself(_ state: WirePlaybackState) -> Bool {
        // `LOAD` of an end, `skip/LOAD/ALERT`, `failed/LOAD`.
        let mark = home(of: state).advancedLoad.split(separator: "/")
        guard let before = mark.dropFirst().first ?? mark.first else { return false }
        return LoadID.advance(after: String(before)).text == state.loadID
    }

    private mutating func proceed(
        _ succession: Succession, from state: WirePlaybackState, marking mark: String, _ description: String,
        _ alert: OwnerChange = OwnerChange(), _ newRules: QueueRules? = nil, now: Moment
    ) -> [OwnerEffect<Never>] {
        var named = succession.queue
        named.advancedLoad = mark
        // Who has asked for the same entry again, at another place, while its end came is listening to it.
        if let pending = named.pending, pending.hasPosition, pending.entry == state.queueEntry,
            Self.follows(pending, state.loadID)
        {
            var change = named.headerChange()
            change.append(alert)
            return commit(named, change, rules: newRules) + requestLoad()
        }
        // What was decided in another queue while the end came is newer: it stays, and this queue only lets go.
        let isElsewhere = comingLoad.map { $0.queue != named.name } ?? false
        let overtakes = overtakenLoads
        // What was asked for while the end came, and leads to the same entry, needs no second load.
        let asked = named.pending.flatMap {
            Self.follows($0, state.loadID) && $0.entry == succession.next?.id ? $0 : nil
        }
        named.pending = asked
        var steps: [WireQueueStep] = succession.leaves ? [.removing(state.queueEntry)] : []
        if let next = succession.next {
            steps.append(.settingCurrent(next.id))
            if asked == nil, !isElsewhere {
                named.pending = .with {
                    $0.entry = next.id
                    $0.loadID = LoadID.advance(after: state.loadID).text
                    $0.requestID = Self.advanceRequest(after: state.loadID).data
                    $0.replacesLoad = state.loadID
                    $0.overtakes = overtakes
                }
            }
        }
        var change = named.edit(steps, description, origin: CommandOrigin.advance.text, now: now.wall)
        if change.isEmpty { change = named.headerChange() }
        change.append(alert)
        return commit(named, change, loads: true, rules: newRules)
    }

    private static func advanceRequest(after load: String) -> RequestID {
        RequestID(high: 0, low: 0).derived("advance/\(load)")
    }

    // MARK: - Preparing

    /// Tells the player what it will be asked for at the end of what is loaded, when that has changed. One such request
    /// is under way at most, and none is repeated.
    mutating func prepareNext() -> [OwnerEffect<Never>] {
        guard preparing == nil, let wanted = preparation(), wanted != prepared else { return [] }
        prepared = wanted
        let call = nextCall("prepare")
        preparing = call
        var message = WirePlaybackRequest()
        message.prepare = wanted
        return [.call(Call(id: call, to: .playback, payload: message.wireBytes, limit: .seconds(5)))]
    }

    private func preparation() -> WirePrepareEpisode? {
        guard playerIsReady, let player, !player.loadID.isEmpty, loadUnderWay == nil, !isDecidingLoad,
            [.playing, .paused, .loading].contains(player.status), dueLoad() == nil
        else { return nil }
        var preparation = WirePrepareEpisode()
        preparation.afterLoad = player.loadID
        let succession = succession(of: player)
        if let next = succession.next {
            preparation.load = Self.load(
                next.wire, of: succession.queue.name, as: LoadID.advance(after: player.loadID).text, paused: false)
        }
        return preparation
    }

    // MARK: - Chapters

    /// Has the chapters of what is loaded fetched, once for each load. Nobody waits for it.
    mutating func fetchChapters() -> [OwnerEffect<Never>] {
        guard feedsIsReady, let player, !player.loadID.isEmpty, !player.episode.id.isEmpty,
            player.loadID != chaptersAsked, [.playing, .paused, .loading].contains(player.status)
        else { return [] }
        chaptersAsked = player.loadID
        var message = WireFeedsRequest()
        message.fetchChapters.episode = player.episode.id
        return [ask(.feeds, message.wireBytes, as: "chapters")]
    }

    /// The library knows more of the loaded episode now.
    mutating func refreshPlayer(_ episode: String) -> OwnerEffect<Never> {
        var message = WirePlaybackRequest()
        message.refreshEpisode.episode = episode
        return ask(.playback, message.wireBytes, as: "refresh")
    }

    private mutating func ask(_ service: ServiceName, _ payload: [UInt8], as name: String) -> OwnerEffect<Never> {
        .call(Call(id: nextCall(name), to: service, payload: payload, limit: .seconds(20)))
    }
}
