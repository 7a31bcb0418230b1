package import PodcastModel

/// The response of a server, with a body that is still arriving.
package struct WebResponse: Sendable {
    /// The status code, 200 to 999; redirects have been followed.
    package let status: Int
    /// The fields of the answer.
    package let headers: WebHeaders
    /// Where the answer came from, after redirects.
    package let address: WebAddress
    /// The redirects that led there, in order.
    package let redirects: [WebRedirect]
    /// The wait that the server asks for (`Retry-After`), at most a week; nil: none.
    package let retryAfter: Duration?
    /// Whether the server says where the body ends. Otherwise the end of the connection is all there is, which may be a
    /// cut.
    package let isDelimited: Bool
    /// The body. Dropping it ends the transfer.
    package let body: WebBody
}

/// One step from an address to another.
package struct WebRedirect: Sendable, Hashable {
    /// The status code: 301, 302, 303, 307 or 308.
    package let status: Int
    /// The address that was asked for.
    package let source: WebAddress
    /// The address that the server named.
    package let target: WebAddress

    /// Whether the server says that the move is for good.
    package var isPermanent: Bool { status == 301 || status == 308 }
}

/// The bytes of a response as they arrive. A reader that lags behind makes the server wait.
///
/// It is read once, by one task. Cancelling that task, or dropping the body, ends the transfer.
package struct WebBody: AsyncSequence, Sendable {
    /// Bytes, never none of them.
    package typealias Element = [UInt8]

    let owner: ExchangeOwner

    init(_ owner: ExchangeOwner) {
        self.owner = owner
    }

    /// Reads the body chunk by chunk.
    package struct AsyncIterator: AsyncIteratorProtocol {
        private let owner: ExchangeOwner

        fileprivate init(_ owner: ExchangeOwner) {
            self.owner = owner
        }

        /// The bytes that have arrived since the last call; waits until there are some. Nil: the body is complete.
        package mutating func next() async throws(WebFailure) -> [UInt8]? {
            try await owner.exchange.next(atMost: .max)
        }

        /// The same, but at most `limit` bytes; the rest waits for the next call.
        package mutating func next(atMost limit: Int) async throws(WebFailure) -> [UInt8]? {
            try await owner.exchange.next(atMost: limit)
        }

        /// The same as `next()` on whatever actor calls it.
        package mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(WebFailure) -> [UInt8]? {
            try await owner.exchange.next(atMost: .max)
        }
    }

    /// A reader of the body.
    package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(owner) }

    /// The whole body, which the request’s limit bounds.
    package func collect() async throws(WebFailure) -> [UInt8] {
        var bytes: [UInt8] = []
        while let chunk = try await owner.exchange.next(atMost: .max) { bytes += chunk }
        return bytes
    }
}
