import PodcastModel

/// The number of repairs of each kind.
struct FeedRepairs: Sendable, Hashable {
    /// The bytes that aren’t UTF-8, and the control characters.
    var wrongBytes = 0
    var bareAmpersands = 0
    /// The HTML entities, which XML doesn’t declare.
    var undeclaredEntities = 0
}

/// Converts feeds that are declared as UTF-8, ASCII, Latin-1 or Windows-1252 to clean UTF-8.
///
/// After an invalid byte, libxml2 decodes the rest of the document as Latin-1, so the encodings that feeds confuse are
/// converted here: valid UTF-8 is preserved, any other byte above 127 is decoded as Windows-1252, and control
/// characters become spaces. A bare `&`, with which libxml2 would drop the text after it (and so break addresses),
/// becomes `&amp;`, and HTML’s named entities their characters. Other encodings are passed through for libxml2 to
/// convert.
struct FeedInput {
    private enum Mode { case undecided, clean, raw }
    private var mode = Mode.undecided
    private var held: [UInt8] = []
    private enum Section { case text, cdata, comment }
    private var section = Section.text
    private(set) var repairs = FeedRepairs()
    /// Whether anything but white space has been read.
    private(set) var hasSeenText = false
    /// Whether the first byte may begin an XML document.
    private(set) var beginsWithMarkup = false

    /// Whether the output is UTF-8, regardless of the declared encoding.
    var isUTF8: Bool { mode != .raw }

    /// The number of bytes that are searched for the declaration.
    private static let window = 512

    /// Cleans the next bytes; an incomplete character or entity at the end is buffered.
    mutating func clean(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        switch mode {
        case .raw: return Array(bytes)
        case .clean: return clean(held + bytes, isLast: false)
        case .undecided:
            held += bytes
            dropLeadingSpace()
            guard held.count >= Self.window else { return [] }
            return decide(isLast: false)
        }
    }

    /// Returns the buffered bytes, at the end of the document.
    mutating func finish() -> [UInt8] {
        switch mode {
        case .raw: return []
        case .clean: return clean(held, isLast: true)
        case .undecided: return decide(isLast: true)
        }
    }

    private mutating func dropLeadingSpace() {
        if held.starts(with: [0xef, 0xbb, 0xbf]) { held.removeFirst(3) }
        let space = held.prefix { [0x20, 0x09, 0x0a, 0x0d].contains($0) }.count
        held.removeFirst(space)
        if space > 0, held.starts(with: [0xef, 0xbb, 0xbf]) { held.removeFirst(3) }
    }

    private mutating func decide(isLast: Bool) -> [UInt8] {
        hasSeenText = !held.isEmpty
        let isWide = held.starts(with: [0xff, 0xfe]) || held.starts(with: [0xfe, 0xff]) || held.prefix(4).contains(0)
        // The byte 0x4C is “<” in EBCDIC.
        beginsWithMarkup = isWide || held.first == UInt8(ascii: "<") || held.first == 0x4c
        guard isWide || Self.declaredEncoding(held).map(Self.isForeign) == true else {
            mode = .clean
            return clean(held, isLast: isLast)
        }
        mode = .raw
        defer { held = [] }
        return held
    }

    private static func declaredEncoding(_ bytes: [UInt8]) -> String? {
        guard bytes.starts(with: Array("<?xml".utf8)) else { return nil }
        let head = String(decoding: bytes.prefix(window), as: UTF8.self).lowercased()
        guard let end = head.firstIndex(of: ">") else { return nil }
        let parts = head[..<end].split(separator: "encoding", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        let quoted = parts[1].drop { $0 == " " || $0 == "=" }
        guard let quote = quoted.first, quote == "\"" || quote == "'" else { return nil }
        return String(quoted.dropFirst().prefix { $0 != quote })
    }

    /// Whether libxml2 must convert the encoding. Wide encodings are excluded, because the first bytes identify them.
    private static func isForeign(_ name: String) -> Bool {
        let family: Set<String> = [
            "", "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "latin-1", "windows-1252", "cp1252",
            "utf-16", "utf16", "utf-16le", "utf-16be", "ucs-2", "utf-32", "unicode",
        ]
        return !family.contains(name) && XMLLibrary.supports(encoding: name)
    }

    /// Converts bytes to clean UTF-8; an incomplete character or entity at the end is buffered for the next call.
    private mutating func clean(_ bytes: [UInt8], isLast: Bool) -> [UInt8] {
        held = []
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count + 64)
        var keep = bytes.count
        // The static table is accessed once, not for each byte.
        let classes = Self.classes
        bytes.withUnsafeBufferPointer { input in
            var index = 0
            var plain = 0
            scan: while index < input.count {
                let byte = input[index]
                let step: Step
                switch classes[Int(byte)] {
                case .plain:
                    index += 1
                    continue
                case .control: step = .replace(1, [0x20], \.wrongBytes)
                case .high: step = Self.character(input, at: index)
                case .ampersand: step = section == .text ? Self.entity(input, at: index) : .keep(1)
                case .open: step = section == .text ? opening(input, at: index) : .keep(1)
                case .close:
                    leaveSection(input, at: index)
                    step = .keep(1)
                }
                switch step {
                case .keep(let length): index += length
                case .replace(let length, let text, let kind):
                    output.append(contentsOf: input[plain..<index])
                    output.append(contentsOf: text)
                    repairs[keyPath: kind] += 1
                    index += length
                    plain = index
                case .cut where isLast:
                    // The document ends within a character or entity, which is dropped.
                    output.append(contentsOf: input[plain..<index])
                    plain = input.count
                    index = input.count
                case .cut:
                    keep = index
                    break scan
                }
            }
            // The end of a CDATA section or a comment is never split, because it is searched backwards.
            if !isLast, keep == input.count, section != .text {
                let mark = section == .cdata ? UInt8(ascii: "]") : UInt8(ascii: "-")
                while keep > max(plain, input.count - 2), input[keep - 1] == mark { keep -= 1 }
            }
            output.append(contentsOf: input[plain..<keep])
        }
        if keep < bytes.count { held = Array(bytes[keep...]) }
        return output
    }

