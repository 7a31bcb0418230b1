/// Parses HTML into a sequence of texts and tags, in one pass. It accepts any input and doesn’t check nesting.
public struct HTMLText: Sequence, IteratorProtocol, Sendable {
    /// A piece of HTML.
    public enum Event: Sendable {
        /// Text without changes, in UTF-8.
        case text(ArraySlice<UInt8>)
        /// A character from a reference such as `&eacute;`.
        case character(Unicode.Scalar)
        /// A tag, a comment or a declaration.
        case tag(Tag)
    }

    /// A tag with its attributes. Comments and truncated tags have no name.
    public struct Tag: Sendable {
        /// The name in lower case; empty if there is none.
        public let name: String
        /// Whether it ends an element.
        public let isEnd: Bool
        private let attributes: ArraySlice<UInt8>

        fileprivate init(name: String = "", isEnd: Bool = false, attributes: ArraySlice<UInt8> = []) {
            (self.name, self.isEnd, self.attributes) = (name, isEnd, attributes)
        }

        /// The value of an attribute, with its references decoded; nil if there is none of this name.
        public func attribute(_ name: String) -> String? {
            var rest = attributes
            while let equals = rest.firstIndex(of: UInt8(ascii: "=")) {
                let key = rest[..<equals].split { isSpace($0) || $0 == UInt8(ascii: "/") }.last ?? []
                var value = rest[(equals + 1)...].drop(while: isSpace)
                let text: ArraySlice<UInt8>
                if let quote = value.first, isQuote(quote) {
                    value = value.dropFirst()
                    text = value.prefix { $0 != quote }
                    rest = value[text.endIndex...].dropFirst()
                } else {
                    text = value.prefix { !isSpace($0) }
                    rest = value[text.endIndex...]
                }
                if String(decoding: key, as: UTF8.self).lowercased() == name { return HTMLEntities.decoded(text) }
            }
            return nil
        }
    }

    private let bytes: [UInt8]
    private var index = 0

    /// Creates the sequence for a text in UTF-8.
    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The next piece; nil at the end.
    public mutating func next() -> Event? {
        guard index < bytes.count else { return nil }
        switch bytes[index] {
        case UInt8(ascii: "<"):
            if let tag = tag() { return .tag(tag) }
        case UInt8(ascii: "&"):
            if let (character, length) = HTMLEntities.reference(in: bytes[index...]) {
                index += length
                return .character(character)
            }
        default: break
        }
        let start = index
        repeat { index += 1 } while index < bytes.count && !isMark(bytes[index])
        return .text(bytes[start..<index])
    }

    /// Parses the tag at the current index; nil if the character is plain text.
    private mutating func tag() -> Tag? {
        if bytes[index...].starts(with: "<!--".utf8) {
            index += 4
            while index < bytes.count, !bytes[index...].starts(with: "-->".utf8) { index += 1 }
            index = Swift.min(index + 3, bytes.count)
            return Tag()
        }
        var inner = bytes[(index + 1)...]
        let isEnd = inner.first == UInt8(ascii: "/")
        if isEnd { inner = inner.dropFirst() }
        guard let first = inner.first, first.isASCIILetter || first == UInt8(ascii: "!") || first == UInt8(ascii: "?")
        else { return nil }
        guard let end = Self.end(of: inner) else {
            index = bytes.count
            return Tag()
        }
        index = end + 1
        let name = inner.prefix(while: \.isASCIIAlphanumeric)
        return Tag(
            name: String(decoding: name, as: UTF8.self).lowercased(), isEnd: isEnd,
            attributes: inner[name.endIndex..<end])
    }

    /// The first `>` outside quotes; if a quote is never closed, the first `>` anywhere. Nil if there is none.
    private static func end(of text: ArraySlice<UInt8>) -> Int? {
        var quote: UInt8?
        var previous = UInt8(ascii: " ")
        for (index, byte) in zip(text.indices, text) {
            if let open = quote {
                if byte == open { quote = nil }
            } else if byte == UInt8(ascii: ">") {
                return index
            } else if isQuote(byte), previous == UInt8(ascii: "=") || isSpace(previous) {
                quote = byte
            }
            previous = byte
        }
        return text.firstIndex(of: UInt8(ascii: ">"))
    }
}

private func isMark(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "<") || byte == UInt8(ascii: "&") }
private func isQuote(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") }
private func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
