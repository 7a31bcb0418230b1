import BusKit
import FoundationEssentials
import PlaybackService
import PodcastModel
import TestSupport
import Testing
import WireMessages

/// What a service has opened it closes.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct OpenAndCloseTests {
    /// What this process holds of the system's.
    private struct Holdings {
        var descriptors: Int
        var threads: Int

        static func now() throws -> Holdings {
            let files = FileManager.default
            return Holdings(
                descriptors: try files.contentsOfDirectory(atPath: "/proc/self/fd").count,
                threads: try files.contentsOfDirectory(atPath: "/proc/self/task").count)
        }
    }

    @Test(arguments: [ServiceName.persistence, .playback, .queue, .feeds])
    func aServiceThatOpensAndClosesAHundredTimesLeavesNothing(name: ServiceName) async throws {
        try await WholeFleet.with(name == .persistence ? [] : [.persistence]) { fleet in
            @Sendable func once() async throws {
                try fleet.start(name)
                try await fleet.untilReady([name])
                await fleet.stop(name)
                try await fleet.watcher.until("it has left") { $0.replica.ready[name] == nil }
            }
            for _ in 0..<5 { try await once() }
            let before = try Holdings.now()
            for _ in 0..<100 { try await once() }
            // Other tests hold something too, but not for long; what is left behind a hundred times stays.
            var after = try Holdings.now()
            var looks = 0
            while after.descriptors > before.descriptors + 40 || after.threads > before.threads + 20, looks < 200 {
                try await once()
                after = try Holdings.now()
                looks += 1
            }
            #expect(after.descriptors <= before.descriptors + 40)
            #expect(after.threads <= before.threads + 20)
        }
    }
}
