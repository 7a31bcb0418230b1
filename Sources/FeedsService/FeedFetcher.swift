import FeedFetching
import FeedParsing
import NIOConcurrencyHelpers
import PodcastModel
import WebClient
import WireMessages

/// Fetches and parses feeds, each in its own task, so that none waits for another.
final class FeedFetcher: Sendable {
    private let client: WebClient
    private let loader: FeedLoader
    private let tasks = NIOLockedValueBox<[UInt64: Task<Void, Never>]>([:])

    /// Creates a fetcher with its own connections: `shutdown` must be called.
    init(limits: FeedLimits = FeedLimits()) {
        var options = WebClientOptions()
        // Stalled requests to a host must not block requests for its other feeds.
        options.connectionsPerHost = 64
        client = WebClient(options)
        loader = FeedLoader(client: client, limits: limits)
    }

    /// Starts work in its own task; `report` is called once, unless the work is cancelled.
    func start(
        _ key: UInt64, _ report: @escaping @Sendable (FeedsInput) -> Void,
        _ work: @escaping @Sendable () async -> FeedsInput
    ) {
        // The task waits for the lock before it may remove itself.
        tasks.withLockedValue { tasks in
            tasks[key] = Task {
                let input = await work()
                self.tasks.withLockedValue { _ = $0.removeValue(forKey: key) }
                if !Task.isCancelled { report(input) }
            }
        }
    }

    func cancel(_ key: UInt64) {
        tasks.withLockedValue { $0.removeValue(forKey: key) }?.cancel()
    }

    /// Cancels running fetches and closes every connection.
    func shutdown() async {
        let tasks = tasks.withLockedValue { tasks in
            defer { tasks = [:] }
            return Array(tasks.values)
        }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
        await client.shutdown()
    }

    /// Fetches and parses one feed, and compares it with the stored one.
    func fetch(_ order: FetchOrder) async -> FetchOutcome {
        switch await loader.load(order.request) {
        case .feed(let loaded):
            var feed = FetchedFeed(
                loaded.document, base: loaded.base, address: loaded.address, podcast: order.podcast, seen: order.seen)
            feed.etag = loaded.etag
            feed.lastModified = loaded.lastModified
            return .feed(feed)
        case .unchanged(let movedTo): return .unchanged(movedTo: movedTo)
        case .page(let feeds):
            let links = feeds.map { (address: $0.address.text, title: $0.title) }
            return .failed(Failure(webPageWith: links), retryAfter: nil)
        case .failed(let failure, let retryAfter): return .failed(failure, retryAfter: retryAfter)
        }
    }

    func fetchChapters(
        _ address: WebAddress, _ credentials: [WebOrigin: WebCredentials] = [:]
    ) async -> Result<[ChapterMark], Failure> {
        var request = WebRequest(address)
        request.credentials = credentials
        request.bodyLimit = UInt64(ChaptersFile.limit)
        request.totalLimit = .seconds(60)
        do {
            let response = try await client.send(request)
            guard (200..<300).contains(response.status) else {
                throw Failure(refusedWith: response.status, by: response.address.host, asking: .chapters)
            }
            return .success(try ChaptersFile.parse(try await response.body.collect()))
        } catch let failure as WebFailure {
            return .failure(failure.failure(.fetchFailed))
        } catch {
            return .failure(error as? Failure ?? Failure(.internalError, "The chapters file can’t be read."))
        }
    }
}
