/// The server to which credentials belong: a scheme, a host and a port (RFC 6454).
public struct WebOrigin: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The scheme: `http` or `https`.
    public let scheme: String
    /// The host in lower case.
    public let host: String
    /// The port, even if it is the scheme’s default.
    public let port: UInt16

    init(scheme: String, host: String, port: UInt16) {
        (self.scheme, self.host, self.port) = (scheme, host, port)
    }

    static func defaultPort(of scheme: String) -> UInt16 { scheme == "http" ? 80 : 443 }

    /// Creates the origin of an address, and ignores its path; nil for text that isn’t an http or https address.
    public init?(_ text: String) {
        guard let origin = WebAddress(text)?.origin else { return nil }
        self = origin
    }

    /// The same server with encryption, both at their default ports; nil for any other origin.
    public var encrypted: WebOrigin? {
        scheme == "http" && port == 80 ? WebOrigin(scheme: "https", host: host, port: 443) : nil
    }

    /// The origin as an address without a path; the default port is left out.
    public var text: String { "\(scheme)://\(host)" + (port == Self.defaultPort(of: scheme) ? "" : ":\(port)") }
    /// The origin as an address without a path.
    public var description: String { text }

    /// Orders origins by their text.
    public static func < (left: Self, right: Self) -> Bool { left.text < right.text }
}
