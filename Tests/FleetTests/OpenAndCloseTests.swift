import BusKit
import LockstepClient
import PlaybackService
import PodcastModel
import TestSupport
import Testing
import WireMessages

/// Tests that a service closes everything that it opens.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct OpenAndCloseTests {
    @Test(arguments: [ServiceName.persistence, .playback, .queue, .feeds])
    func `a service that opens and closes a hundred times leaks nothing`(name: ServiceName) async throws {
        try await WholeFleet.with(name == .persistence ? [] : [.persistence]) { fleet in
            @Sendable func once() async throws {
                try fleet.start(name)
                try await fleet.untilReady([name])
                await fleet.stop(name)
                try await fleet.watcher.until("the service has left") { $0.replica.ready[name] == nil }
            }
            for _ in 0..<5 { try await once() }
            let before = (descriptors: ThisProcess.descriptors, threads: ThisProcess.threads)
            for _ in 0..<100 { try await once() }
            // Other tests hold descriptors and threads only briefly, whereas a hundred leaks would persist.
            var attempts = 0
            while ThisProcess.descriptors > before.descriptors + 40 || ThisProcess.threads > before.threads + 20,
                attempts < 200
            {
                try await once()
                attempts += 1
            }
            #expect(ThisProcess.descriptors <= before.descriptors + 40)
            #expect(ThisProcess.threads <= before.threads + 20)
        }
    }
}
