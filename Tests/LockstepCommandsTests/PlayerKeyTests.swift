import BusKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import LockstepClient
@testable import LockstepCommands

/// Tests the keys of the players and their messages, in all three presentations.
@Suite struct PlayerKeyTests {
    private static let now = Moment(
        monotonic: MonotonicTime(nanoseconds: 50_000_000_000), wall: Timestamp(milliseconds: 5_000_000))

    private static func event(_ topic: Topic, _ payload: [UInt8]) -> StreamEvent {
        StreamEvent(topic: topic, header: BusHeader(.put, epoch: 1, sequence: 1), payload: payload)
    }

    private static func state(load: String = "l1") -> WirePlaybackState {
        .with {
            $0.status = .paused
            $0.loadID = load
            $0.episode.id = "e1"
            $0.episode.title = "The first one"
            $0.queueEntry = "q1"
            $0.duration = 3_600
            $0.volume = 80
            $0.anchor.position = 700
            $0.anchor.bootID = SystemClocks.bootID
        }
    }

    private static func replica(load: String = "l1", entries: [String] = ["q1", "q2"]) -> Replica {
        let queue = WireQueueState.with { queue in
            queue.name = "main"
            queue.current = "q1"
            queue.entries = entries.map { id in
                .with {
                    $0.id = id
                    $0.episode.id = "e" + id
                    $0.episode.title = "Entry \(id)"
                }
            }
        }
        var replica = Replica()
        replica.apply(event(.playbackState, state(load: load).wireBytes))
        replica.apply(event(.queue("main"), queue.wireBytes))
        return replica
    }

    private static func machine(_ presentation: PlayerMachine.Presentation) -> PlayerMachine {
        var machine = PlayerMachine(settings: Settings(), presentation: presentation)
        machine.apply(.snapshot(replica()))
        machine.apply(.connection(.live))
        return machine
    }

    @Test func `removing entries moves the selection to the next row and never to the playing entry`() {
        let entries = ["q1", "q2", "q3", "q4", "q5"]
        var machine = Self.machine(.fullScreen)
        machine.apply(.snapshot(Self.replica(entries: entries)))
        for _ in 0..<2 { _ = machine.press(.down, now: Self.now) }
        // The key is pressed again before the stream has reported the first removal.
        let first = PlayerIntent.remove(entry: "q3", queue: "main")
        #expect(machine.press(.character("x"), now: Self.now) == .ask(.command(first)))
        #expect(machine.press(.character("x"), now: Self.now) == .none)
        let second = PlayerIntent.remove(entry: "q4", queue: "main")
        #expect(machine.finished(.command(first), nil, now: Self.now) == .ask(.command(second)))
        machine.apply(.snapshot(Self.replica(entries: ["q1", "q2", "q5"])))
        #expect(machine.screen(at: Self.now).selectedIndex == 2)
        // Another client removes the selected entry, which was the last one.
        machine.apply(.snapshot(Self.replica(entries: ["q1", "q2"])))
        #expect(machine.screen(at: Self.now).selectedIndex == 1)
        // All entries are restored; the selection is unchanged.
        machine.apply(.snapshot(Self.replica(entries: entries)))
        #expect(machine.screen(at: Self.now).selectedIndex == 1)
    }

