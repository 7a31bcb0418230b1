import PodcastModel

/// The status and the fields of a response, before its body.
struct ResponseHead: Sendable {
    var status: Int
    var headers: WebHeaders
    var address: WebAddress
    var redirects: [WebRedirect]
    var retryAfter: Duration?
    var isDelimited: Bool
}

/// Parses the head of a response line by line.
struct ResponseHeadReader {
    enum Progress {
        case incomplete
        case complete
        case tooLong
    }

    /// The code of the last status line; 0 before there is one.
    private(set) var status = 0
    private(set) var headers = WebHeaders()
    private var majorVersion = 1
    private var byteCount = 0

    /// The maximum wait that a server can request: a week, in seconds.
    private static let longestWait = 604_800.0

    var redirects: Bool { [301, 302, 303, 307, 308].contains(status) && headers["location"] != nil }

    /// Parses one line. A status line starts a new head: interim responses (1xx) precede the final one.
    mutating func read(_ line: UnsafeRawBufferPointer, limit: Int) -> Progress {
        byteCount += line.count
        guard byteCount <= limit else { return .tooLong }
        var bytes = line[...]
        while let last = bytes.last, last == 0x0a || last == 0x0d { bytes = bytes.dropLast() }
        guard !bytes.isEmpty else { return status >= 200 ? .complete : .incomplete }
        let text = String(decoding: bytes, as: UTF8.self)
        if text.utf8.starts(with: "HTTP/".utf8) {
            let words = text.utf8.split(separator: 0x20, maxSplits: 2)
            status = words.count > 1 ? Self.status(Substring(words[1])) : 0
            majorVersion = words.first?.dropFirst(5).first.map { Int($0) - 0x30 } ?? 1
            headers = WebHeaders()
        } else if let first = bytes.first, first == 0x20 || first == 0x09 {
            headers.continueLast(Self.trimmed(text.utf8[...]))
        } else if let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) {
            let value = text.utf8[text.utf8.index(after: colon)...]
            headers.add(String(text[..<colon]), Self.trimmed(value))
        }
        return .incomplete
    }

    func response(at address: WebAddress, after redirects: [WebRedirect]) -> ResponseHead {
        let wait = headers["retry-after"].flatMap { RetryAfter.parse($0, now: SystemClocks.wall()) }
        return ResponseHead(
            status: status, headers: headers, address: address, redirects: redirects,
            retryAfter: wait.map { .milliseconds(Int64(min($0, Self.longestWait) * 1_000)) },
            isDelimited: majorVersion >= 2 || headers["content-length"] != nil
                || headers["transfer-encoding"] != nil)
    }

    /// Parses a status code; 0 if it is invalid.
    private static func status(_ text: Substring) -> Int {
        guard text.utf8.count == 3, let status = Int(text), status >= 100 else { return 0 }
        return status
    }

    private static func trimmed(_ text: Substring.UTF8View) -> String {
        var rest = text
        while let first = rest.first, first == 0x20 || first == 0x09 { rest = rest.dropFirst() }
        while let last = rest.last, last == 0x20 || last == 0x09 { rest = rest.dropLast() }
        return String(Substring(rest))
    }
}
