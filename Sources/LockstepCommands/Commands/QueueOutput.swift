public import ArgumentParser
public import LockstepClient
import PodcastModel

// The results of the commands that queues and playlists share.

/// The value of a setting that is on or off.
enum Switch: String, ExpressibleByArgument, CaseIterable {
    case on, off
}

extension Output {
    func change(
        _ answer: QueueAnswer, _ sentence: @autoclosure () -> String, else reason: @autoclosure () -> String
    ) throws {
        try change(answer.json, if: answer.changed, sentence(), else: reason())
    }

    func change(_ answer: QueueAnswer, mode: String) throws {
        try change(answer, "\(answer.title) \(mode).", else: "\(answer.title) already \(mode)")
    }

    /// - Parameter reason: why no episode was found to be added.
    func added(_ answer: QueueAnswer, _ found: [Episode], else reason: String) throws {
        try change(answer.json, if: !found.isEmpty, Self.sentence(answer, found), else: reason)
    }

    /// `Added “…” to “…”; already in “…”: “…”.`
    static func sentence(_ answer: QueueAnswer, _ found: [Episode]) -> String {
        var parts: [String] = []
        if !answer.entries.isEmpty {
            parts.append(
                "Added \(Titles.shown(answer.entries.map(\.episode.title), count: answer.count))\(answer.suffix("to"))")
        }
        let titles = Dictionary(found.map { ($0.id, $0.title) }) { first, _ in first }
        if !answer.moved.isEmpty {
            let names = Titles.shown(answer.moved.map { titles[$0] ?? $0.text })
            let place = answer.playlist == nil ? "to play next" : "to the front"
            parts.append("\(parts.isEmpty ? "Moved" : "moved") \(names) \(place)\(answer.suffix("in"))")
        }
        if !answer.alreadyThere.isEmpty {
            let names = Titles.shown(answer.alreadyThere.map { titles[$0] ?? $0.text })
            let already = "already in \(answer.title): \(names)"
            parts.append(parts.isEmpty ? "No change: \(already)" : already)
        }
        return Sentence.stopped(parts.joined(separator: "; "))
    }

    func moved(_ answer: QueueAnswer) throws {
        let shown = "position \((answer.index ?? 0) + 1)"
        let verb = answer.entries.count == 1 ? "is" : "are"
        try change(
            answer, "Moved \(answer.names) to \(shown).", else: "\(answer.names) \(verb) already at \(shown)")
    }

    func sorted(_ answer: QueueAnswer, by key: QueueClient.SortKey, descending: Bool) throws {
        let order = "by \(key.words)\(descending ? ", descending" : "")"
        try change(answer, "Sorted \(answer.title) \(order).", else: "\(answer.title) is already sorted \(order)")
    }

    func deduplicated(_ answer: QueueAnswer) throws {
        try change(answer, answer.removed, else: "\(answer.title) has no duplicates")
    }

    func undone(_ answer: QueueAnswer) throws {
        try change(answer, "Undone: \(Sentence.stopped(answer.summary))", else: "there is nothing to undo")
    }

    func redone(_ answer: QueueAnswer) throws {
        try change(answer, "Redone: \(Sentence.stopped(answer.summary))", else: "there is nothing to redo")
    }

    func restored(_ answer: QueueAnswer, revision: UInt64) throws {
        try change(
            answer,
            "\(answer.title) is as it was at revision \(revision): \(answer.summary). \(answer.undoCommand) undoes this change.",
            else: "it is already as it was at revision \(revision)")
    }

    func history(_ changes: [QueueChange]) throws {
        let rows = changes.map { change in
            [
                "\(change.revision)", TimeText.minute(milliseconds: change.at.milliseconds),
                change.summary + (change.isUndone ? " (undone)" : ""), change.origin.name, "\(change.entryCount)",
            ]
        }
        let table = TextTable([.right("revision"), "when", .flexible("what"), "by", .right("entries")], rows)
        try value(.array(changes.map(\.json)), lines: changes.isEmpty ? ["There are no changes yet."] : table.printed())
    }
}

extension QueueAnswer {
    /// ` to “evening”`; empty for Up Next.
    func suffix(_ word: String) -> String {
        playlist == nil && queue == QueueName.default ? "" : " \(word) \(title)"
    }

    /// The command that undoes a change, in backquotes.
    var undoCommand: String {
        "`lockstep \(playlist.map { "playlist undo \($0.id)" } ?? "queue undo\(QueueName.option(queue))")`"
    }

    /// `` `lockstep queue undo` restores it. ``
    var undoAdvice: String { "\(undoCommand) restores \(entries.count == 1 ? "it" : "them")." }

    /// The entries in the answer: up to three titles, otherwise their number.
    var names: String {
        Titles.shown(entries.map(\.episode.title), count: max(count, entries.count), "entries")
    }

    var removed: String { "Removed \(names)\(suffix("from")). \(undoAdvice)" }
}

extension QueueClient.SortKey: ExpressibleByArgument {
    /// The key’s name in the history.
    fileprivate var words: String {
        switch self {
        case .title, .podcast, .length: rawValue
        case .published: "publication"
        case .added: "time of adding"
        case .remaining: "remaining time"
        }
    }
}
