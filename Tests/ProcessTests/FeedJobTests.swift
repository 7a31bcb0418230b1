import BusKit
import Foundation
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests jobs of the feeds service in real processes.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct FeedJobTests {
    private static func feed(_ number: Int, _ server: HTTPTestServer) -> String {
        """
        <rss version="2.0"><channel><title>Show \(number)</title>
        <item><title>Part</title><guid>\(number)</guid>
        <enclosure url="\(server.url("/\(number).mp3"))" type="audio/mpeg"/></item></channel></rss>
        """
    }

    @Test func `a job continues after kill -9 of the service, and no feed is lost or doubled`() async throws {
        try await HTTPTestServer.with { server in
            for number in 0..<30 { server.route("/\(number)", .feed(Self.feed(number, server))) }
            for number in [3, 17] { server.route("/\(number)", .stalled(then: Self.feed(number, server))) }
            server.route("/9", .status(404))
            try await ProcessFleet.with { fleet in
                try await FleetObserver.with(1, of: fleet) { observers in
                    let observer = observers[0]
                    try await observer.untilReady()
                    let request = WireFeedsRequest.with { request in
                        request.addFeeds.outlines = (0..<30).map { number in
                            .with { $0.url = server.url("/\(number)") }
                        }
                    }
                    let reply = try await observer.client.ask(
                        .feeds, request, reply: WireFeedsReply.self, within: .seconds(30)
                    ).reply
                    let id = reply.job
                    for kill in 0..<2 {
                        try await observer.until("the job waits for the stalled feeds") {
                            $0.jobs[id].map { $0.total == 30 && $0.done == 28 } ?? false
                        }
                        #expect(observer.view.podcasts.values.count { $0.subscribed } == 30)
                        let generation = observer.view.replica.ready[.feeds] ?? 0
                        if kill == 1 {
                            server.release("/3")
                            try await observer.until("a stalled feed arrives") { $0.jobs[id]?.done == 29 }
                        }
                        #expect(fleet.signal("feeds", SIGKILL) != nil)
                        try await observer.until("the service is ready again") {
                            $0.replica.ready[.feeds] ?? 0 > generation
                        }
                    }
                    server.release("/17")
                    try await observer.until("the job has ended") { $0.jobs[id].map { $0.ended > 0 } ?? false }
                    let job = try #require(observer.view.jobs[id])
                    #expect(job.done == 30 && job.failed == 1, "\(job)")
                    #expect(job.failures.map(\.name) == [server.url("/9")])
                    let results = try await observer.client.ask(
                        .feeds, WireFeedsRequest.with { $0.jobResults.job = id }, reply: WireFeedsReply.self,
                        within: .seconds(30)
                    ).reply.results
                    #expect(results.count { $0.kind == .added } == 29 && results.count == 30)
                    let podcasts = observer.view.podcasts.values
                    #expect(podcasts.count == 30 && podcasts.allSatisfy { $0.subscribed })
                    #expect(podcasts.count { $0.episodeCount == 1 } == 29)
                }
            }
        }
    }
}
