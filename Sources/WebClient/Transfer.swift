import CCurl
import LibC
import PodcastModel

/// A transfer on the client’s thread. libcurl’s callbacks have an unretained pointer to it, so the loop’s table retains
/// it until its handle is removed from libcurl.
final class Transfer {
    enum End {
        case complete
        case failed(WebFailure)
        /// The handle must be configured and added again.
        case redirected
    }

    private enum Phase {
        /// The request isn’t sent yet; libcurl limits the time.
        case connecting
        case waitingForHead
        case receivingBody
        /// The body of a redirect is read, so that the connection can be reused.
        case discarding
    }

    /// The maximum size of the header fields of one response, in bytes.
    private static let headerLimit = 64 << 10
    /// The maximum number of bytes of a redirect’s body that are read.
    private static let discardLimit: UInt64 = 64 << 10

    let easy: UnsafeMutableRawPointer
    let exchange: Exchange
    private let request: WebRequest
    private let options: WebClientOptions
    private let start: MonotonicTime
    private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    private var fields: UnsafeMutablePointer<curl_slist>?
    private var connections: UnsafeMutablePointer<curl_slist>?

    private var address: WebAddress
    private var redirects: [WebRedirect] = []
    private var phase = Phase.connecting
    private var head = ResponseHeadReader()
    private var received: UInt64 = 0
    private var isPaused = false
    /// The time of the last data from the server, or at which the wait for data began.
    private var progress: MonotonicTime
    /// The failure with which a callback ended the transfer.
    private var failure: WebFailure?

    init?(_ request: WebRequest, _ exchange: Exchange, options: WebClientOptions, now: MonotonicTime) {
        guard let easy = ccurl_easy_new() else { return nil }
        (self.easy, self.request, self.exchange, self.options) = (easy, request, exchange, options)
        (address, start, progress) = (request.address, now, now)
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    /// Frees the handle and its memory. The handle must be removed from the multi handle first.
    func close() {
        ccurl_easy_free(easy)
        ccurl_list_free(fields)
        ccurl_list_free(connections)
        errorText.deallocate()
    }

    // MARK: Request

    /// Prepares the handle for the current address.
    func configure() -> WebFailure? {
        guard !address.isFile else { return .badAddress(address) }
        ccurl_easy_reset(easy)
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        (phase, head, received, failure) = (.connecting, ResponseHeadReader(), 0, nil)
        let context = Unmanaged.passUnretained(self).toOpaque()
        guard
            ccurl_set_callbacks(easy, bodyArrived, headerArrived, connectionEstablished, context, errorText)
                == CURLE_OK,
            ccurl_set_text(easy, CURLOPT_URL, address.textWithoutCredentials) == CURLE_OK,
            restrictProtocols()
        else { return .unavailable("libcurl lacks an option") }
        let numbers: [(CURLoption, Int)] = [
            // libcurl’s signals could interrupt other threads.
            (CURLOPT_NOSIGNAL, 1),
            // Redirects are followed here, where each address is checked and credentials are selected by origin.
            (CURLOPT_FOLLOWLOCATION, 0),
            (CURLOPT_PATH_AS_IS, 1),
            (CURLOPT_SUPPRESS_CONNECT_HEADERS, 1),
            (CURLOPT_TCP_KEEPALIVE, 1),
            // The end of a transfer doesn’t wait for the name lookup (since libcurl 7.87).
            (CCURL_QUICK_EXIT, 1),
            (CURLOPT_CONNECTTIMEOUT_MS, Self.milliseconds(WebRequest.connectLimit)),
            (CURLOPT_HTTP_CONTENT_DECODING, request.decompresses ? 1 : 0),
            (CURLOPT_HTTP_VERSION, request.sharesConnection ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1),
        ]
        for (option, number) in numbers { _ = ccurl_set_long(easy, option, number) }
        _ = ccurl_set_text(easy, CURLOPT_USERAGENT, WebClient.userAgent)
        if request.decompresses {
            _ = ccurl_set_text(easy, CURLOPT_ACCEPT_ENCODING, ccurl_has_brotli() ? "gzip, br" : "gzip")
        }
        if let target = options.connectsTo {
            ccurl_list_free(connections)
            connections = ccurl_list_append(nil, "::\(target)")
            _ = ccurl_set_list(easy, CURLOPT_CONNECT_TO, connections)
        }
        // A server on this machine is never accessed through a proxy, which would resolve the name to another machine.
        let proxy = address.isLoopback || options.connectsTo != nil ? "" : options.proxy
        if let proxy { _ = ccurl_set_text(easy, CURLOPT_PROXY, proxy) }
        if let credentials {
            _ = ccurl_set_long(easy, CURLOPT_HTTPAUTH, 1)
            _ = ccurl_set_text(easy, CURLOPT_USERNAME, credentials.user)
            _ = ccurl_set_text(easy, CURLOPT_PASSWORD, credentials.password)
        }
        return setFields()
    }

    private func restrictProtocols() -> Bool {
        let names = "http,https"
        if ccurl_set_text(easy, CCURL_PROTOCOLS_STR, names) == CURLE_OK {
            return ccurl_set_text(easy, CCURL_REDIR_PROTOCOLS_STR, names) == CURLE_OK
        }
        // Before 7.85: http is bit 0 and https bit 1.
        return ccurl_set_long(easy, CURLoption(181), 3) == CURLE_OK
            && ccurl_set_long(easy, CURLoption(182), 3) == CURLE_OK
    }

    /// The credentials for the current address: those of the request for its origin; otherwise those in the address;
    /// otherwise, at the first origin, those in the first address, because a redirect omits them.
    private var credentials: WebCredentials? {
        if let known = address.origin.flatMap({ request.credentials[$0] }) { return known }
        let isFirstOrigin = address.origin == request.address.origin
        return (address.credentials ?? (isFirstOrigin ? request.address.credentials : nil)).map {
            WebCredentials(user: $0.user, password: $0.password)
        }
    }

    private func setFields() -> WebFailure? {
        var headers = request.headers
        if !request.decompresses { headers.add("Accept-Encoding", "identity") }
        if let range = request.range {
            headers.add("Range", range.field)
            if !range.ifRange.isEmpty { headers.add("If-Range", range.ifRange) }
        }
        ccurl_list_free(fields)
        fields = nil
        for field in headers.fields {
            // libcurl removes a field without a value after its colon; with a semicolon it sends the field with an
            // empty value.
            let line = field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)"
            guard let longer = ccurl_list_append(fields, line) else { return .unavailable("libcurl has no memory") }
            fields = longer
        }
        _ = ccurl_set_list(easy, CURLOPT_HTTPHEADER, fields)
        return nil
    }

