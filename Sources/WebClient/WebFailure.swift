package import PodcastModel

/// Why a request gave no complete answer. An answer with a status of 400 or more is an answer, not a failure.
package struct WebFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// What kind of failure it is. The set is open.
    package struct Kind: RawRepresentable, Sendable, Hashable {
        /// A stable word in lowerCamelCase.
        package let rawValue: String

        /// A kind by its word.
        package init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The address cannot be fetched.
        package static let badAddress = Kind(rawValue: "badAddress")
        /// The name of the host, or of the proxy, has no address.
        package static let couldNotResolve = Kind(rawValue: "couldNotResolve")
        /// The host refuses connections or has no route to it.
        package static let couldNotConnect = Kind(rawValue: "couldNotConnect")
        /// No connection came about in time.
        package static let connectTimeOut = Kind(rawValue: "connectTimeOut")
        /// The server sent nothing for too long.
        package static let silent = Kind(rawValue: "silent")
        /// The whole lasted too long.
        package static let timeOut = Kind(rawValue: "timeOut")
        /// The connection ended before the answer did.
        package static let cut = Kind(rawValue: "cut")
        /// The body is larger than the request allows.
        package static let tooLarge = Kind(rawValue: "tooLarge")
        /// Too many redirects in a row.
        package static let tooManyRedirects = Kind(rawValue: "tooManyRedirects")
        /// A redirect to something that is no http or https address.
        package static let badRedirect = Kind(rawValue: "badRedirect")
        /// No secure connection could be made: a certificate that is not trusted, or no common protocol.
        package static let tls = Kind(rawValue: "tls")
        /// The answer is not HTTP, or not as it says it is encoded.
        package static let badAnswer = Kind(rawValue: "badAnswer")
        /// The caller ended it.
        package static let cancelled = Kind(rawValue: "cancelled")
        /// The client cannot work at all.
        package static let unavailable = Kind(rawValue: "unavailable")
    }

    /// What kind of failure it is.
    package let kind: Kind
    /// A sentence for people, which names the server and no password.
    package let message: String
    /// Whether the same request may succeed later.
    package let retry: Bool

    init(_ kind: Kind, _ message: String, retry: Bool) {
        (self.kind, self.message, self.retry) = (kind, message, retry)
    }

    /// The kind and the sentence.
    package var description: String { "\(kind.rawValue): \(message)" }

    /// Whether no connection came about: the network or the server is away.
    package var isUnreachable: Bool {
        [.couldNotResolve, .couldNotConnect, .connectTimeOut].contains(kind)
    }

    /// The failure as services answer it, with `code` for what has no code of its own.
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

// MARK: - The sentences

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
        let what = hasAnswered ? "stopped in the middle of its answer" : "takes connections, but does not answer"
        return WebFailure(.silent, "\(host) \(what).", retry: true)
    }

    static func timeOut(_ host: String, _ limit: Duration) -> WebFailure {
        WebFailure(
            .timeOut, "\(host) did not complete its answer within \(limit.components.seconds) s.", retry: true)
    }

    static func cut(_ host: String) -> WebFailure {
        WebFailure(.cut, "\(host) closed the connection before its answer was complete.", retry: true)
    }

    static func tooLarge(_ host: String, _ limit: UInt64) -> WebFailure {
        let size = limit >= 1 << 20 ? "\(limit >> 20) MiB" : "\(limit) bytes"
        return WebFailure(.tooLarge, "The file at \(host) is longer than \(size) and was not read.", retry: false)
    }

    static func tooManyRedirects(_ host: String) -> WebFailure {
        WebFailure(.tooManyRedirects, "\(host) redirects in a loop.", retry: false)
    }

    static func badRedirect(_ host: String) -> WebFailure {
        WebFailure(.badRedirect, "\(host) redirects to an address that can’t be used.", retry: false)
    }

    static func tls(_ host: String, _ reason: String, retry: Bool) -> WebFailure {
        WebFailure(.tls, "No secure connection to \(host) could be made: \(reason).", retry: retry)
    }

    static func badAnswer(_ host: String, _ reason: String) -> WebFailure {
        WebFailure(.badAnswer, "\(host) sent an answer that cannot be read: \(reason).", retry: true)
    }

    static let cancelled = WebFailure(.cancelled, "The request was cancelled.", retry: true)

    static func unavailable(_ reason: String) -> WebFailure {
        WebFailure(.unavailable, "Nothing can be fetched: \(reason).", retry: false)
    }
}
