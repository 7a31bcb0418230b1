import NIOConcurrencyHelpers
package import PodcastModel

/// The options of a client, which apply to all its requests.
package struct WebClientOptions: Sendable {
    /// The maximum number of connections to one host; further requests to it wait.
    package var connectionsPerHost = 8
    /// The idle time after which all connections are closed and the thread ends.
    package var idleTimeout = Duration.seconds(15)
    /// The host and port that replace every server, for tests.
    package var connectsTo: String?
    /// The proxy that replaces the environment’s, for tests; no proxy if it is empty.
    package var proxy: String?
    /// The clock for time limits.
    package var clock: @Sendable () -> MonotonicTime = { SystemClocks.monotonic() }

    package init() {}
}

/// Sends HTTP requests with libcurl, on one thread, which ends after an idle time.
///
/// It follows redirects itself: each address is checked, and credentials are sent to their own origin only. A server’s
/// response can make its own request fail, but affects nothing else. Proxies are read from the environment (`http_proxy`, `https_proxy`,
/// `no_proxy`), but never used for this machine (`localhost`, 127.0.0.0/8, ::1).
package final class WebClient: Sendable {
    package static let userAgent = "Lockstep/1.0 (podcast player)"

    private let mailbox: TransferMailbox
    private let count = NIOLockedValueBox<UInt64>(0)

    /// Creates a client with its own connections, which `shutdown` closes.
    package init(_ options: WebClientOptions = WebClientOptions()) {
        mailbox = TransferMailbox(options: options)
    }

    /// Sends a request and waits for the head of the final response. Cancelling the task ends the transfer.
    package func send(_ request: WebRequest) async throws(WebFailure) -> WebResponse {
        let number = count.withLockedValue { count in
            count += 1
            return count
        }
        let exchange = Exchange(number: number, mailbox: mailbox)
        let owner = ExchangeOwner(exchange)
        mailbox.post(.start(request, exchange))
        let head = try await exchange.head()
        return WebResponse(
            status: head.status, headers: head.headers, address: head.address, redirects: head.redirects,
            retryAfter: head.retryAfter, isDelimited: head.isDelimited, body: WebBody(owner: owner))
    }

    /// Returns when all transfers have ended and all connections are closed. Later requests fail.
    package func shutdown() async {
        await mailbox.shutdown()
    }
}