    private static func milliseconds(_ duration: Duration) -> Int {
        Int(min(max((duration / .milliseconds(1)).rounded(.up), 1), 86_400_000))
    }

    // MARK: Response

    /// Records that the request is about to be sent, which starts the silence limit.
    fileprivate func connected() {
        phase = .waitingForHead
        progress = options.clock()
    }

    /// Receives a line of the head. Returns whether the transfer may continue.
    fileprivate func receive(header line: UnsafeRawBufferPointer) -> Bool {
        progress = options.clock()
        guard phase == .waitingForHead else { return true }
        switch head.read(line, limit: Self.headerLimit) {
        case .incomplete: return true
        case .tooLong:
            failure = .badAnswer(address.host, "its header is longer than \(Self.headerLimit >> 10) KiB")
            return false
        case .complete: break
        }
        if head.redirects {
            phase = .discarding
            return true
        }
        phase = .receivingBody
        if let length = head.headers["content-length"].flatMap({ UInt64($0) }), length > request.bodyLimit {
            failure = .tooLarge(address.host, request.bodyLimit)
            return false
        }
        exchange.deliver(head.response(at: address, after: redirects))
        return true
    }

    /// Receives bytes of the body. Returns whether the transfer may continue.
    fileprivate func receive(body bytes: UnsafeRawBufferPointer) -> Bool {
        progress = options.clock()
        received += UInt64(bytes.count)
        if phase == .discarding { return received <= Self.discardLimit }
        guard received <= request.bodyLimit else {
            failure = .tooLarge(address.host, request.bodyLimit)
            return false
        }
        exchange.append(bytes)
        return true
    }

    func pauseIfFull() {
        guard phase == .receivingBody, !isPaused, exchange.pausesIfFull() else { return }
        isPaused = true
        _ = ccurl_easy_pause(easy, true)
    }

    func resume(now: MonotonicTime) {
        guard isPaused else { return }
        isPaused = false
        progress = now
        _ = ccurl_easy_pause(easy, false)
    }

    // MARK: Time

