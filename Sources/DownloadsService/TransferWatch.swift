import BusKit
import NIOConcurrencyHelpers
import PodcastModel

/// To whom a transfer reports, and who ends it when its server says nothing for too long.
struct TransferWatch: Sendable {
    let report: @Sendable (DownloadsInput) -> Void
    let silence: Silence

    func callAsFunction(_ input: DownloadsInput) { report(input) }
}

/// How long a server has said nothing while it was waited for: what a limit of the rate holds back does not count.
final class Silence: Sendable {
    private struct State {
        /// When waiting began; nil: nobody waits.
        var since: MonotonicTime?
        var isTooLong = false
        var hasSpoken = false
    }

    private let limit: Duration
    private let state = NIOLockedValueBox(State())

    init(limit: Duration) { self.limit = limit }

    /// Whether it has ended the transfer.
    var isTooLong: Bool { state.withLockedValue(\.isTooLong) }

    /// Whether the server has begun to answer.
    var hasSpoken: Bool { state.withLockedValue(\.hasSpoken) }

    /// The server begins to answer.
    func breaks() { state.withLockedValue { $0.hasSpoken = true } }

    /// From now on the server is waited for.
    func begins() { state.withLockedValue { $0.since = SystemClocks.monotonic() } }

    /// It has said something.
    func ends() { state.withLockedValue { $0.since = nil } }

    /// Returns when it has been too long, or the task is cancelled.
    func lasts() async {
        while !Task.isCancelled, let rest = rest(at: SystemClocks.monotonic()) { try? await Task.sleep(for: rest) }
    }

    /// How long it may last yet; nil: no longer.
    func rest(at now: MonotonicTime) -> Duration? {
        state.withLockedValue { state in
            guard let since = state.since else { return limit }
            let rest = limit - now.since(since)
            state.isTooLong = rest <= .zero
            return state.isTooLong ? nil : rest
        }
    }
}

/// When to save, to look at the space and to tell of what has come, and how fast it does.
struct Pace {
    private var saved: MonotonicTime
    private var told: MonotonicTime
    private var toldBytes: UInt64
    private var lookedAt: UInt64

    init(now: MonotonicTime, received: UInt64) {
        (saved, told, toldBytes, lookedAt) = (now, now, received, received)
    }

    mutating func isToBeLookedAt(_ received: UInt64, every bytes: UInt64) -> Bool {
        guard received - lookedAt >= bytes else { return false }
        lookedAt = received
        return true
    }

    mutating func isToBeSaved(_ now: MonotonicTime, every interval: Duration) -> Bool {
        guard now.since(saved) >= interval else { return false }
        saved = now
        return true
    }

    /// Bytes a second since it was told last; nil: that is not long ago.
    mutating func speed(at received: UInt64, _ now: MonotonicTime, every interval: Duration) -> Double? {
        let elapsed = now.since(told)
        guard elapsed >= interval else { return nil }
        defer { (told, toldBytes) = (now, received) }
        return Double(received - toldBytes) / (elapsed / .seconds(1))
    }
}
