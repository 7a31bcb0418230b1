import PodcastModel
import TestSupport
import Testing
import WireMessages

/// Tests playlists of the real services with a database, whose queue service is killed in between.
@Suite(.timeLimit(.minutes(3)))
struct PlaylistServiceTests {
    @Test func `the services fulfil the contract of playlists`() async throws {
        try await WholeFleet.with([.persistence, .playback, .queue]) { fleet in
            try await fleet.fillLibrary(episodes: 20)
            let contract = PlaylistContract(episode: WholeFleet.episode) { request in
                try await fleet.queue { $0 = request }
            } restart: {
                try await fleet.restart(.queue)
                try await fleet.untilReady([.queue])
            } settle: {
                try await ContinuousClock().sleep(for: .milliseconds(20))
            }
            try await contract.check()
        }
    }
}
