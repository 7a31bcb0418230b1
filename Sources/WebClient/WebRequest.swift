package import PodcastModel

/// A GET request: its address, and the limits for the response.
package struct WebRequest: Sendable {
    /// An http or https address. Its user and password are sent to its origin only, even after a redirect, unless
    /// `credentials` has others.
    package var address: WebAddress
    /// The fields besides those that the client sets (Host, User-Agent, Accept-Encoding, Authorization, Range).
    package var headers = WebHeaders()
    /// The range to fetch; nil for the whole file.
    package var range: WebRange?
    /// The users and passwords, each for its origin only, even after a redirect.
    package var credentials: [WebOrigin: WebCredentials] = [:]
    /// Whether the body may be compressed for the transfer. It must not be combined with `range`.
    package var decompresses = true
    /// The maximum size of the body in bytes, after decompression.
    package var bodyLimit = UInt64.max
    /// The maximum time without a byte from the server. Time in which the transfer is paused for a slow reader doesn’t count.
    package var silenceLimit = Duration.seconds(20)
    /// The maximum time for the whole request with all redirects and the body; nil for no limit.
    package var totalLimit: Duration?
    /// Whether the request may share a connection with others (HTTP/2). A request whose body is read slowly should not:
    /// a paused stream of HTTP/2 is buffered in memory, while a paused connection of HTTP/1.1 makes the server wait.
    package var sharesConnection = true

    /// The maximum time to connect: name lookup, connection and TLS.
    static let connectLimit = Duration.seconds(10)
    /// The maximum number of redirects in a row.
    static let redirectLimit = 10

    package init(_ address: WebAddress) { self.address = address }
}

/// A range of a file, by byte offsets.
package struct WebRange: Sendable, Hashable {
    /// The offset of the first byte.
    package var first: UInt64
    /// The offset of the last byte; nil for the end of the file.
    package var last: UInt64?
    /// The entity tag or date of the file’s version; the server sends any other version in full. If empty, every
    /// version matches.
    package var ifRange: String

    package init(from first: UInt64, to last: UInt64? = nil, ifRange: String = "") {
        (self.first, self.last, self.ifRange) = (first, last, ifRange)
    }

    var field: String { "bytes=\(first)-" + (last.map(String.init) ?? "") }
}
