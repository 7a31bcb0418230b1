import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// How the end of an episode, or its failure, moves its queue on.

extension QueueMachine {
    /// An episode was played to its end: its entry leaves, the one behind it becomes current and plays. Committed
    /// once for each load, whatever crashes: the player shows `finished` until it has got its next load.
    mutating func advance(from state: WirePlaybackState, now: Moment) -> [OwnerEffect<Never>] {
        let next = nextEntry(after: state)
        guard next.queue.advancedLoad != state.loadID else { return [] }
        return advanceTo(
            next, from: state, marking: state.loadID, "Finished “\(state.episode.title)”", now: now)
    }

    /// The alert of a failed episode was answered with `skip`: the next one plays, and the entry stays where it is.
    mutating func skip(_ state: WirePlaybackState, now: Moment) -> [OwnerEffect<Never>] {
        let next = nextEntry(after: state, skipping: true)
        // The same load may fail, and be skipped, again.
        let mark = "skip/\(state.loadID)/\(state.skippedAlert)"
        // Dealt with also where nothing follows: what is added later must not play by itself.
        guard next.queue.advancedLoad != mark else { return [] }
        return advanceTo(next, from: state, marking: mark, "Passed over “\(state.episode.title)”", now: now)
    }

    /// What plays without anybody's attention has failed for good: the next one plays, and the entry stays where it is. An
    /// alert says so, as the player's own goes with the load.
    mutating func passOver(_ state: WirePlaybackState, now: Moment) -> [OwnerEffect<Never>] {
        // What somebody has decided meanwhile is newer.
        guard state.error.isLasting, upcomingLoad == nil else { return [] }
        let next = nextEntry(after: state, skipping: true)
        let mark = "failed/\(state.loadID)"
        guard next.queue.advancedLoad != mark else { return [] }
        guard let entry = next.entry, entry.id != state.queueEntry,
            failures.givesWay(state.queueEntry, to: entry.id)
        else {
            failures.stay()
            return []
        }
        failures.passOver(state.queueEntry)
        var rules = rules.current
        let alert = rules.alerts.raisePassedOver(state, in: next.queue, now: now.wall)
        return advanceTo(
            next, from: state, marking: mark, "Passed over “\(state.episode.title)”, which can’t be played",
            alert, rules, now: now)
    }

    /// Whether the queue has decided a load when the one before it had ended or failed.
    func isByItself(_ state: WirePlaybackState) -> Bool {
        // `LOAD` of an end, `skip/LOAD/ALERT`, `failed/LOAD`.
        let mark = queues.current.source(of: state).advancedLoad.split(separator: "/")
        guard let before = mark.dropFirst().first ?? mark.first else { return false }
        return LoadID.advance(after: String(before)).text == state.loadID
    }

    private func nextEntry(after state: WirePlaybackState, skipping: Bool = false) -> NextEntry {
        queues.current.source(of: state).nextEntry(after: state.queueEntry, skipping: skipping)
    }

    private mutating func advanceTo(
        _ next: NextEntry, from state: WirePlaybackState, marking mark: String, _ description: String,
        _ alert: OwnerChange = OwnerChange(), _ newRules: QueueRules? = nil, now: Moment
    ) -> [OwnerEffect<Never>] {
        var named = next.queue
        named.advancedLoad = mark
        // Who has asked for the same entry again, at another place, while its end came is listening to it.
        if let pending = named.pending, pending.hasPosition, pending.entry == state.queueEntry,
            pending.follows(state.loadID)
        {
            var change = named.headerChange()
            change.append(alert)
            return commit(named, change, rules: newRules) + requestLoad()
        }
        // What was decided in another queue while the end came is newer: it stays, and this queue only lets go.
        let isElsewhere = upcomingLoad.map { $0.queue != named.name } ?? false
        let overtakes = queues.current.loadsToSupersede(loads.latest)
        // What was asked for while the end came, and leads to the same entry, needs no second load.
        let asked = named.pending.flatMap {
            $0.follows(state.loadID) && $0.entry == next.entry?.id ? $0 : nil
        }
        named.pending = asked
        var steps: [WireQueueStep] = next.leaves ? [.removing(state.queueEntry)] : []
        if let entry = next.entry {
            steps.append(.settingCurrent(entry.id))
            if asked == nil, !isElsewhere {
                named.pending = .with {
                    $0.entry = entry.id
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
}
