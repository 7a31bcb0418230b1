import BusKit
import FoundationEssentials
import LibC
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import FleetSupervisor

@Suite(.serialized, .timeLimit(.minutes(1))) struct AlertLinkTests {
    @Test func `alerts appear without a request once the supervisor can join the bus`() async throws {
        let alerts = "stream/supervisor/alert/"
        try await TestFleet.with { (fleet: TestFleet) async throws -> Void in
            // A folder at the path of the generation file makes joining fail until it is removed.
            let obstacle = fleet.home.stateFile("supervisor.generation")
            try FileManager.default.createDirectory(atPath: obstacle + "/x", withIntermediateDirectories: true)
            let link = try AlertLink(home: fleet.home, backoff: .constant(.milliseconds(50)))
            link.show(.doesNotStart("queue doesn’t start."), of: "queue")
            var waiting = pollfd(fd: link.descriptor, events: Int16(POLLIN), revents: 0)
            #expect(poll(&waiting, 1, 10_000) == 1)
            let event = try #require(link.removeEvents().first)
            guard case .failed = event else {
                Issue.record("joining succeeded: \(event)")
                return
            }
            try FileManager.default.removeItem(atPath: obstacle)
            let isShown = try await fleet.withClient { (client: BusClient) async throws -> Bool in
                for await update in client.updates() {
                    switch update {
                    case .event(let event): if event.topic.text.hasPrefix(alerts) { return true }
                    case .snapshot(let replica):
                        if replica.entries.keys.contains(where: { $0.text.hasPrefix(alerts) }) { return true }
                    default: continue
                    }
                }
                return false
            }
            #expect(isShown)
            link.stop()
        }
    }
}
