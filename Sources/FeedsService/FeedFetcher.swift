import AsyncHTTPClient
public import FeedParsing
public import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import PodcastModel

/// Fetches and parses feeds: each in a task of its own, so that none waits for another.
public final class FeedFetcher: Sendable {
    /// The most redirects in a row.
    static let redirectLimit = 10

    private let client: HTTPClient
    private let limits: FeedLimits
    private let logger: Logger
    private let tasks = NIOLockedValueBox<[UInt64: Task<Void, Never>]>([:])

    /// A fetcher with connections of its own: `shutdown` must be called.
    public init(limits: FeedLimits = FeedLimits(), logger: Logger) {
        // The library's usual choices, among them that a compressed answer may not grow without bounds.
        var configuration = HTTPClient.Configuration.singletonConfiguration
        // Redirects are followed here: permanent ones are remembered.
        configuration.redirectConfiguration = .disallow
        configuration.timeout = .init(connect: .seconds(10), read: .seconds(20))
        // One host that stalls must not use up the places of its other feeds.
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 64
        configuration.connectionPool.idleTimeout = .seconds(15)
        // A refused connection is answered at once; the schedule tries again.
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        self.limits = limits
        self.logger = logger
    }

    /// Begins what the machine asks for; `report` is called once for each fetch that is not cancelled.
    public func perform(_ action: FeedsAction, report: @escaping @Sendable (FeedsInput) -> Void) {
        switch action {
        case .fetch(let order):
            // The task waits for the lock before it may remove itself.
            tasks.withLockedValue { tasks in
                tasks[order.number] = Task {
                    let outcome = await self.fetch(order)
                    self.tasks.withLockedValue { _ = $0.removeValue(forKey: order.number) }
                    guard !Task.isCancelled else { return }
                    report(.fetched(order.number, outcome))
                }
            }
        case .fetchChapters(let number, let address):
            let key = UInt64.max - number
            tasks.withLockedValue { tasks in
                tasks[key] = Task {
                    let outcome = await self.fetchChapters(address)
                    self.tasks.withLockedValue { _ = $0.removeValue(forKey: key) }
                    guard !Task.isCancelled else { return }
                    report(.chapters(number, outcome))
                }
            }
        case .cancel(let number):
            tasks.withLockedValue { $0.removeValue(forKey: number) }?.cancel()
        case .settled: break
        }
    }

    /// Cancels what is under way and closes every connection.
    public func shutdown() async {
        let tasks = tasks.withLockedValue { tasks in
            defer { tasks = [:] }
            return Array(tasks.values)
        }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
        do {
            try await client.shutdown()
        } catch {
            logger.warning("closing connections failed", metadata: ["error": "\(error)"])
        }
    }

    // MARK: - Fetching

    /// Fetches and parses one feed, and compares it with what is stored.
    public func fetch(_ order: FetchOrder) async -> FetchOutcome {
        do throws(FetchEnd) {
            let found =
                order.address.isFile ? try readFile(order) : try await read(order, mayMove: true)
            guard let reading = found else { return .unchanged(movedTo: nil) }
            var feed = FetchedFeed(
                reading.document, base: reading.base, address: reading.address, podcast: order.podcast,
                seen: order.seen)
            feed.etag = reading.etag
            feed.lastModified = reading.lastModified
            return .feed(feed)
        } catch {
            switch error {
            case .unchanged(let movedTo): return .unchanged(movedTo: movedTo)
            case .failed(let failure, let retryAfter): return .failed(failure, retryAfter: retryAfter)
            }
        }
    }

    /// Reads a file of chapters.
    func fetchChapters(_ address: WebAddress) async -> Result<[ChapterMark], Failure> {
        var url = address
        do {
            for _ in 0...Self.redirectLimit {
                let response = try await send(FetchOrder(number: 0, address: address, podcast: nil), to: url)
                switch response.status.code {
                case 200..<300:
                    let body = try await response.body.collect(upTo: ChaptersFile.limit)
                    return .success(try ChaptersFile.parse(Array(body.readableBytesView)))
                case 301, 302, 303, 307, 308:
                    guard let location = response.headers.first(name: "location"),
                        let next = WebAddress(location, relativeTo: url), !next.isFile
                    else { return .failure(HTTPFailure.badRedirect(url)) }
                    url = next
                default: return .failure(HTTPFailure.status(Int(response.status.code), url))
                }
            }
            return .failure(Failure(.fetchFailed, "\(address.host) redirects in circles."))
        } catch let failure as Failure {
            return .failure(failure)
        } catch FetchEnd.failed(let failure, _) {
            return .failure(failure)
        } catch is NIOTooManyBytesError {
            return .failure(Failure(.tooLarge, "The file of chapters is longer than \(ChaptersFile.limit >> 20) MiB."))
        } catch {
            return .failure(HTTPFailure.connection(error, url, inBody: true))
        }
    }

