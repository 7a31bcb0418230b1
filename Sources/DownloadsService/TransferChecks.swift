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

/// `Content-Range: bytes 100-199/200`, RFC 9110, section 14.4.
struct ContentRange: Equatable {
    /// The first byte.
    let first: UInt64
    /// The size of the whole; 0: not said.
    let total: UInt64

    /// Nil for anything else.
    init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(separator: "/")
        guard parts.count == 2, let first = parts[0].split(separator: "-").first.flatMap({ UInt64($0) }) else {
            return nil
        }
        self.first = first
        total = UInt64(parts[1]) ?? 0
    }
}

extension TransferOrder {
    /// The server, for sentences.
    var host: String { WebAddress(url)?.host ?? "The server" }
}

extension TransferClient {
    // MARK: What is no audio

    /// Kinds that a page or an error comes as. Many servers call audio `application/octet-stream`, or nothing.
    private static let strangers = [
        "text/html", "application/xhtml+xml", "application/json", "text/xml", "application/xml",
    ]
    private static let beginnings = ["<!doctype html", "<html", "<?xml", "<head", "{\"", "<rss"]

    static func verify(type: String, _ order: TransferOrder) throws(TransferFailure) {
        let kind = type.split(separator: ";").first.map { $0.lowercased() } ?? ""
        guard strangers.contains(kind) || kind.hasPrefix("image/") else { return }
        throw TransferFailure(Failure(.verificationFailed, "\(order.host) sent \(kind) in place of audio."))
    }

    static func verify(beginning bytes: [UInt8], _ order: TransferOrder) throws(TransferFailure) {
        let text = String(decoding: bytes, as: UTF8.self)
        let beginning = text.drop { $0.isWhitespace || $0 == "\u{FEFF}" }.lowercased()
        guard beginnings.contains(where: beginning.hasPrefix) else { return }
        throw TransferFailure(
            Failure(
                .verificationFailed, "\(order.host) sent a page in place of audio; perhaps one has to log in first."))
    }

    /// Whether the server says where a file ends; else it is where the connection does.
    static func tellsItsEnd(_ response: HTTPClientResponse) -> Bool {
        response.version.major >= 2 || response.headers.contains(name: "content-length")
            || response.headers.contains(name: "transfer-encoding")
    }

    // MARK: What went wrong

    static func refused(_ status: Int, _ headers: HTTPHeaders, _ order: TransferOrder) -> TransferFailure {
        let failure = Failure(refusedWith: status, by: order.host)
        let wait = headers.first(name: "retry-after").flatMap { RetryAfter.parse($0, now: SystemClocks.wall()) }
        return TransferFailure(failure, retryAfter: failure.retry ? wait : nil)
    }

    static func connection(_ error: any Error, _ order: TransferOrder) -> Failure {
        switch error {
        case is NIOConnectionError: return Failure(.unreachable, "\(order.host) cannot be reached.")
        case let error as IOError where [ENETUNREACH, EHOSTUNREACH, ENETDOWN].contains(error.errnoCode):
            return Failure(.unreachable, "\(order.host) cannot be reached: there is no network.")
        case let error as IOError where [ECONNREFUSED, ETIMEDOUT].contains(error.errnoCode):
            return Failure(.unreachable, "\(order.host) cannot be reached: nothing answers there.")
        case let error as HTTPClientError:
            switch error {
            case .connectTimeout: return Failure(.unreachable, "\(order.host) could not be reached within 10 s.")
            case .readTimeout: return Failure(.streamFailed, "\(order.host) sent nothing any more.")
            case .remoteConnectionClosed:
                return Failure(.streamFailed, "\(order.host) closed the connection before the file was whole.")
            case .redirectLimitReached, .redirectCycleDetected:
                return Failure(code: "streamFailed", message: "\(order.host) redirects in circles.", retry: false)
            case .invalidURL, .emptyHost, .emptyScheme:
                return Failure(.badURL, "“\(order.url.prefix(200))” is no address that can be fetched.")
            default: return Failure(.streamFailed, "\(order.host) could not be read: \(error.shortDescription).")
            }
        default: return Failure(.streamFailed, "\(order.host) broke the connection off.")
        }
    }
}
