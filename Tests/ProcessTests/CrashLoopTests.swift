import BusKit
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests that durable work that crashes a service at each start doesn’t keep the service from running.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct CrashLoopTests {
    private static let audio = Tone.wav(seconds: 5)

    private static func feed(_ title: String, _ episodes: [String], at server: HTTPTestServer) -> HTTPTestResponse {
        let items = episodes.map {
            """
            <item><title>\($0)</title><guid>\($0)</guid><pubDate>Mon, 01 Jan 2024 10:00:00 GMT</pubDate>
            <enclosure url="\(server.url("/\($0).wav"))" type="audio/wav" length="\(audio.count)"/></item>
            """
        }
        return .feed(
            """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>\(title)</title>
            <description>x</description>\(items.joined())</channel></rss>
            """)
    }

    private struct Listed: Decodable {
        var id: String
        var title: String
    }

    private static func episode(_ title: String, of fleet: ProcessFleet) async throws -> String {
        let listed = try await fleet.decode([Listed].self, from: "episodes")
        return try #require(listed.first { $0.title == title }).id
    }

    private static func podcast(_ title: String, of fleet: ProcessFleet) async throws -> String {
        let listed = try await fleet.decode([Listed].self, from: "podcasts")
        return try #require(listed.first { $0.title == title }).id
    }

    /// Runs a fleet with a podcast for each title, and restarts it so that a service crashes at one piece of work.
    private func with(
        _ podcasts: [String: [String]], crashingOver key: @escaping @Sendable (ProcessFleet) async throws -> String,
        _ body: @escaping @Sendable (ProcessFleet, FleetObserver) async throws -> Void
    ) async throws {
        try await HTTPTestServer.with { server in
            for (title, episodes) in podcasts {
                server.route("/\(title).xml", Self.feed(title, episodes, at: server))
                for episode in episodes { server.route("/\(episode).wav", .audio(Self.audio, type: "audio/wav")) }
            }
            try await ProcessFleet.with { fleet in
                for title in podcasts.keys.sorted() {
                    try await fleet.succeed("subscribe", server.url("/\(title).xml"))
                }
                let key = try await key(fleet)
                try await fleet.succeed("down")
                let up = try await fleet.lockstep(["up", "--detach"], environment: ["LOCKSTEP_CRASH_INJECTION": key])
                #expect(up.status == 0, "\(up)")
                try await FleetObserver.with(1, of: fleet) { observers in
                    try await observers[0].untilReady()
                    try await body(fleet, observers[0])
                }
            }
        }
    }

    @Test func `a download that crashes the service is quarantined with an alert, and others continue`() async throws {
        try await with(["Show": ["Poison", "Sound"]]) { fleet in
            "transfer:\(try await Self.episode("Poison", of: fleet))"
        } _: { fleet, observer in
            try await fleet.succeed("download", "add", "Poison", "Sound")
            try await observer.until("one download has failed, the other is complete") { view in
                let states = Dictionary(view.downloads.values.map { ($0.title, $0.state) }) { first, _ in first }
                return states == ["Poison": .failed, "Sound": .downloaded]
            }
            try await observer.untilReady()
            let failed = try #require(observer.view.downloads.values.first { $0.state == .failed })
            #expect(failed.error.code == FailureCode.quarantined.rawValue)
            #expect(try await fleet.crashes() == ["downloads": 2])
            let alert = try #require(observer.view.alerts.values.first { $0.episode == failed.episode })
            #expect(alert.message.contains("crashed 2 times") && alert.actions.contains("retry"))
            // A new request gets one more attempt, which ends like the others.
            try await fleet.succeed("alerts", "answer", alert.id, "retry")
            try await observer.until("the download is set aside again") { view in
                view.alerts.values.contains { $0.episode == failed.episode && $0.id != alert.id }
            }
            #expect(try await fleet.crashes() == ["downloads": 3])
        }
    }

    @Test func `a feed that crashes the service fails, and others are refreshed`() async throws {
        try await with(["Poison": ["One"], "Sound": ["Two"]]) { fleet in
            "feed:\(try await Self.podcast("Poison", of: fleet))"
        } _: { fleet, observer in
            let refresh = try await fleet.lockstep(["refresh"])
            #expect(refresh.errors.contains("crashed 2 times") && refresh.status != 0, "\(refresh)")
            try await observer.untilReady()
            #expect(try await fleet.crashes() == ["feeds": 2])
            let outcome = try await fleet.lockstep(["refresh", "Sound"])
            #expect(outcome.status == 0, "\(outcome)")
        }
    }
}
