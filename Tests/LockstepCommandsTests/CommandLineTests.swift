import ArgumentParser
import BusKit
import Foundation
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import LockstepClient
@testable import LockstepCommands

/// Tests the preparation of command lines for the parser, and refusals.
@Suite struct CommandLineTests {
    /// Without a name, the parser derives it from the type, which searches the whole program at every start.
    @Test func `every command has its full name`() {
        var rest: [any ParsableCommand.Type] = [Lockstep.self]
        while let command = rest.popLast() {
            #expect(command.configuration.commandName != nil, "\(command)")
            rest += command.configuration.subcommands
            rest += command.configuration.groupedSubcommands.flatMap(\.subcommands)
        }
    }

    @Test func `the values that an argument accepts are listed in one sentence`() {
        let said =
            "The value 'x' is invalid for '<kind>'. Please provide one of the following:\n  - a\n  - b\n  - c\nUsage: …"
        #expect(
            ParserWords.reworded(said)
                == "The value “x” is invalid for “<kind>”. Please provide one of “a”, “b” or “c”.\nUsage: …")
        #expect(ParserWords.reworded("It is not") == "It is not.")
    }

    @Test func `thousands of IDs are joined for the parser and split again`() throws {
        let ids = (0..<5_000).map { EpisodeID.derived(from: "\($0)").text }
        let words = try CommandLineWords(["mark", "played"] + ids + ["--json", "a title"]).words
        #expect(words == ["mark", "played", ids.joined(separator: " "), "--json", "a title"])
        #expect(CommandLineWords.episodes([words[2], "a title"]) == ids + ["a title"])
        let mark = try #require(try Lockstep.command(["mark", "played"] + ids) as? Mark)
        #expect(CommandLineWords.episodes(mark.episodes) == ids)
    }

    @Test func `few IDs and the values of options aren’t changed`() throws {
        let ids = (0..<60).map { EpisodeID.derived(from: "\($0)").text }
        let few = ["mark", "played"] + ids.prefix(49)
        #expect(try CommandLineWords(few).words == few)
        #expect(CommandLineWords.episodes(few) == few)
        let words = try CommandLineWords(["queue", "add", "--queue"] + ids).words
        #expect(words == ["queue", "add", "--queue", ids[0], ids.dropFirst().joined(separator: " ")])
        let other = ["downloads"] + ids
        #expect(try CommandLineWords(other).words == other)
    }

    @Test func `a podcast is forgotten only if its whole name is given`() throws {
        let podcast = try #require(
            Podcast(
                .with {
                    ($0.id, $0.title, $0.url) = ("p0123", "Many parts", "https://h/feed")
                    $0.episodeCount = 3
                }))
        for name in ["p0123", "Many parts", "many PARTS", "https://h/feed"] {
            try Unsubscribe.requireWholeName(name, podcast)
        }
        for part in ["Many", "p01", "h/feed"] {
            let failure = #expect(throws: Failure.self) { try Unsubscribe.requireWholeName(part, podcast) }
            #expect(failure?.message.contains("“Many parts” (p0123) with 3 episodes") == true)
        }
    }

    @Test func `a home is relative to the caller’s folder, and a tilde is the user’s`() throws {
        let folder = FileManager.default.currentDirectoryPath
        for (given, path) in [("a/b", "\(folder)/a/b"), ("~/a", "/home/me/a"), ("~", "/home/me"), ("/a/./b", "/a/b")] {
            let home = try LockstepHome.find(["LOCKSTEP_HOME": given, "HOME": "/home/me"])
            #expect(home.configurationDirectory == path)
        }
    }

    @Test(arguments: [
        ("Start one with `lockstep up --detach`.", "Start one with `lockstep up --detach --home '/a b'`."),
        (
            "See `lockstep logs bus`; then `lockstep reset-failed bus`.",
            "See `lockstep logs bus --home '/a b'`; then `lockstep reset-failed bus --home '/a b'`."
        ),
        ("Run `lockstep` as that user.", "Run `lockstep` as that user."),
        ("`chmod 700 /a` and lockstep up", "`chmod 700 /a` and lockstep up"),
        ("`lockstep ps --home /b`", "`lockstep ps --home /b`"),
        ("an open `lockstep ps", "an open `lockstep ps"), ("", ""),
    ])
    func `a command in a message names the specified home`(text: String, completed: String) {
        #expect(AdvisedCommands(home: "/a b").completed(text) == completed)
        #expect(AdvisedCommands(home: nil).completed(text) == text)
        // The home is also read from a command line that can’t be parsed.
        #expect(AdvisedCommands(arguments: ["--home", "/a b", "paus"]).completed(text) == completed)
        #expect(AdvisedCommands(arguments: ["paus", "--home=/a b"]).completed(text) == completed)
        #expect(AdvisedCommands(arguments: ["paus", "--home"]).completed(text) == text)
    }

    @Test func `an empty home is refused instead of the user’s own library being used`() throws {
        let failure = #expect(throws: Failure.self) {
            try LockstepHome.find(["LOCKSTEP_HOME": "", "HOME": "/home/me", "XDG_DATA_HOME": "/data"])
        }
        #expect(failure?.known == .badConfiguration)
        #expect(failure?.message.hasPrefix("The home is empty") == true)
    }

    @Test(arguments: [
        (["--json", "status"], ["status", "--json"]), (["--home", "/a", "status"], ["status", "--home", "/a"]),
        (["-q", "--home=/a", "pause"], ["pause", "-q", "--home=/a"]),
        (["--plain", "bookmark", "note", "b1", "--", "-4 dB"], ["bookmark", "note", "b1", "--plain", "--", "-4 dB"]),
        (["--json", "seek", "-15"], ["seek", "−15", "--json"]), (["--json", "--help"], ["--help"]),
        (["--json", "help", "queue"], ["help", "queue"]), (["status", "--json"], ["status", "--json"]),
        (["--version"], ["--version"]), ([], []),
    ])
    func `global options are accepted before a command`(arguments: [String], words: [String]) throws {
        #expect(try CommandLineWords(arguments).words == words)
    }

    @Test(arguments: [
        (["seek", "-5%"], ["seek", "−5%"]), (["seek", "-0:10"], ["seek", "−0:10"]),
        (["set", "gain", "-.5"], ["set", "gain", "−.5"]),
        (["speed", "-1"], ["speed", "−1"]), (["seek", "-q", "10"], ["seek", "-q", "10"]),
        (["logs", "-n", "5"], ["logs", "-n", "5"]), (["show", "-5"], ["show", "−5"]),
        (["chapter", "--json", "-1"], ["chapter", "--json", "−1"]),
        (["bookmark", "note", "b96", "-5 dB"], ["bookmark", "note", "b96", "−5 dB"]),
        (["bookmark", "note", "b96", "--", "-5"], ["bookmark", "note", "b96", "--", "-5"]),
        (["bookmark", "add", "--note", "-5"], ["bookmark", "add", "--note", "-5"]),
        (["episodes", "--limit", "-5"], ["episodes", "--limit", "-5"]), (["show", "-x"], ["show", "-x"]),
        (["bookmark", "add", "--at", "-5%"], ["bookmark", "add", "--at", "−5%"]),
    ])
    func `a negative number is parsed as an argument, unless it follows an option`(
        arguments: [String], words: [String]
    ) throws {
        #expect(try CommandLineWords(arguments).words == words)
    }

    @Test(arguments: [
        (["paus"], "There is no command “paus”. Did you mean `lockstep pause`? `lockstep --help` lists them."),
        (["help", "foo"], "There is no command “foo”. `lockstep --help` lists them."),
        (
            ["help", "queue", "ad"],
            "There is no command “queue ad”. Did you mean `lockstep queue add`? `lockstep queue --help` lists them."
        ),
        (["queue", "foo"], "There is no command “queue foo”. `lockstep queue --help` lists them."),
        (["help", "pause", "now"], "There is no command “pause now”. `lockstep pause --help` describes it."),
        (["--home"], "--home expects a folder: `lockstep --home FOLDER status`."),
        (["--json"], "Name a command, as in `lockstep --json status`. `lockstep --help` lists them."),
    ])
    func `an unknown command is named in the error`(arguments: [String], message: String) {
        #expect { try CommandLineWords(arguments) } throws: { error in
            (error as? Failure)?.code == "usage" && (error as? Failure)?.message == message
        }
    }

    @Test(arguments: [
        ["help"], ["help", "queue", "add"], ["queue", "--queue", "evening"], ["bookmark", "part of a title"],
        ["play", "foo"], ["search", "--", "-tech"], ["logs", "-fh"], ["bookmark", "add", "--note", "-the end"],
        ["prev"], ["play-pause"], ["candidates", "queues"], ["feed", "check", "x"], ["alerts"],
    ])
    func `a known command is accepted`(arguments: [String]) throws {
        #expect(try CommandLineWords(arguments).words == arguments)
    }

    @Test(arguments: [
        ["episodes", "--all", "--limit", "3"], ["episodes", "--limit", "-3"], ["queue", "add"],
        ["queue", "add", "a", "--podcast", "p"], ["queue", "add", "a", "--unplayed"], ["logs", "-n", "0"],
        ["logs", "--lines", "-1"], ["alerts", "answer"], ["skip"], ["downloads", "--watch", "--once"],
    ])
    func `contradictory and incomplete arguments are refused`(arguments: [String]) {
        #expect(throws: (any Error).self) { try Lockstep.command(arguments) }
    }

    @Test(arguments: [
        ["episodes", "--all"], ["episodes", "--limit", "3"], ["queue", "add", "--podcast", "p", "--unplayed"],
        ["logs", "-f", "-n", "0"], ["alerts", "answer", "retry"], ["alerts", "answer", "a1", "retry"],
        ["bookmark", "add", "--note", "-3 dB"], ["sleep", "30", "minutes"], ["show", "-5"], ["chapter", "-1"],
        ["bookmark", "note", "b96", "-5"], ["queue", "remove", "-5", "-6"],
    ])
    func `valid command lines are parsed`(arguments: [String]) throws {
        _ = try Lockstep.command(arguments)
    }

    @Test func `the entries of a forgotten podcast are counted for each queue`() {
        #expect(Unsubscribe.sentences([("evening", 1)], files: 0) == ["Removed 1 entry from “evening”."])
        #expect(
            Unsubscribe.sentences([("main", 2), ("evening", 1)], files: 1) == [
                "Removed 2 entries from Up Next and 1 entry from “evening”.",
                "1 downloaded file will be deleted when no longer in use.",
            ])
        #expect(
            Unsubscribe.sentences([("main", 2), ("evening", 1), ("sl", 3)], files: 0)
                == ["Removed 2 entries from Up Next, 1 entry from “evening” and 3 entries from “sl”."])
    }

    @Test(arguments: [
        ("Error: The value 'abc' is invalid for '<revision>'", "Error: The value “abc” is invalid for “<revision>”."),
        ("Error: Missing expected argument '<episodes> ...'", "Error: Missing expected argument “<episodes> ...”."),
        ("Unexpected argument '−5'\nUsage: lockstep 'a'", "Unexpected argument “-5”.\nUsage: lockstep 'a'"),
        ("Positions count from 1.", "Positions count from 1."),
        ("It isn't one", "It isn’t one."),
    ])
    func `the parser’s errors are reworded with typographic quotes and a full stop`(said: String, shown: String) {
        #expect(ParserWords.reworded(said) == shown)
    }

    @Test(arguments: [
        "search -tech", "search -hx", "search -qxh", "search a -tech --json", "queue add -tech", "pause -xh",
        "--x -tech",
    ])
    func `a word with unknown options isn’t a request for help because it contains an h`(line: String) throws {
        let words = line.split(separator: " ").map(String.init)
        #expect {
            _ = try Lockstep.command(words)
        } throws: { error in
            guard let failure = error as? Failure else { return Lockstep.exitCode(for: error).rawValue == 64 }
            return failure.code == "usage" && failure.message.contains("isn’t an option. After `--`")
        }
    }

    @Test(arguments: [
        "search -h", "search -help", "search -tech --help", "search -qh", "logs -fh", "--help", "help search",
    ])
    func `a request for help is one also beside other words`(line: String) throws {
        let words = line.split(separator: " ").map(String.init)
        let command = try Lockstep.command(words)
        #expect(type(of: command).configuration.commandName == "help")
    }

    @Test func `text after two dashes may begin with a dash`() throws {
        let search = try #require(try Lockstep.command(["search", "--", "-tech"]) as? Search)
        #expect(search.terms == ["-tech"])
        #expect(ParserWords.reworded("Unknown option '-t'").contains(CommandLineWords.dashAdvice))
        #expect(
            AdvisedCommands(home: "/a").completed("`lockstep search -- -tech`")
                == "`lockstep search --home /a -- -tech`")
    }

    @Test func `entries are sorted by length`() throws {
        let sort = try #require(try Lockstep.command(["queue", "sort", "length"]) as? QueueSort)
        #expect(sort.key == .length)
        #expect(throws: (any Error).self) { try Lockstep.command(["queue", "sort", "duration"]) }
    }

    @Test func `a queue shows its limit only if it differs from the default`() {
        for (limit, words) in [(0, []), (50, ["holds 50 at most"]), (UInt32(RequestSizes.queueEntries), [])]
            as [(UInt32, [String])]
        {
            #expect(QueueModes(.with { $0.limit = limit }).words == words)
        }
    }

    @Test func `adding thousands of episodes reports their number`() {
        let reply = WireQueueReply.with { reply in
            reply.changed = true
            reply.queue = "evening"
            reply.entries = Array(
                repeating: .with {
                    $0.id = "q1"
                    $0.episode.id = "e1"
                }, count: 500)
            reply.count = 1_200
        }
        #expect(Output.sentence(QueueAnswer(reply), []) == "Added 1200 episodes to “evening”.")
    }

    @Test(arguments: [
        (["queue", "create", ""], "create"), (["output", ""], "output"), (["queue", ""], "queue"),
        (["queue", "add", "--queue", "", "e1"], "--queue"), (["queue", "--queue="], "--queue"),
        (["subscribe", "--user", "", "https://h/feed"], "--user"), (["mark", "played", "e1", ""], "e1"),
        (["--home", "", "status"], "--home"), (["--home=", "status"], "--home"), (["status", "--home", ""], "--home"),
    ])
    func `an empty argument is refused by every command`(arguments: [String], before: String) throws {
        let failure = #expect(throws: Failure.self) { try CommandLineWords(arguments) }
        #expect(failure?.code == "usage")
        #expect(failure?.message == "The argument after “\(before)” is empty. Give a value, or omit it.")
    }

    @Test(arguments: [
        ["bookmark", "note", "b1", ""], ["bookmark", "add", "--note", ""], ["bookmark", "add", "--note="],
        ["bookmark", "add", "--note=a="], ["bookmark", "add", "--note", "--a="],
        ["status", "--format={title}="],
    ])
    func `only a note can be empty`(arguments: [String]) throws {
        #expect(throws: Never.self) { try CommandLineWords(arguments) }
    }

    @Test(arguments: [
        (["status", "--format", "{state}", "--json"], "--format and --json can’t be used together."),
        (["queue", "add", "--podcast", "p1", "e1"], "Episodes and --podcast can’t be combined"),
        (["queue", "add"], "Name the episodes to add"),
    ])
    func `options that contradict each other are refused`(arguments: [String], message: String) {
        #expect {
            _ = try Lockstep.command(arguments)
        } throws: { error in
            Lockstep.fullMessage(for: error).contains(message)
        }
    }

    @Test func `a long text that distinguishes candidates is cut`() {
        let note = String(repeating: "n", count: 2_000)
        let failure = Failure.ambiguous(
            "Two match.", [("a1", "Gone", note), ("a2", "Gone", "Near")].map { ($0, $1, $2) })
        let cut = String(repeating: "n", count: 99) + "…"
        #expect(failure.candidates.map(\.detail) == [cut, "Near"])
    }

    @Test func `alerts, bookmarks and entries with equal titles are distinguished in a list of candidates`() {
        let candidates = [("a1", "Gone", "Far"), ("a2", "Gone", "Near"), ("a3", "Other", "Near")]
        let failure = Failure.ambiguous("Three match.", candidates.map { ($0, $1, $2) })
        #expect(failure.candidates.map(\.title) == ["Gone", "Gone", "Other"])
        #expect(failure.candidates.map(\.detail) == ["Far", "Near", ""])
        #expect(failure.message == "Three match. Repeat the command with one of these IDs:")
    }

    @Test(arguments: ["playback", "play", "stream", "stream/queue/queue/main", "live/downloads", "l", "queue/", "bus"])
    func `watch accepts the beginning of a possible topic`(prefix: String) {
        #expect(throws: Never.self) { try Watch.requireTopic(prefix) }
    }

    @Test(arguments: ["foo", "stream/foo", "queuex", "player/state"])
    func `watch refuses a prefix that no topic can have`(prefix: String) {
        let failure = #expect(throws: Failure.self) { try Watch.requireTopic(prefix) }
        #expect(failure?.known == .notFound)
        #expect(failure?.message.contains("playback, queue, feeds") == true)
    }

    @Test func `messages repeat only the beginning of a long argument`() {
        let long = String(repeating: "n", count: 300)
        let cut = Lockstep.cut(["show", long], in: "There is no episode “\(long)”.")
        #expect(cut == "There is no episode “\(String(repeating: "n", count: 99))…”.")
    }

    @Test func `quotation marks in a title don’t nest`() {
        #expect(Titles.shown(["The “best” one"]) == "“The ‘best’ one”")
    }

    @Test func `a list of alternatives ends with “or”`() {
        #expect { try SettingKey.autoEnqueue.value(of: "sideways") } throws: { error in
            (error as? Failure)?.message == "autoEnqueue can’t be “sideways”; it must be off, top, bottom or next."
        }
    }

    @Test func `output to a full disk fails with an error`() throws {
        let full = open("/dev/full", O_WRONLY)
        try #require(full >= 0)
        defer { close(full) }
        #expect {
            try Output.write("text", to: full)
        } throws: { ($0 as? Failure)?.known == .diskFull }
    }

    @Test func `subscribing prints the feed’s warnings`() throws {
        var added = WireFeedResult()
        added.kind = .added
        added.podcast.id = "p1"
        added.podcast.title = "Torn"
        added.podcast.episodeCount = 6
        added.warnings = ["The feed could not be read beyond line 1.", "a", "b", "c"]
        #expect(
            FeedResults([FeedsClient.Result(added)], of: .subscribing).lines == [
                "Subscribed to Torn: 6 episodes.", "  Warning: The feed could not be read beyond line 1.",
                "  Warning: a", "  Warning: b", "  … and 1 more: `lockstep feed check` lists them.",
            ])
    }

    @Test func `a summary counts only the feeds that were subscribed to`() {
        let results = [WireFeedResult.Kind.added, .alreadyThere, .failed].map { kind in
            FeedsClient.Result(.with { $0.kind = kind })
        }
        #expect(
            FeedResults(Array(results.prefix(2)), of: .subscribing).sum
                == ["Subscribed to 1 of 2 podcasts; 1 already subscribed."])
        #expect(
            FeedResults(results, of: .subscribing).sum
                == ["Subscribed to 1 of 3 podcasts; 1 already subscribed; 1 failed."])
    }

    @Test func `a change of podcasts that failed is reported although nothing is printed`() {
        let failed = FeedsClient.Result(
            .with {
                $0.kind = .failed
                ($0.failure.code, $0.failure.message) = ("limitReached", "“Show” would have more than 100 tags.")
            })
        #expect {
            try Output(json: false, quiet: true).podcasts([failed], { "Tagged \($0)." }, else: "tagged")
        } throws: { ($0 as? Failure)?.known == .limitReached }
    }

    @Test func `a feed that failed is named by its podcast`() {
        let failed = FeedsClient.Result(
            .with {
                $0.url = "https://a.example/feed"
                $0.kind = .failed
                $0.podcast.id = "p1"
                $0.podcast.title = "Later"
                $0.failure.code = "fetchFailed"
                $0.failure.message = "a.example could not be reached."
            })
        #expect {
            try FeedResults([failed], of: .refreshing).report(to: Output(json: false, quiet: false))
        } throws: { ($0 as? Failure)?.message == "Later: a.example could not be reached." }
        #expect(failed.json["podcast"]?["unplayed"] == .null)
    }

    @Test(
        arguments: [
            ("geheim\n", .entered("geheim")), ("a\u{7f}b\r", .entered("b")), ("gä\u{7f}x\n", .entered("gx")),
            ("a\u{15}b\n", .entered("b")), ("\u{7f}\n", .entered("")), ("a\u{3}", .cancelled), ("\u{4}", .cancelled),
            ("a\u{4}", .entered("a")), ("a", .more),
        ] as [(String, TypedPassword.Outcome)])
    func `a password is typed with the usual keys`(keys: String, outcome: TypedPassword.Outcome) {
        var typed = TypedPassword()
        var last = TypedPassword.Outcome.more
        for byte in keys.utf8 { last = typed.press(byte) }
        #expect(last == outcome)
    }
}
