import Foundation
import TestSupport
import Testing

/// Tests the export and import of playlists.
@Suite(.serialized, .timeLimit(.minutes(3))) struct PlaylistFileCommandTests {
    private static func feed(_ server: HTTPTestServer) -> HTTPTestResponse {
        let items = ["Delta", "Gamma", "Beta", "Alpha"].map { title in
            """
            <item><title>\(title) &amp; more</title><guid>\(title)</guid><itunes:duration>600</itunes:duration>
            <enclosure url="\(server.url("/\(title).mp3"))?a=1&amp;b=2" type="audio/mpeg"/></item>
            """
        }
        return .feed(
            """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"
            xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel><title>Show</title>
            \(items.joined())</channel></rss>
            """)
    }

    @Test func `a playlist is exported, and imported again`() async throws {
        try await HTTPTestServer.with { server in
            server.route("/feed.xml", Self.feed(server))
            try await ProcessFleet.with { fleet in
                let folder = try TemporaryFolder()
                try await fleet.succeed("subscribe", server.url("/feed.xml"))
                try await fleet.succeed("playlist", "create", "Long drives")
                try await fleet.succeed("playlist", "add", "long-drives", "Beta", "Delta", "Alpha")
                func ids(_ playlist: String) async throws -> [String] {
                    let json = try await fleet.succeed("playlist", "show", playlist, "--json")
                    let value = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
                    return (value?["episodes"] as? [[String: Any]] ?? []).compactMap { $0["id"] as? String }
                }
                let exported = try await ids("long-drives")
                #expect(exported.count == 3)
                for name in ["list.m3u", "list.xspf"] {
                    let path = folder.path + "/" + name
                    try await fleet.run([
                        CommandStep(
                            "playlist export long-drives \(path)", 0,
                            "Exported 3 episodes of “Long drives” to \(path)."),
                        CommandStep(
                            "playlist import \(path)", 65,
                            "lockstep: There is a playlist “Long drives” already. Add to it with --into long-drives"),
                        CommandStep("playlist import \(path) --title \(name)", 0, "Added 3 episodes to “\(name)”."),
                        CommandStep(
                            "playlist import \(path) --into long-drives", 0,
                            "Added 0 episodes to “Long drives”; 3 were there already."),
                    ])
                    #expect(try await ids(name) == exported)
                }
                let text = try await fleet.succeed("playlist", "export", "long-drives")
                #expect(text.hasPrefix("#EXTM3U\n#PLAYLIST:Long drives\n#EXTINF:600,Show - Beta & more\n"), "\(text)")
            }
        }
    }

    @Test func `entries are found by address or titles, and the others are listed`() async throws {
        try await HTTPTestServer.with { server in
            server.route("/feed.xml", Self.feed(server))
            try await ProcessFleet.with { fleet in
                let folder = try TemporaryFolder()
                try await fleet.succeed("subscribe", server.url("/feed.xml"))
                func file(_ name: String, _ text: String) throws -> String {
                    let path = folder.path + "/" + name
                    try text.write(toFile: path, atomically: true, encoding: .utf8)
                    return path
                }
                let mixed = try file(
                    "Mixed up.m3u8",
                    """
                    #EXTM3U
                    #EXTINF:5,SHOW - gamma & More
                    https://moved.example/gamma.mp3
                    \(server.url("/Alpha.mp3"))?a=1&b=2
                    ../../etc/passwd
                    /etc/passwd
                    Mixed up.m3u8
                    \(server.url("/Alpha.mp3"))?a=1&b=2
                    """)
                let result = try await fleet.lockstep(["playlist", "import", mixed])
                #expect(result.status == 0 && result.output.hasPrefix("Added 2 episodes to “Mixed up”."))
                #expect(
                    result.errors.contains("3 of the 6 entries of \(mixed) aren’t in the library:"), "\(result.errors)")
                #expect(result.errors.contains("line 5: ../../etc/passwd"))
                #expect(result.errors.contains("line 7: Mixed up.m3u8 (a playlist, which isn’t followed"))
                let none = try file("none.m3u", "http://example.org/unknown.mp3\n")
                let broken = try file("broken.xspf", "<playlist><trackList>")
                try await fleet.run([
                    CommandStep("playlist import \(none)", 65, "lockstep: None of the 1 entries of"),
                    CommandStep("playlist show none", 65, "lockstep: There is no playlist “none”."),
                    CommandStep("playlist import \(broken)", 65, "lockstep: \(broken) isn’t an M3U or XSPF playlist"),
                    CommandStep("playlist import \(folder.path)", 65, "lockstep: \(folder.path) is a folder."),
                    CommandStep("playlist import \(folder.path)/x", 65, "lockstep: There is no file \(folder.path)/x."),
                    CommandStep("playlist import \(none) --into typo", 65, "lockstep: There is no playlist “typo”."),
                    CommandStep("playlist import \(none) --into a --title b", 64, "lockstep: --title and --into"),
                    CommandStep(
                        "playlist export favourites \(folder.path)", 65, "lockstep: \(folder.path) is a folder."),
                    CommandStep(
                        "playlist export favourites \(folder.path)/none/x.m3u", 65, "lockstep: Couldn’t write"),
                ])
            }
        }
    }
}
