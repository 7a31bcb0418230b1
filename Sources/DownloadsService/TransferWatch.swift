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
    }

    private let limit: Duration
    private let state = NIOLockedValueBox(State())

    init(limit: Duration) { self.limit = limit }

    /// Whether it has ended the transfer.
    var isTooLong: Bool { state.withLockedValue(\.isTooLong) }

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
