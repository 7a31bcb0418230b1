import LibC
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Finds the entry that a user names: by its number, its ID or its episode's, the beginning of one, its
/// title or a part of it.
struct EntryFinder {
    /// The maximum number of texts in one request.
    static let limit = 100
    /// The maximum number of bytes of IDs and titles that one request is compared with: a hundred texts with those of a full
    /// queue.
    private static let byteLimit = 256 << 20

    /// The queues that may be meant, the likelier first.
    private let queues: [NamedQueue]
    /// The texts of each queue, once they are needed.
    private var texts: [EntryTexts?]
    private var comparedBytes = 0

    init(in queues: [NamedQueue]) {
        self.queues = queues
        texts = queues.map { _ in nil }
    }

    /// The entry that `text` names.
    ///
    /// - Throws: `notFound`; `ambiguous` with the candidates; `limitReached` where it takes too long to look for it.
    mutating func entry(_ text: String) throws(Failure) -> (queue: NamedQueue, entry: Queue.Entry) {
        let isNumber =
            text.utf8.count <= 6 && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        if isNumber, let number = UInt32(text) { return try entry(number: number) }
        for queue in queues where !text.isEmpty {
            if let entry = queue.queue.entry(text) ?? queue.queue.entry(episode: text) { return (queue, entry) }
        }
        for (index, queue) in queues.enumerated() where !text.isEmpty {
            let texts = texts[index] ?? EntryTexts(queue.queue)
            self.texts[index] = texts
            comparedBytes += texts.byteCount
            guard comparedBytes <= Self.byteLimit else {
                throw Failure(
                    .limitReached,
                    "These are too many texts to look for in \(QueueName.shown(queue.name)), which holds \(queue.queue.counted); name fewer at once, or name entries by their IDs."
                )
            }
            let found = texts.matches(text).map { queue.queue.entries[$0] }
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
            let queue = queues.first ?? NamedQueue(name: QueueName.default)
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

/// The IDs and titles of a queue's entries, one after the other in UTF-8, so that thousands of them are searched at once.
private struct EntryTexts {
    /// Precedes each text; no UTF-8 has this byte.
    private static let separator: UInt8 = 0xFF

    /// Texts, and where those of each entry begin.
    private struct Column {
        private(set) var bytes: [UInt8] = []
        private(set) var starts: [Int] = []

        mutating func append(_ texts: String...) {
            starts.append(bytes.count)
            for text in texts {
                bytes.append(separator)
                bytes.append(contentsOf: text.utf8)
            }
        }

        mutating func end() { bytes.append(separator) }

        /// The indices of the entries in whose texts the bytes occur.
        func entries(with wanted: [UInt8]) -> [Int] {
            guard let first = wanted.first else { return [] }
            return bytes.withUnsafeBytes { all in
                guard let base = all.baseAddress else { return [] }
                var found: [Int] = []
                var offset = 0
                while offset + wanted.count <= all.count,
                    let match = memchr(base + offset, Int32(first), all.count - offset - wanted.count + 1)
                {
                    offset = base.distance(to: UnsafeRawPointer(match))
                    guard memcmp(match, wanted, wanted.count) == 0 else {
                        offset += 1
                        continue
                    }
                    let next = starts.partitioningIndex { $0 > offset }
                    found.append(next - 1)
                    guard next < starts.count else { break }
                    offset = starts[next]
                }
                return found
            }
        }
    }

    private var ids = Column()
    private var titles = Column()

    init(_ queue: Queue) {
        for entry in queue.entries {
            ids.append(entry.id, entry.episode)
            titles.append(entry.wire.episode.title.lowercased())
        }
        ids.end()
        titles.end()
    }

    /// How much a search reads.
    var byteCount: Int { ids.bytes.count + 2 * titles.bytes.count }

    /// The indices of the entries that a text matches best: the beginning of an ID, else a whole title, else a part of one.
    func matches(_ text: String) -> [Int] {
        let named = ids.entries(with: [Self.separator] + text.utf8)
        guard named.isEmpty else { return named }
        let wanted = Array(text.lowercased().utf8)
        let whole = titles.entries(with: [Self.separator] + wanted + [Self.separator])
        return whole.isEmpty ? titles.entries(with: wanted) : whole
    }
}

extension Array {
    /// The first index whose element satisfies a condition that holds for all elements behind it, too.
    fileprivate func partitioningIndex(where isBehind: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
