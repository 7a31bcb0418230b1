/// An absolute address of a feed, an audio file or an image: `http`, `https` or `file`.
///
/// Feeds hold addresses with spaces, raw Unicode and odd cases: `init` forgives what has one meaning only.
public struct WebAddress: Sendable, Hashable, CustomStringConvertible {
    /// `http`, `https` or `file`.
    public let scheme: String
    /// User, host (lower case) and port (unless it is the scheme's own), as they stand between `//` and the path.
    public let authority: String
    /// The path, beginning with a slash, percent-encoded.
    public let path: String
    /// What follows the question mark; nil: there is none.
    public let query: String?

    /// The longest address that is accepted, in bytes.
    public static let limit = 8_192

    /// Nil unless `text` is an absolute address with one of the three schemes. `feed:`, `itpc:` and `pcast:` become http.
    public init?(_ text: String) {
        guard let parts = Reference(text), let scheme = parts.scheme else { return nil }
        guard scheme == "feed" || scheme == "itpc" || scheme == "pcast" else {
            self.init(parts, scheme: scheme)
            return
        }
        // `feed:https://…` and `feed://…` are both in use.
        guard parts.authority == nil else {
            self.init(parts, scheme: "http")
            return
        }
        guard let inner = Reference(parts.path + (parts.query.map { "?" + $0 } ?? "")), let scheme = inner.scheme else {
            return nil
        }
        self.init(inner, scheme: scheme)
    }

    /// What `text`, absolute or relative, means in a document at `base` (RFC 3986, section 5.2).
    public init?(_ text: String, relativeTo base: WebAddress) {
        guard var parts = Reference(text) else { return nil }
        if let scheme = parts.scheme {
            self.init(parts, scheme: scheme)
            return
        }
        if parts.authority == nil {
            parts.authority = base.authority
            if parts.path.isEmpty {
                parts.path = base.path
                parts.query = parts.query ?? base.query
            } else if !parts.path.hasPrefix("/") {
                let folder = base.path.lastIndex(of: "/").map { base.path[...$0] } ?? "/"
                parts.path = folder + parts.path
            }
        }
        self.init(parts, scheme: base.scheme)
    }

    /// A local file, by its absolute path; nil for a relative one.
    public init?(filePath: String) {
        guard filePath.hasPrefix("/") else { return nil }
        scheme = "file"
        authority = ""
        path = Self.withoutDots(percentEncoded(filePath, keeping: Reference.pathBytes))
        query = nil
    }

    private init?(_ parts: Reference, scheme: String) {
        guard scheme == "http" || scheme == "https" || scheme == "file" else { return nil }
        guard let authority = Self.normalised(authority: parts.authority, scheme: scheme) else { return nil }
        guard scheme != "file" || parts.path.hasPrefix("/") else { return nil }
        self.scheme = scheme
        self.authority = authority
        path = Self.withoutDots(parts.path.isEmpty ? "/" : parts.path)
        query = scheme == "file" ? nil : parts.query
    }

    /// The whole address.
    public var text: String { "\(scheme)://\(authority)\(path)\(query.map { "?" + $0 } ?? "")" }
    /// The whole address.
    public var description: String { text }

    /// The host and port, without user and password: for sentences, and to tell servers apart; a local file's path.
    public var host: String {
        isFile ? (filePath ?? path) : (authority.split(separator: "@").last.map(String.init) ?? authority)
    }

