import BusKit
import LockstepClient
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import LockstepCommands

@Suite struct EpisodeDetailsTests {
    private static func queue(_ name: String, _ episodes: [String]) -> WireQueueState {
        .with { queue in
            queue.name = name
            queue.current = "q\(name)1"
            queue.entries = episodes.enumerated().map { index, episode in
                .with {
                    $0.id = "q\(name)\(index + 1)"
                    $0.episode.id = episode
                    $0.reason = index == 0 ? "" : "a rule put it there"
                }
            }
        }
    }

    private static func details(_ episode: WireEpisode, _ puts: [(Topic, any SwiftProtobuf.Message)] = []) throws
        -> EpisodeDetails
    {
        EpisodeDetails(try #require(Episode(episode)), in: FleetState(FleetView(puts: puts)))
    }

    private static let episode = WireEpisode.with {
        $0.id = "e1"
        $0.title = "A title"
        $0.podcastTitle = "A podcast"
        $0.duration = 600
        $0.description_p = "<p>Words and <a href='https://a.example'>a link</a>.</p>"
        $0.state.played = true
        $0.state.reason = "heard to its end"
    }

    @Test func `an episode is shown with its file, queues, bookmarks and chapters`() throws {
        let puts: [(Topic, any SwiftProtobuf.Message)] = [
            (.queue("main"), Self.queue("main", ["e2", "e1"])), (.queue("evening"), Self.queue("evening", ["e1"])),
            (
                .download("e1"),
                WireDownload.with {
                    $0.episode = "e1"
                    $0.state = .downloaded
                    $0.totalBytes = 5_000_000
                    $0.path = "/files/a.mp3"
                }
            ),
            (
                .bookmarks(of: "e1"),
                WireBookmarks.with {
                    $0.bookmarks = [
                        .with {
                            $0.id = "b1"
                            $0.episode = "e1"
                            $0.position = 90
                            $0.note = "here"
                        },
                        .with {
                            $0.id = "b2"
                            $0.episode = "e1"
                            $0.position = 700
                        },
                    ]
                }
            ),
            (
                .playbackState,
                WirePlaybackState.with {
                    $0.status = .paused
                    $0.episode.id = "e1"
                    $0.chapters = [
                        .with {
                            $0.start = 4.95
                            $0.title = "Hello"
                        },
                        .with {
                            $0.start = 600
                            $0.title = "Coda"
                            $0.url = "https://b.example/coda"
                        },
                    ]
                }
            ),
        ]
        let details = try Self.details(Self.episode, puts)
        #expect(
            details.lines(width: nil) == [
                "A title", "A podcast", "No date, 10:00 long", "Played: heard to its end", "Downloaded, 5.0 MB",
                "Number 2 in Up Next: a rule put it there", "Number 1 in “evening”, the current entry", "ID e1",
                "File /files/a.mp3", "", "Bookmarks", "   1:30  here  b1", "  11:40        b2", "", "Chapters",
                "   0:05  Hello", "  10:00  Coda", "        https://b.example/coda", "",
                "Words and a link [1].", "", "[1] https://a.example",
            ])
        #expect(
            details.json["queues"]?.line
                == #"[{"queue":"main","entry":"qmain2","place":2,"current":false,"reason":"a rule put it there"},"#
                + #"{"queue":"evening","entry":"qevening1","place":1,"current":true,"reason":null}]"#)
        #expect(details.json["links"]?.line == #"[{"number":1,"text":"a link","url":"https://a.example"}]"#)
        #expect(details.json["download"]?["state"] == "downloaded")
    }

    @Test func `a loaded episode is shown at the player’s position`() throws {
        let puts: [(Topic, any SwiftProtobuf.Message)] = [
            (
                .playbackState,
                WirePlaybackState.with {
                    $0.status = .paused
                    $0.episode.id = "e1"
                    $0.anchor.position = 599.98
                }
            )
        ]
        var episode = Self.episode
        episode.state.played = false
        episode.state.position = 590
        #expect(try Self.details(episode, puts).lines(width: nil).contains("At 10:00"))
        #expect(try Self.details(episode).lines(width: nil).contains("At 9:50"))
    }

    @Test func `an episode without any details is shown by its ID`() throws {
        let details = try Self.details(.with { $0.id = "e9" })
        #expect(details.lines(width: 80) == ["", "", "No date and no length are known", "ID e9"])
        #expect(details.json["download"] == .null)
    }

    @Test func `why explains an episode also while the downloads service is down`() throws {
        let places = try Self.details(Self.episode, [(.queue("main"), Self.queue("main", ["e2", "e1"]))]).queuePositions
        #expect(
            Why.lines(
                "A title", Episode(Self.episode), file: ["It was asked for"], failure: nil, queuePositions: places) == [
                    "A title", "It was asked for.", "Played: heard to its end.",
                    "Number 2 in Up Next: a rule put it there.",
                ])
        var again = Self.episode
        again.state.position = 1_503
        #expect(
            Why.lines("A title", Episode(again), file: [], failure: nil, queuePositions: [])
                == ["A title", "Played: heard to its end; it is at 25:03.", "It isn’t in a queue."])
        #expect(
            try Self.details(again).lines(width: nil).contains(
                "Played: heard to its end; it is at 25:03"))
        let alert = WireAlert(
            "passedOver", of: .queue, named: "1", title: "Skipped “A title”", message: "The server said 404.",
            subject: "", at: Timestamp(milliseconds: 1))
        #expect(
            Why.lines(
                "A title", Episode(again), file: [], failure: nil, queuePositions: [],
                alerts: try [#require(AlertState(alert))]
            ).last == "Skipped “A title”: The server said 404.")
        let away = Failure(.unavailable, "The downloads service is not running.")
        #expect(
            Why.lines("A title", nil, file: [], failure: away, queuePositions: []) == [
                "A title", "Couldn’t check its file: The downloads service is not running.", "Not played.",
                "It isn’t in a queue.",
            ])
    }

    @Test func `the chapters of a loaded episode are the player’s, with the library’s addresses`() throws {
        var episode = Self.episode
        episode.chapters = [(0.0, "Hello"), (10, "Middle"), (30, "Bye")].map { start, title in
            .with {
                $0.start = start
                $0.title = title
                $0.url = "https://a.example/\(title)"
            }
        }
        func player(_ id: String) -> WirePlaybackState {
            .with {
                $0.status = .playing
                $0.episode.id = id
                $0.chapters = episode.chapters.dropLast().map { chapter in
                    .with {
                        $0.start = chapter.start
                        $0.title = chapter.title
                    }
                }
            }
        }
        let loaded = try Self.details(episode, [(.playbackState, player("e1"))])
        #expect(loaded.chapters.map(\.url) == ["https://a.example/Hello", "https://a.example/Middle"])
        let other = try Self.details(episode, [(.playbackState, player("e2"))])
        #expect(other.chapters == Episode(episode)?.chapters)
    }

    @Test(
        arguments: [
            (0, 0.0, "No date and no length are known"), (0, 60.0, "No date, 1:00 long"),
            (1_767_225_600_000, 0.0, "Published 2026-01-01, of unknown length"),
            (1_767_225_600_000, 60.0, "Published 2026-01-01, 1:00 long"),
        ] as [(Int64, Double, String)])
    func `an unknown date or length is shown as words`(published: Int64, duration: Double, line: String) throws {
        let episode = WireEpisode.with {
            $0.id = "e1"
            $0.published = published
            $0.duration = duration
        }
        #expect(try Self.details(episode).lines(width: nil)[2] == line)
    }
}
