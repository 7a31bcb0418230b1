package import PodcastModel

/// The reason why a request received no complete response. A response with a status of 400 or more isn’t a failure.
package struct WebFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of a failure; its name is stable, for logs.
    package enum Kind: String, Sendable, Hashable {
        case badAddress
        /// The name of the host, or of the proxy, has no address.
        case couldNotResolve
        /// The host refuses connections, or there is no route to it.
        case couldNotConnect
        case connectTimeOut
        /// The server sent nothing for too long.
        case silent
        case timeOut
        /// The connection closed before the response was complete.
        case cut
        /// The body is larger than the request allows.
        case tooLarge
        case tooManyRedirects
        /// A redirect names an address that isn’t http or https.
        case badRedirect
        /// No secure connection could be established: an untrusted certificate, or no common protocol.
        case tls
        /// The response isn’t HTTP, or its encoding is wrong.
        case badAnswer
        case cancelled
        /// The client can’t send any request.
        case unavailable
    }

    package let kind: Kind
    /// A sentence for users, which names the server and contains no password.
    package let message: String
    /// Whether the same request may succeed later.
    package let retry: Bool

    init(_ kind: Kind, _ message: String, retry: Bool) {
        (self.kind, self.message, self.retry) = (kind, message, retry)
    }

    package var description: String { "\(kind.rawValue): \(message)" }

    /// Whether no connection was established: the network or the server is unreachable.
    package var isUnreachable: Bool {
        [.couldNotResolve, .couldNotConnect, .connectTimeOut].contains(kind)
    }

    /// The failure that services return, with `code` for kinds without a code of their own.
    package func failure(_ code: FailureCode) -> Failure {
        let known: FailureCode =
            switch kind {
            case .badAddress: .badURL
            case .tooLarge: .tooLarge
            case .unavailable: .internalError
            default: code
            }
        return Failure(code: known.rawValue, message: message, retry: retry)
    }
}

extension WebFailure {
    static func badAddress(_ address: WebAddress) -> WebFailure {
        WebFailure(
            .badAddress, "“\(WebAddress.quotable(address.text))” isn’t an address that can be fetched.", retry: false)
    }

    static func couldNotResolve(_ host: String) -> WebFailure {
        WebFailure(.couldNotResolve, Failure.unknownHost(host), retry: true)
    }

    static func couldNotConnect(_ host: String, _ reason: String) -> WebFailure {
        WebFailure(.couldNotConnect, Failure.unreachableHost(host, reason), retry: true)
    }

    static func connectTimeOut(_ host: String, _ limit: Duration) -> WebFailure {
        WebFailure(
            .connectTimeOut, Failure.unreachableHost(host, "no connection within \(limit.components.seconds) s"),
            retry: true)
    }

    static func silent(_ host: String, hasAnswered: Bool) -> WebFailure {
        let what = hasAnswered ? "stopped sending within the response" : "accepts connections but doesn’t respond"
        return WebFailure(.silent, "\(host) \(what).", retry: true)
    }

    static func timeOut(_ host: String, _ limit: Duration) -> WebFailure {
        WebFailure(
            .timeOut, "\(host) didn’t complete the response within \(limit.components.seconds) s.", retry: true)
    }

    static func cut(_ host: String) -> WebFailure {
        WebFailure(.cut, "\(host) closed the connection before the response was complete.", retry: true)
    }

    static func tooLarge(_ host: String, _ limit: UInt64) -> WebFailure {
        let size = limit >= 1 << 20 ? "\(limit >> 20) MiB" : "\(limit) bytes"
        return WebFailure(.tooLarge, "The file at \(host) is larger than \(size) and wasn’t read.", retry: false)
    }

    static func tooManyRedirects(_ host: String) -> WebFailure {
        WebFailure(.tooManyRedirects, "\(host) redirects in a loop.", retry: false)
    }

    static func badRedirect(_ host: String) -> WebFailure {
        WebFailure(.badRedirect, "\(host) redirects to an address that can’t be used.", retry: false)
    }

    static func tls(_ host: String, _ reason: String, retry: Bool) -> WebFailure {
        WebFailure(.tls, "Couldn’t establish a secure connection to \(host): \(reason).", retry: retry)
    }

    static func badAnswer(_ host: String, _ reason: String) -> WebFailure {
        WebFailure(.badAnswer, "\(host) sent an invalid response: \(reason).", retry: true)
    }

    static let cancelled = WebFailure(.cancelled, "The request was cancelled.", retry: true)

    static func unavailable(_ reason: String) -> WebFailure {
        WebFailure(.unavailable, "Nothing can be fetched: \(reason).", retry: false)
    }
}
