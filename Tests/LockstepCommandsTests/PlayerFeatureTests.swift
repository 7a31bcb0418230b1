import BusKit
import NIOConcurrencyHelpers
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import LockstepClient
@testable import LockstepCommands

/// Tests chapters, the sleep timer, retries, local files and alerts on the players.
@Suite struct PlayerFeatureTests {
    private static let now = Moment(
        monotonic: MonotonicTime(nanoseconds: 50_000_000_000), wall: Timestamp(milliseconds: 5_000_000))

    private static func player() -> WirePlaybackState {
        var state = WirePlaybackState()
        state.status = .paused
        state.loadID = "l1"
        state.episode.id = "e1"
        state.episode.title = "The first one"
        state.episode.podcastID = "p1"
        state.duration = 3_600
        state.speed = 1
        state.volume = 80
        state.anchor.position = 700
        state.anchor.bootID = SystemClocks.bootID
        state.chapters = [("Hello", 0.0), ("News", 600), ("End", 3_000)].map { title, start in
            var chapter = WireChapter()
            chapter.title = title
            chapter.start = start
            return chapter
        }
        return state
    }

    private static func event(_ topic: Topic, _ payload: [UInt8]) -> StreamEvent {
        StreamEvent(topic: topic, header: BusHeader(.put, epoch: 1, sequence: 1), payload: payload)
    }

    private static func machine(
        _ state: WirePlaybackState, _ more: [StreamEvent] = [], presentation: PlayerMachine.Presentation = .fullScreen
    ) -> PlayerMachine {
        var machine = PlayerMachine(settings: Settings(), presentation: presentation)
        machine.apply(.snapshot(replica(state, more)))
        machine.apply(.connection(.live))
        return machine
    }

    private static func replica(_ state: WirePlaybackState, _ more: [StreamEvent]) -> Replica {
        var replica = Replica()
        for event in [event(.playbackState, state.wireBytes)] + more { replica.apply(event) }
        return replica
    }

    private static func snapshot(_ state: WirePlaybackState, at now: Moment = now) -> PlayerSnapshot {
        var snapshot = PlayerSnapshot(PlayerState(state), at: now)
        snapshot.connection = .live
        return snapshot
    }

