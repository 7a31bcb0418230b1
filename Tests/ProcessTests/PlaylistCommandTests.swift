import Foundation
import TestSupport
import Testing

/// Tests the commands of playlists and favourites.
@Suite(.serialized, .timeLimit(.minutes(3))) struct PlaylistCommandTests {
    private static func feed(_ server: HTTPTestServer) -> HTTPTestResponse {
        let items = ["Delta", "Gamma", "Beta", "Alpha"].enumerated().map { index, title in
            """
            <item><title>\(title)</title><guid>\(title)</guid>
            <pubDate>Tue, \(20 - index) Jan 2026 08:00:00 GMT</pubDate>
            <itunes:duration>\((index + 1) * 600)</itunes:duration>
            <enclosure url="\(server.url("/\(title).wav"))" type="audio/wav"/></item>
            """
        }
        return .feed(
            """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"
            xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel><title>Show</title>
            \(items.joined())</channel></rss>
            """)
    }

    @Test func `a playlist is created, changed, undone, played and found by rules`() async throws {
        try await HTTPTestServer.with { server in
            server.route("/feed.xml", Self.feed(server))
            for title in ["Alpha", "Beta", "Gamma", "Delta"] {
                server.route("/\(title).wav", .audio(Tone.wav(seconds: 60), type: "audio/wav"))
            }
            try await ProcessFleet.with { fleet in
                try await fleet.succeed("subscribe", server.url("/feed.xml"))
                func titles(_ arguments: String...) async throws -> [String] {
                    let json = try await fleet.succeed(arguments + ["--json"])
                    let value = try JSONSerialization.jsonObject(with: Data(json.utf8))
                    let rows =
                        (value as? [String: Any])?["entries"] as? [[String: Any]] ?? value as? [[String: Any]] ?? []
                    return rows.compactMap { $0["title"] ?? ($0["episode"] as? [String: Any])?["title"] }
                        .compactMap { $0 as? String }
                }
                try await fleet.run([
                    CommandStep("playlist create Long_drives", 0, "Created the playlist “Long drives” (long-drives)."),
                    CommandStep("playlist create Long_drives", 0, "No change: the playlist long-drives already exists"),
                    CommandStep("playlist show long", 0, "“Long drives” is empty. Add an episode with"),
                    CommandStep("playlist play long-drives", 69, "lockstep: “Long drives” is empty."),
                    CommandStep(
                        "playlist add long-drives --where length_>_15m --sort shortest", 0,
                        "Added “Gamma”, “Beta”, “Alpha” to “Long drives”."),
                    CommandStep(
                        "playlist add long-drives Beta Delta", 0,
                        "Added “Delta” to “Long drives”; already in “Long drives”: “Beta”."),
                    CommandStep(
                        "playlist move long-drives Delta Beta --to 1", 0, "Moved “Beta”, “Delta” to position 1."),
                    CommandStep(
                        "playlist remove long-drives --where length_>_35m", 0,
                        "Removed “Alpha” from “Long drives”. `lockstep playlist undo long-drives` restores it."),
                    CommandStep("playlist undo long-drives", 0, "Undone: Removed “Alpha”."),
                    CommandStep("playlist rename long-drives Drives", 0, "Renamed long-drives to “Drives”."),
                    CommandStep("playlist set drives shuffle on", 0, "“Drives” plays in random order."),
                    CommandStep("playlist delete drives", 65, "lockstep: “Drives” contains 4 entries"),
                    CommandStep("playlist show drivs", 65, "lockstep: There is no playlist “drivs”. Did you mean"),
                    CommandStep("favourite add Alpha", 0, "Added “Alpha” to “Favourites”."),
                    CommandStep("favourite remove Beta", 0, "No change: “Beta” isn’t a favourite."),
                    CommandStep("playlist delete favourites", 65, "lockstep: The favourites always exist."),
                ])
                #expect(try await titles("playlist", "show", "drives") == ["Beta", "Delta", "Gamma", "Alpha"])
                #expect(try await titles("episodes", "--where", "favourite") == ["Alpha"])
                #expect(
                    try await titles("episodes", "--where", "in long-drives and not favourite")
                        == ["Delta", "Gamma", "Beta"])
                let list = try await fleet.succeed("playlist")
                #expect(list.contains("Favourites") && list.contains("Drives") && list.contains("shuffled"), "\(list)")
                try await fleet.succeed("queue", "add", "Alpha")
                try await fleet.run([
                    CommandStep(
                        "playlist play drives --no-shuffle --from Delta", 0, "Playing “Delta”.")
                ])
                #expect(try await titles("queue") == ["Delta", "Gamma", "Alpha"])
                try await fleet.run([
                    CommandStep("playlist delete drives --force", 0, "Deleted the playlist long-drives."),
                    CommandStep("episodes --where in_long-drives", 0, "No episode matches the rule."),
                ])
            }
        }
    }
}
