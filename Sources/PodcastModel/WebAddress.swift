/// An absolute address of a feed, an audio file or an image: `http`, `https` or `file`.
///
/// Feeds contain addresses with spaces, raw Unicode and odd case: `init` accepts those that are unambiguous. It refuses
/// the rest, so that an address may be passed to any library: the host is a name, an IPv4 address or an IPv6 address in
/// brackets, and the text is ASCII without spaces and control characters.
public struct WebAddress: Sendable, Hashable, CustomStringConvertible {
    /// The scheme: `http`, `https` or `file`.
    public let scheme: String
    /// The part between `//` and the path; nil for a local file.
    let server: WebAuthority?
    /// The path, beginning with a slash, percent-encoded.
    public let path: String
    /// The part after the question mark; nil if there is none.
    public let query: String?

    /// The maximum length of an address, in bytes.
    public static let limit = 8_192

    /// Creates an address; nil unless `text` is absolute with one of the three schemes. `feed:`, `itpc:` and `pcast:` become http.
    public init?(_ text: String) {
        guard let parts = Reference(text), let scheme = parts.scheme else { return nil }
        guard scheme == "feed" || scheme == "itpc" || scheme == "pcast" else {
            self.init(parts, scheme: scheme)
            return
        }
        // Both `feed:https://…` and `feed://…` are in use.
        guard parts.authority == nil else {
            self.init(parts, scheme: "http")
            return
        }
        guard let inner = Reference(parts.path + (parts.query.map { "?" + $0 } ?? "")), let scheme = inner.scheme else {
            return nil
        }
        self.init(inner, scheme: scheme)
    }

    /// Resolves `text`, absolute or relative, against the address `base` (RFC 3986, section 5.2).
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

    /// Creates the address of a local file; nil for a relative path.
    public init?(filePath: String) {
        guard filePath.utf8.first == UInt8(ascii: "/"), !filePath.utf8.contains(0) else { return nil }
        scheme = "file"
        server = nil
        path = Self.withoutDots(percentEncoded(filePath, keeping: Reference.pathBytes))
        query = nil
        guard text.utf8.count <= Self.limit else { return nil }
    }

    private init?(_ parts: Reference, scheme: String) {
        switch scheme {
        case "http", "https":
            guard let server = parts.authority.flatMap({ WebAuthority($0[...], scheme: scheme) }) else { return nil }
            self.server = server
            query = parts.query
        case "file":
            let host = parts.authority?.lowercased() ?? ""
            guard host.isEmpty || host == "localhost", parts.path.hasPrefix("/"), percentDecoded(parts.path) != nil
            else { return nil }
            server = nil
            query = nil
        default: return nil
        }
        self.scheme = scheme
        path = Self.withoutDots(parts.path.isEmpty ? "/" : parts.path)
        guard text.utf8.count <= Self.limit else { return nil }
    }

    /// The part between `//` and the path: user, host (lower case, an international name as `xn--…`) and port (unless
    /// it is the default).
    public var authority: String { server?.text ?? "" }
    private var pathAndQuery: String { path + (query.map { "?" + $0 } ?? "") }

    /// The whole address, normalised.
    public var text: String { "\(scheme)://\(authority)\(pathAndQuery)" }
    /// The whole address, normalised.
    public var description: String { text }

    /// The host and port, without user and password, for messages and to distinguish servers; a local file’s path.
    public var host: String { server?.hostAndPort ?? filePath ?? path }

    /// The user and password, decoded; nil if the address has none.
    public var credentials: (user: String, password: String)? {
        guard let userInfo = server?.userInfo else { return nil }
        let parts = userInfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let user = parts.first.flatMap(percentDecoded) else { return nil }
        return (user, parts.count > 1 ? percentDecoded(parts[1]) ?? "" : "")
    }

    /// The whole address without user and password, for messages and for recipients that must not see them.
    public var textWithoutCredentials: String {
        "\(scheme)://\(server?.hostAndPort ?? "")\(pathAndQuery)"
    }

