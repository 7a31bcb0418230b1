package import PodcastModel

/// A GET request: its address, and how much the caller is willing to receive and for how long.
package struct WebRequest: Sendable {
    /// An http or https address. A user and password in it are sent to its origin, where `credentials` has none, also after
    /// a redirect, and to no other.
    package var address: WebAddress
    /// Fields beside those that the client sets itself (Host, User-Agent, Accept-Encoding, Authorization, Range).
    package var headers = WebHeaders()
    /// The part that is wanted; nil: the whole.
    package var range: WebRange?
    /// Users and passwords. Each is sent to its own origin and to no other, also after a redirect.
    package var credentials: [WebOrigin: WebCredentials] = [:]
    /// Whether a compressed body is asked for and delivered decompressed. Not to be combined with `range`.
    package var decompresses = true
    /// The largest body in bytes, counted after decompression.
    package var bodyLimit = UInt64.max
    /// How long each step may last.
    package var timeLimits = WebTimeLimits()
    /// The most redirects in a row.
    package var redirectLimit = 10
    /// Whether the request may share a connection with others (HTTP/2). A body that is read slowly should not: a paused
    /// stream of HTTP/2 is buffered in memory, a paused connection of HTTP/1.1 makes the server wait.
    package var sharesConnection = true

    /// A request for the whole at an address, with the default limits.
    package init(_ address: WebAddress) {
        self.address = address
    }
}

/// A part of a file, by the offsets of its bytes.
package struct WebRange: Sendable, Hashable {
    /// The offset of the first byte.
    package var first: UInt64
    /// The offset of the last byte; nil: the end of the file.
    package var last: UInt64?
    /// The entity tag or date that the file must still have: otherwise the server sends all of it. Empty: whatever it has.
    package var ifRange: String

    /// The part from `first` to `last`.
    package init(from first: UInt64, to last: UInt64? = nil, ifRange: String = "") {
        (self.first, self.last, self.ifRange) = (first, last, ifRange)
    }

    var field: String { "bytes=\(first)-" + (last.map(String.init) ?? "") }
}

/// How long each step of a request may last.
package struct WebTimeLimits: Sendable, Hashable {
    /// The longest time until a connection stands: name look-up, connection and TLS.
    package var connect = Duration.seconds(10)
    /// The longest time without a byte from a server that is waited for. Time in which the reader of the body lags behind
    /// does not count.
    package var silence = Duration.seconds(20)
    /// The longest time for the whole request with all redirects and the body; nil: no limit.
    package var total: Duration?

    /// Limits of 10 s for the connection, 20 s of silence and none for the whole.
    package init() {}

    /// Limits of one’s own.
    package init(connect: Duration = .seconds(10), silence: Duration, total: Duration? = nil) {
        (self.connect, self.silence, self.total) = (connect, silence, total)
    }
}
