import PodcastModel
import WebClient
import WireMessages

/// A `Content-Range` such as `bytes 100-199/200` (RFC 9110, section 14.4).
struct ContentRange: Equatable {
    /// The position of the first byte.
    let first: UInt64
    /// The size of the whole file; 0 if unknown.
    let total: UInt64

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
    /// The server’s name in messages.
    var host: String { WebAddress(download.url)?.host ?? "The server" }
}

extension TransferClient {
    /// - Throws: `verificationFailed` for content that isn’t audio.
    static func refuse(_ other: OtherContent?, _ order: TransferOrder) throws(Failure) {
        if let other { throw other.refusal(from: order.host, .verificationFailed) }
    }

    static func refused(_ response: WebResponse, _ order: TransferOrder) -> TransferFailure {
        let failure = Failure(refusedWith: response.status, by: order.host, asking: .audio)
        let wait = response.retryAfter.map { $0 / .seconds(1) }
        return TransferFailure(failure, retryAfter: failure.retry ? wait : nil)
    }
}

extension TransferFailure {
    /// Converts an error of the network or the disk that ended a transfer.
    init(from error: any Error) {
        switch error {
        case let error as TransferFailure: self = error
        case let error as WebFailure: self.init(error.failure(error.isUnreachable ? .unreachable : .streamFailed))
        default: self.init(error as? Failure ?? Failure(.internalError, "The download failed: \(error)"))
        }
    }
}
