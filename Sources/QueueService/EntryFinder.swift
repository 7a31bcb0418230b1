import PodcastModel
import SwiftProtobuf
import WireMessages

/// Finds the entry that somebody names who sees the queues: by its number, its ID or its episode's, the beginning of one, its
/// title or a part of it.
struct EntryFinder {
    /// The maximum number of texts in one request: each may be compared with every title.
    static let limit = 100

    /// The queues that may be meant, the likelier first.
    private let queues: [NamedQueue]
    /// The titles of each queue in small letters, once they are needed.
    private var titles: [[String]?]

    init(in queues: [NamedQueue]) {
        self.queues = queues
        titles = queues.map { _ in nil }
    }

    /// The entry that `text` names.
    ///
    /// - Throws: `notFound`; `ambiguous` with the candidates.
    mutating func entry(_ text: String) throws(Failure) -> (queue: NamedQueue, entry: Queue.Entry) {
        if text.utf8.count <= 6, let number = UInt32(text) { return try entry(number: number) }
        for queue in queues where !text.isEmpty {
            if let entry = queue.queue.entry(text) ?? queue.queue.entry(episode: text) { return (queue, entry) }
        }
        for (index, queue) in queues.enumerated() where !text.isEmpty {
            let found = matches(text, inQueue: index)
            guard let first = found.first else { continue }
            guard found.count == 1 else {
                throw Self.ambiguous(
                    "“\(text)” could be \(found.count) entries of \(QueueName.shown(queue.name)).", found)
            }
            return (queue, first)
        }
        let places = queues.map { QueueName.shown($0.name) }.joined(separator: " or ")
        let option = queues.first.map { QueueName.option($0.name) } ?? ""
        throw Failure(.notFound, "Nothing in \(places) is named “\(text)”. `lockstep queue\(option)` lists it.")
    }

    /// The entry of that number, from 1.
    ///
    /// - Throws: `notFound` for a number that no queue has; `ambiguous` for one that several have.
    func entry(number: UInt32) throws(Failure) -> (queue: NamedQueue, entry: Queue.Entry) {
        let found = queues.filter { number >= 1 && Int(number) <= $0.queue.entries.count }
            .map { (queue: $0, entry: $0.queue.entries[Int(number) - 1]) }
        guard let first = found.first else {
            let queue = queues.first ?? NamedQueue(name: QueueName.usual)
            throw Failure(
                .notFound,
                "\(QueueName.shown(queue.name)) has no entry \(number); it has \(queue.queue.counted).")
        }
        guard found.count == 1 else {
            let names = found.map { "\(QueueName.shown($0.queue.name)) (--queue \($0.queue.name))" }
            throw Self.ambiguous(
                "Number \(number) could be an entry of \(names.joined(separator: " or ")).", found.map(\.entry))
        }
        return first
    }

    /// The entries that a text matches best: the beginning of an ID, else a whole title, else a part of one.
    private mutating func matches(_ text: String, inQueue index: Int) -> [Queue.Entry] {
        let entries = Array(queues[index].queue.entries)
        let named = entries.filter { $0.id.hasPrefix(text) || $0.episode.hasPrefix(text) }
        guard named.isEmpty else { return named }
        let titles = titles[index] ?? entries.map { $0.wire.episode.title.lowercased() }
        self.titles[index] = titles
        let wanted = text.lowercased()
        let whole = zip(entries, titles).filter { $1 == wanted }
        return (whole.isEmpty ? zip(entries, titles).filter { $1.contains(wanted) } : whole).map { $0.0 }
    }

    private static func ambiguous(_ message: String, _ entries: [Queue.Entry]) -> Failure {
        var detail = WireCandidates()
        detail.candidates = entries.prefix(20).map { entry in
            .with {
                $0.id = entry.id
                $0.title = entry.wire.episode.title
            }
        }
        return Failure(
            code: FailureCode.ambiguous.rawValue, message: message + " Say which by its ID:", detail: detail.wireBytes)
    }
}
