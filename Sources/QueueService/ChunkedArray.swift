/// An array whose copies share what they have in common: changing one element of a copy copies a chunk, not thousands.
struct ChunkedArray<Element: Sendable>: Sendable, Sequence {
    /// A chunk that would grow beyond this is split.
    private static var chunkLimit: Int { 128 }

    /// None is empty.
    private var chunks: [[Element]] = []
    /// The number of elements.
    private(set) var count = 0

    init() {}

    init(_ elements: [Element]) {
        count = elements.count
        let size = Self.chunkLimit / 2
        chunks = stride(from: 0, to: count, by: size).map { Array(elements[$0..<Swift.min($0 + size, count)]) }
    }

    var isEmpty: Bool { count == 0 }
    var indices: Range<Int> { 0..<count }
    var first: Element? { chunks.first?.first }
    var last: Element? { chunks.last?.last }

    func makeIterator() -> FlattenSequence<[[Element]]>.Iterator { chunks.joined().makeIterator() }

    /// The element at an index from 0 to `count` − 1.
    subscript(index: Int) -> Element {
        get {
            let (chunk, offset) = place(of: index)
            return chunks[chunk][offset]
        }
        set {
            let (chunk, offset) = place(of: index)
            chunks[chunk][offset] = newValue
        }
    }

    /// The first element that fulfils a condition.
    func first(where condition: (Element) -> Bool) -> Element? {
        for chunk in chunks {
            if let found = chunk.first(where: condition) { return found }
        }
        return nil
    }

    /// The last index whose element satisfies a condition.
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
        // The end belongs to the last chunk.
        var (chunk, offset) = index == count - 1 ? (chunks.count - 1, chunks[chunks.count - 1].count) : place(of: index)
        if chunks[chunk].count >= Self.chunkLimit {
            // At the end of the list a new chunk begins: the one before it stays as it is.
            let half = offset == chunks[chunk].count ? offset : chunks[chunk].count / 2
            let rest = Array(chunks[chunk][half...])
            chunks[chunk].removeSubrange(half...)
            chunks.insert(rest, at: chunk + 1)
            if offset >= half { (chunk, offset) = (chunk + 1, offset - half) }
        }
        chunks[chunk].insert(element, at: offset)
    }

    /// Removes the element at an index from 0 to `count` − 1.
    @discardableResult
    mutating func remove(at index: Int) -> Element {
        count -= 1
        let (chunk, offset) = place(of: index)
        let element = chunks[chunk].remove(at: offset)
        if chunks[chunk].isEmpty { chunks.remove(at: chunk) }
        return element
    }

    /// The chunk that holds an index, and the offset in it.
    private func place(of index: Int) -> (chunk: Int, offset: Int) {
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

/// How often each number occurs, whose copies share what they have in common.
struct ShardedCounts: Sendable {
    private static let shardCount = 64
    private var shards: [[Int: Int]] = Array(repeating: [:], count: Self.shardCount)

    /// How often it occurs.
    subscript(number: Int) -> Int {
        get { shards[Self.shard(number)][number] ?? 0 }
        set { shards[Self.shard(number)][number] = newValue > 0 ? newValue : nil }
    }

    private static func shard(_ number: Int) -> Int { Int(UInt(bitPattern: number) % UInt(shardCount)) }
}
