import PodcastModel
import Testing
import WireMessages

@testable import LockstepClient
@testable import LockstepCommands

@Suite struct TextTests {
    @Test(
        arguments: [
            (
                #"{"at":1767323045123,"level":"info","message":"x \"at\":5"}"#,
                #"{"at":1767323045.123,"level":"info","message":"x \"at\":5"}"#
            ),
            (#"{"at":1767323045000}"#, #"{"at":1767323045}"#),
            (#"{"level":"info"}"#, #"{"level":"info"}"#), (#"{"at":"x"}"#, #"{"at":"x"}"#), ("no JSON", "no JSON"),
        ])
    func `times in the JSON of logs are seconds`(line: String, json: String) {
        #expect(LogLine.json(line) == json)
    }

    @Test(arguments: [120, 60, 40, 30, 20, 5]) func `a table is never wider than the terminal`(width: Int) {
        let table = TextTable(
            [.right(""), .flexible("episode"), .flexible("podcast"), "id"],
            [
                ["1", String(repeating: "title ", count: 20), "A podcast with a long name", "e0123456789abcdef0123"],
                ["2", "日本語のタイトル", "x", "e1"],
            ])
        let lines = table.lines(width: width)
        #expect(lines.allSatisfy { DisplayText.width($0) <= width })
        if width >= 40 { #expect(lines[1].hasSuffix("e0123456789abcdef0123")) }
    }

    @Test(arguments: [
        ("90", SeekExpression.absolute(90)), ("12:34", .absolute(754)), ("1:02:03", .absolute(3_723)),
        ("50%", .fraction(0.5)), ("+30", .relative(30)), ("-15", .relative(-15)), ("−15", .relative(-15)),
        ("+1:30", .relative(90)), ("0", .absolute(0)), ("7.5", .absolute(7.5)), ("1h", .absolute(3_600)),
        ("12m30s", .absolute(750)), ("+1.5h", .relative(5_400)), ("−2m", .relative(-120)), ("90S", .absolute(90)),
    ])
    func `a position in an episode is parsed`(text: String, expected: SeekExpression) {
        #expect(SeekExpression(text) == expected)
    }

    @Test(arguments: [
        "", "-", "abc", "nan", "inf", "1:60", "1:2:3:4", "101%", "%", "1e3", "0x10", "12:", ":12", "--5", " 5",
        "30m1h", "1h2", "h", "1x", "+", "+%",
    ])
    func `an invalid position is refused`(text: String) {
        #expect(SeekExpression(text) == nil)
    }

    @Test(arguments: [
        "", " ", "a", " a", "a ", "a  b", "a b", "a\u{7f}", "a\tb", "Plain text, with (all) its ~ signs!", "é a",
    ])
    func `the fast path for plain text gives the same result as the slow path`(text: String) {
        // A bidirectional control is removed, and disables the fast path.
        #expect(DisplayText.sanitised(text) == DisplayText.sanitised(text + "\u{200e}"))
        let plain = DisplayText.sanitised(text)
        #expect(DisplayText.width(plain) == DisplayText.width(plain + "\u{301}"))
    }

    @Test func `a relative position counts from the current one`() throws {
        #expect(try SeekExpression.relative(-30).position(from: 10, duration: 100) == 0)
        #expect(try SeekExpression.relative(300).position(from: 10, duration: 100) == 100)
        #expect(try SeekExpression.fraction(0.5).position(from: 10, duration: 100) == 50)
        #expect(throws: Failure.self) { try SeekExpression.fraction(0.5).position(from: 0, duration: nil) }
    }

    @Test func `a negative seek needs no separator`() throws {
        #expect(try CommandLineWords(["seek", "--json", "-15"]).words == ["seek", "--json", "−15"])
        #expect(try CommandLineWords(["volume", "-15"]).words == ["volume", "−15"])
        #expect(try CommandLineWords(["bookmark", "add", "--at", "-15"]).words == ["bookmark", "add", "--at", "−15"])
        #expect(CommandLineWords.typed("−15") == "-15" && CommandLineWords.typed("15−") == "15−")
    }

    @Test(arguments: [
        ("+5", PlayerClient.LevelChange.by(5)), ("-5", .by(-5)), ("−5%", .by(-5)), ("+0.25", .by(0.25)),
        ("50", .to(50)),
        ("50%", .to(50)), ("up", .steps(1, of: 5)), ("down", .steps(-1, of: 5)),
    ])
    func `a level is parsed as a value, a change or a step`(text: String, change: PlayerClient.LevelChange) throws {
        #expect(
            try PlayerClient.LevelChange(text, "volume", unit: "%", 0...100, examples: "+10 or -10", step: 5) == change)
    }

    @Test(arguments: ["", "+", "-", "--5", "+-5", "loud", "5x", "+up"])
    func `an invalid level is refused`(text: String) {
        #expect(throws: Failure.self) {
            try PlayerClient.LevelChange(text, "volume", unit: "%", 0...100, examples: "+10 or -10", step: 5)
        }
    }

    @Test(arguments: [(59.95, "1:00"), (60.04, "1:00"), (0.4, "0:00"), (3_599.5, "1:00:00")])
    func `the starts of chapters are shown to the nearest second`(seconds: Double, text: String) {
        #expect(TimeText.mark(seconds) == text)
    }

    @Test func `a time is formatted as a local day and minute`() {
        let moment = Timestamp(milliseconds: 1_772_323_200_000)
        #expect(TimeText.day(milliseconds: moment.milliseconds) == LocalTime.calendar(moment).dayText)
        #expect(TimeText.minute(milliseconds: moment.milliseconds) == LocalTime.calendar(moment).minuteText)
        #expect(TimeText.day(milliseconds: 0) == "-")
        #expect(TimeText.minute(milliseconds: 0) == "never")
    }

    @Test(arguments: [
        ("a\u{1b}[31mb", "a [31mb"), ("line\nbreak\r\n", "line break"), ("\u{202e}abc\u{2066}", "abc"),
        ("  a  b ", "a b"),
        ("\u{9b}2J", "2J"),
    ])
    func `text from feeds can’t control the terminal`(text: String, expected: String) {
        #expect(DisplayText.sanitised(text) == expected)
    }

    @Test(arguments: [("abc", 3), ("日本語", 6), ("e\u{301}", 1), ("🎧", 2), ("שלום", 4), ("", 0)])
    func `the width of a text counts columns`(text: String, width: Int) {
        #expect(DisplayText.width(text) == width)
    }

    @Test func `cutting never exceeds the columns or splits a character`() {
        for columns in 0...8 { #expect(DisplayText.width(DisplayText.cut("日本語テスト", to: columns)) <= columns) }
        #expect(DisplayText.cut("日本語テスト", to: 6) == "日本…")
        #expect(DisplayText.fitted("ab", to: 4, right: true) == "  ab")
    }

    @Test func `a status format is filled in, and an unknown field is refused`() throws {
        let format = try StatusFormat("{{{state}}} {title}\\n")
        #expect(format.filled { $0.rawValue.uppercased() } == "{STATE} TITLE\n")
        for (text, message) in [
            ("{nonsense}", "{nonsense} is an unknown field. The fields are {state}, "),
            ("at {state", "“{state” in the format has no closing brace."), ("{", "“{” in the format has no closing"),
        ] {
            let failure = #expect(throws: Failure.self) { try StatusFormat(text) }
            #expect(failure?.message.hasPrefix(message) == true, "\(failure?.message ?? "")")
        }
    }

    @Test func `JSON keeps the order of members and escapes control characters`() {
        let value = JSONValue.object([
            "b": .string("a\"\\\n\u{1}"), "a": .number(1.5), "n": .number(3), "x": .number(.nan),
            "l": .array([.null, true]),
        ])
        #expect(value.line == #"{"b":"a\"\\\n\u0001","a":1.5,"n":3,"x":null,"l":[null,true]}"#)
    }

    @Test(arguments: [
        (FailureCode.noFleet, LockstepCommands.ExitStatus.unavailable), (.queueEmpty, .unavailable),
        (.invalidArgument, .usage), (.notApplicable, .data),
        (.notFound, .data), (.notSaved, .tryAgain), (.badConfiguration, .configuration),
    ])
    func `failures exit with the statuses of sysexits`(code: FailureCode, status: LockstepCommands.ExitStatus) {
        #expect(LockstepCommands.ExitStatus(Failure(code, "")) == status)
    }

    @Test(arguments: [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")])
    func `bytes are encoded in base 64`(text: String, expected: String) {
        let event = StreamEvent(
            topic: Topic("stream/other/thing"), header: BusHeader(.put, epoch: 1, sequence: 1),
            payload: Array(text.utf8))
        #expect(StreamPayload.json(event)["base64"] == .string(expected))
    }
}

@Suite struct KeySequenceTests {
    @Test(arguments: [
        ("q", [PlayerKey.character("q")]), ("\u{1b}[C\u{1b}OD", [.right, .left]), ("\u{1b}[1;5A", [.up]),
        ("\u{1b}[200~x", [.character("x")]), ("\u{1b}[I]", [.character("]")]), ("\u{1b}\u{1b}[B", [.down]),
        ("\u{1b}n", []), ("\r", [.enter]),
    ])
    func `an unknown escape sequence isn’t parsed as other keys`(bytes: String, keys: [PlayerKey]) {
        var sequence = KeySequence()
        #expect(bytes.utf8.compactMap { sequence.handle($0) } == keys)
    }

    @Test func `an escape alone doesn’t change the next key`() {
        var sequence = KeySequence()
        #expect(sequence.handle(0x1b) == nil)
        sequence.end()
        #expect(sequence.handle(UInt8(ascii: "n")) == .character("n"))
    }
}
