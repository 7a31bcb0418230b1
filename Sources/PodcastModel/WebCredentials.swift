/// A user and a password for one origin.
public struct WebCredentials: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// The name of the user.
    public var user: String
    /// The password of the user.
    public var password: String

    /// The maximum length of a user or password, in bytes.
    public static let limit = 1_024

    /// Creates credentials from a user and a password without percent-encoding.
    public init(user: String, password: String) {
        (self.user, self.password) = (user, password)
    }

    /// Checks that Basic authentication can send the credentials (RFC 7617): the user is neither empty nor has a colon,
    /// and both are at most 1 KiB long, without control characters.
    ///
    /// - Throws: `invalidArgument`, whose message contains neither the user nor the password.
    public func check() throws(Failure) {
        guard !user.isEmpty, !user.utf8.contains(UInt8(ascii: ":")) else {
            throw Failure(.invalidArgument, "A user name can’t be empty or contain a colon.")
        }
        for text in [user, password] {
            guard text.utf8.count <= Self.limit else {
                throw Failure(.invalidArgument, "A user name or password can’t be longer than \(Self.limit) bytes.")
            }
            guard !text.utf8.contains(where: \.isASCIIControl) else {
                throw Failure(.invalidArgument, "A user name or password can’t contain control characters.")
            }
        }
    }

    /// A text without the user and the password, so that neither is ever logged.
    public var description: String { "(user and password)" }
    /// A mirror without the user and the password.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension WebAddress {
    /// The user and password in the address, decoded; nil if there are none that can be sent.
    public var webCredentials: WebCredentials? {
        guard let (user, password) = credentials else { return nil }
        let credentials = WebCredentials(user: user, password: password)
        return (try? credentials.check()) == nil ? nil : credentials
    }

    /// The address without user and password.
    public var withoutCredentials: WebAddress {
        server?.userInfo == nil ? self : WebAddress(textWithoutCredentials) ?? self
    }

    /// Returns the address with a user and password, for a library that requires them in the address. It must never be
    /// stored or shown.
    public func text(with credentials: WebCredentials) -> String {
        let plain = withoutCredentials.text
        let encoded = [credentials.user, credentials.password].map { percentEncoded($0, keeping: Set("-._~".utf8)) }
        guard !isFile else { return plain }
        return "\(scheme)://\(encoded[0]):\(encoded[1])@" + plain.dropFirst(scheme.utf8.count + 3)
    }

    /// Removes users and passwords from all addresses in a text: show notes, GUIDs, stored names.
    ///
    /// Everything between `://` and the last `@` before the end of a server’s name is removed, with the `@`. If a colon
    /// follows that starts no port, a password with a slash or similar wasn’t encoded: its end is the last `@` before a
    /// space or quotation mark.
    public static func withoutCredentials(in text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "@")) else { return text }
        let bytes = Array(text.utf8)
        var kept: [UInt8] = []
        var index = 0
        while index < bytes.count {
            guard bytes[index] == UInt8(ascii: ":"), bytes[index...].starts(with: "://".utf8) else {
                kept.append(bytes[index])
                index += 1
                continue
            }
            kept += "://".utf8
            index += 3
            let end = bytes[index...].firstIndex(where: endsAuthority) ?? bytes.count
            if let at = bytes[index..<end].lastIndex(of: UInt8(ascii: "@")) {
                index = at + 1
            } else if hasPassword(bytes[index..<end]) {
                let end = bytes[index...].firstIndex(where: endsAddress) ?? bytes.count
                if let at = bytes[index..<end].lastIndex(of: UInt8(ascii: "@")) { index = at + 1 }
            }
        }
        return kept.count == bytes.count ? text : String(decoding: kept, as: UTF8.self)
    }

    /// Whether the text of an authority has a colon that starts no port, and therefore contains a user.
    private static func hasPassword(_ authority: ArraySlice<UInt8>) -> Bool {
        guard authority.first != UInt8(ascii: "["), let colon = authority.firstIndex(of: UInt8(ascii: ":")) else {
            return false
        }
        return !authority[(colon + 1)...].allSatisfy(\.isASCIIDigit)
    }

    private static func endsAddress(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == 0x7f || "\"'<>".utf8.contains(byte)
    }

    /// Removes the user and password from an unparsed address, for messages to the user who entered it.
    ///
    /// If it can’t be parsed as an address, everything up to the last `@` is removed: a password may be anywhere in it.
    public static func redacted(_ text: String) -> String {
        if let address = WebAddress(text) {
            return address.server?.userInfo == nil ? text : address.textWithoutCredentials
        }
        let bytes = Array(text.utf8)
        guard let (credentials, _) = possibleCredentials(in: bytes) else { return text }
        return String(
            decoding: bytes[..<credentials.lowerBound] + bytes[(credentials.upperBound + 1)...], as: UTF8.self)
    }

    /// The range of a possible user and password in a text that can’t be parsed as an address: before the last `@`,
    /// from after the first `//`, or after the first `:`, or from the start. Nil without an `@`.
    static func possibleCredentials(in bytes: [UInt8]) -> (range: Range<Int>, followsSlashes: Bool)? {
        guard let at = bytes.lastIndex(of: UInt8(ascii: "@")) else { return nil }
        let slashes = bytes[..<at].indices.first { bytes[$0..<at].starts(with: "//".utf8) }
        let start = slashes.map { $0 + 2 } ?? bytes[..<at].firstIndex(of: UInt8(ascii: ":")).map { $0 + 1 } ?? 0
        return (start..<at, slashes != nil)
    }

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == 0x7f || "/?#\"'<>\\".utf8.contains(byte)
    }
}
