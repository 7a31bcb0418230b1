/// Where an episode's audio is: a file on this machine, or a web address. Nothing else is handed to the engine,
/// whose library would also open devices, filter graphs and other pseudo addresses.
public enum AudioSource: Sendable, Hashable, CustomStringConvertible {
    /// An absolute path.
    case file(path: String)
    /// An http or https address.
    case web(url: String)

    /// The source that an enclosure's address names: `http:`, `https:`, `file:` (on this machine) or an absolute path.
    ///
    /// - Throws: `episodeUnavailable` for an empty address, `badURL` for any other that is not one of these.
    public init(enclosure address: String) throws(Failure) {
        guard !address.isEmpty else { throw Failure(.episodeUnavailable, "The episode has no audio.") }
        guard !address.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) else {
            throw Failure(.badURL, "The episode's address holds control characters.")
        }
        if address.hasPrefix("/") {
            self = .file(path: address)
            return
        }
        let lower = address.prefix(8).lowercased()
        if lower.hasPrefix("http://") || lower.hasPrefix("https://") {
            self = .web(url: address)
            return
        }
        guard lower.hasPrefix("file:"), let path = Self.path(ofFileURL: address.dropFirst(5)) else {
            throw Failure(.badURL, "“\(address)” is no http, https or file address, which is all that can be played.")
        }
        self = .file(path: path)
    }

    /// The path or address.
    public var description: String {
        switch self {
        case .file(let path): path
        case .web(let url): url
        }
    }

    /// The path of what follows `file:`; nil if it is relative, on another machine or no valid text.
    private static func path(ofFileURL rest: Substring) -> String? {
        var rest = rest
        if rest.hasPrefix("//") {
            rest = rest.dropFirst(2)
            guard let slash = rest.firstIndex(of: "/"), ["", "localhost"].contains(rest[..<slash].lowercased()) else {
                return nil
            }
            rest = rest[slash...]
        }
        guard rest.hasPrefix("/") else { return nil }
        return percentDecoded(rest.utf8)
    }

    private static func percentDecoded(_ text: Substring.UTF8View) -> String? {
        var bytes: [UInt8] = []
        var index = text.startIndex
        while index != text.endIndex {
            let byte = text[index]
            text.formIndex(after: &index)
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let end = text.index(index, offsetBy: 2, limitedBy: text.endIndex),
                let digits = Substring(text[index..<end]).hexadecimalByte, digits != 0
            else { return nil }
            bytes.append(digits)
            index = end
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension Substring {
    /// The value of exactly two hexadecimal digits.
    fileprivate var hexadecimalByte: UInt8? {
        utf8.count == 2 && allSatisfy(\.isHexDigit) ? UInt8(self, radix: 16) : nil
    }
}
