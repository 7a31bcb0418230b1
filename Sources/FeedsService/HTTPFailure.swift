import AsyncHTTPClient
import BusKit
import NIOCore
import NIOHTTP1
import NIOPosix
import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Sentences about what goes wrong on the way to a server.
enum HTTPFailure {
    static func badRedirect(_ url: WebAddress) -> Failure {
        Failure(.fetchFailed, "\(url.host) redirects to no usable address.")
    }

    static func status(_ status: Int, _ url: WebAddress) -> Failure {
        let what =
            switch status {
            case 401, 403:
                "\(url.host) does not let us read this feed (HTTP \(status)); check its address and password."
            case 404: "There is no feed at \(url.text.prefix(300)) (HTTP 404); check its address."
            case 410: "The feed at \(url.text.prefix(300)) is gone for good (HTTP 410)."
            case 429: "\(url.host) asks to come back later (HTTP 429)."
            case 500...: "\(url.host) has a problem of its own (HTTP \(status)); try again later."
            default: "\(url.host) answered with HTTP \(status)."
            }
        return Failure(.fetchFailed, what)
    }

    /// How much patience a server asks for; a feed that is gone deserves the longest.
    static func retryAfter(_ headers: HTTPHeaders, status: Int) -> Duration? {
        if status == 410 { return .seconds(86_400 * 7) }
        return headers.first(name: "retry-after").flatMap { RetryAfter.parse($0, now: SystemClocks.wall()) }
            .map { .milliseconds(Int64(min($0, 86_400 * 7) * 1_000)) }
    }

    /// Why a connection failed, or ended in the middle of the body.
    static func connection(_ error: any Error, _ url: WebAddress, inBody: Bool = false) -> Failure {
        guard let known = error as? HTTPClientError else {
            if inBody { return connection(HTTPClientError.remoteConnectionClosed, url) }
            return Failure(.fetchFailed, "\(url.host) could not be reached: \(reason(error)).")
        }
        switch known {
        case .invalidURL, .emptyHost, .emptyScheme, .unsupportedScheme(url.scheme):
            return Failure(.badURL, "“\(url.text.prefix(200))” is no address that can be fetched.")
        case .connectTimeout: return Failure(.fetchFailed, "\(url.host) could not be reached within 10 s.")
        case .readTimeout:
            let what = inBody ? "stopped in the middle of its answer" : "takes connections, but does not answer"
            return Failure(.fetchFailed, "\(url.host) \(what).")
        case .deadlineExceeded: return Failure(.fetchFailed, "\(url.host) did not deliver the feed in time.")
        case .remoteConnectionClosed:
            return Failure(.fetchFailed, "\(url.host) closed the connection before the feed was complete.")
        default: return Failure(.fetchFailed, "\(url.host) could not be read: \(known.shortDescription).")
        }
    }
}

extension HTTPFailure {
    /// The system's word for it, where it has one.
    private static func reason(_ error: any Error) -> String {
        switch error {
        case let error as IOError: String(cString: strerror(error.errnoCode))
        case let error as NIOConnectionError:
            error.connectionErrors.first.map { reason($0.error) } ?? "its name is not known"
        default: String(describing: error).split(separator: "\n").first.map { String($0.prefix(200)) } ?? "it failed"
        }
    }
}

extension WebAddress {
    /// Whether what is fetched from it is encrypted.
    var isSecure: Bool { scheme == "https" }
}
