import CCurl
import PodcastModel

/// Runs all transfers of a client on one thread, with libcurl’s multi interface. Only that thread accesses its state:
/// libcurl forbids the use of a handle by two threads, and runs callbacks on the thread of the handle.
final class TransferLoop {
    private let mailbox: TransferMailbox
    private let options: WebClientOptions
    private var transfers: [UInt64: Transfer] = [:]
    private var idleSince: MonotonicTime?

    init(mailbox: TransferMailbox, options: WebClientOptions) {
        (self.mailbox, self.options) = (mailbox, options)
    }

    func run() {
        var reason = [CChar](repeating: 0, count: 256)
        guard ccurl_open(&reason, reason.count), let multi = ccurl_multi_new() else {
            let bytes = reason.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            refuseAll(.unavailable(bytes.isEmpty ? "libcurl has no memory" : String(decoding: bytes, as: UTF8.self)))
            return
        }
        _ = ccurl_multi_set(multi, CURLMOPT_MAX_HOST_CONNECTIONS, options.connectionsPerHost)
        _ = ccurl_multi_set(multi, CURLMOPT_MAXCONNECTS, 16)
        mailbox.opened(multi)
        while true {
            let (messages, isShut) = mailbox.removeMessages()
            for message in messages { handle(message, multi) }
            if isShut { for transfer in transfers.values { end(transfer, .cancelled, multi) } }
            guard ccurl_multi_perform(multi) == CURLM_OK else {
                for transfer in transfers.values { end(transfer, .unavailable("libcurl reports a failure"), multi) }
                refuseAll(.unavailable("libcurl reports a failure"))
                break
            }
            reap(multi)
            let now = options.clock()
            for transfer in transfers.values { transfer.pauseIfFull() }
            for transfer in transfers.values {
                if let failure = transfer.expired(at: now) { end(transfer, failure, multi) }
            }
            if isDone(now, isShut), mailbox.close() { break }
            _ = ccurl_multi_poll(multi, milliseconds(untilNextFrom: now))
        }
        ccurl_multi_free(multi)
    }

    // MARK: Messages

    private func handle(_ message: TransferMailbox.Message, _ multi: UnsafeMutableRawPointer) {
        switch message {
        case .start(let request, let exchange):
            guard let transfer = Transfer(request, exchange, options: options, now: options.clock()) else {
                return exchange.fail(.unavailable("libcurl has no memory"))
            }
            transfers[exchange.number] = transfer
            begin(transfer, multi)
        case .resume(let number): transfers[number]?.resume(now: options.clock())
        case .cancel(let number): if let transfer = transfers[number] { end(transfer, .cancelled, multi) }
        }
    }

    private func begin(_ transfer: Transfer, _ multi: UnsafeMutableRawPointer) {
        if let failure = transfer.configure() { return end(transfer, failure, multi) }
        guard ccurl_multi_add(multi, transfer.easy) == CURLM_OK else {
            return end(transfer, .unavailable("libcurl refuses the transfer"), multi)
        }
    }

    /// Fails the waiting requests, and those that arrive until the thread has ended.
    private func refuseAll(_ failure: WebFailure) {
        repeat {
            for case .start(_, let exchange) in mailbox.removeMessages().messages { exchange.fail(failure) }
        } while !mailbox.close()
    }

    // MARK: Ends

    private func reap(_ multi: UnsafeMutableRawPointer) {
        var code = CURLE_OK
        while let easy = ccurl_multi_ended(multi, &code) {
            guard let transfer = transfers.values.first(where: { $0.easy == easy }) else { continue }
            switch transfer.ended(code, now: options.clock()) {
            case .complete: end(transfer, nil, multi)
            case .failed(let failure): end(transfer, failure, multi)
            case .redirected:
                _ = ccurl_multi_remove(multi, transfer.easy)
                begin(transfer, multi)
            }
        }
    }

    private func end(_ transfer: Transfer, _ failure: WebFailure?, _ multi: UnsafeMutableRawPointer) {
        _ = ccurl_multi_remove(multi, transfer.easy)
        transfers[transfer.exchange.number] = nil
        transfer.close()
        if let failure { transfer.exchange.fail(failure) } else { transfer.exchange.finish() }
    }

    // MARK: Time

    private func isDone(_ now: MonotonicTime, _ isShut: Bool) -> Bool {
        guard transfers.isEmpty else {
            idleSince = nil
            return false
        }
        let since = idleSince ?? now
        idleSince = since
        return isShut || now.since(since) >= options.idleTimeout
    }

    private func milliseconds(untilNextFrom now: MonotonicTime) -> Int32 {
        var next = idleSince.map { $0.advanced(by: options.idleTimeout) } ?? now.advanced(by: .seconds(60))
        for transfer in transfers.values { if let deadline = transfer.deadline { next = min(next, deadline) } }
        let wait = next.since(now) / .milliseconds(1)
        return Int32(min(max(wait.rounded(.up), 0), 60_000))
    }
}
