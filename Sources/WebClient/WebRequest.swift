package import PodcastModel

/// A GET request: its address, and how much the caller is willing to receive and for how long.
package struct WebRequest: Sendable {
    /// An http or https address. A user and password in it are sent to its origin only, also after a redirect, unless
    /// `credentials` has others.
    package var address: WebAddress
    /// Fields beside those that the client sets itself (Host, User-Agent, Accept-Encoding, Authorization, Range).
    package var headers = WebHeaders()
    /// The part to fetch; nil: the whole.
    package var range: WebRange?
    /// Users and passwords, each for its origin only, also after a redirect.
    package var credentials: [WebOrigin: WebCredentials] = [:]
    /// Whether the body may be compressed for the transfer. Not to be combined with `range`.
    package var decompresses = true
    /// The largest body in bytes, counted after decompression.
    package var bodyLimit = UInt64.max
    /// The longest time without a byte from the server, apart from time in which the reader of the body lags behind.
    package var silenceLimit = Duration.seconds(20)
    /// The longest time for the whole request with all redirects and the body; nil: no limit.
    package var totalLimit: Duration?
    /// Whether the request may share a connection with others (HTTP/2). A body that is read slowly should not: a paused
    /// stream of HTTP/2 is buffered in memory, a paused connection of HTTP/1.1 makes the server wait.
    package var sharesConnection = true

    /// The longest time until a connection is made: name look-up, connection and TLS.
    static let connectLimit = Duration.seconds(10)
    /// The maximum number of redirects in a row.
    static let redirectLimit = 10

    package init(_ address: WebAddress) { self.address = address }
}

/// A part of a file, by the offsets of its bytes.
package struct WebRange: Sendable, Hashable {
    /// The offset of the first byte.
    package var first: UInt64
    /// The offset of the last byte; nil: the end of the file.
    package var last: UInt64?
    /// The entity tag or date without which the server sends the whole file; empty: any.
    package var ifRange: String

    package init(from first: UInt64, to last: UInt64? = nil, ifRange: String = "") {
        (self.first, self.last, self.ifRange) = (first, last, ifRange)
    }

    var field: String { "bytes=\(first)-" + (last.map(String.init) ?? "") }
}
