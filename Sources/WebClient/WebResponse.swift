package import PodcastModel

/// The response of a server, with a body that is still arriving.
package struct WebResponse: Sendable {
    /// The status code, 200 to 999; redirects have been followed.
    package let status: Int
    package let headers: WebHeaders
    /// The address of the response, after redirects.
    package let address: WebAddress
    /// The redirects that were followed, in order.
    package let redirects: [WebRedirect]
    /// The wait that the server requests (`Retry-After`), at most a week; nil if it requests none.
    package let retryAfter: Duration?
    /// Whether the response declares the body’s end; if not, the closing of the connection ends the body.
    package let isDelimited: Bool
    /// The body. Dropping it ends the transfer.
    package let body: WebBody
}

/// A redirect from one address to another.
package struct WebRedirect: Sendable, Hashable {
    /// The status code: 301, 302, 303, 307 or 308.
    package let status: Int
    package let source: WebAddress
    package let target: WebAddress

    /// Whether the move is permanent.
    package var isPermanent: Bool { status == 301 || status == 308 }
}

/// The bytes of a response as they arrive; a slow reader makes the server wait. It is read once, by one task.
/// Cancelling that task, or dropping the body, ends the transfer.
package struct WebBody: AsyncSequence, Sendable {
    /// A part of the body, at least one byte.
    package typealias Element = [UInt8]

    let owner: ExchangeOwner

    package struct AsyncIterator: AsyncIteratorProtocol {
        private let owner: ExchangeOwner

        fileprivate init(_ owner: ExchangeOwner) { self.owner = owner }

        /// Waits for bytes and returns all that have arrived; nil if the body is complete.
        package mutating func next() async throws(WebFailure) -> [UInt8]? {
            try await owner.exchange.next(atMost: .max)
        }

        /// Waits for bytes and returns at most `limit` of them; the next call returns the rest.
        package mutating func next(atMost limit: Int) async throws(WebFailure) -> [UInt8]? {
            try await owner.exchange.next(atMost: limit)
        }

        /// Works like `next()`, on the calling actor.
        package mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(WebFailure) -> [UInt8]? {
            try await owner.exchange.next(atMost: .max)
        }
    }

    package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(owner) }

    /// Returns the whole body, at most `bodyLimit` bytes of the request.
    package func collect() async throws(WebFailure) -> [UInt8] {
        var bytes: [UInt8] = []
        while let chunk = try await owner.exchange.next(atMost: .max) { bytes += chunk }
        return bytes
    }
}
