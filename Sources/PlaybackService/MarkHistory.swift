import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// The newest commands that marked episodes, which can be undone: a record for each request, with the episodes’ states
/// before it.
struct MarkHistory: Sendable {
    /// The maximum number of requests; of a group with more, none can be undone.
    static let limit = 100

    private(set) var records = KeyedRecords<WireMarksRecord>("marks")

    mutating func restore(_ record: StoredRecord) throws -> Bool { try records.restore(record) }

    /// The newest request, with its key; nil if there is none.
    var newest: (key: String, record: WireMarksRecord)? { newest(of: "") }

    /// The newest request of a group, or of all if that is empty.
    func newest(of group: String) -> (key: String, record: WireMarksRecord)? {
        records.values.filter { group.isEmpty || $0.value.group == group }.max { $0.key < $1.key }
            .map { ($0.key, $0.value) }
    }

    /// Adds a request, and evicts the oldest groups beyond the limit.
    ///
    /// - Returns: the key of its record; nil if nothing changed, or its group has too many requests.
    @discardableResult
    mutating func add(
        _ marks: [EpisodeMark], played: Bool, group: String, at now: Timestamp, _ changes: inout [WireChange]
    ) -> String? {
        let changed = marks.filter { $0.before.played != $0.after.played || $0.before.position != $0.after.position }
        let last = newest
        guard !changed.isEmpty, group.isEmpty || last?.record.group != group || last?.record.tooMany != true else {
            return nil
        }
        var record = WireMarksRecord()
        (record.group, record.played, record.at) = (group, played, now.milliseconds)
        record.marks = changed.map { mark in
            .with {
                ($0.before, $0.position, $0.completedAt) = (mark.before, mark.after.position, mark.after.completedAt)
            }
        }
        let key = Self.key(after: last?.key)
        while records.count >= Self.limit, let oldest = records.values.min(by: { $0.key < $1.key }) {
            let isOwn = !group.isEmpty && oldest.value.group == group
            if isOwn {
                record.marks = []
                record.tooMany = true
            }
            for (other, value) in records.sorted
            where other == oldest.key || !value.group.isEmpty && value.group == oldest.value.group {
                records.remove(other, &changes)
            }
        }
        records.put(key, record, &changes)
        return key
    }

    /// Removes a request that is being undone, or wasn’t saved.
    @discardableResult
    mutating func remove(_ key: String, _ changes: inout [WireChange]) -> WireMarksRecord? {
        records.remove(key, &changes)
    }

    /// Restores a request whose undoing wasn’t saved.
    mutating func restore(_ record: WireMarksRecord, as key: String) {
        var changes: [WireChange] = []
        records.put(key, record, &changes)
    }

    /// Whether a group has further requests.
    func contains(group: String) -> Bool { !group.isEmpty && records.values.values.contains { $0.group == group } }

    /// Keys are numbers of equal length, so that their order is that of the requests.
    private static func key(after last: String?) -> String {
        let number = (last.flatMap { UInt64($0) } ?? 0) + 1
        return String(repeating: "0", count: max(0, 20 - String(number).count)) + String(number)
    }
}

/// A request to undo marks, whose episodes’ current states are fetched from the library.
package struct MarkUndoing: Sendable {
    let request: RequestID
    let key: String
    /// The group to which the request is limited; empty for none.
    let group: String
}

/// The record that a commit of marks adds or removes.
struct MarksRecordChange: Sendable {
    let key: String
    /// The record that undoing removes; nil if the commit adds it.
    var undone: WireMarksRecord?
}

extension PlaybackMachine {
    /// Undoes the newest marks; an episode that has been marked or finished since keeps its state.
    ///
    /// - Parameter group: undoes only marks of this group; empty for any.
    mutating func undoMarks(_ request: RequestID, of group: String) throws(Failure) {
        guard let (key, record) = marks.newest(of: group) else {
            var reply = WirePlaybackReply()
            (reply.marksUndone, reply.changed) = (WireMarksUndone(), false)
            return pending.reply(request, reply)
        }
        guard !record.tooMany else {
            throw Failure(
                .notApplicable,
                "The last command marked more than \(MarkHistory.limit * RequestSizes.episodes) episodes, which is too many to undo."
            )
        }
        pending.lookUp(
            record.marks.map(\.before.episode), for: .undoMarks(MarkUndoing(request: request, key: key, group: group)),
            limit: nil, brief: true)
    }

    mutating func finish(_ undoing: MarkUndoing, _ result: Result<[UInt8], Failure>) {
        let found: [WireEpisode]
        do throws(Failure) {
            found = try result.persistenceReply.get().episodes.episodes
            // Another request has undone these marks in the meantime.
            guard marks.records[undoing.key] != nil else { return try undoMarks(undoing.request, of: undoing.group) }
        } catch {
            return pending.refuse(undoing.request, error)
        }
        var change = OwnerChange()
        guard let record = marks.remove(undoing.key, &change.changes) else { return }
        let known = Dictionary(found.map { ($0.id, $0) }) { first, _ in first }
        var reply = WirePlaybackReply()
        (reply.marksUndone.played, reply.marksUndone.more) = (record.played, marks.contains(group: record.group))
        reply.marksUndone.group = record.group
        var undone: [EpisodeMark] = []
        for mark in record.marks {
            let episode = known[mark.before.episode]
            let isLoaded = session?.episode.id == mark.before.episode && session?.isStateKnown == true
            // The library may have answered before a newer mark was stored; a deleted episode stays deleted.
            let current =
                isLoaded
                ? session?.episodeState
                : episode.flatMap { found in
                    pending.writes.unsavedStates[found.id] ?? episodeStates.newest(of: found.id, found)
                }
            let loaded = isLoaded ? session : nil
            let before = current ?? mark.before
            let after = current.map { mark.undone(in: $0, loaded: loaded?.status, now: now) } ?? before
            reply.marksUndone.states.states.append(after)
            reply.marksUndone.states.changed.append(after != before)
            if after != before {
                undone.append(
                    EpisodeMark(before: before, after: after, unplayedFrom: loaded?.tracker.unplayedFrom))
            }
        }
        reply.changed = true
        commit(undone, change, MarksRecordChange(key: undoing.key, undone: record), answering: undoing.request, reply)
    }
}

extension WireMarksRecord.Mark {
    /// Returns a state without this mark, unless it has changed since.
    fileprivate func undone(
        in current: WireEpisodeState, loaded: PlaybackSession.Status?, now: Moment
    ) -> WireEpisodeState {
        guard current.completedAt == completedAt, current.played != before.played || current.position != before.position
        else { return current }
        var state = current
        (state.played, state.completedAt, state.reason) = (before.played, before.completedAt, before.reason)
        // The position of a loaded episode is the player’s.
        let isPlayers = loaded.map { $0 != .finished } ?? false
        if !isPlayers, current.position == position { state.position = before.position }
        state.updatedAt = now.wall.milliseconds
        return state
    }
}
