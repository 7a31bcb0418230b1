/// An array whose copies share storage: changing one element of a copy copies a chunk, not thousands of elements.
struct ChunkedArray<Element: Sendable>: Sendable, Sequence {
    /// The maximum size of a chunk; a larger one is split.
    private static var chunkLimit: Int { 128 }

    /// The chunks, none of which is empty.
    private var chunks: [[Element]] = []
    private(set) var count = 0

    init() {}

    init(_ elements: [Element]) {
        count = elements.count
        let size = Self.chunkLimit / 2
        chunks = stride(from: 0, to: count, by: size).map { Array(elements[$0..<Swift.min($0 + size, count)]) }
    }

    var isEmpty: Bool { count == 0 }
    var first: Element? { chunks.first?.first }
    var last: Element? { chunks.last?.last }

    func makeIterator() -> FlattenSequence<[[Element]]>.Iterator { chunks.joined().makeIterator() }

    subscript(index: Int) -> Element {
        get {
            let (chunk, offset) = location(of: index)
            return chunks[chunk][offset]
        }
        set {
            let (chunk, offset) = location(of: index)
            chunks[chunk][offset] = newValue
        }
    }

    func first(where condition: (Element) -> Bool) -> Element? {
        for chunk in chunks {
            if let found = chunk.first(where: condition) { return found }
        }
        return nil
    }

    func lastIndex(where condition: (Element) -> Bool) -> Int? {
        var end = count
        for chunk in chunks.reversed() {
            end -= chunk.count
            if let offset = chunk.lastIndex(where: condition) { return end + offset }
        }
        return nil
    }

    /// Inserts an element at an index from 0 to `count`.
    mutating func insert(_ element: Element, at index: Int) {
        count += 1
        guard !chunks.isEmpty else {
            chunks = [[element]]
            return
        }
        // An appended element is inserted into the last chunk.
        let end = (chunks.count - 1, chunks[chunks.count - 1].count)
        var (chunk, offset) = index == count - 1 ? end : location(of: index)
        if chunks[chunk].count >= Self.chunkLimit {
            // An append to a full chunk creates a new chunk and leaves the full one unchanged.
            let half = offset == chunks[chunk].count ? offset : chunks[chunk].count / 2
            let rest = Array(chunks[chunk][half...])
            chunks[chunk].removeSubrange(half...)
            chunks.insert(rest, at: chunk + 1)
            if offset >= half { (chunk, offset) = (chunk + 1, offset - half) }
        }
        chunks[chunk].insert(element, at: offset)
    }

    @discardableResult
    mutating func remove(at index: Int) -> Element {
        count -= 1
        let (chunk, offset) = location(of: index)
        let element = chunks[chunk].remove(at: offset)
        if chunks[chunk].isEmpty { chunks.remove(at: chunk) }
        return element
    }

    /// Returns the chunk that contains an index, and the offset in it.
    private func location(of index: Int) -> (chunk: Int, offset: Int) {
        precondition(index >= 0)
        var offset = index
        for chunk in chunks.indices {
            let size = chunks[chunk].count
            guard offset >= size else { return (chunk, offset) }
            offset -= size
        }
        preconditionFailure("there is no element \(index)")
    }
}

/// Counts occurrences of numbers. Copies share the storage of unchanged shards.
struct ShardedCounts: Sendable {
    private static let shardCount = 64
    private var shards: [[Int: Int]] = Array(repeating: [:], count: Self.shardCount)

    subscript(number: Int) -> Int {
        get { shards[Self.shard(number)][number] ?? 0 }
        set { shards[Self.shard(number)][number] = newValue > 0 ? newValue : nil }
    }

    private static func shard(_ number: Int) -> Int { Int(UInt(bitPattern: number) % UInt(shardCount)) }
}
