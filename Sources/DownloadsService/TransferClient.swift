import BusKit
import NIOConcurrencyHelpers
import PodcastModel
import WebClient
import WireMessages

/// Fetches files, each in a task of its own, within one rate limit.
final class TransferClient: Sendable {
    private struct State {
        var tasks: [UInt64: Task<Void, Never>] = [:]
        var bucket = TokenBucket(rate: 0, now: SystemClocks.monotonic())
    }

    private let folder: DownloadFolder
    private let client: WebClient
    private let stall: Duration
    private let secrets: SecretsReader
    private let state = NIOLockedValueBox(State())

    /// The number of bytes in one write: the rate limit applies between two writes.
    private static let chunk = 64 << 10

    /// - Parameter stall: the time after which a silent server fails.
    init(folder: DownloadFolder, stall: Duration, secrets: SecretsReader) {
        var options = WebClientOptions()
        // The machine limits the number of transfers.
        options.connectionsPerHost = 64
        options.idleTimeout = .seconds(5)
        client = WebClient(options)
        self.folder = folder
        self.stall = stall
        self.secrets = secrets
    }

    func start(_ order: TransferOrder, report: @escaping @Sendable (DownloadsInput) -> Void) {
        state.withLockedValue { state in
            state.tasks[order.number] = Task {
                do {
                    let bytes = try await self.fetch(order, report)
                    // A cancelled transfer is also reported as completed if its file is at its path.
                    report(.completed(order.number, bytes: bytes))
                } catch {
                    if !Task.isCancelled { report(.failed(order.number, TransferFailure(from: error))) }
                }
                self.state.withLockedValue { _ = $0.tasks.removeValue(forKey: order.number) }
            }
        }
    }

    /// Cancels a transfer; returns when nothing more is written.
    func cancel(_ number: UInt64) async {
        let task = state.withLockedValue { $0.tasks.removeValue(forKey: number) }
        task?.cancel()
        await task?.value
    }

    func limit(bytesPerSecond: UInt64) {
        // A new bucket discards the wait that was accumulated at the old rate.
        state.withLockedValue { $0.bucket = TokenBucket(rate: bytesPerSecond, now: SystemClocks.monotonic()) }
    }

    func shutdown() async {
        for number in state.withLockedValue({ Array($0.tasks.keys) }) { await cancel(number) }
        await client.shutdown()
    }

    // MARK: A transfer

    private func fetch(
        _ order: TransferOrder, _ report: @escaping @Sendable (DownloadsInput) -> Void
    ) async throws -> UInt64 {
        let folder = folder.marked(order.folder)
        let name = DownloadFolder.partialName(order.episode, order.download.version)
        let kept = order.download.version.condition.isEmpty ? 0 : order.download.resumableBytes
        try folder.requireSpace(for: 0)
        let offset = kept > 0 ? try folder.openPartial(name, of: order.episode, keeping: kept).offset : 0
        let response = try await send(order, from: offset)
        if response.status == 416, offset > 0 {
            return try await receive(order, try await send(order, from: 0), from: 0, report)
        }
        return try await receive(order, response, from: offset, report)
    }

    private func send(_ order: TransferOrder, from offset: UInt64) async throws -> WebResponse {
        // An address that an older version stored may have any scheme.
        guard let address = WebAddress(order.download.url), !address.isFile else {
            throw Failure.unusableAddress(order.download.url)
        }
        var request = WebRequest(address)
        request.headers.add("Accept", "audio/*, video/*;q=0.9, */*;q=0.5")
        request.credentials = secrets.credentials(of: order.download.podcastID)
        request.decompresses = false
        // On a connection of its own, TCP flow control slows the server down when the rate is limited or the disk is
        // slow.
        request.sharesConnection = false
        request.silenceLimit = stall
        if offset > 0 { request.range = WebRange(from: offset, ifRange: order.download.version.condition) }
        return try await client.send(request)
    }

