import BusKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import LockstepClient
@testable import LockstepCommands

@Suite struct PlayerScreenTests {
    private static func sample(
        current: String = "q1", _ change: (inout WirePlaybackState) -> Void = { _ in }
    ) -> PlayerSnapshot {
        var player = WirePlaybackState.with {
            $0.status = .playing
            $0.episode.id = "eq1"
            $0.episode.title = "The first one"
            $0.episode.podcastTitle = "A podcast"
            $0.anchor.position = 754
            $0.anchor.running = true
            $0.anchor.bootID = SystemClocks.bootID
            $0.duration = 3_490
            $0.volume = 80
        }
        change(&player)
        let now = Moment(monotonic: MonotonicTime(nanoseconds: 0), wall: Timestamp(milliseconds: 0))
        var snapshot = PlayerSnapshot(PlayerState(player), at: now)
        snapshot.connection = .live
        snapshot.services = [ServiceState(.with { ($0.name, $0.state) = ("playback", .ready) })]
        snapshot.queue = QueueState(
            .with { queue in
                queue.current = current
                queue.entries = [
                    ("q1", "The first one", "A podcast", 3_490, 0), ("q2", "日本語のタイトル", "ポッド", 60, 0),
                    ("q3", "🎧 שלום", "", 0, 0),
                ].map { id, title, podcast, duration, position in
                    .with {
                        $0.id = id
                        $0.episode.id = "e" + id
                        $0.episode.title = title
                        $0.episode.podcastTitle = podcast
                        $0.episode.duration = duration
                        $0.episode.position = position
                    }
                }
            })
        return snapshot
    }