    /// Nil: the file has not changed.
    private func readFile(_ order: FetchOrder) throws(FetchEnd) -> FeedReading? {
        do throws(Failure) {
            var file = try LocalFeedFile(order.address)
            if !order.etag.isEmpty, file.etag == order.etag { return nil }
            var parser = FeedParser(limits: limits)
            while let chunk = try file.next() { try parser.feed(chunk) }
            return FeedReading(
                document: try parser.finish(), base: order.address, address: order.address, etag: file.etag)
        } catch {
            throw .failed(error, retryAfter: nil)
        }
    }

    /// Follows redirects to a feed and reads it. `mayMove`: where the feed says that it has moved, it is read there, if
    /// there is one.
    private func read(_ order: FetchOrder, mayMove: Bool) async throws(FetchEnd) -> FeedReading {
        var url = order.address
        var lasting = order.address
        var isLasting = true
        for _ in 0...Self.redirectLimit {
            let response = try await send(order, to: url)
            let status = response.status.code
            switch status {
            case 200..<300:
                var reading = try await parse(response, from: url)
                reading.address = lasting
                guard mayMove, let moved = await moved(reading, seen: [order.address, url, lasting]) else {
                    return reading
                }
                return moved
            case 304:
                throw .unchanged(movedTo: lasting == order.address ? nil : lasting)
            case 301, 302, 303, 307, 308:
                guard let location = response.headers.first(name: "location"),
                    let next = WebAddress(location, relativeTo: url), !next.isFile
                else { throw .failed(HTTPFailure.badRedirect(url), retryAfter: nil) }
                // A move from https to http is followed, but not for good.
                isLasting = isLasting && (status == 301 || status == 308) && !(url.isSecure && !next.isSecure)
                if isLasting { lasting = next }
                url = next
            default:
                throw .failed(
                    HTTPFailure.status(Int(status), url),
                    retryAfter: HTTPFailure.retryAfter(response.headers, status: Int(status)))
            }
        }
        let failure = Failure(.fetchFailed, "\(order.address.host) redirects in circles.")
        throw .failed(failure, retryAfter: nil)
    }

    private func send(_ order: FetchOrder, to url: WebAddress) async throws(FetchEnd) -> HTTPClientResponse {
        var request = HTTPClientRequest(url: url.text)
        request.headers.add(name: "User-Agent", value: "Lockstep/1 (podcast player)")
        request.headers.add(
            name: "Accept", value: "application/rss+xml, application/atom+xml, application/xml, text/xml, */*;q=0.5")
        if let (user, password) = url.credentials { request.setBasicAuth(username: user, password: password) }
        if !order.etag.isEmpty { request.headers.add(name: "If-None-Match", value: order.etag) }
        if !order.lastModified.isEmpty { request.headers.add(name: "If-Modified-Since", value: order.lastModified) }
        do {
            return try await client.execute(request, deadline: .now() + .seconds(60), logger: nil)
        } catch {
            throw .failed(HTTPFailure.connection(error, url), retryAfter: nil)
        }
    }

    private func parse(_ response: HTTPClientResponse, from url: WebAddress) async throws(FetchEnd) -> FeedReading {
        if let length = response.headers.first(name: "content-length").flatMap({ Int($0) }), length > limits.bytes {
            let failure = Failure(.tooLarge, "The feed is longer than \(limits.bytes >> 20) MiB and was not read.")
            throw .failed(failure, retryAfter: nil)
        }
        var parser = FeedParser(limits: limits)
        do {
            for try await buffer in response.body { try parser.feed(buffer.readableBytesView) }
            let document = try parser.finish()
            return FeedReading(
                document: document, base: url, address: url, etag: response.headers.first(name: "etag") ?? "",
                lastModified: response.headers.first(name: "last-modified") ?? "")
        } catch let failure as Failure {
            throw .failed(failure, retryAfter: nil)
        } catch {
            throw .failed(HTTPFailure.connection(error, url, inBody: true), retryAfter: nil)
        }
    }

    /// The feed where it says that it has moved to; nil if it has not, or is not there.
    private func moved(_ reading: FeedReading, seen: [WebAddress]) async -> FeedReading? {
        guard let address = WebAddress(reading.document.channel.newFeedURL), !address.isFile,
            !seen.contains(where: { $0.identity == address.identity })
        else { return nil }
        return try? await read(FetchOrder(number: 0, address: address, podcast: nil), mayMove: false)
    }
}

/// A document, and where it is from.
struct FeedReading: Sendable {
    var document: FeedDocument
    /// What its relative addresses are relative to.
    var base: WebAddress
    /// Where it is for good.
    var address: WebAddress
    var etag = ""
    var lastModified = ""
}

/// Why a fetch gives no document.
enum FetchEnd: Error {
    case unchanged(movedTo: WebAddress?)
    case failed(Failure, retryAfter: Duration?)
}
