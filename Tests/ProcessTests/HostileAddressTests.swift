import BusKit
import Foundation
import LockstepClient
import PodcastModel
import TestSupport
import Testing
import WireMessages

/// Tests that addresses that once trapped a service get an error and crash no service.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct HostileAddressTests {
    private static let addresses = [
        "http://]/", "http://[::", "http://]/x", "http://a b/", "http://%00/", "http://[::1]x/", "http://a:99999/",
        "http://0x7f.1/", "http://\u{202e}a/", "file://]/x", "feed://]/", "gopher://a/", "http://user:%00@a/",
        "http://a/" + String(repeating: "x", count: 9_000),
    ]

    private static func expectNoCrash(_ fleet: ProcessFleet, _ what: Comment) async throws {
        #expect(try await fleet.services().values.allSatisfy { $0.state != "failed" }, what)
        #expect(try await fleet.crashes().isEmpty, what)
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
    }

    @Test func `a malformed address in a command is an error and crashes no process`() async throws {
        try await ProcessFleet.with { fleet in
            for address in Self.addresses {
                for command in [["subscribe", address], ["feed", "check", address], ["play", address]] {
                    let outcome = try await fleet.lockstep(command)
                    #expect([64, 65, 69, 75].contains(outcome.status), "\(command): \(outcome.status)")
                    #expect(!outcome.errors.isEmpty)
                }
            }
            try await Self.expectNoCrash(fleet, "commands")
        }
    }

    @Test func `malformed addresses in a feed or a redirect crash no process`() async throws {
        try await HTTPTestServer.with { server in
            try await ProcessFleet.with { fleet in
                for (number, address) in Self.addresses.enumerated() {
                    let hostile = Self.escaped(address)
                    let feed = """
                        <rss xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"
                          xmlns:podcast="https://podcastindex.org/namespace/1.0"><channel><title>Feed \(number)</title>
                        <link>\(hostile)</link><itunes:image href="\(hostile)"/>
                        <itunes:new-feed-url>\(hostile)</itunes:new-feed-url>
                        <item><title>Bad \(number)</title><guid>bad</guid><enclosure url="\(hostile)" type="audio/mpeg"/></item>
                        <item><title>Good \(number)</title><guid>good</guid><link>\(hostile)</link>
                        <itunes:image href="\(hostile)"/><podcast:chapters url="\(hostile)" type="application/json+chapters"/>
                        <enclosure url="/redirect-\(number)" type="audio/mpeg"/></item></channel></rss>
                        """
                    server.route("/feed-\(number)", .feed(feed))
                    server.route("/redirect-\(number)", .redirect(to: address))
                    try await fleet.succeed("subscribe", server.url("/feed-\(number)"))
                    let redirected = try await fleet.lockstep(["subscribe", server.url("/redirect-\(number)")])
                    #expect([65, 69, 75].contains(redirected.status), "\(address): \(redirected.status)")
                }
                // The player retries a stream several times before it fails.
                _ = try await fleet.lockstep(["play", "Good 0"])
                for number in Self.addresses.indices.prefix(5) {
                    for command in [["download", "add", "Good \(number)"], ["show", "Good \(number)"]] {
                        _ = try await fleet.lockstep(command)
                    }
                }
                try await Self.expectNoCrash(fleet, "feeds")
            }
        }
    }

    @Test func `a malformed stored address fails its episode or podcast and crashes no process`() async throws {
        try await HTTPTestServer.with { server in
            try await ProcessFleet.with { fleet in
                let items = (1...3).map { number in
                    "<item><title>Part \(number) of all</title><guid>\(number)</guid>"
                        + "<enclosure url=\"/\(number).mp3\" type=\"audio/mpeg\" length=\"9\"/></item>"
                }
                server.route("/feed", .feed("<rss><channel><title>All</title>\(items.joined())</channel></rss>"))
                for number in 1...3 { server.route("/\(number).mp3", .stalled()) }
                try await fleet.succeed("subscribe", server.url("/feed"))
                try await fleet.succeed("queue", "add", "Part 2 of all")
                try await fleet.succeed("download", "add", "Part 1 of all")
                await server.stalled(at: "/1.mp3")
                try await fleet.succeed("down")
                let database = URL(fileURLWithPath: fleet.home.database)
                var bytes = [UInt8](try Data(contentsOf: database))
                let count = Self.replace(Array("http://127.".utf8), with: Array("http://]27.".utf8), in: &bytes)
                #expect(count > 4)
                try Data(bytes).write(to: database)

                try await fleet.up()
                for command in [["refresh"], ["play", "Part 2 of all"], ["download", "add", "Part 3 of all"]] {
                    let outcome = try await fleet.lockstep(command)
                    #expect(outcome.status != 0, "\(command): \(outcome.output)")
                    #expect((outcome.errors + outcome.output).contains("isn’t"), "\(command): \(outcome.errors)")
                }
                try await FleetObserver.with(1, of: fleet) { observers in
                    try await observers[0].until("the stored download has failed") { view in
                        view.alertsInOrder.contains { $0.code == "downloadFailed" }
                    }
                }
                try await Self.expectNoCrash(fleet, "stored addresses")
            }
        }
    }

    /// Returns the number of replacements.
    private static func replace(_ old: [UInt8], with new: [UInt8], in bytes: inout [UInt8]) -> Int {
        var count = 0
        var index = 0
        while index + old.count <= bytes.count {
            if bytes[index] == old[0], bytes[index..<index + old.count].elementsEqual(old) {
                bytes.replaceSubrange(index..<index + old.count, with: new)
                count += 1
                index += old.count
            } else {
                index += 1
            }
        }
        return count
    }
}
