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

    static func verify(type: String, _ order: TransferOrder) throws(TransferFailure) {
        if let other = OtherContent(mediaType: type) { throw refused(other, order) }
    }

    static func verify(beginning bytes: [UInt8], _ order: TransferOrder) throws(TransferFailure) {
        if let other = OtherContent(beginning: bytes) { throw refused(other, order) }
    }

    static func refused(_ other: OtherContent, _ order: TransferOrder) -> TransferFailure {
        TransferFailure(other.refusal(from: order.host, .verificationFailed))
    }

    // MARK: What went wrong

    static func refused(_ response: WebResponse, _ order: TransferOrder) -> TransferFailure {
        let failure = Failure(refusedWith: response.status, by: order.host, asking: .audio)
        let wait = response.retryAfter.map { $0 / .seconds(1) }
        return TransferFailure(failure, retryAfter: failure.retry ? wait : nil)
    }

    static func connection(_ failure: WebFailure) -> TransferFailure {
        TransferFailure(failure.failure(failure.isUnreachable ? .unreachable : .streamFailed))
    }
}
