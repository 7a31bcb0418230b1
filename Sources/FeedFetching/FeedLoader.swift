package import FeedParsing
package import PodcastModel
package import WebClient

/// A request to read a feed, on the web or in a local file.
package struct FeedRequest: Sendable, Hashable {
    package var address: WebAddress
    /// The validators of the last response; if they are empty, the feed is read unconditionally.
    package var etag = ""
    package var lastModified = ""
    package var credentials: [WebOrigin: WebCredentials] = [:]
    /// Whether a feed that names a new address is read from that address.
    package var followsNewAddress = true

    package init(_ address: WebAddress) {
        self.address = address
    }
}

package enum FeedAnswer: Sendable {
    case feed(LoadedFeed)
    /// The feed hasn’t changed; `movedTo` is its new address, if it moved permanently.
    case unchanged(movedTo: WebAddress?)
    /// A web page with links to these feeds.
    case page([PageFeed])
    /// The feed couldn’t be fetched, or isn’t a feed; `retryAfter` is the delay that the server requests.
    case failed(Failure, retryAfter: Duration?)
}

package struct LoadedFeed: Sendable {
    package var document: FeedDocument
    /// The address of the final response, against which relative addresses are resolved.
    package var base: WebAddress
    /// The feed’s address after permanent redirects.
    package var address: WebAddress
    /// The validators for the next conditional request.
    package var etag = ""
    package var lastModified = ""
}

/// Reads feeds for the service and for `feed check`, so that both report the same.
package struct FeedLoader: Sendable {
    private let client: WebClient
    private let limits: FeedLimits

    package init(client: WebClient, limits: FeedLimits = FeedLimits()) {
        self.client = client
        self.limits = limits
    }

    package func load(_ request: FeedRequest) async -> FeedAnswer {
        guard !request.address.isFile else { return readFile(request) }
        let answer = await fetch(request)
        guard request.followsNewAddress, case .feed(let feed) = answer,
            let address = WebAddress(feed.document.channel.newFeedURL), !address.isFile,
            ![request.address, feed.base, feed.address].contains(where: { $0.identity == address.identity })
        else { return answer }
        var newRequest = FeedRequest(address)
        newRequest.credentials = request.credentials
        guard case .feed(let moved) = await fetch(newRequest),
            !Self.isDowngrade(from: feed.address, to: moved.address)
        else { return answer }
        return .feed(moved)
    }

    private func readFile(_ request: FeedRequest) -> FeedAnswer {
        do throws(Failure) {
            var file = try LocalFeedFile(request.address)
            if !request.etag.isEmpty, file.etag == request.etag { return .unchanged(movedTo: nil) }
            var parser = FeedParser(limits: limits)
            var page: [UInt8] = []
            while let chunk = try file.next() {
                page = parser.isFeed ? [] : page + chunk
                do throws(Failure) {
                    try parser.feed(chunk)
                } catch {
                    guard error == FeedParser.webPage else { throw error }
                    while page.count < PageFeeds.pageLimit, let chunk = try file.next() { page += chunk }
                    return Self.answer(page, at: request.address)
                }
            }
            do throws(Failure) {
                return .feed(
                    LoadedFeed(
                        document: try parser.finish(), base: request.address, address: request.address,
                        etag: file.etag))
            } catch {
                guard error == FeedParser.webPage else { throw error }
                return Self.answer(page, at: request.address)
            }
        } catch {
            return .failed(error, retryAfter: nil)
        }
    }

    /// The answer for a web page.
    private static func answer(_ page: [UInt8], at address: WebAddress) -> FeedAnswer {
        let feeds = PageFeeds.find(in: page, at: address)
        return feeds.isEmpty ? .failed(FeedParser.webPage, retryAfter: nil) : .page(feeds)
    }

    private func fetch(_ request: FeedRequest) async -> FeedAnswer {
        var fetch = WebRequest(request.address)
        fetch.headers.add(
            "Accept", "application/rss+xml, application/atom+xml, application/xml, text/xml, */*;q=0.5")
        if !request.etag.isEmpty { fetch.headers.add("If-None-Match", request.etag) }
        if !request.lastModified.isEmpty { fetch.headers.add("If-Modified-Since", request.lastModified) }
        fetch.credentials = request.credentials
        fetch.bodyLimit = UInt64(clamping: limits.bytes)
        fetch.totalLimit = .seconds(60)
        do throws(WebFailure) {
            let response = try await client.send(fetch)
            let address = Self.lastingAddress(request.address, response.redirects)
            switch response.status {
            case 200..<300:
                return try await parse(response, from: address)
            case 304:
                return .unchanged(movedTo: address == request.address ? nil : address)
            default:
                // A removed feed (410) is retried as rarely as possible.
                let wait = response.status == 410 ? Duration.seconds(604_800) : response.retryAfter
                let failure = Failure(refusedWith: response.status, by: response.address.host, asking: .feed)
                return .failed(failure, retryAfter: wait)
            }
        } catch {
            return .failed(error.failure(.fetchFailed), retryAfter: nil)
        }
    }

    private func parse(_ response: WebResponse, from address: WebAddress) async throws(WebFailure) -> FeedAnswer {
        var parser = FeedParser(limits: limits)
        // What was read, unless it is a feed.
        var page: [UInt8] = []
        var chunks = response.body.makeAsyncIterator()
        while true {
            let chunk = try await chunks.next()
            page = parser.isFeed ? [] : page + (chunk ?? [])
            do throws(Failure) {
                if let chunk {
                    try parser.feed(chunk)
                } else {
                    return .feed(
                        LoadedFeed(
                            document: try parser.finish(), base: response.address, address: address,
                            etag: response.headers["ETag"] ?? "",
                            lastModified: response.headers["Last-Modified"] ?? ""))
                }
            } catch {
                guard error == FeedParser.webPage else { return .failed(error, retryAfter: nil) }
                while chunk != nil, page.count < PageFeeds.pageLimit, let more = try await chunks.next() {
                    page += more
                }
                return Self.answer(page, at: response.address)
            }
        }
    }

    /// The address at the end of the leading permanent redirects. A redirect from https to http isn’t stored.
    private static func lastingAddress(_ start: WebAddress, _ redirects: [WebRedirect]) -> WebAddress {
        var address = start
        for redirect in redirects {
            guard redirect.isPermanent, !isDowngrade(from: redirect.source, to: redirect.target) else { break }
            address = redirect.target
        }
        return address
    }

    /// Whether a move replaces an https address with one without TLS.
    static func isDowngrade(from old: WebAddress, to new: WebAddress) -> Bool {
        old.scheme == "https" && new.scheme != "https"
    }
}
