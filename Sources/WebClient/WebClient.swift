import NIOConcurrencyHelpers
package import PodcastModel

/// How a client works; the same for all its requests.
package struct WebClientOptions: Sendable {
    /// The most connections to one host at a time; further requests to it wait their turn.
    package var connectionsPerHost = 8
    /// After this time with nothing under way all connections are closed and the thread ends.
    package var idleTimeout = Duration.seconds(15)
    /// A host and port that stand in for every server; tests reach any address at a local one.
    package var connectsTo: String?
    /// The proxy in place of the environment’s; empty: none. For tests.
    package var proxy: String?
    /// Measures the limits of time; tests set one of their own.
    package var clock: @Sendable () -> MonotonicTime = { SystemClocks.monotonic() }

    package init() {}
}

/// Fetches over HTTP with libcurl, on one thread, which lives as long as something is under way.
///
/// It follows redirects itself: each address is checked, and credentials are sent to their own origin only. Nothing that
/// a server answers can do more than fail its request. Proxies are taken from the environment (`http_proxy`,
/// `https_proxy`, `no_proxy`), but never used for this machine (`localhost`, 127.0.0.0/8, ::1).
package final class WebClient: Sendable {
    /// The name under which Lockstep fetches.
    package static let userAgent = "Lockstep/1.0 (podcast player)"

    private let mailbox: TransferMailbox
    private let count = NIOLockedValueBox<UInt64>(0)

    /// A client with connections of its own: `shutdown` must be called where it matters that nothing is left running.
    package init(_ options: WebClientOptions = WebClientOptions()) {
        mailbox = TransferMailbox(options: options)
    }

    /// Sends a request and waits for the status and the fields of the final answer; the body arrives afterwards.
    ///
    /// Cancelling the task ends the transfer.
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
            retryAfter: head.retryAfter, isDelimited: head.isDelimited, body: WebBody(owner))
    }

    /// Ends everything under way, closes all connections and waits for that. Later requests fail.
    package func shutdown() async {
        await mailbox.shutdown()
    }
}