    @Test func `a pending retry counts down on every player without updates`() {
        var state = Self.player()
        state.status = .loading
        state.retry.attempt = 2
        state.retry.of = 3
        state.retry.nextInSeconds = 5
        state.retry.nextAt = Self.now.monotonic.nanoseconds + 5_000_000_000
        state.retry.error.message = "The server said 503."
        let snapshot = Self.snapshot(state)
        #expect(SingleLineText.text(snapshot, columns: 80).hasPrefix("… 11:40/1:00:00 retry 2 of 3 in 5 s"))
        #expect(
            Sentence.status(snapshot)
                == "Loading at 11:40 of 1:00:00: The first one. Retry 2 of 3 in 5 s: The server said 503.")
        let screen = PlayerScreen(snapshot: snapshot).image(columns: 60, rows: 24).text
        #expect(screen.contains("… retry 2 of 3 in 5 s: The server said 503."))
        #expect(snapshot.nextTick.map { $0 > 0.9 && $0 < 1.1 } == true)
        let later = Moment(monotonic: Self.now.monotonic.advanced(by: .milliseconds(3_500)), wall: Self.now.wall)
        #expect(Self.snapshot(state, at: later).retry.map(Sentence.retry) == "retry 2 of 3 in 2 s")
        #expect(PlayerState(state).json(at: later)["retry"]?["nextInSeconds"] == .number(1.5))
        state.retry.nextAt = 0
        #expect(SingleLineText.text(Self.snapshot(state), columns: 80).contains("retry 2 of 3, trying now "))
    }

    @Test func `a waiting command prints the failure once, and then each further attempt`() {
        var state = Self.player()
        state.status = .loading
        state.retry.attempt = 2
        state.retry.of = 3
        state.retry.nextAt = Self.now.monotonic.nanoseconds + 5_000_000_000
        state.retry.error.message = "The server said 503."
        #expect(Sentence.attempt(Self.snapshot(state), isSame: true) == "Retry 2 of 3 in 5 s.")
        #expect(
            Sentence.attempt(Self.snapshot(state), isSame: false) == Sentence.status(Self.snapshot(state)))
    }

    @Test func `a loading episode shows its queue, and that it will stay paused`() {
        var state = Self.player()
        state.status = .loading
        #expect(Sentence.status(Self.snapshot(state)) == "Loading at 11:40 of 1:00:00, then paused: The first one.")
        #expect(PlayerState(state).json(at: Self.now)["willPlay"] == false)
        state.willPlay = true
        #expect(Sentence.status(Self.snapshot(state)) == "Loading at 11:40 of 1:00:00: The first one.")
        #expect(PlayerState(state).json(at: Self.now)["willPlay"] == true)
        for (queue, words) in [("", ""), ("main", ""), ("evening", " From “evening”.")] {
            state.queue = queue
            #expect(Sentence.sourceQueue(PlayerState(state)) == words)
        }
        state.status = .paused
        #expect(PlayerState(state).json(at: Self.now)["willPlay"] == .null)
    }

    @Test func `the shown position and remaining time add up to the length`() {
        var snapshot = Self.snapshot(Self.player())
        for (position, place, rest) in [(9.98, "0:10", "59:50"), (9.5, "0:09", "59:51"), (0, "0:00", "1:00:00")] {
            snapshot.position = position
            #expect(ClockText.format(snapshot.position) == place && ClockText.format(snapshot.remaining) == rest)
        }
    }

    @Test func `a failure that an alert reports isn’t shown twice`() {
        var state = Self.player()
        state.status = .failed
        state.error.message = "The server said 404."
        var snapshot = Self.snapshot(state)
        #expect(PlayerScreen(snapshot: snapshot).image(columns: 80, rows: 24).text.contains("✗ The server said 404."))
        snapshot.alerts = [
            .init(
                id: "a1", owner: .playback, severity: .error, title: "Playback stopped",
                message: "The server said 404. Answer `accept` to go on.", actions: ["retry"], keys: [1])
        ]
        let screen = PlayerScreen(snapshot: snapshot).image(columns: 80, rows: 24).text
        #expect(!screen.contains("✗ The server said 404."))
        #expect(screen.contains { $0.hasPrefix("! Playback stopped: The server said 404.") })
        let everything = Sentence.everything(snapshot, selection: nil)
        #expect(everything.ranges(of: "404").count == 1)
        #expect(everything.contains("1 alert: Playback stopped (answer 1 retry)"))
    }

    @Test func `a plain player prints a retry once and no countdown`() {
        var state = Self.player()
        state.status = .loading
        state.retry.attempt = 1
        state.retry.of = 3
        state.retry.nextAt = Self.now.monotonic.nanoseconds + 2_000_000_000
        var narrator = PlainSentences()
        #expect(narrator.lines(for: Self.snapshot(Self.player()), now: Self.now.monotonic).count == 4)
        #expect(narrator.lines(for: Self.snapshot(state), now: Self.now.monotonic).count == 1)
        let later = Moment(monotonic: Self.now.monotonic.advanced(by: .seconds(1)), wall: Self.now.wall)
        #expect(narrator.lines(for: Self.snapshot(state, at: later), now: later.monotonic) == [])
    }

    @Test func `the cause of a pause is shown unless a user paused`() {
        var state = Self.player()
        let cases: [(WirePlaybackState.PausedBy, String, JSONValue)] = [
            (.somebody, "Paused at 11:40 of 1:00:00: The first one.", .null),
            (.sleepTimer, "Paused by the sleep timer at 11:40 of 1:00:00: The first one.", "sleepTimer"),
            (.stop, "Stopped at 11:40 of 1:00:00: The first one.", "stop"),
        ]
        var narrator = PlainSentences()
        _ = narrator.lines(for: PlayerSnapshot(), now: Self.now.monotonic)
        for (cause, sentence, word) in cases {
            state.pausedBy = cause
            #expect(Sentence.status(Self.snapshot(state)) == sentence)
            #expect(PlayerState(state).json(at: Self.now)["pausedBy"] == word)
            #expect(narrator.lines(for: Self.snapshot(state), now: Self.now.monotonic).first == sentence)
        }
        state.status = .playing
        #expect(PlayerState(state).json(at: Self.now)["pausedBy"] == .null)
    }

    @Test func `a plain player prints nothing when silence is skipped`() {
        var state = Self.player()
        state.status = .playing
        state.speed = 1
        state.anchor.running = true
        state.anchor.speed = 2.5
        var narrator = PlainSentences()
        _ = narrator.lines(for: Self.snapshot(state), now: Self.now.monotonic)
        let later = Moment(monotonic: Self.now.monotonic.advanced(by: .seconds(2)), wall: Self.now.wall)
        let snapshot = Self.snapshot(state, at: later)
        #expect(snapshot.player.pace == 2.5 && narrator.lines(for: snapshot, now: later.monotonic) == [])
    }

    @Test func `the pause key starts an episode that was loading to be paused`() {
        var state = Self.player()
        state.status = .loading
        for willPlay in [true, false] {
            state.willPlay = willPlay
            #expect(Self.snapshot(state).player.status == .loading(willPlay: willPlay))
        }
    }

    @Test func `a plain player prints changes of the chapter and the sleep timer, and no countdown`() {
        var narrator = PlainSentences()
        var state = Self.player()
        func lines(after seconds: Int = 0) -> [String] {
            let now = Moment(monotonic: Self.now.monotonic.advanced(by: .seconds(seconds)), wall: Self.now.wall)
            return narrator.lines(for: Self.snapshot(state, at: now), now: now.monotonic)
        }
        #expect(lines().contains("Chapter 2 of 3: News."))
        state.sleep.endsAt = Self.now.monotonic.nanoseconds + 900_000_000_000
        state.sleep.bootID = SystemClocks.bootID
        #expect(lines() == ["Sleep in 15:00."])
        #expect(lines(after: 20) == [])
        state.clearSleep()
        state.chapters[0].title = "Hi"
        state.chapters[1].title = "Other news"
        #expect(lines() == ["Chapter 2 of 3: Other news.", "No sleep timer."])
        state.local = true
        #expect(lines() == ["Speed 1, volume 80 %, from the downloaded file."])
    }

    @Test func `both players show the sleep timer, which also counts down while playback is paused`() {
        var state = Self.player()
        state.sleep.endsAt = Self.now.monotonic.nanoseconds + 872_000_000_000
        state.sleep.bootID = SystemClocks.bootID
        let snapshot = Self.snapshot(state)
        #expect(SingleLineText.text(snapshot, columns: 100).hasSuffix(" ☾14:32"))
        #expect(PlayerScreen(snapshot: snapshot).image(columns: 60, rows: 24).text.contains("☾ sleep in 14:32"))
        #expect(snapshot.nextTick != nil)
        #expect(Self.snapshot(Self.player()).nextTick == nil)
    }

    @Test func `the status names the current chapter and the source queue`() {
        var state = Self.player()
        state.local = true
        state.sound.boost = true
        state.sound.gain = -2.5
        let snapshot = Self.snapshot(state)
        #expect(SingleLineText.text(snapshot, columns: 60) == "‖ 11:40/1:00:00 ━━─────────── The first one › News ↓")
        let screen = PlayerScreen(snapshot: snapshot).image(columns: 80, rows: 24).text
        #expect(screen.contains("Chapter 2 of 3: News"))
        #expect(screen.contains("paused · 1× · vol 80 · of 1:00:00 · downloaded file · gain -2.5 dB · boost"))
        let everything = Sentence.everything(snapshot, selection: nil)
        #expect(everything.contains("chapter 2 of 3: News") && everything.contains("from the downloaded file"))
    }

    @Test func `the position runs at the anchor’s own speed`() {
        var state = Self.player()
        state.anchor.running = true
        state.anchor.at = Self.now.monotonic.nanoseconds - 2_000_000_000
        state.speed = 1.5
        #expect(PlayerState(state).position(at: Self.now) == 703)
        state.anchor.speed = 8
        #expect(PlayerState(state).position(at: Self.now) == 716)
        state.anchor.wall = Self.now.wall.milliseconds - 1_000
        state.anchor.bootID = "another"
        #expect(PlayerState(state).position(at: Self.now) == 708)
    }

    @Test func `c shows the chapters, arrows select one and Enter seeks to it`() {
        var machine = Self.machine(Self.player())
        #expect(machine.screen(at: Self.now).shownList == .queue)
        #expect(machine.press(.character("c"), now: Self.now) == .none)
        let screen = machine.screen(at: Self.now).image(columns: 40, rows: 20)
        #expect(screen.text.contains("Chapters (3)  c Up Next"))
        #expect(screen.text.contains(">▶2 News                           10:00"))
        #expect(screen.cursor != nil)
        #expect(machine.press(.down, now: Self.now) == .none)
        #expect(machine.press(.enter, now: Self.now) == .ask(.seek(load: "l1", to: 3_000)))
        #expect(machine.press(.character("c"), now: Self.now) == .none)
        #expect(machine.screen(at: Self.now).shownList == .queue)
    }

    @Test func `the chapter keys seek to the next and previous chapter, also when held`() {
        var machine = Self.machine(Self.player())
        #expect(machine.press(.character("<"), now: Self.now) == .ask(.seek(load: "l1", to: 600)))
        #expect(machine.press(.character("<"), now: Self.now) == .none)
        #expect(machine.screen(at: Self.now).snapshot.position == 0)
        #expect(machine.finished(.seek(load: "l1", to: 600), nil, now: Self.now) == .ask(.seek(load: "l1", to: 0)))
        var last = Self.player()
        last.anchor.position = 3_100
        machine = Self.machine(last)
        #expect(machine.press(.character(">"), now: Self.now) == .none)
        #expect(machine.screen(at: Self.now).notice == "This is the last chapter.")
    }

    @Test func `in an episode without chapters, the chapter keys report that`() {
        var state = Self.player()
        state.chapters = []
        var machine = Self.machine(state)
        for key in "<>c" {
            #expect(machine.press(.character(key), now: Self.now) == .none)
            #expect(machine.screen(at: Self.now).notice == "This episode has no chapters.")
        }
        #expect(machine.screen(at: Self.now).shownList == .queue)
    }

    @Test func `z steps through the sleep timer’s times and turns it off`() {
        var snapshot = Self.snapshot(Self.player())
        var seen: [SleepTimerState?] = []
        for _ in 0..<6 {
            let timer = SleepKey.next(after: snapshot)
            seen.append(timer)
            snapshot.sleep = timer
        }
        #expect(
            seen == [
                .time(remaining: 900), .time(remaining: 1_800), .time(remaining: 3_600), .endOfChapter, .episodes(1),
                nil,
            ])
    }

    @Test func `arrows skip by the podcast’s settings`() {
        var settings = WireSettingsState()
        settings.podcast = "p1"
        var setting = WireSettingsState.Setting()
        setting.key = "skipForward"
        setting.value = "45"
        settings.settings = [setting]
        var machine = Self.machine(
            Self.player(), [Self.event(.settings(.playback, podcast: "p1"), settings.wireBytes)])
        #expect(machine.press(.right, now: Self.now) == .ask(.seek(load: "l1", to: 745)))
    }

    @Test func `an alert is shown with digits that have the same effect on both players`() {
        var snapshot = Self.snapshot(Self.player())
        snapshot.alerts = [
            .init(
                id: "a1", owner: .playback, severity: .error, title: "The stream failed", message: "",
                actions: ["retry", "dismiss", "skip"], keys: [1, 2, 3]),
            .init(id: "a2", owner: .feeds, severity: .warning, title: "x", message: "", actions: ["dismiss"]),
        ]
        let line = SingleLineText.text(snapshot, columns: 100)
        #expect(line.hasSuffix(" ! The stream failed  1 retry  2 dismiss  3 skip ! x  dismiss"))
        #expect(DisplayText.width(line) <= 100)
        let narrow = SingleLineText.text(snapshot, columns: 82)
        #expect(narrow.contains("  1 retry  2 dismiss  3 skip  and 1 more"), "\(narrow)")
        #expect(SingleLineText.text(snapshot, columns: 40).contains("!2"))
        #expect(
            PlayerScreen(snapshot: snapshot).intent(for: .character("3"), forward: 30, back: 10)
                == .answer(alert: "a1", owner: .playback, action: "skip"))
        snapshot.alerts[0].keys = []
        #expect(
            Sentence.alert(snapshot.alerts[0])
                == "Alert a1 (error): The stream failed. Answers: retry, dismiss, skip. "
                + "`lockstep alerts answer a1 ACTION` answers this alert.")
    }

    @Test func `players show and step through the loaded episode’s queue`() {
        var state = Self.player()
        state.queueEntry = "q9"
        let next = Self.event(.queueNext, WireQueueNext.with { $0.queue = "evening" }.wireBytes)
        var queue = WireQueueState()
        queue.name = "evening"
        queue.current = "q9"
        queue.entries = ["q9", "q10"].map { id in
            var entry = WireQueueEntry()
            entry.id = id
            entry.episode.id = "e" + id
            entry.episode.title = "Entry \(id)"
            return entry
        }
        var machine = Self.machine(state, [next, Self.event(.queue("evening"), queue.wireBytes)])
        #expect(machine.screen(at: Self.now).snapshot.queue.entries.map(\.id) == ["q9", "q10"])
        #expect(
            machine.press(.character("n"), now: Self.now) == .ask(.command(.next(from: "q9", queue: "evening"))))
        #expect(
            machine.screen(at: Self.now).image(columns: 60, rows: 24).text.contains("“evening” (2)  c chapters (3)"))
        // The queue is also shown after its entry was removed.
        state.queue = "evening"
        queue.current = ""
        queue.entries.removeFirst()
        machine = Self.machine(state, [next, Self.event(.queue("evening"), queue.wireBytes)])
        #expect(machine.screen(at: Self.now).snapshot.queue.entries.map(\.id) == ["q10"])
        #expect(machine.press(.character("n"), now: Self.now) == .ask(.command(.next(from: nil, queue: "evening"))))
    }

    private static func alert(
        _ id: String, _ severity: WireAlert.Severity = .warning, actions: [String] = ["retry", "dismiss"]
    ) -> StreamEvent {
        let alert = WireAlert.with {
            $0.id = id
            $0.owner = "playback"
            $0.severity = severity
            $0.title = "Trouble \(id)"
            $0.actions = actions
        }
        return event(.alert(.playback, id), alert.wireBytes)
    }

    private static func answer(_ alert: AlertID, _ action: String) -> PlayerMachine.Outcome {
        .ask(.command(.answer(alert: alert, owner: .playback, action: action)))
    }

    @Test func `a digit is kept for its alert, and isn’t reassigned at once`() {
        func press(_ machine: PlayerMachine, _ digit: Character, at now: Moment = Self.now) -> PlayerMachine.Outcome {
            var machine = machine
            return machine.press(.character(digit), now: now)
        }
        var machine = Self.machine(Self.player(), [Self.alert("a1"), Self.alert("a2")])
        machine.tick(now: Self.now)
        #expect(press(machine, "4") == Self.answer("a2", "dismiss"))
        // An alert was removed and a more severe one raised before a frame was drawn, and after it.
        machine.apply(.snapshot(Self.replica(Self.player(), [Self.alert("a2"), Self.alert("a0", .error)])))
        #expect(press(machine, "1") == .none)
        machine.tick(now: Self.now)
        #expect(press(machine, "1") == .none)
        #expect(press(machine, "4") == Self.answer("a2", "dismiss"))
        #expect(press(machine, "5") == Self.answer("a0", "retry"))
        #expect(
            machine.screen(at: Self.now).snapshot.alerts.map(\.answers) == [
                ["5 retry", "6 dismiss"], ["3 retry", "4 dismiss"],
            ])
        // After the reservation, the released digits are assigned again.
        var later = Self.now
        later.monotonic = later.monotonic.advanced(by: AlertKeys.reservation)
        machine.apply(.snapshot(Self.replica(Self.player(), [Self.alert("a2"), Self.alert("a3")])))
        machine.tick(now: later)
        #expect(press(machine, "1", at: later) == Self.answer("a3", "retry"))
    }

    @Test func `an answer without a digit gets one when it is released`() {
        var keys = AlertKeys()
        func alert(_ id: AlertID, actions: Int) -> PlayerSnapshot.Alert {
            .init(
                id: id, owner: .playback, severity: .error, title: "", message: "",
                actions: (1...actions).map { "do\($0)" })
        }
        var now = Self.now.monotonic
        keys.update([alert("a1", actions: 8), alert("a2", actions: 3)], now: now)
        #expect(keys.applied(to: [alert("a2", actions: 3)]).first?.answers == ["9 do1", "do2", "do3"])
        keys.update([alert("a2", actions: 3)], now: now)
        #expect(keys.applied(to: [alert("a2", actions: 3)]).first?.keys == [9, nil, nil])
        now = now.advanced(by: AlertKeys.reservation)
        keys.update([alert("a2", actions: 3)], now: now)
        #expect(keys.applied(to: [alert("a2", actions: 3)]).first?.keys == [9, 1, 2])
    }

    @Test func `a released digit is assigned without any other event`() throws {
        let waiting = Self.alert("a2", actions: ["retry"])
        let eight = (1...9).map { "do\($0)" }
        var machine = Self.machine(Self.player(), [Self.alert("a1", .error, actions: eight), waiting])
        machine.tick(now: Self.now)
        machine.apply(.snapshot(Self.replica(Self.player(), [waiting])))
        machine.tick(now: Self.now)
        #expect(machine.screen(at: Self.now).snapshot.alerts.map(\.keys) == [[nil]])
        var later = Self.now
        later.monotonic = later.monotonic.advanced(by: AlertKeys.reservation)
        let change = try #require(machine.nextChange(after: Self.now))
        #expect(change <= AlertKeys.reservation / .seconds(1))
        machine.tick(now: later)
        #expect(machine.screen(at: later).snapshot.alerts.map(\.keys) == [[1]])
    }

    @Test func `the first frame of a player waits for the fleet’s state, but not without a limit`() {
        var frame = FirstFrame()
        let start = Self.now.monotonic
        #expect(frame.wait(.connecting, now: start) == FirstFrame.limit / .seconds(1))
        var late = frame
        #expect(late.wait(.connecting, now: start.advanced(by: FirstFrame.limit)) == nil)
        #expect(frame.wait(.live, now: start.advanced(by: .milliseconds(1))) == nil)
        // Only the first frame waits.
        #expect(frame.wait(.connecting, now: start.advanced(by: .milliseconds(2))) == nil)
    }

    @Test func `a plain player reassigns an alert’s digit when its reservation expires, without any other event`()
        async throws
    {
        let clock = NIOLockedValueBox(Self.now)
        let printed = NIOLockedValueBox<[String]>([])
        let player = NIOLockedValueBox(PlayerMachine(settings: Settings(), presentation: .plainText))
        let printer = PlainPlayer(
            Output(json: false, quiet: false), keys: player, now: { clock.withLockedValue { $0 } },
            say: { line in printed.withLockedValue { $0.append(line) } })
        let nine = Self.alert("a1", .error, actions: (1...9).map { "do\($0)" })
        let waiting = Self.alert("a2", actions: ["retry"])
        var state = FleetState(FleetView()).after(.connection(.live))
        for alerts in [[nine, waiting], [waiting]] {
            state = state.after(.snapshot(Self.replica(Self.player(), alerts)))
            #expect(try await printer.handle(FleetUpdate(state: state, changes: [.everything])))
        }
        #expect(await printer.nextDigit == AlertKeys.reservation)
        printed.withLockedValue { $0 = [] }
        clock.withLockedValue { $0.monotonic = $0.monotonic.advanced(by: AlertKeys.reservation) }
        try await printer.assignDigits()
        #expect(printed.withLockedValue { $0 }.contains { $0.hasSuffix("Answers: 1 retry.") })
        #expect(await printer.nextDigit == nil)
    }

    @Test func `mini shows the digits of all alerts that fit, also when nothing is loaded`() {
        var machine = Self.machine(
            WirePlaybackState(), [Self.alert("a1", .error, actions: ["retry"]), Self.alert("a2", actions: ["dismiss"])])
        machine.tick(now: Self.now)
        let snapshot = machine.screen(at: Self.now).snapshot
        let line = SingleLineText.text(snapshot, columns: 100)
        #expect(line.hasSuffix("Nothing is loaded. ! Trouble a1  1 retry ! Trouble a2  2 dismiss"), "\(line)")
        let narrow = SingleLineText.text(snapshot, columns: 56)
        #expect(narrow.hasSuffix("  1 retry  and 1 more"), "\(narrow)")
        // Without room for a title, the answers are still shown.
        let narrower = SingleLineText.text(snapshot, columns: 44)
        #expect(narrower == "~ Nothing is loaded. !2  1 retry  2 dismiss")
        #expect(SingleLineText.text(snapshot, columns: 36) == "~ Nothing is loaded. !2  1 retry")
        #expect(SingleLineText.text(snapshot, columns: 24) == "~ Nothing is loaded. !2")
        for columns in 1...100 {
            #expect(DisplayText.width(SingleLineText.text(snapshot, columns: columns)) <= columns)
        }
    }

    @Test func `with keys, an alert’s digits are printed, and again when they change`() {
        var narrator = PlainSentences()
        var snapshot = Self.snapshot(Self.player())
        snapshot.alerts = ([("a1", [1, 2]), ("a2", [3, nil])] as [(AlertID, [Int?])]).map { id, keys in
            .init(
                id: id, owner: .playback, severity: .error, title: "Trouble \(id)", message: "",
                actions: ["retry", "dismiss"], keys: keys)
        }
        #expect(
            narrator.lines(for: snapshot, now: Self.now.monotonic).suffix(2) == [
                "Alert a1 (error): Trouble a1. Answers: 1 retry, 2 dismiss.",
                "Alert a2 (error): Trouble a2. Answers: 3 retry, dismiss. "
                    + "`lockstep alerts answer a2 ACTION` answers this alert.",
            ])
        snapshot.alerts.removeFirst()
        #expect(narrator.lines(for: snapshot, now: Self.now.monotonic) == ["Alert closed: Trouble a1."])
        snapshot.alerts[0].keys = [3, 1]
        #expect(
            narrator.lines(for: snapshot, now: Self.now.monotonic) == [
                "Alert a2 (error): Trouble a2. Answers: 3 retry, 1 dismiss."
            ])
    }
}
