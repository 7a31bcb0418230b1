import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// Advances a queue when an episode ends or fails.

extension QueueMachine {
    /// Handles the end of an episode: removes its entry, makes the next one current and plays it. This is committed
    /// once for each load, even after a crash: `advancedLoad` records it, and the player shows `finished` until its
    /// next load.
    mutating func advance(from state: WirePlaybackState, now: Moment, _ effects: inout [Effect]) {
        let next = nextEntry(after: state)
        guard next.queue.advancedLoad != state.loadID else { return }
        advance(
            to: next, from: state, marking: state.loadID, "Finished “\(state.episode.title)”", now: now, &effects)
    }

    /// Handles the answer `skip` to the alert of a failed episode: plays the next entry without removing the failed
    /// one.
    mutating func skip(_ state: WirePlaybackState, now: Moment, _ effects: inout [Effect]) {
        let next = nextEntry(after: state, skipping: true)
        // The same load may fail, and be skipped, again.
        let mark = "skip/\(state.loadID)/\(state.skippedAlert)"
        // The skip is recorded even if no entry follows: an entry that is added later must not play automatically.
        guard next.queue.advancedLoad != mark else { return }
        advance(to: next, from: state, marking: mark, "Skipped “\(state.episode.title)”", now: now, &effects)
    }

    /// Skips an episode that played unattended and failed: permanently, or with the setting `onFailure` `skip` also
    /// because its server didn’t answer. The entry isn’t removed; an alert of the queue
    /// reports the skip, because the player’s own alert ends with the load.
    mutating func skipUnplayable(_ state: WirePlaybackState, now: Moment, _ effects: inout [Effect]) {
        // A load that was decided since the failure has priority.
        guard upcomingLoad == nil else { return }
        switch rules.settings.value(.onFailure, podcast: state.episode.podcastID) {
        case "stop": return failures.keepLoaded()
        case "skip": break
        default: guard state.error.isPermanent else { return }
        }
        let next = nextEntry(after: state, skipping: true)
        let mark = "failed/\(state.loadID)"
        guard next.queue.advancedLoad != mark else { return }
        guard let entry = next.entry, entry.id != state.queueEntry,
            failures.shouldSkip(state.queueEntry, for: entry.id)
        else { return failures.keepLoaded() }
        failures.recordSkip(of: state.queueEntry)
        var rules = rules
        let alert = rules.alerts.raiseSkipped(state, in: next.queue, now: now.wall)
        advance(
            to: next, from: state, marking: mark, "Skipped “\(state.episode.title)”, which couldn’t be played",
            alert, rules, now: now, &effects)
    }

    func nextEntry(after state: WirePlaybackState, skipping: Bool = false) -> NextEntry {
        let source = queues.source(of: state)
        return source.named.nextEntry(after: state.queueEntry, at: source.index, skipping: skipping)
    }

    private mutating func advance(
        to next: NextEntry, from state: WirePlaybackState, marking mark: String, _ description: String,
        _ alert: OwnerChange = OwnerChange(), _ newRules: QueueRules? = nil, now: Moment, _ effects: inout [Effect]
    ) {
        var named = next.queue
        named.advancedLoad = mark
        // A user has played the same entry again, at another position, before its end was reported: it isn’t removed.
        if let pending = named.pending, pending.hasPosition, pending.entry == state.queueEntry,
            pending.isDue(after: state.loadID)
        {
            var change = named.headerChange()
            change.append(alert)
            commit(named, change, rules: newRules, &effects)
            return requestLoad(&effects)
        }
        // A load that another queue decided before the end was reported has priority: this queue decides none.
        let isElsewhere = upcomingLoad.map { $0.queue != named.name } ?? false
        let superseded = queues.loadsToSupersede(loads.latest)
        // If a load of the next entry was decided before the end was reported, no other one is needed.
        named.pending = named.pending.flatMap {
            $0.isDue(after: state.loadID) && $0.entry == next.entry?.id ? $0 : nil
        }
        var steps: [WireQueueStep] = next.removesEnded ? [.removing(state.queueEntry)] : []
        if let entry = next.entry {
            steps.append(.settingCurrent(entry.id))
            if named.pending == nil, !isElsewhere {
                named.pending = .with {
                    $0.entry = entry.id
                    $0.loadID = LoadID.advance(after: state.loadID).text
                    $0.requestID = RequestID(high: 0, low: 0).derived("advance/\(state.loadID)").data
                    $0.replacesLoad = state.loadID
                    $0.overtakes = superseded
                }
            }
        }
        var change = named.edit(steps, description, origin: CommandOrigin.advance.text, now: now.wall)
        if change.isEmpty { change = named.headerChange() }
        change.append(alert)
        commit(named, change, as: .load, rules: newRules, &effects)
    }
}
