/// Splits a stream of bytes into lines, without empty ones. The rest of a line beyond the limit is dropped.
package struct LineSplitter: Sendable {
    private let limit: Int
    private var partial: [UInt8] = []
    private var isCut = false

    /// - Parameter limit: the maximum length of a line in bytes.
    package init(limit: Int = 65_536) { self.limit = limit }

    /// The lines that `bytes` complete, without their line ends.
    package mutating func lines(_ bytes: ArraySlice<UInt8>) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var rest = bytes
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            append(rest[..<end])
            if let line = finish() { lines.append(line) }
            rest = rest[rest.index(after: end)...]
        }
        append(rest)
        return lines
    }

    /// The last line, if it has no line end.
    package mutating func finish() -> [UInt8]? {
        defer {
            partial = []
            isCut = false
        }
        return partial.isEmpty ? nil : partial
    }

    private mutating func append(_ bytes: ArraySlice<UInt8>) {
        guard !isCut else { return }
        let room = limit - partial.count
        partial.append(contentsOf: bytes.prefix(room))
        isCut = bytes.count > room
    }
}
