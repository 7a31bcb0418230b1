import LibC
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Finds the entry that a user names: by its number, its or its episode’s ID, a prefix of one, its
/// title or a part of it.
struct EntryFinder<List: EditableList> {
    /// The bytes of IDs and titles that one request may be compared with: enough for a hundred texts in a full queue.
    private static var byteLimit: Int { 256 << 20 }

    /// The list to search first.
    private let first: List
    /// The lists to search if the first one has no matching entry.
    private let others: [List]
    /// The texts of each list, created when needed.
    private var texts: [EntryTexts?]
    private var comparedBytes = 0

    init(in first: List, or others: [List] = []) {
        self.first = first
        self.others = others
        texts = Array(repeating: nil, count: 1 + others.count)
    }

    private var lists: [List] { [first] + others }

    /// - Throws: `notFound`; `ambiguous` with the candidates; `limitReached` if the search takes too long.
    mutating func entry(_ text: String) throws(Failure) -> (list: List, entry: Queue.Entry) {
        if text.utf8.count <= 6, text.first?.isNumber == true, let number = UInt32(text) {
            return try entry(number: number)
        }
        for list in lists where !text.isEmpty {
            if let entry = list.queue.entry(text) ?? list.queue.entry(episode: text) { return (list, entry) }
        }
        for (index, list) in lists.enumerated() where !text.isEmpty {
            if texts[index] == nil { texts[index] = EntryTexts(list.queue) }
            comparedBytes += texts[index]?.byteCount ?? 0
            guard comparedBytes <= Self.byteLimit else {
                throw Failure(
                    .limitReached,
                    "Searching \(list.shown), which has \(list.queue.counted), for these texts would take too long; name fewer entries at once, or use their IDs."
                )
            }
            let found = (texts[index]?.matches(text) ?? []).map { (list: list, number: $0 + 1) }
            guard let match = found.first else { continue }
            guard found.count == 1 else {
                throw Self.ambiguous(
                    "“\(text)” could be \(found.count) entries of \(list.shown).",
                    advice: "Repeat the command with one of these IDs:", found)
            }
            return (list, list.queue.entries[match.number - 1])
        }
        let names = lists.map(\.shown).joined(separator: " or ")
        throw Failure(
            .notFound, "No entry in \(names) matches “\(text)”. `lockstep \(first.id.showCommand)` lists the entries.")
    }

    /// - Throws: `notFound` for a number that no list has; `ambiguous` for one that several have.
    func entry(number: UInt32) throws(Failure) -> (list: List, entry: Queue.Entry) {
        let found = lists.filter { number >= 1 && Int(number) <= $0.queue.entries.count }
            .map { (list: $0, entry: $0.queue.entries[Int(number) - 1]) }
        guard let match = found.first else {
            throw Failure(
                .notFound,
                first.queue.entries.isEmpty
                    ? "\(first.shown) is empty, so it has no entry \(number)."
                    : "\(first.shown) has no entry \(number); it has \(first.queue.counted).")
        }
        guard found.count == 1 else {
            let names = found.map { "\($0.list.shown) (\($0.list.id.option))" }
            throw Self.ambiguous(
                "Number \(number) could be an entry of \(names.joined(separator: " or ")).",
                advice: "Repeat the command with --queue or with one of these IDs:",
                found.map { ($0.list, Int(number)) })
        }
        return match
    }

    private static func ambiguous(_ message: String, advice: String, _ found: [(list: List, number: Int)])
        -> Failure
    {
        Failure(
            ambiguous: message, advice: advice,
            found.lazy.map { list, number in
                let entry = list.queue.entries[number - 1]
                let podcast = entry.wire.episode.podcastTitle
                let place = "entry \(number) of \(list.shown)"
                return (entry.id, entry.wire.episode.title, podcast.isEmpty ? place : "\(place), \(podcast)")
            })
    }
}

/// The IDs and titles of a queue’s entries, concatenated in UTF-8, so that thousands of them are searched at once.
private struct EntryTexts {
    /// Precedes each text; no UTF-8 has this byte.
    private static let separator: UInt8 = 0xFF

    private struct Column {
        private(set) var bytes = [separator]
        /// The offset at which each entry’s texts begin.
        private var starts: [Int] = []

        mutating func append<Text: Sequence<UInt8>>(_ texts: Text...) {
            starts.append(bytes.count - 1)
            for text in texts {
                bytes.append(contentsOf: text)
                bytes.append(separator)
            }
        }

        /// Returns the indices of the entries whose texts contain the bytes.
        func entries(with wanted: [UInt8]) -> [Int] {
            guard let first = wanted.first else { return [] }
            return bytes.withUnsafeBytes { all in
                guard let base = all.baseAddress else { return [] }
                var found: [Int] = []
                var offset = 0
                var next = 0
                while offset + wanted.count <= all.count,
                    let match = memchr(base + offset, Int32(first), all.count - offset - wanted.count + 1)
                {
                    offset = base.distance(to: UnsafeRawPointer(match))
                    guard memcmp(match, wanted, wanted.count) == 0 else {
                        offset += 1
                        continue
                    }
                    while next < starts.count, starts[next] <= offset { next += 1 }
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
    /// The first-seen representative of each set of canonically equivalent characters, such as “é” in one scalar or
    /// two; for characters below U+0300 the single scalar.
    private var characters = singleScalars
    private static let singleScalars = Set((0..<0x300).compactMap(Unicode.Scalar.init).map(Character.init))

    init(_ queue: Queue) {
        for entry in queue.entries {
            ids.append(entry.id.utf8, entry.episode.utf8)
            titles.append(folded(entry.wire.episode.title).utf8)
        }
    }

    /// The number of bytes that a search reads.
    var byteCount: Int { ids.bytes.count + 2 * titles.bytes.count }

    /// Returns the indices of the best matches of a text: an ID prefix, else a whole title, else a part of one.
    mutating func matches(_ text: String) -> [Int] {
        let named = ids.entries(with: [Self.separator] + text.utf8)
        guard named.isEmpty else { return named }
        let wanted = Array(folded(text).utf8)
        let whole = titles.entries(with: [Self.separator] + wanted + [Self.separator])
        return whole.isEmpty ? titles.entries(with: wanted) : whole
    }

    /// Returns the text in lower case; canonically equivalent texts have the same bytes.
    private mutating func folded(_ text: String) -> String {
        let text = text.lowercased()
        if text.unicodeScalars.allSatisfy(Self.representsItself) { return text }
        return String(text.map { characters.insert($0).memberAfterInsert })
    }

    /// Whether the scalar, unless a combining mark follows it, is the representative of its set: Latin letters and the
    /// punctuation of ordinary titles, which thus need no lookup.
    private static func representsItself(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x300, 0x2010...0x2027, 0x2030...0x205E: true
        default: false
        }
    }
}
