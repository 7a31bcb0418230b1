import LibC
import NIOConcurrencyHelpers
import PodcastModel
import TestSupport
import Testing

@testable import WebClient

/// Tests that the client’s thread is started and stopped.
@Suite(.timeLimit(.minutes(1))) struct TransferMailboxTests {
    private let steps = NIOLockedValueBox<[String]>([])

    private func record(_ step: String) { steps.withLockedValue { $0.append(step) } }

    private func start(_ mailbox: TransferMailbox) throws {
        mailbox.post(.start(try request("http://a.example/"), Exchange(number: 1, mailbox: mailbox)))
    }

    @Test func `shutdown waits until all connections are closed`() async throws {
        let mailbox = TransferMailbox { mailbox in
            while !mailbox.removeMessages().isShut { usleep(1_000) }
            #expect(mailbox.close())
            // Closing the connections takes time.
            usleep(50_000)
            record("closed")
        }
        try start(mailbox)
        await mailbox.shutdown()
        record("shut down")
        #expect(steps.withLockedValue(\.self) == ["closed", "shut down"])
    }

    @Test func `shutdown waits until an idle thread has closed its connections`() async throws {
        let (closing, isClosing) = AsyncStream.makeStream(of: Void.self)
        let mailbox = TransferMailbox { mailbox in
            _ = mailbox.removeMessages()
            #expect(mailbox.close())
            isClosing.finish()
            usleep(50_000)
            record("closed")
        }
        try start(mailbox)
        for await _ in closing {}
        await mailbox.shutdown()
        record("shut down")
        #expect(steps.withLockedValue(\.self) == ["closed", "shut down"])
    }
}