    @Test func `a screen of ordinary size shows all sections`() {
        let image = PlayerScreen(snapshot: Self.sample()).image(columns: 50, rows: 14)
        #expect(
            image.text
                == [
                    "Lockstep                        all services ready",
                    "",
                    "The first one",
                    "A podcast",
                    "▶ 12:34 ━━━━━━━──────────────────────────── -45:36",
                    "playing · 1× · vol 80 · of 58:10",
                    "",
                    "Up Next (3)",
                    ">▶1 The first one — A podcast           45:36 left",
                    "  2 日本語のタイトル — ポッド                 1:00",
                    "  3 🎧 שלום",
                    "",
                    "",
                    "space pause  ←→ seek  ? keys  q quit",
                ])
        #expect(image.cursor == .init(row: 8, column: 0))
    }

    @Test func `the list shows the remaining time of the loaded episode`() {
        var snapshot = Self.sample()
        #expect(PlayerScreen(snapshot: snapshot).image(columns: 50, rows: 14).text[8].hasSuffix(" 45:36 left"))
        snapshot.position = 0
        #expect(PlayerScreen(snapshot: snapshot).image(columns: 50, rows: 14).text[8].hasSuffix(" 58:10"))
    }

    @Test(arguments: [(1, 1), (5, 2), (20, 5), (33, 9), (80, 24), (200, 60)])
    func `no line is wider and no screen higher than the terminal`(columns: Int, rows: Int) {
        var snapshot = Self.sample {
            $0.error.message = "It could not be opened."
            $0.chapters = [0.0, 600].map { start in
                .with { ($0.start, $0.title) = (start, String(repeating: "章", count: 60)) }
            }
        }
        snapshot.alerts = [
            .init(
                id: "a1", owner: .playback, severity: .error, title: "No sound", message: "None was found.",
                actions: ["retry", "dismiss"])
        ]
        let image = PlayerScreen(snapshot: snapshot, notice: String(repeating: "word ", count: 50))
            .image(columns: columns, rows: rows)
        #expect(image.lines.count <= rows)
        for line in image.text { #expect(DisplayText.width(line) <= columns) }
        if let cursor = image.cursor { #expect(cursor.row < rows) }
        #expect(DisplayText.width(SingleLineText.text(snapshot, columns: columns)) <= columns)
    }

    @Test func `a small screen shows only the most important lines`() {
        let image = PlayerScreen(snapshot: Self.sample()).image(columns: 20, rows: 3)
        #expect(image.text[0] == "The first one")
        #expect(image.text[1].hasPrefix("▶ 12:34"))
        #expect(image.text[2].hasPrefix("playing"))
    }

    @Test func `outdated state is marked while the bus is down`() {
        var snapshot = Self.sample()
        snapshot.connection = .reconnecting
        snapshot.isStale = true
        #expect(PlayerScreen(snapshot: snapshot).image(columns: 40, rows: 10).text[0].hasSuffix("(old) reconnecting …"))
        #expect(SingleLineText.text(snapshot, columns: 60).hasPrefix("(reconnecting …)"))
    }

    @Test func `digits answer alerts in their order`() {
        var snapshot = Self.sample()
        snapshot.alerts = [
            .init(
                id: "a1", owner: .feeds, severity: .error, title: "x", message: "", actions: ["retry", "dismiss"],
                keys: [1, 2])
        ]
        let screen = PlayerScreen(snapshot: snapshot)
        #expect(
            screen.intent(for: .character("2"), forward: 30, back: 10)
                == .answer(alert: "a1", owner: .feeds, action: "dismiss"))
        #expect(
            screen.intent(for: .character("3"), forward: 30, back: 10) == .say("No answer has the digit 3."))
    }

    @Test func `the selection follows the arrows and stops at the ends`() {
        let screen = PlayerScreen(snapshot: Self.sample())
        #expect(screen.intent(for: .down, forward: 30, back: 10) == .select("q2"))
        #expect(screen.intent(for: .up, forward: 30, back: 10) == .select("q1"))
        #expect(screen.intent(for: .end, forward: 30, back: 10) == .select("q3"))
        #expect(screen.intent(for: .enter, forward: 30, back: 10) == .play(entry: "q1", queue: "main"))
    }

    @Test func `a held key has one request in flight and at most one waiting`() {
        var keys = KeyRepeatCoalescer()
        #expect(keys.press(subject: "l1", from: 10) { $0 + 30 } == 40)
        for _ in 0..<20 { #expect(keys.press(subject: "l1", from: 10) { $0 + 30 } == nil) }
        #expect(keys.target == 640)
        #expect(keys.finished() == 640)
        #expect(keys.finished() == nil)
        #expect(keys.target == nil)
    }

    @Test func `a held key’s waiting request is dropped when its episode is unloaded`() {
        var keys = KeyRepeatCoalescer()
        _ = keys.press(subject: "l1", from: 10) { $0 + 30 }
        _ = keys.press(subject: "l1", from: 10) { $0 + 30 }
        #expect(keys.press(subject: "l2", from: 5) { $0 + 30 } == nil)
        #expect(keys.finished() == 35)
    }

    @Test func `a waiting seek applies to the episode that it was requested for`() {
        var player = PlayerMachine(settings: Settings())
        let now = Moment(monotonic: MonotonicTime(nanoseconds: 1), wall: Timestamp(milliseconds: 1))
        func show(_ load: String) {
            var state = WirePlaybackState()
            state.status = .paused
            state.loadID = load
            state.episode.id = "e" + load
            state.duration = 3_600
            state.anchor.position = 10
            state.anchor.bootID = SystemClocks.bootID
            var replica = Replica()
            replica.apply(
                StreamEvent(
                    topic: .playbackState, header: BusHeader(.put, epoch: 1, sequence: 1), payload: state.wireBytes))
            player.apply(.snapshot(replica))
        }
        show("l1")
        player.apply(.connection(.live))
        #expect(player.press(.right, now: now) == .ask(.seek(load: "l1", to: 40)))
        #expect(player.press(.right, now: now) == .none)
        show("l2")
        #expect(player.screen(at: now).snapshot.position == 10)
        let next = player.finished(.seek(load: "l1", to: 40), nil, now: now)
        #expect(next == .ask(.seek(load: "l1", to: 70)))
    }

    @Test func `plain players print changes, but not the running position`() {
        var narrator = PlainSentences()
        var snapshot = Self.sample()
        func at(_ seconds: UInt64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }
        #expect(narrator.lines(for: snapshot, now: at(0))[0] == "Playing at 12:34 of 58:10: The first one, A podcast.")
        snapshot.position += 5
        #expect(narrator.lines(for: snapshot, now: at(5)) == [])
        snapshot.position = 30
        #expect(narrator.lines(for: snapshot, now: at(6)) == ["Playing at 0:30 of 58:10: The first one, A podcast."])
        snapshot.speed = 1.5
        #expect(narrator.lines(for: snapshot, now: at(6)) == ["Speed 1.5, volume 80 %."])
    }

    @Test func `plain players name the entry after the current one`() {
        let now = MonotonicTime(nanoseconds: 1_000_000_000)
        func queue(_ current: Int?) -> String? {
            var narrator = PlainSentences()
            return narrator.lines(for: Self.sample(current: current.map { "q\($0 + 1)" } ?? ""), now: now).last
        }
        #expect(queue(0) == "Up Next: 3 entries, next 日本語のタイトル.")
        #expect(queue(2) == "Up Next: 3 entries, nothing after the current one.")
        #expect(queue(nil) == "Up Next: 3 entries, next The first one.")
    }
}