    /// The time at which `expired` may change; nil if only an event can change it.
    var deadline: MonotonicTime? {
        let whole = request.totalLimit.map { start.advanced(by: $0) }
        guard phase != .connecting, !isPaused else { return whole }
        let silence = progress.advanced(by: request.silenceLimit)
        return whole.map { min($0, silence) } ?? silence
    }

    /// The failure of a time limit that is reached at `now`; nil if none is.
    func expired(at now: MonotonicTime) -> WebFailure? {
        guard let deadline, now >= deadline else { return nil }
        if let total = request.totalLimit, now >= start.advanced(by: total) {
            return .timeOut(address.host, total)
        }
        return .silent(address.host, hasAnswered: phase != .waitingForHead)
    }

    // MARK: The end

    /// Handles the end of the transfer in libcurl.
    func ended(_ code: CURLcode, now: MonotonicTime) -> End {
        if phase == .discarding { return redirect(now) }
        // A failure in a callback has stopped libcurl.
        if let failure { return .failed(failure) }
        guard code == CURLE_OK else { return .failed(failure(of: code)) }
        return phase == .receivingBody ? .complete : .failed(.cut(address.host))
    }

    private func redirect(_ now: MonotonicTime) -> End {
        guard let location = head.headers["location"], let next = WebAddress(location, relativeTo: address),
            !next.isFile
        else { return .failed(.badRedirect(address.host)) }
        guard redirects.count < WebRequest.redirectLimit else {
            return .failed(.tooManyRedirects(request.address.host))
        }
        redirects.append(WebRedirect(status: head.status, source: address, target: next))
        address = next
        progress = now
        return .redirected
    }

    private func failure(of code: CURLcode) -> WebFailure {
        let host = address.host
        switch code {
        case CURLE_URL_MALFORMAT: return .badAddress(address)
        case CURLE_COULDNT_RESOLVE_HOST: return .couldNotResolve(host)
        case CURLE_COULDNT_RESOLVE_PROXY: return .couldNotResolve("The proxy")
        case CURLE_COULDNT_CONNECT:
            let number = ccurl_get_long(easy, CURLINFO_OS_ERRNO)
            let reason =
                number > 0 ? SystemError.reason(Int32(truncatingIfNeeded: number)) : "there is no answer"
            return .couldNotConnect(host, reason)
        case CURLE_OPERATION_TIMEDOUT:
            return phase == .connecting
                ? .connectTimeOut(host, WebRequest.connectLimit)
                : .silent(host, hasAnswered: phase == .receivingBody)
        case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_HTTP2,
            CURLE_HTTP2_STREAM:
            return .cut(host)
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR,
            CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            return .tls(host, reason(code), retry: false)
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_ENGINE_INITFAILED, CURLE_USE_SSL_FAILED:
            return .tls(host, reason(code), retry: true)
        default: return .badAnswer(host, reason(code))
        }
    }

    /// libcurl’s error text for the transfer or, if there is none, for the code.
    private func reason(_ code: CURLcode) -> String {
        let bytes = UnsafeBufferPointer(start: errorText, count: Int(CURL_ERROR_SIZE)).prefix { $0 != 0 }
        let text = String(decoding: bytes.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let message = text.isEmpty ? String(cString: ccurl_error_string(code)) : text
        return String(message.filter { !$0.isNewline }.prefix(200))
    }
}

// MARK: - Callbacks

private func bodyArrived(
    _ bytes: UnsafeMutablePointer<CChar>, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    forward(bytes, size &* count, to: context) { $0.receive(body: $1) }
}

private func headerArrived(
    _ bytes: UnsafeMutablePointer<CChar>, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    forward(bytes, size &* count, to: context) { $0.receive(header: $1) }
}

/// Passes bytes to the transfer of a context, and returns the result for libcurl, which ends the transfer unless this
/// is the number of bytes.
private func forward(
    _ bytes: UnsafeMutablePointer<CChar>, _ length: Int, to context: UnsafeMutableRawPointer?,
    _ receive: (Transfer, UnsafeRawBufferPointer) -> Bool
) -> Int {
    guard let context else { return 0 }
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    return receive(transfer, UnsafeRawBufferPointer(start: bytes, count: length)) ? length : 0
}

private func connectionEstablished(
    _ context: UnsafeMutableRawPointer?, _: UnsafeMutablePointer<CChar>?, _: UnsafeMutablePointer<CChar>?, _: Int32,
    _: Int32
) -> Int32 {
    guard let context else { return 1 }
    Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue().connected()
    return 0
}