    /// The server, for credentials; nil for a local file.
    public var origin: WebOrigin? {
        server.map { WebOrigin(scheme: scheme, host: $0.host, port: $0.port ?? WebOrigin.defaultPort(of: scheme)) }
    }

    /// Whether it is the address of a local file.
    public var isFile: Bool { scheme == "file" }

    /// The path of a local file, decoded; nil for other schemes.
    public var filePath: String? { isFile ? percentDecoded(path) : nil }

    /// The normalised form for comparing addresses: http or https, a trailing slash and credentials make no difference.
    public var identity: String {
        var path = self.path[...]
        while path.count > 1, path.hasSuffix("/") { path = path.dropLast() }
        if path == "/" { path = "" }
        return (isFile ? "file://" : "//" + host) + path + (query.map { "?" + $0 } ?? "")
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

extension WebAddress {
    /// The reason why a text isn’t accepted as an address, as the second half of a sentence: `its host is malformed`.
    static func flaw(of text: String) -> String {
        guard text.contains(where: { !$0.isWhitespace }) else { return "it is empty" }
        guard text.utf8.count <= limit else { return "it is longer than \(limit) bytes" }
        guard let parts = Reference(text) else { return "it contains control characters" }
        switch parts.scheme {
        case "http", "https", "feed", "itpc", "pcast":
            guard let authority = parts.authority else { break }
            func isAccepted(_ part: Substring) -> Bool { WebAuthority(part, scheme: "http") != nil }
            let bytes = authority.utf8
            let server = bytes.lastIndex(of: UInt8(ascii: "@")).map { authority[bytes.index(after: $0)...] }
            if isAccepted(authority[...]) { return "it is longer than \(limit) bytes" }
            if let server, isAccepted(server) { return "its user name or password is malformed" }
            let host = server ?? authority[...]
            let colon = host.utf8.lastIndex(of: UInt8(ascii: ":"))
            if let colon, isAccepted(host[..<colon]) { return "its port is malformed" }
            return host.isEmpty ? "it has no host" : "its host is malformed"
        case "file": return "the address of a local file must be file:// and an absolute path"
        default: break
        }
        return "it must begin with http:// or https://"
    }
}

/// The parts of a URI reference, percent-encoded where the feed omitted that.
private struct Reference {
    var scheme: String?
    var authority: String?
    var path: String
    var query: String?

    static let pathBytes = Set("!$&'()*+,;=:@-._~/%".utf8)
    static let queryBytes = Set("!$&'()*+,;=:@-._~/%?[]|".utf8)

    init?(_ text: String) {
        var rest = text.trimmed
        guard !rest.isEmpty, rest.utf8.count <= WebAddress.limit,
            !rest.utf8.contains(where: \.isASCIIControl)
        else { return nil }
        // The search is by bytes, because a combining mark after the `#` makes it another character.
        if let fragment = rest.utf8.firstIndex(of: UInt8(ascii: "#")) { rest = rest[..<fragment] }
        if let colon = rest.utf8.firstIndex(of: UInt8(ascii: ":")), colon != rest.startIndex,
            rest.utf8[..<colon].allSatisfy({ $0.isASCIIAlphanumeric || "+-.".utf8.contains($0) }),
            !rest[rest.startIndex].isNumber
        {
            scheme = rest[..<colon].lowercased()
            rest = rest[rest.utf8.index(after: colon)...]
        }
        if rest.utf8.starts(with: "//".utf8) {
            rest = rest[rest.utf8.index(rest.startIndex, offsetBy: 2)...]
            let end = rest.utf8.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
            authority = String(rest[..<end])
            rest = rest[end...]
        }
        let mark = rest.utf8.firstIndex(of: UInt8(ascii: "?"))
        path = percentEncoded(rest[..<(mark ?? rest.endIndex)], keeping: Self.pathBytes)
        query = mark.map { percentEncoded(rest[rest.utf8.index(after: $0)...], keeping: Self.queryBytes) }
        if authority != nil, !path.isEmpty, !path.hasPrefix("/") { return nil }
    }
}
