import PodcastModel
import Testing

@testable import WebClient

/// Tests the end of a body under concurrent events.
@Suite(.timeLimit(.minutes(1))) struct ExchangeTests {
    private let exchange = Exchange(number: 1, mailbox: TransferMailbox(options: WebClientOptions()))

    private func append(_ count: Int) {
        [UInt8](repeating: 7, count: count).withUnsafeBytes { exchange.append($0) }
    }

    private func failure() async -> WebFailure? {
        do throws(WebFailure) {
            while try await exchange.next(atMost: .max) != nil {}
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [0, 1, 999]) func `a body that was cancelled with bytes unread is never complete`(
        taken: Int
    ) async throws {
        append(1_000)
        exchange.finish()
        if taken > 0 { #expect(try await exchange.next(atMost: taken)?.count == taken) }
        exchange.cancel()
        #expect(await failure()?.kind == .cancelled)
        #expect(await failure()?.kind == .cancelled)
    }

    @Test func `a body that is cancelled in a cancelled task is never complete`() async {
        append(1_000)
        exchange.finish()
        let reading = Task {
            // The task is cancelled before it reads.
            withUnsafeCurrentTask { $0?.cancel() }
            return await failure()
        }
        #expect(await reading.value?.kind == .cancelled)
    }

    @Test func `a cancellation after the end of a body has no effect`() async throws {
        append(1_000)
        exchange.finish()
        #expect(try await exchange.next(atMost: .max)?.count == 1_000)
        exchange.cancel()
        #expect(await failure() == nil)
    }

    @Test func `a body that was cancelled before its end doesn’t complete when the transfer ends`() async {
        append(1_000)
        exchange.cancel()
        append(1_000)
        exchange.finish()
        #expect(await failure()?.kind == .cancelled)
    }
}
