import Foundation
import LockstepClient
import TestSupport
import Testing
import WireMessages

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
                    let list = value as? [String: Any]
                    let rows = (list?["episodes"] ?? list?["entries"] ?? value) as? [[String: Any]] ?? []
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
                        "Added “Gamma”, “Beta” and “Alpha” to “Long drives”."),
                    CommandStep(
                        "playlist add long-drives Beta Delta", 0,
                        "Added “Delta” to “Long drives”; already in “Long drives”: “Beta”."),
                    CommandStep(
                        "playlist move long-drives Delta Beta --to 1", 0, "Moved “Beta” and “Delta” to position 1."),
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
                    CommandStep("favourite add Beta --quiet", 0, ""),
                    CommandStep("favourite", 0, "\tepisode"),
                    CommandStep("favourite remove 3", 65, "lockstep: "),
                    CommandStep("favourite remove 2", 0, "Removed “Beta” from “Favourites”."),
                    CommandStep("favourite add Beta", 0, "Added “Beta” to “Favourites”."),
                    CommandStep("favourite remove %2", 0, "Removed “Beta” from “Favourites”."),
                    CommandStep("playlist delete favourites", 65, "lockstep: The favourites always exist."),
                ])
                #expect(try await titles("playlist", "show", "drives") == ["Beta", "Delta", "Gamma", "Alpha"])
                #expect(try await titles("episodes", "--where", "favourite") == ["Alpha"])
                #expect(
                    try await titles("episodes", "--where", "in long-drives and not favourite")
                        == ["Delta", "Gamma", "Beta"])
                try await fleet.run([
                    CommandStep("playlist find RIVE", 0, "playlist"),
                    CommandStep("playlist find nothing", 0, "No playlist’s title contains “nothing”."),
                ])
                let shown = try await fleet.succeed("show", "Alpha")
                #expect(shown.contains("Number 4 in the playlist “Drives”"), "\(shown)")
                #expect(shown.contains("Number 1 in the playlist “Favourites”"), "\(shown)")
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
                    CommandStep("episodes --where in_long-drives", 65, "lockstep: There is no playlist “long-drives”."),
                ])
            }
        }
    }

    @Test func `a smart playlist follows its rule by itself`() async throws {
        try await HTTPTestServer.with { server in
            for title in ["Alpha", "Beta", "Gamma", "Delta"] {
                server.route("/\(title).wav", .audio(Tone.wav(seconds: 60), type: "audio/wav"))
            }
            server.route("/feed.xml", Self.feed(server))
            try await FleetObserver.with(feedOf: server) { fleet, observer in
                try await fleet.run([
                    CommandStep(
                        "playlist create Short --where length_<_25m_and_unplayed --sort shortest", 0,
                        "Created the playlist “Short” (short), with the rule: length < 25m and unplayed."),
                    CommandStep("playlist add short Alpha", 65, "lockstep: “Short” is a smart playlist, whose rule"),
                    CommandStep("playlist create Bad --where lenght_<_25m", 64, "lockstep: "),
                    CommandStep("playlist create Bad --where in_bad", 65, "lockstep: There is no playlist “bad”."),
                    CommandStep("playlist create Bad --where in_short", 65, "lockstep: “short” is a smart playlist"),
                    CommandStep(
                        "mark played --where not_in_shrt", 65, "lockstep: There is no playlist “shrt”. Did you"),
                    CommandStep("episodes --where podcast_shw", 65, "lockstep: No podcast has the title “shw”"),
                    CommandStep("episodes --where tag_new", 65, "lockstep: No podcast has the tag “new”"),
                    CommandStep("inbox clear --where in_typo", 65, "lockstep: There is no playlist “typo”."),
                    CommandStep("playlist create Bad --limit 5", 64, "lockstep: --sort, --limit and --add-to"),
                    CommandStep("playlist create Bad --where played --limit 1001", 64, "lockstep: A smart"),
                    CommandStep("playlist edit favourites --where played", 65, "lockstep: “Favourites” isn’t a smart"),
                    CommandStep("playlist edit short", 64, "lockstep: Give what to change"),
                    CommandStep("playlist templates", 0, "template"),
                    CommandStep(
                        "playlist create Begun --template in-progress", 0,
                        "Created the playlist “Begun” (begun), with the rule: started."),
                    CommandStep("playlist show begun", 0, "No episode meets the rule of “Begun”: started."),
                ])
                func count(_ playlist: String, _ number: UInt32) async throws {
                    try await observer.until("\(playlist) has \(number) episodes") {
                        $0.playlists[playlist]?.items == number
                    }
                }
                try await count("short", 2)
                // Nobody asks for the playlist; the stream shows its change.
                try await fleet.succeed("mark", "played", "Delta")
                try await count("short", 1)
                fleet.signal("queue", SIGKILL)
                try await fleet.succeed("mark", "unplayed", "Delta")
                try await count("short", 2)
                try await fleet.succeed("playlist", "edit", "short", "--where", "length < 35m", "--limit", "2")
                let show = try await fleet.succeed("playlist", "show", "short")
                #expect(show.contains("Rule: length < 35m; shortest first."), "\(show)")
                try await fleet.succeed("queue", "create", "later")
                try await fleet.succeed("playlist", "create", "Unplayed", "--where", "unplayed", "--add-to", "later")
                try await count("unplayed", 4)
                try await fleet.run([
                    CommandStep("queue delete later", 65, "lockstep: The smart playlist “Unplayed” adds episodes to"),
                    CommandStep("playlist play short", 0, "Playing “Delta”."),
                    CommandStep(
                        "playlist delete short", 0,
                        "Deleted the playlist short. `lockstep playlist undo short` restores it for a day."),
                    CommandStep("playlist show short", 65, "lockstep: There is no playlist “short”."),
                    CommandStep("playlist create Short_stories", 0, "Created the playlist “Short stories”"),
                    CommandStep("playlist undo SHORT", 0, "Undone: Deleted the playlist “Short”."),
                    CommandStep("playlist undo shrt", 65, "lockstep: There is no playlist “shrt”. Did you mean"),
                ])
            }
        }
    }

    @Test func `podcasts have tags and own titles, which rules and lists use`() async throws {
        try await HTTPTestServer.with { server in
            server.route("/feed.xml", Self.feed(server))
            try await FleetObserver.with(feedOf: server) { fleet, observer in
                try await fleet.run([
                    CommandStep("tag", 0, "No podcast has a tag. Add one with"),
                    CommandStep("tag add News Show", 0, "Tagged “Show” “News”."),
                    CommandStep("tag add news Show", 0, "No change: “Show” is already tagged “news”."),
                    CommandStep("podcasts --tag nothing", 0, "No podcast has the tag “nothing”."),
                    CommandStep("tag add a_ nothing", 65, "lockstep: No podcast has an ID"),
                    CommandStep("playlist create Tagged --where tag_NEWS", 0, "Created the playlist “Tagged”"),
                    CommandStep("podcast rename Show My_show", 0, "“Show” is now “My show”."),
                    CommandStep("podcast rename My_show", 64, "lockstep: Give the new title"),
                ])
                try await observer.until("the playlist has the tagged podcast’s episodes") {
                    $0.playlists["tagged"]?.items == 4
                }
                for service in ["feeds", "persistence"] { fleet.signal(service, SIGKILL) }
                try await fleet.succeed("refresh")
                let list = try await fleet.succeed("podcasts", "--tag", "news")
                #expect(list.contains("My show"), "\(list)")
                try await fleet.run([
                    CommandStep("podcast rename My_show --feed-title", 0, "“My show” is now “Show”."),
                    CommandStep("tag remove NEWS Show", 0, "Removed the tag “NEWS” from “Show”."),
                ])
                try await observer.until("the playlist is empty again") { $0.playlists["tagged"]?.items == 0 }
            }
        }
    }
}
