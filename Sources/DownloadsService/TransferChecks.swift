import PodcastModel
import WebClient

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
        throw TransferFailure(Failure(.verificationFailed, "\(order.host) sent \(kind) instead of audio."))
    }

    static func verify(beginning bytes: [UInt8], _ order: TransferOrder) throws(TransferFailure) {
        let text = String(decoding: bytes, as: UTF8.self)
        let beginning = text.drop { $0.isWhitespace || $0 == "\u{FEFF}" }.lowercased()
        guard beginnings.contains(where: beginning.hasPrefix) else { return }
        throw TransferFailure(
            Failure(
                .verificationFailed, "\(order.host) sent a web page instead of audio; you may have to log in first."))
    }

    // MARK: What went wrong

    static func refused(_ response: WebResponse, _ order: TransferOrder) -> TransferFailure {
        let failure = Failure(refusedWith: response.status, by: order.host)
        let wait = response.retryAfter.map { $0 / .seconds(1) }
        return TransferFailure(failure, retryAfter: failure.retry ? wait : nil)
    }

    static func connection(_ failure: WebFailure) -> TransferFailure {
        TransferFailure(failure.failure(failure.isUnreachable ? .unreachable : .streamFailed))
    }
}