    private func receive(
        _ order: TransferOrder, _ response: WebResponse, from asked: UInt64,
        _ report: @Sendable (DownloadsInput) -> Void
    ) async throws -> UInt64 {
        let (headers, status) = (response.headers, response.status)
        guard status == 200 || status == 206 && asked > 0 else { throw Self.refused(response, order) }
        var start = TransferStart(
            total: headers["Content-Length"].flatMap { UInt64($0) } ?? 0, offset: 0,
            version: FileVersion(etag: headers["ETag"] ?? "", lastModified: headers["Last-Modified"] ?? ""),
            contentType: headers["Content-Type"] ?? "")
        if status == 206 {
            guard let range = ContentRange(headers["Content-Range"] ?? ""), range.first == asked else {
                throw Failure(.streamFailed, "\(order.host) sent a different part of the file than was requested.")
            }
            start.offset = asked
            start.total = range.total
            // Some servers omit the version’s header fields in partial responses.
            if start.version.etag.isEmpty { start.version.etag = order.download.version.etag }
            if start.version.lastModified.isEmpty { start.version.lastModified = order.download.version.lastModified }
        }
        start.isPartRefused = status == 200 && asked > 0 && start.version == order.download.version
        try Self.refuse(OtherContent(mediaType: start.contentType), order)
        let folder = folder.marked(order.folder)
        let left = start.total > start.offset ? start.total - start.offset : 0
        try folder.requireSpace(for: left)
        start.isPathFree = try folder.isFree(order.download.targetPath, for: start.total)
        let name = DownloadFolder.partialName(order.episode, start.version)
        let partial = try folder.openPartial(name, of: order.episode, keeping: start.offset)
        guard partial.offset == start.offset else {
            throw Failure(.streamFailed, "The partial file was removed or truncated; the download starts over.")
        }
        report(.began(order.number, start))
        let received = try await read(response.body, order, start, into: partial, report)
        if received == 0 { try Self.refuse(.nothing, order) }
        guard start.total == 0 || received == start.total else {
            throw Failure(.streamFailed, "\(order.host) sent only \(received) of \(start.total) bytes.")
        }
        // A body that ends with the connection may be cut off: only the feed has its expected length.
        guard response.isDelimited || received >= order.download.announcedBytes else {
            let bytes = "\(received) bytes, but the feed announces \(order.download.announcedBytes)"
            throw Failure(.streamFailed, "\(order.host) closed the connection after \(bytes).")
        }
        // A file of unknown length is complete only if its transfer wasn’t cancelled.
        guard start.total > 0 || !Task.isCancelled else {
            try keep(partial, order, start, received, report)
            throw Self.cancelled
        }
        try folder.finish(partial, name, at: order.download.targetPath)
        return received
    }

    private func read(
        _ body: WebBody, _ order: TransferOrder, _ start: TransferStart,
        into partial: borrowing DownloadFolder.Partial, _ report: @Sendable (DownloadsInput) -> Void
    ) async throws -> UInt64 {
        let folder = folder.marked(order.folder)
        var received = start.offset
        // A page is recognised by its first bytes, even if they arrive one by one.
        var beginning: [UInt8] = []
        var pace = Pace(now: SystemClocks.monotonic(), received: received)
        var chunks = body.makeAsyncIterator()
        while true {
            let next: [UInt8]?
            do { next = try await chunks.next(atMost: Self.chunk) } catch {
                try keep(partial, order, start, received, report)
                throw error
            }
            guard let chunk = next else { break }
            if received < OtherContent.beginning {
                beginning += chunk.prefix(OtherContent.beginning - beginning.count)
                try Self.refuse(OtherContent(beginning: beginning), order)
            }
            let bytes = chunk.count
            if start.total > 0, received + UInt64(bytes) > start.total {
                throw Failure(
                    .verificationFailed, "\(order.host) sent more than the \(start.total) bytes that it announced.")
            }
            let now = SystemClocks.monotonic()
            do {
                try chunk.withUnsafeBytes { try folder.write($0, to: partial, at: received) }
                received += UInt64(bytes)
                let isSaveDue = pace.isSaveDue(now)
                if isSaveDue {
                    try folder.save(partial)
                    report(.saved(order.number, received: received))
                }
                if pace.isSpaceCheckDue(received) || isSaveDue {
                    try folder.requireSpace(for: start.total > received ? start.total - received : 0)
                }
            } catch {
                // Earlier bytes are kept if they can be synchronised.
                try? keep(partial, order, start, received, report)
                throw error
            }
            if let speed = pace.speed(at: received, now) {
                report(.progressed(order.number, received: received, bytesPerSecond: speed))
            }
            let wait = state.withLockedValue { $0.bucket.take(bytes, now: now) }
            if wait > .zero { try? await Task.sleep(for: wait) }
            if Task.isCancelled {
                try keep(partial, order, start, received, report)
                throw Self.cancelled
            }
        }
        return received
    }

    private static let cancelled = Failure(.lostInFlight, "The transfer was cancelled.")

    /// Synchronises the fetched bytes to the disk.
    private func keep(
        _ partial: borrowing DownloadFolder.Partial, _ order: TransferOrder, _ start: TransferStart, _ received: UInt64,
        _ report: @Sendable (DownloadsInput) -> Void
    ) throws(Failure) {
        try folder.save(partial)
        report(
            Task.isCancelled
                ? .stopped(episode: order.episode, start.version, received: received)
                : .saved(order.number, received: received))
    }
}