    @Test func `the commands of keys pressed in quick succession run one after the other`() {
        var machine = Self.machine(.fullScreen)
        var task = PlayerIntent.next(from: "q1", queue: "main")
        #expect(machine.press(.character("n"), now: Self.now) == .ask(.command(task)))
        for key in ["n", "n", "p"] as [Character] { #expect(machine.press(.character(key), now: Self.now) == .none) }
        let rest: [PlayerIntent] = [
            .next(from: nil, queue: "main"), .next(from: nil, queue: "main"), .previous(from: nil, queue: "main"),
        ]
        for next in rest {
            #expect(machine.finished(.command(task), nil, now: Self.now) == .ask(.command(next)))
            task = next
        }
        #expect(machine.finished(.command(task), nil, now: Self.now) == .none)
        #expect(Self.notice(machine) == nil)
    }

    @Test(arguments: [
        ("+", 100.0, 1.0, "The volume is already 100 %."), ("-", 0, 1, "The volume is already 0 %."),
        ("]", 80, 3.5, "The speed is already 3.5."), ("[", 80, 0.5, "The speed is already 0.5."),
    ])
    func `a level key at the end of the range is answered`(key: Character, volume: Double, speed: Double, says: String)
    {
        var machine = Self.machine(.plainText)
        var replica = Self.replica()
        var state = Self.state()
        (state.volume, state.speed) = (volume, speed)
        replica.apply(Self.event(.playbackState, state.wireBytes))
        machine.apply(.snapshot(replica))
        #expect(machine.press(.character(key), now: Self.now) == .none)
        #expect(Self.notice(machine) == says)
    }

    @Test func `a key that is ignored while a command is pending is reported`() {
        var machine = Self.machine(.fullScreen)
        let pause = PlayerIntent.toggle(queue: "main")
        #expect(machine.press(.character(" "), now: Self.now) == .ask(.command(pause)))
        #expect(machine.press(.character(" "), now: Self.now) == .none)
        #expect(Self.notice(machine) == "The last command is still running; this key was ignored.")
        for _ in 0..<PlayerMachine.waitingLimit { _ = machine.press(.character("n"), now: Self.now) }
        #expect(Self.notice(machine) == nil)
        #expect(machine.press(.character("n"), now: Self.now) == .none)
        #expect(Self.notice(machine)?.hasSuffix("this key was ignored.") == true)
        // A failure also drops the waiting commands.
        #expect(machine.finished(.command(pause), Failure(.atEdge, "Done."), now: Self.now) == .none)
        #expect(machine.press(.character("n"), now: Self.now) == .ask(.command(.next(from: "q1", queue: "main"))))
    }

    @Test(arguments: [" ", "n", "x", "]", "+", "b", "z", "u"] as [Character])
    func `keys pressed while the fleet is down are refused and not sent later`(key: Character) {
        for presentation in [PlayerMachine.Presentation.fullScreen, .singleLine, .plainText] {
            var machine = Self.machine(presentation)
            machine.apply(.connection(.disconnected(since: Self.now.monotonic)))
            guard presentation == .fullScreen || key != "x" else { continue }
            #expect(machine.press(.character(key), now: Self.now) == .none)
            #expect(Self.notice(machine) == "Not connected to the fleet; the key was ignored.")
            machine.apply(.connection(.live))
            #expect(machine.press(.character("?"), now: Self.now) == .none)
            #expect(machine.press(.character(key), now: Self.now) != .none)
        }
    }

    private static func notice(_ machine: PlayerMachine) -> String? { machine.screen(at: now).notice }

    @Test func `the effect of a key is reported once`() {
        var machine = Self.machine(.plainText)
        #expect(machine.press(.character("i"), now: Self.now) == .none)
        #expect(machine.takeNotice()?.hasPrefix("Paused at 11:40 of 1:00:00: The first one; 48:20 left") == true)
        #expect(machine.takeNotice() == nil)
    }

    @Test func `the description names the selection only on screens with a list`() {
        for presentation in [PlayerMachine.Presentation.fullScreen, .singleLine, .plainText] {
            var machine = Self.machine(presentation)
            _ = machine.press(.character("i"), now: Self.now)
            #expect(Self.notice(machine)?.contains("2 entries in Up Next") == true)
            #expect(Self.notice(machine)?.contains("selected: Entry q1") == (presentation == .fullScreen))
        }
    }

    @Test(arguments: [PlayerKey.up, .down, .end, .enter, .delete, .character("x"), .character("c")])
    func `on a screen without a list, the list’s keys are refused with a notice`(key: PlayerKey) {
        for presentation in [PlayerMachine.Presentation.singleLine, .plainText] {
            var machine = Self.machine(presentation)
            #expect(machine.press(key, now: Self.now) == .none)
            #expect(Self.notice(machine) == "This player has no list. ? shows the keys.")
        }
    }

    @Test func `a question mark shows the keys of that screen and no others`() {
        for presentation in [PlayerMachine.Presentation.fullScreen, .singleLine, .plainText] {
            var machine = Self.machine(presentation)
            _ = machine.press(.character("?"), now: Self.now)
            #expect(Self.notice(machine)?.contains("z sleep timer") == true)
            #expect(Self.notice(machine)?.contains("x removes") == (presentation == .fullScreen))
        }
    }

    @Test func `the whole description and all keys fit into 80 columns`() throws {
        for key in ["i", "?"] as [Character] {
            var machine = Self.machine(.fullScreen)
            _ = machine.press(.character(key), now: Self.now)
            let screen = machine.screen(at: Self.now)
            let text = screen.image(columns: 80, rows: 24).text.joined(separator: " ")
            let notice = try #require(screen.notice)
            #expect(text.contains(notice), "\(text)")
            #expect(screen.image(columns: 80, rows: 24).text.last?.hasSuffix("? keys  q quit") == true)
        }
    }

    @Test func `a description stays until the next key or the next episode`() {
        var machine = Self.machine(.fullScreen)
        _ = machine.press(.character("i"), now: Self.now)
        let later = Moment(monotonic: Self.now.monotonic.advanced(by: .seconds(600)), wall: Self.now.wall)
        machine.tick(now: later)
        #expect(Self.notice(machine) != nil)
        machine.apply(.snapshot(Self.replica(load: "l2")))
        #expect(Self.notice(machine) == nil)
        _ = machine.press(.character("i"), now: Self.now)
        _ = machine.press(.down, now: Self.now)
        #expect(Self.notice(machine) == nil)
    }

    @Test func `a key removes the notice of the previous key`() {
        var machine = Self.machine(.singleLine)
        _ = machine.press(.character("<"), now: Self.now)
        #expect(Self.notice(machine) == "This episode has no chapters.")
        #expect(machine.press(.character("n"), now: Self.now) != .none)
        #expect(Self.notice(machine) == nil)
    }

    @Test func `a notice replaces the line only if it fits`() {
        var machine = Self.machine(.singleLine)
        _ = machine.press(.character("<"), now: Self.now)
        let screen = machine.screen(at: Self.now)
        #expect(
            SingleLineText.text(screen.snapshot, columns: 79, notice: screen.notice) == "This episode has no chapters.")
        _ = machine.press(.character("i"), now: Self.now)
        let described = machine.screen(at: Self.now)
        #expect(described.noticeNumber > screen.noticeNumber)
        #expect(
            SingleLineText.text(described.snapshot, columns: 79, notice: described.notice).contains("‖ 11:40/1:00:00 "))
    }

    @Test func `a typed text that isn’t a key is refused with a notice`() {
        var machine = Self.machine(.singleLine)
        #expect(machine.press(.character("f"), now: Self.now) == .none)
        #expect(Self.notice(machine) == "“f” isn’t a key. ? shows the keys.")
        machine.refuse("foo", now: Self.now)
        #expect(Self.notice(machine) == "“foo” isn’t a key. ? shows the keys.")
        #expect(machine.press(.character("1"), now: Self.now) == .none)
        #expect(Self.notice(machine) == "There is no alert to answer.")
    }

    @Test func `the sleep timer’s key shows the new timer, unless the player prints the change anyway`() {
        for presentation in [PlayerMachine.Presentation.fullScreen, .singleLine, .plainText] {
            var machine = Self.machine(presentation)
            guard case .ask(let task) = machine.press(.character("z"), now: Self.now) else {
                Issue.record("The key z made no request")
                return
            }
            #expect(machine.finished(task, nil, now: Self.now) == .none)
            #expect(Self.notice(machine) == (presentation == .plainText ? nil : "Sleep in 15:00."))
        }
    }

    @Test func `undo reports the change that was undone`() {
        var machine = Self.machine(.fullScreen)
        guard case .ask(let task) = machine.press(.character("u"), now: Self.now) else {
            Issue.record("The key u made no request")
            return
        }
        _ = machine.finished(task, nil, effect: "Undone: Removed “A”.", now: Self.now)
        #expect(Self.notice(machine) == "Undone: Removed “A”.")
    }

    @Test(arguments: [
        ("n", TypedKey.key(.character("n"))), (" n ", .key(.character("n"))), (" ", .key(.character(" "))),
        ("?", .key(.character("?"))), ("\u{1b}[C", .key(.right)), ("foo", .other("foo")),
        ("play it", .other("play it")), ("\u{1b}[C\u{1b}[C", .other("\u{1b}[C\u{1b}[C")), ("", nil), ("\t", nil),
    ])
    func `a typed line is parsed as one key or none`(line: String, key: TypedKey?) {
        #expect(TypedKey(line) == key)
    }

    @Test(arguments: [20, 40, 50, 80, 200])
    func `the last line always shows the keys for help and for quitting`(columns: Int) {
        let line = PlayerHelp.line(columns: columns)
        #expect(line.hasSuffix("? keys  q quit"))
        #expect(DisplayText.width(line) <= columns)
    }
}
