import PodcastModel
import WireMessages
import ZeroMQ

/// The messages that wait for slow clients, in order. libzmq holds a few for each client; the others wait here, within
/// limits, until the client reads or times out. Events for slow subscribers don’t wait here:
/// `BrokerLimits.messagesToSubscriber` bounds them.
struct ReplyOutbox: Sendable {
    struct Limits: Sendable {
        /// The maximum number of waiting replies and failures for one client.
        var messages = 64
        /// The maximum size of one client’s waiting messages, in bytes.
        var bytes = 16 << 20
        /// The maximum size of the waiting messages of all clients together, in bytes.
        var totalBytes = 64 << 20
        /// The time without reading after which a client’s waiting messages are dropped; it must request them again.
        var stall: Duration = .seconds(2)
        /// The time after which an incomplete reply to a fetch is dropped, because it keeps its events in memory.
        var answer: Duration = .seconds(60)
        /// The wait between two send attempts: at first, and for a client that stays blocked.
        var retry: (first: Duration, later: Duration) = (.milliseconds(2), .milliseconds(20))
    }

    private enum Item {
        case message(Message)
        case answer(FetchAnswer, until: MonotonicTime)
    }

    private struct Waiting {
        var items: [Item] = []
        var bytes = 0
        var messages = 0
        var lastProgress: MonotonicTime
        var nextAttempt: MonotonicTime
    }

    private let limits: Limits
    private var clients: [Frame: Waiting] = [:]
    private(set) var bytes = 0
    /// The number of messages and answers that were dropped.
    private(set) var dropped = 0
    private var reported = 0
    private var nextReport: MonotonicTime?

    init(limits: Limits = Limits()) {
        self.limits = limits
    }

    var count: Int { clients.count }

    /// The time at which `flush` is due; nil if nothing waits.
    var deadline: MonotonicTime? { clients.values.lazy.map(\.nextAttempt).min() }

    /// Sends a message to a client, after its waiting messages.
    mutating func send(_ message: Message, now: MonotonicTime, _ send: (Message) throws -> SendOutcome) rethrows {
        guard let client = message.first else { return }
        if clients[client] == nil {
            guard try send(message) == .wouldBlock else { return }
        }
        let size = message.reduce(0) { $0 + $1.count }
        var waiting = clients[client] ?? started(now)
        guard waiting.messages < limits.messages, waiting.bytes + size <= limits.bytes,
            bytes + size <= limits.totalBytes
        else {
            dropped += 1
            return
        }
        waiting.items.append(.message(message))
        waiting.messages += 1
        waiting.bytes += size
        bytes += size
        clients[client] = waiting
    }

    /// Begins a reply to a fetch. It replaces a waiting one to the same client, which has joined again.
    mutating func send(_ answer: FetchAnswer, now: MonotonicTime, _ send: (Message) throws -> SendOutcome) rethrows {
        var answer = answer
        let client = answer.client
        guard var waiting = clients[client] else {
            guard try answer.send(send) == .wouldBlock else { return }
            var waiting = started(now)
            waiting.items.append(.answer(answer, until: now.advanced(by: limits.answer)))
            clients[client] = waiting
            return
        }
        waiting.items.removeAll { if case .answer = $0 { true } else { false } }
        waiting.items.append(.answer(answer, until: now.advanced(by: limits.answer)))
        clients[client] = waiting
    }

    mutating func flush(now: MonotonicTime, _ send: (Message) throws -> SendOutcome) rethrows {
        for (client, waiting) in clients where waiting.nextAttempt <= now {
            bytes -= waiting.bytes
            clients[client] = nil
            guard let rest = try flush(waiting, now: now, send) else { continue }
            bytes += rest.bytes
            clients[client] = rest
        }
    }

    /// Sends waiting messages. Returns those that weren’t accepted; nil if there are none.
    private mutating func flush(
        _ waiting: Waiting, now: MonotonicTime, _ send: (Message) throws -> SendOutcome
    ) rethrows -> Waiting? {
        var waiting = waiting
        while let item = waiting.items.first {
            let outcome: SendOutcome
            switch item {
            case .message(let message):
                outcome = try send(message)
                if outcome == .sent {
                    waiting.bytes -= message.reduce(0) { $0 + $1.count }
                    waiting.messages -= 1
                }
            case .answer(_, let end) where now >= end:
                dropped += 1
                waiting.items.removeFirst()
                continue
            case .answer(var answer, let end):
                outcome = try answer.send {
                    let outcome = try send($0)
                    if outcome == .sent { waiting.lastProgress = now }
                    return outcome
                }
                waiting.items[0] = .answer(answer, until: end)
            }
            switch outcome {
            case .sent:
                waiting.items.removeFirst()
                waiting.lastProgress = now
            case .unreachable: return nil
            case .wouldBlock:
                let idle = now.since(waiting.lastProgress)
                guard idle < limits.stall else {
                    dropped += waiting.items.count
                    return nil
                }
                waiting.nextAttempt = now.advanced(
                    by: idle < .milliseconds(50) ? limits.retry.first : limits.retry.later)
                return waiting
            }
        }
        return nil
    }

    /// The line to log about newly dropped messages, at most every ten seconds.
    mutating func report(now: MonotonicTime) -> String? {
        guard dropped > reported, nextReport.map({ now >= $0 }) ?? true else { return nil }
        defer { (reported, nextReport) = (dropped, now.advanced(by: .seconds(10))) }
        return "dropped \(dropped - reported) replies and answers that clients do not read, \(dropped) in all"
    }

    private func started(_ now: MonotonicTime) -> Waiting {
        Waiting(lastProgress: now, nextAttempt: now.advanced(by: limits.retry.first))
    }
}