    /// User and password, as the address has them; nil: it names nobody.
    public var credentials: (user: String, password: String)? {
        guard let at = authority.lastIndex(of: "@") else { return nil }
        let parts = authority[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
    }

    /// Whether it names a local file.
    public var isFile: Bool { scheme == "file" }

    /// The path of a local file, decoded; nil for other schemes and for one that is no UTF-8.
    public var filePath: String? {
        guard isFile else { return nil }
        var bytes: [UInt8] = []
        var rest = path.utf8[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2, let value = UInt8(String(rest.prefix(2)) ?? "", radix: 16) {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        guard !bytes.contains(0) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// What is the same for two addresses of one thing: neither http or https nor a slash at the end makes a difference.
    public var identity: String {
        var path = self.path[...]
        while path.count > 1, path.hasSuffix("/") { path = path.dropLast() }
        if path == "/" { path = "" }
        return (isFile ? "file://" : "//") + authority + path + (query.map { "?" + $0 } ?? "")
    }

    private static func normalised(authority: String?, scheme: String) -> String? {
        guard scheme != "file" else {
            let host = authority?.lowercased() ?? ""
            return host.isEmpty || host == "localhost" ? "" : nil
        }
        guard let authority, !authority.isEmpty else { return nil }
        var user = ""
        var host = authority[...]
        if let at = authority.lastIndex(of: "@") {
            user = String(authority[...at])
            host = authority[authority.index(after: at)...]
        }
        var port = ""
        if let colon = host.lastIndex(of: ":"), !host[colon...].contains("]") {
            port = String(host[host.index(after: colon)...])
            host = host[..<colon]
            guard port.isEmpty || UInt16(port) != nil else { return nil }
        }
        guard !host.isEmpty else { return nil }
        if port == (scheme == "http" ? "80" : "443") { port = "" }
        return user + host.lowercased() + (port.isEmpty ? "" : ":" + port)
    }

    /// Removes `.` and `..` (RFC 3986, section 5.2.4).
    private static func withoutDots(_ path: String) -> String {
        guard path.contains("/.") else { return path }
        var kept: [Substring] = []
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            let isLast = index == parts.count - 1
            switch part {
            case "..":
                if kept.count > 1 { kept.removeLast() }
                if isLast { kept.append("") }
            case ".":
                if isLast { kept.append("") }
            default: kept.append(part)
            }
        }
        return kept.joined(separator: "/")
    }
}

/// The parts of a URI reference, percent-encoded where a feed forgot to.
private struct Reference {
    var scheme: String?
    var authority: String?
    var path: String
    var query: String?

    static let pathBytes = Set("!$&'()*+,;=:@-._~/%".utf8)
    static let queryBytes = Set("!$&'()*+,;=:@-._~/%?[]|".utf8)

    init?(_ text: String) {
        var rest = text[...]
        while let first = rest.first, first.isWhitespace { rest = rest.dropFirst() }
        while let last = rest.last, last.isWhitespace { rest = rest.dropLast() }
        guard !rest.isEmpty, rest.utf8.count <= WebAddress.limit,
            rest.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f })
        else { return nil }
        if let fragment = rest.firstIndex(of: "#") { rest = rest[..<fragment] }
        if let colon = rest.firstIndex(of: ":"), colon != rest.startIndex,
            rest[..<colon].utf8.allSatisfy({ Self.isSchemeByte($0) }), !rest[rest.startIndex].isNumber
        {
            scheme = rest[..<colon].lowercased()
            rest = rest[rest.index(after: colon)...]
        }
        if rest.hasPrefix("//") {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
            guard !rest[..<end].contains(where: \.isWhitespace) else { return nil }
            authority = String(rest[..<end])
            rest = rest[end...]
        }
        let mark = rest.firstIndex(of: "?")
        path = percentEncoded(rest[..<(mark ?? rest.endIndex)], keeping: Self.pathBytes)
        query = mark.map { percentEncoded(rest[rest.index(after: $0)...], keeping: Self.queryBytes) }
        if authority != nil, !path.isEmpty, !path.hasPrefix("/") { return nil }
    }

    private static func isSchemeByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
            true
        default: false
        }
    }
}

/// `text` with every byte but letters, digits and `kept` as `%XX`.
private func percentEncoded(_ text: some StringProtocol, keeping kept: Set<UInt8>) -> String {
    func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: kept.contains(byte)
        }
    }
    if text.utf8.allSatisfy(isPlain) { return String(text) }
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
        if isPlain(byte) {
            bytes.append(byte)
        } else {
            bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
    return String(decoding: bytes, as: UTF8.self)
}