    private enum Class { case plain, control, high, ampersand, open, close }
    private static let classes: [Class] = (0..<256).map { byte in
        switch UInt8(byte) {
        case 0x09, 0x0a, 0x0d: .plain
        case 0..<0x20, 0x7f: .control
        case 0x80...: .high
        case UInt8(ascii: "&"): .ampersand
        case UInt8(ascii: "<"): .open
        case UInt8(ascii: ">"): .close
        default: .plain
        }
    }

    private enum Step {
        case keep(Int)
        case replace(Int, [UInt8], WritableKeyPath<FeedRepairs, Int>)
        /// More bytes are needed to decide.
        case cut
    }

    private mutating func opening(_ input: UnsafeBufferPointer<UInt8>, at index: Int) -> Step {
        guard index + 1 < input.count else { return .cut }
        guard input[index + 1] == UInt8(ascii: "!") else { return .keep(1) }
        for (mark, entered) in [("<![CDATA[", Section.cdata), ("<!--", Section.comment)] {
            let rest = input[index...]
            if rest.starts(with: mark.utf8) {
                section = entered
                return .keep(mark.utf8.count)
            }
            if rest.count < mark.utf8.count, mark.utf8.starts(with: rest) { return .cut }
        }
        return .keep(1)
    }

    private mutating func leaveSection(_ input: UnsafeBufferPointer<UInt8>, at index: Int) {
        guard section != .text, index >= 2 else { return }
        let mark = section == .cdata ? UInt8(ascii: "]") : UInt8(ascii: "-")
        if input[index - 1] == mark, input[index - 2] == mark { section = .text }
    }

    /// Converts the ampersand of an XML, HTML or numeric entity, or a bare one.
    private static func entity(_ input: UnsafeBufferPointer<UInt8>, at index: Int) -> Step {
        let window = input[(index + 1)..<min(input.count, index + 34)]
        guard let end = window.firstIndex(where: { !isNameByte($0) }) else {
            return window.count < 33 ? .cut : .replace(1, bareAmpersand, \.bareAmpersands)
        }
        guard input[end] == UInt8(ascii: ";"), end > index + 1 else {
            return .replace(1, bareAmpersand, \.bareAmpersands)
        }
        // Escaped HTML has many of these, so no string is allocated for them.
        if isPredefined(input[(index + 1)..<end]) { return .keep(end - index + 1) }
        let name = String(decoding: input[(index + 1)..<end], as: UTF8.self)
        if name.hasPrefix("#") {
            return isCharacter(reference: name.dropFirst())
                ? .keep(end - index + 1) : .replace(end - index + 1, [0x20], \.wrongBytes)
        }
        guard let text = HTMLEntities.named[name] else { return .keep(end - index + 1) }
        return .replace(end - index + 1, Array(String(text).utf8), \.undeclaredEntities)
    }

    private static let bareAmpersand = Array("&amp;".utf8)
    private static let predefined = ["lt", "gt", "amp", "quot", "apos"].map { Array($0.utf8) }

    private static func isPredefined(_ name: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        predefined.contains { $0.count == name.count && name.elementsEqual($0) }
    }

    /// Whether the digits of `&#…;` name a character that XML allows.
    private static func isCharacter(reference digits: Substring) -> Bool {
        let isHexadecimal = digits.hasPrefix("x") || digits.hasPrefix("X")
        guard !digits.hasPrefix("X"),
            let value = UInt32(isHexadecimal ? digits.dropFirst() : digits, radix: isHexadecimal ? 16 : 10),
            let scalar = Unicode.Scalar(value)
        else { return false }
        return scalar.value >= 0x20 ? (scalar.value & 0xfffe) != 0xfffe : [9, 10, 13].contains(scalar.value)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "#"):
            true
        default: false
        }
    }

    /// Copies the valid character that begins at a byte above 127, or converts the byte.
    private static func character(_ input: UnsafeBufferPointer<UInt8>, at index: Int) -> Step {
        var parser = Unicode.UTF8.ForwardParser()
        var bytes = UnsafeBufferPointer(rebasing: input[index..<min(index + 4, input.count)]).makeIterator()
        switch parser.parseScalar(from: &bytes) {
        // U+FFFE and U+FFFF aren’t characters of XML.
        case .valid(let character) where ![0xfffe, 0xffff].contains(Unicode.UTF8.decode(character).value):
            return .keep(character.count)
        case .error(let length) where index + length == input.count && (0xc2...0xf4).contains(input[index]):
            return .cut
        default: return .replace(1, Array(String(windows1252(input[index])).utf8), \.wrongBytes)
        }
    }

    /// Returns the character of a byte above 127 in Windows-1252, which equals Latin-1 from 160.
    private static func windows1252(_ byte: UInt8) -> Unicode.Scalar {
        let upper: [UInt16] = [
            0x20ac, 0x20, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0x20,
            0x017d, 0x20, 0x20, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a,
            0x0153, 0x20, 0x017e, 0x0178,
        ]
        guard (0x80...0x9f).contains(byte) else { return Unicode.Scalar(byte) }
        return Unicode.Scalar(upper[Int(byte - 0x80)]) ?? " "
    }
}
