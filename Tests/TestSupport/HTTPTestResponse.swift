/// A response of `HTTPTestServer` at a path, correct or faulty.
package struct HTTPTestResponse: Sendable {
    /// The content of a response.
    package enum Body: Sendable {
        /// Exactly these bytes.
        case bytes([UInt8])
        /// `chunk` repeated until `total` bytes have been sent.
        case repeated([UInt8], total: Int)

        /// The total length in bytes.
        package var count: Int {
            switch self {
            case .bytes(let bytes): bytes.count
            case .repeated(_, let total): max(0, total)
            }
        }

        /// Returns at most `limit` bytes from `offset`.
        func bytes(from offset: Int, limit: Int) -> [UInt8] {
            let end = min(count, offset + limit)
            guard offset < end else { return [] }
            switch self {
            case .bytes(let bytes): return Array(bytes[offset..<end])
            case .repeated(let chunk, _):
                guard !chunk.isEmpty else { return Array(repeating: 0, count: end - offset) }
                var bytes: [UInt8] = []
                bytes.reserveCapacity(end - offset)
                while bytes.count < end - offset {
                    let start = (offset + bytes.count) % chunk.count
                    bytes.append(contentsOf: chunk[start..<min(chunk.count, start + end - offset - bytes.count)])
                }
                return bytes
            }
        }
    }

    /// A fault in sending the body.
    package enum Fault: Sendable, Hashable {
        /// The body is sent correctly.
        case none
        /// After this many bytes of the body (−1: before the head) nothing is sent until `HTTPTestServer.release`.
        case stall(afterBytes: Int)
        /// After this many bytes of the body (−1: before the head) the connection is closed, whatever was announced.
        case close(afterBytes: Int)
        /// The connection is closed at this byte of the body, wherever a range began.
        case cut(atByte: Int)
        /// After this many bytes of the body the connection is reset, so bytes in flight may be lost too.
        case reset(afterBytes: Int)
    }

    /// The HTTP status code.
    package var status: Int
    /// The additional header fields.
    package var headers: [(name: String, value: String)]
    /// The content that is sent.
    package var body: Body
    /// Sent as `ETag`; a request with the same `If-None-Match` is answered with 304.
    package var etag: String?
    /// Sent as `Last-Modified`; a request with the same `If-Modified-Since` and no `If-None-Match` is answered with 304.
    package var lastModified: String?
    /// Whether a byte `Range` is answered with 206 (416 outside the body); otherwise it is ignored.
    package var acceptsRanges: Bool
    /// Whether the length is announced; otherwise the body is chunked.
    package var announcesLength: Bool
    /// Whether the response is HTTP/1.0: without length and chunks, the end of the connection ends the body.
    package var endsWithConnection = false
    /// The length that is announced instead of the real one.
    package var claimedLength: Int?
    /// The `Authorization` header that a request must have; nil if it needs none.
    var authorization: String?
    /// The fault in sending the body.
    package var fault: Fault
    /// The maximum number of bytes in one write.
    package var chunkSize: Int
    /// The delay between two chunks, in milliseconds.
    package var chunkInterval: Int

    /// Creates a response that is correct unless its properties are changed.
    package init(
        status: Int = 200, headers: [(name: String, value: String)] = [], body: Body = .bytes([]), etag: String? = nil,
        lastModified: String? = nil, acceptsRanges: Bool = false, announcesLength: Bool = true, fault: Fault = .none,
        chunkSize: Int = 65_536, chunkInterval: Int = 0
    ) {
        self.status = status
        self.headers = headers
        self.body = body
        self.etag = etag
        self.lastModified = lastModified
        self.acceptsRanges = acceptsRanges
        self.announcesLength = announcesLength
        self.fault = fault
        self.chunkSize = max(1, chunkSize)
        self.chunkInterval = max(0, chunkInterval)
    }

    /// Returns a response with a feed.
    package static func feed(_ text: String, etag: String? = nil, lastModified: String? = nil) -> HTTPTestResponse {
        HTTPTestResponse(
            headers: [("Content-Type", "application/rss+xml; charset=utf-8")], body: .bytes(Array(text.utf8)),
            etag: etag, lastModified: lastModified)
    }

    /// Returns a seekable audio file.
    package static func audio(_ bytes: [UInt8], type: String = "audio/mpeg") -> HTTPTestResponse {
        HTTPTestResponse(headers: [("Content-Type", type)], body: .bytes(bytes), acceptsRanges: true)
    }

    /// Returns a status without a body.
    package static func status(_ code: Int, headers: [(name: String, value: String)] = []) -> HTTPTestResponse {
        HTTPTestResponse(status: code, headers: headers)
    }

    /// Returns a redirect to `location`: permanent with 301 and 308, temporary with 302 and 307.
    package static func redirect(to location: String, status: Int = 301) -> HTTPTestResponse {
        HTTPTestResponse(status: status, headers: [("Location", location)])
    }

    /// Returns a response that stalls until `HTTPTestServer.release`, and then has status 200 and `text`.
    package static func stalled(then text: String = "") -> HTTPTestResponse {
        HTTPTestResponse(body: .bytes(Array(text.utf8)), fault: .stall(afterBytes: -1))
    }

    /// Returns the response for requests with this `Authorization` only; others are answered with 401.
    package func requiring(authorization: String) -> HTTPTestResponse {
        var copy = self
        copy.authorization = authorization
        return copy
    }

    /// Returns the response with another fault.
    package func with(_ fault: Fault) -> HTTPTestResponse {
        var copy = self
        copy.fault = fault
        return copy
    }
}

/// A request as `HTTPTestServer` received it.
package struct HTTPTestRequest: Sendable {
    /// The method, such as `GET` or `HEAD`.
    package var method: String
    /// The path without the query.
    package var path: String
    /// The query without its question mark; empty if there is none.
    package var query: String
    /// The header fields in order.
    package var headers: [(name: String, value: String)]

    /// Returns the first header field with this name, case-insensitively.
    package func header(_ name: String) -> String? {
        let wanted = name.lowercased()
        return headers.first { $0.name.lowercased() == wanted }?.value
    }

    /// Returns the bytes that `Range: bytes=…` requests of a body of `count` bytes: nil without such a field, empty if
    /// it can’t be satisfied.
    func range(of count: Int) -> Range<Int>? {
        guard let field = header("Range"), field.hasPrefix("bytes="), !field.contains(",") else { return nil }
        let parts = field.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        guard let first = Int(parts[0]) else {
            guard parts[0].isEmpty, let suffix = Int(parts[1]) else { return nil }
            return max(0, count - suffix)..<count
        }
        let last = Int(parts[1]) ?? count - 1
        guard first >= 0, first < count, last >= first else { return 0..<0 }
        return first..<min(count, last + 1)
    }
}
