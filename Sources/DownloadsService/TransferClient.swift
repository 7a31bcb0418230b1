import NIOConcurrencyHelpers
import PodcastModel
import ProcessKit
import WebClient

/// Fetches files: each in a task of its own, all within one limit.
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

    /// How often fetched bytes are brought to the disk and told of.
    private static let savesAfter = Duration.seconds(10)
    private static let tellsAfter = Duration.milliseconds(250)
    /// After so many bytes the free space is looked at again: less than the reserve, so that that is never used up.
    private static let looksAfter: UInt64 = 8 << 20
    /// So many bytes are written at once: a limit of the rate holds between two writes.
    private static let chunk = 64 << 10

    /// - Parameter stall: how long a server may say nothing.
    init(folder: DownloadFolder, stall: Duration, secrets: SecretsReader) {
        var options = WebClientOptions()
        // How many at once is the machine’s to decide.
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
                do throws(TransferFailure) {
                    let bytes = try await self.fetch(order, report)
                    // Also when it was to end: the file is at its place.
                    report(.completed(order.number, bytes: bytes))
                } catch {
                    if !Task.isCancelled { report(.failed(order.number, error)) }
                }
                self.state.withLockedValue { _ = $0.tasks.removeValue(forKey: order.number) }
            }
        }
    }

    /// Ends a transfer; returns when nothing more is written.
    func cancel(_ number: UInt64) async {
        let task = state.withLockedValue { $0.tasks.removeValue(forKey: number) }
        task?.cancel()
        await task?.value
    }

    func limit(bytesPerSecond: UInt64) {
        state.withLockedValue { $0.bucket.set(rate: bytesPerSecond, now: SystemClocks.monotonic()) }
    }

    func shutdown() async {
        for number in state.withLockedValue({ Array($0.tasks.keys) }) { await cancel(number) }
        await client.shutdown()
    }

    // MARK: A transfer

    /// The folder, which must be the one that is meant at each step.
    private func folder(of order: TransferOrder) -> DownloadFolder {
        var folder = folder
        folder.marker = order.folder
        return folder
    }

    private func fetch(
        _ order: TransferOrder, _ report: @escaping @Sendable (DownloadsInput) -> Void
    ) async throws(TransferFailure) -> UInt64 {
        let folder = folder(of: order)
        let name = DownloadFolder.partialName(order.episode, order.version)
        let kept = order.version.condition.isEmpty ? 0 : order.received
        try check { () throws(Failure) in try folder.requireSpace(for: 0) }
        var offset: UInt64 = 0
        if kept > 0 {
            let partial = try check { () throws(Failure) -> DownloadFolder.Partial in
                try folder.openPartial(name, of: order.episode, keeping: kept)
            }
            offset = partial.offset
        }
        let response = try await send(order, from: offset)
        if response.status == 416, offset > 0 {
            return try await receive(order, try await send(order, from: 0), from: 0, report)
        }
        return try await receive(order, response, from: offset, report)
    }

    private func send(_ order: TransferOrder, from offset: UInt64) async throws(TransferFailure) -> WebResponse {
        // One that an older version stored may be of any kind.
        guard let address = WebAddress(order.url), !address.isFile else {
            throw TransferFailure(.unusableAddress(order.url))
        }
        var request = WebRequest(address)
        request.headers.add("Accept", "audio/*, video/*;q=0.9, */*;q=0.5")
        request.credentials = secrets.credentials(of: order.podcast)
        request.decompresses = false
        // Limits of the rate, and slow disks, are to hold the server back.
        request.sharesConnection = false
        request.timeLimits.silence = stall
        if offset > 0 { request.range = WebRange(from: offset, ifRange: order.version.condition) }
        do throws(WebFailure) { return try await client.send(request) } catch { throw Self.connection(error) }
    }

    private func receive(
        _ order: TransferOrder, _ response: WebResponse, from asked: UInt64,
        _ report: @Sendable (DownloadsInput) -> Void
    ) async throws(TransferFailure) -> UInt64 {
        let headers = response.headers
        let status = response.status
        guard status == 200 || status == 206 && asked > 0 else { throw Self.refused(response, order) }
        var start = TransferStart(
            total: headers["Content-Length"].flatMap { UInt64($0) } ?? 0, offset: 0,
            version: FileVersion(etag: headers["ETag"] ?? "", lastModified: headers["Last-Modified"] ?? ""),
            contentType: headers["Content-Type"] ?? "")
        if status == 206 {
            guard let range = ContentRange(headers["Content-Range"] ?? ""), range.first == asked else {
                throw TransferFailure(
                    Failure(.streamFailed, "\(order.host) sent another part of the file than was asked for."))
            }
            start.offset = asked
            start.total = range.total
            // Some leave them out of a part.
            if start.version.etag.isEmpty { start.version.etag = order.version.etag }
            if start.version.lastModified.isEmpty { start.version.lastModified = order.version.lastModified }
        }
        start.isPartRefused = status == 200 && asked > 0 && start.version == order.version
        try Self.verify(type: start.contentType, order)
        let folder = folder(of: order)
        let left = start.total > start.offset ? start.total - start.offset : 0
        start.isPlaceFree = try check { () throws(Failure) in
            try folder.requireSpace(for: left)
            return try folder.isFree(order.path, for: start.total)
        }
        let name = DownloadFolder.partialName(order.episode, start.version)
        let partial = try check { () throws(Failure) -> DownloadFolder.Partial in
            try folder.openPartial(name, of: order.episode, keeping: start.offset)
        }
        guard partial.offset == start.offset else {
            throw TransferFailure(
                Failure(.streamFailed, "The partial file is gone; the download starts over."))
        }
        report(.began(order.number, start))
        let received = try await read(response.body, order, start, into: partial, report)
        guard received > 0 else {
            throw Self.refused(.nothing, order)
        }
        guard start.total == 0 || received == start.total else {
            throw TransferFailure(
                Failure(.streamFailed, "\(order.host) sent \(received) bytes of \(start.total)."))
        }
        // An end that is the end of the connection may be a cut: the feed's word is all there is to tell by.
        guard response.isDelimited || received >= order.announced else {
            throw TransferFailure(
                Failure(
                    .streamFailed,
                    "\(order.host) closed the connection after \(received) bytes, and the feed announces \(order.announced)."
                ))
        }
        // Of a file whose length nobody said, only a body that nobody ended is known to be whole.
        guard start.total > 0 || !Task.isCancelled else {
            try keep(partial, order, start, received, report)
            throw Self.cancelled
        }
        try check { () throws(Failure) in try folder.finish(partial, name, at: order.path) }
        return received
    }

    private func read(
        _ body: WebBody, _ order: TransferOrder, _ start: TransferStart,
        into partial: borrowing DownloadFolder.Partial, _ report: @Sendable (DownloadsInput) -> Void
    ) async throws(TransferFailure) -> UInt64 {
        let folder = folder(of: order)
        var received = start.offset
        // A page is known by its first bytes, however many of them come at once.
        var beginning: [UInt8] = []
        var pace = Pace(now: SystemClocks.monotonic(), received: received)
        var chunks = body.makeAsyncIterator()
        while true {
            let next: [UInt8]?
            do throws(WebFailure) { next = try await chunks.next(atMost: Self.chunk) } catch {
                try keep(partial, order, start, received, report)
                throw Self.connection(error)
            }
            guard let chunk = next else { break }
            if received < OtherContent.beginning {
                beginning += chunk.prefix(OtherContent.beginning - beginning.count)
                try Self.verify(beginning: beginning, order)
            }
            let bytes = chunk.count
            if start.total > 0, received + UInt64(bytes) > start.total {
                throw TransferFailure(
                    Failure(
                        .verificationFailed, "\(order.host) sent more than the \(start.total) bytes that it announced.")
                )
            }
            let now = SystemClocks.monotonic()
            do throws(Failure) {
                try Self.withBytes(of: chunk) { bytes throws(Failure) in
                    try folder.write(bytes, to: partial, at: received)
                }
                received += UInt64(bytes)
                let isToBeSaved = pace.isToBeSaved(now, every: Self.savesAfter)
                if isToBeSaved {
                    try folder.save(partial)
                    report(.saved(order.number, received: received))
                }
                if pace.isToBeLookedAt(received, every: Self.looksAfter) || isToBeSaved {
                    try folder.requireSpace(for: start.total > received ? start.total - received : 0)
                }
            } catch {
                // What came before is worth keeping, if the disk takes that.
                try? keep(partial, order, start, received, report)
                throw TransferFailure(error)
            }
            if let speed = pace.speed(at: received, now, every: Self.tellsAfter) {
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

    private static let cancelled = TransferFailure(Failure(.lostInFlight, "It was ended."))

    /// What has come is worth keeping.
    private func keep(
        _ partial: borrowing DownloadFolder.Partial, _ order: TransferOrder, _ start: TransferStart, _ received: UInt64,
        _ report: @Sendable (DownloadsInput) -> Void
    ) throws(TransferFailure) {
        try check { () throws(Failure) in try folder.save(partial) }
        report(
            Task.isCancelled
                ? .stopped(episode: order.episode, start.version, received: received)
                : .saved(order.number, received: received))
    }

    /// The bytes in memory, with the error's type kept.
    private static func withBytes(
        of bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        let outcome = bytes.withUnsafeBytes { bytes -> Result<Void, Failure> in
            do throws(Failure) { return .success(try body(bytes)) } catch { return .failure(error) }
        }
        try outcome.get()
    }

    private func check<Value: ~Copyable>(_ body: () throws(Failure) -> Value) throws(TransferFailure) -> Value {
        do throws(Failure) { return try body() } catch { throw TransferFailure(error) }
    }
}
