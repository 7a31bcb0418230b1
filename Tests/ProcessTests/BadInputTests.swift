import BusKit
import Foundation
import LockstepClient
import PodcastModel
import TestSupport
import Testing
import WireMessages

/// Tests that wrong input gets a clear error and exit status and has no other effect.
@Suite(.serialized)
struct BadInputTests {
    /// A command line and its expected result.
    struct Case: Sendable, CustomTestStringConvertible {
        var arguments: [String]
        var status: Int32
        var code: String
        /// A part of the message.
        var message: String

        init(_ line: String, _ status: Int32, _ code: String, _ message: String) {
            arguments = line.split(separator: " ").map(String.init)
            self.status = status
            self.code = code
            self.message = message
        }

        var testDescription: String { arguments.joined(separator: " ") }
    }

    private struct Reported: Decodable {
        struct Content: Decodable {
            var code: String
            var message: String
            var retry: Bool
        }
        var error: Content
    }

    /// Runs the command twice: the JSON is as documented, and the plain output has the same message.
    private static func check(_ bad: Case, _ fleet: ProcessFleet, _ environment: [String: String] = [:]) async throws {
        let name = Comment(rawValue: bad.testDescription)
        let json = try await fleet.lockstep(bad.arguments + ["--json"], environment: environment)
        #expect(json.status == bad.status, name)
        #expect(json.output == "", name)
        guard let reported = try? JSONDecoder().decode(Reported.self, from: Data(json.errors.utf8)).error else {
            Issue.record("\(bad.testDescription): no error but “\(json.errors)”")
            return
        }
        #expect(reported.code == bad.code, name)
        #expect(reported.message.contains(bad.message), "\(bad.testDescription): \(reported.message)")
        let plain = try await fleet.lockstep(bad.arguments, environment: environment)
        #expect(plain.status == bad.status, name)
        #expect(plain.output == "", name)
        #expect(plain.errors.contains(bad.message), "\(bad.testDescription): \(plain.errors)")
        #expect(!plain.errors.contains("Error Domain") && !plain.errors.contains("Swift."), name)
    }

    /// Returns the state that a command could damage.
    private static func state(_ fleet: ProcessFleet) async throws -> [String] {
        var state: [String] = []
        for command in [["status"], ["queue"], ["podcasts"], ["episodes", "--all"], ["alerts"]] {
            state.append(try await fleet.lockstep(command + ["--json"]).output)
        }
        return state
    }

    static let commands = [
        Case("nonsense", 64, "usage", "nonsense"),
        Case("seek nan", 64, "invalidArgument", "“nan” isn’t a position"),
        Case("seek inf", 64, "invalidArgument", "“inf” isn’t a position"),
        Case("seek 1e999", 64, "invalidArgument", "isn’t a position"),
        Case("seek 101%", 64, "invalidArgument", "isn’t a position"),
        Case("seek 99:00", 65, "notApplicable", "beyond the end"),
        Case("skip sideways", 64, "usage", "sideways"),
        Case("skip back --seconds nan", 64, "invalidArgument", "above 0"),
        Case("volume +loud", 64, "invalidArgument", "0 to 100"),
        Case("volume 101", 64, "invalidArgument", "0 to 100"),
        Case("volume loud", 64, "invalidArgument", "0 to 100"),
        Case("speed 99", 64, "invalidArgument", "0.5 to 3.5"),
        Case("speed 0", 64, "invalidArgument", "0.5 to 3.5"),
        Case("speed nan", 64, "invalidArgument", "0.5 to 3.5"),
        Case("output nonsense", 65, "notFound", "nonsense"),
        Case("play eabsent", 65, "notFound", "eabsent"),
        Case("play 99", 65, "notFound", "99"),
        Case("show eabsent", 65, "notFound", "eabsent"),
        Case("play Part", 65, "ambiguous", "more than one"),
        Case("queue add eabsent", 65, "notFound", "eabsent"),
        Case("queue remove 99", 65, "notFound", "99"),
        Case("queue move 1 0", 64, "usage", "count from 1"),
        Case("episodes eabsent", 65, "notFound", "eabsent"),
        Case("episodes --limit -1", 64, "usage", "limit"),
        Case("chapter first", 64, "invalidArgument", "“first” isn’t a chapter"),
        Case("chapter -1", 64, "invalidArgument", "“-1” isn’t a chapter"),
        Case("show -5", 65, "notFound", "“-5”"),
        Case("queue remove -5", 65, "notFound", "“-5”"),
        Case("chapter 3", 65, "notFound", "has no chapters"),
        Case("chapter next", 65, "notFound", "has no chapters"),
        Case("sleep 0", 64, "invalidArgument", "“0” isn’t a sleep time"),
        Case("sleep 25h", 64, "invalidArgument", "up to a day"),
        Case("sleep 3 chapters", 64, "invalidArgument", "“3 chapters” isn’t a sleep time"),
        Case("sleep +10", 65, "notApplicable", "lockstep sleep 10"),
        Case("sleep chapter", 65, "notFound", "has no chapters"),
        Case("mark heard Part", 64, "usage", "heard"),
        Case("mark played eabsent", 65, "notFound", "eabsent"),
        Case("bookmark add --at 99:00", 65, "notApplicable", "beyond the end"),
        Case("bookmark add --at soon", 64, "invalidArgument", "“soon” isn’t a position"),
        Case("bookmark add --episode eabsent", 65, "notFound", "eabsent"),
        Case("bookmark list eabsent", 65, "notFound", "eabsent"),
        Case("bookmark note babsent x", 65, "notFound", "babsent"),
        Case("bookmark remove babsent", 65, "notFound", "babsent"),
        Case("bookmark play babsent", 65, "notFound", "babsent"),
        Case("set spede 2", 65, "notFound", "Did you mean speed?"),
        Case("set speed 99", 64, "invalidArgument", "0.5 to 3.5"),
        Case("set gain -99", 64, "invalidArgument", "-20 to 20"),
        Case("set boost loud", 64, "invalidArgument", "on or off"),
        Case("set speed 2 --unset speed", 64, "usage", "--unset"),
        Case("set --podcast pabsent speed 2", 65, "notFound", "pabsent"),
        Case("set --podcast Many autoPlay on", 64, "invalidArgument", "all podcasts"),
        Case("queue --queue absent", 65, "notFound", "“absent”"),
        Case("queue clear --queue absent", 65, "notFound", "“absent”"),
        Case("next --queue absent", 65, "notFound", "“absent”"),
        Case("queue create 1st", 64, "invalidArgument", "the first a letter"),
        Case("queue create \(String(repeating: "n", count: 300))", 64, "invalidArgument", "1 to 40"),
        Case("queue create -x", 64, "invalidArgument", "“-x” can’t be a queue’s name"),
        Case("queue create ../x", 64, "invalidArgument", "1 to 40"),
        Case("queue delete absent", 65, "notFound", "“absent”"),
        Case("queue delete main", 65, "notApplicable", "always exists"),
        Case("queue sort colour", 64, "usage", "colour"),
        Case("queue limit 10001", 64, "invalidArgument", "10000"),
        Case("queue repeat twice", 64, "usage", "twice"),
        Case("download add eabsent", 65, "notFound", "eabsent"),
        Case("download remove eabsent", 65, "notFound", "eabsent"),
        Case("download pause eabsent", 65, "notFound", "eabsent"),
        Case("download resume eabsent", 65, "notFound", "eabsent"),
        Case("download cancel eabsent", 65, "notFound", "eabsent"),
        Case("download add ../../etc/passwd", 65, "notFound", "../../etc/passwd"),
        Case("download add", 64, "usage", "episodes"),
        Case("set autoDownloadHours 25-99", 64, "invalidArgument", "25-99"),
        Case("set bandwidthLimit -1", 64, "invalidArgument", "-1"),
        Case("set downloadsAtOnce 0", 64, "invalidArgument", "0"),
        Case("set autoDownload 1000000", 64, "invalidArgument", "1000000"),
        Case("downloads --watch --once", 64, "usage", "together"),
        Case("why eabsent", 65, "notFound", "eabsent"),
        Case("watch nonsense", 65, "notFound", "Prefixes begin with bus, persistence"),
        Case("watch --count 0", 64, "usage", "--count"),
        Case("alerts answer retry", 65, "notFound", "retry"),
        Case("alerts answer aabsent retry", 65, "notFound", "aabsent"),
        Case("unsubscribe pabsent", 65, "notFound", "pabsent"),
        Case("refresh pabsent", 65, "notFound", "pabsent"),
        Case("restart nonsense", 65, "notFound", "nonsense"),
        Case("restart supervisor", 65, "notApplicable", "lockstep down"),
        Case("reset-failed nonsense", 65, "notFound", "nonsense"),
        Case("logs nonsense", 65, "notFound", "nonsense"),
        Case("subscribe gopher://example.org/feed", 64, "badURL", "http://"),
        Case("subscribe javascript:alert(1)", 64, "badURL", "http://"),
        Case("subscribe https://", 64, "badURL", "https://"),
        Case("subscribe /absent/feed.xml", 65, "fileMissing", "/absent/feed.xml"),
        Case("feed check /absent/feed.xml", 65, "fileMissing", "/absent/feed.xml"),
        Case("feed check ftp://example.org/feed", 64, "badURL", "http://"),
        Case("feed check http://127.0.0.1:1/feed", 75, "fetchFailed", "refused"),
        Case("subscribe http://127.0.0.1:1/feed", 75, "fetchFailed", "refused"),
    ]

    @Test(.timeLimit(.minutes(5)))
    func `an invalid command is refused and changes nothing`() async throws {
        try await ProcessFleet.with(podcast: 3) { fleet in
            try await fleet.succeed("play", "Part 1 of many")
            try await fleet.succeed("pause")
            let before = try await Self.state(fleet)
            for bad in Self.commands { try await Self.check(bad, fleet) }
            #expect(try await Self.state(fleet) == before)
            #expect(try await fleet.services().values.allSatisfy { $0.state == "ready" && $0.restarts == 0 })
        }
    }

    /// Files that aren’t feeds: name, content, status, code, and a part of the message.
    static let files: [(name: String, content: @Sendable () -> Data, status: Int32, code: String, message: String)] = [
        ("page.html", { Data("<!DOCTYPE html><html><body><p>Hello</body></html>".utf8) }, 65, "notAFeed", "feed"),
        ("empty.xml", { Data() }, 65, "notAFeed", "empty"),
        (
            "garbage.xml",
            {
                var generator = SeededGenerator(seed: 50)
                var data = Data(capacity: 50 << 20)
                while data.count < 50 << 20 {
                    withUnsafeBytes(of: generator.next()) { data.append(contentsOf: $0) }
                }
                return data
            }, 65, "notAFeed", "garbage.xml"
        ),
        (
            "laughs.xml",
            {
                let entities = (1...9).map { number in
                    "<!ENTITY l\(number) \"" + String(repeating: "&l\(number - 1);", count: 10) + "\">"
                }
                let text = "<!DOCTYPE rss [<!ENTITY l0 \"ha\">" + entities.joined() + "]>"
                return Data("<?xml version=\"1.0\"?>\(text)<rss><channel>&l9;</channel></rss>".utf8)
            }, 65, "notAFeed", "laughs.xml"
        ),
    ]

    @Test(.timeLimit(.minutes(5)))
    func `a file that isn’t a feed is refused and the fleet keeps running`() async throws {
        try await ProcessFleet.with(podcast: 1) { fleet in
            let before = try await Self.state(fleet)
            for file in Self.files {
                let path = fleet.root + "/" + file.name
                try file.content().write(to: URL(fileURLWithPath: path))
                try await Self.check(
                    Case("subscribe \(path)", file.status, file.code, file.message), fleet)
                try await Self.check(Case("feed check \(path)", file.status, file.code, file.message), fleet)
            }
            #expect(try await Self.state(fleet) == before)
            let feeds = try #require(try await fleet.services()["feeds"])
            #expect(feeds.state == "ready" && feeds.restarts == 0)
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `XML entities neither expand without limit nor read files`() async throws {
        try await ProcessFleet.with { fleet in
            let secret = fleet.root + "/secret"
            try "the secret".write(toFile: secret, atomically: true, encoding: .utf8)
            let laughs = (1...9).map { "<!ENTITY l\($0) \"" + String(repeating: "&l\($0 - 1);", count: 10) + "\">" }
            let feed = """
                <?xml version="1.0"?><!DOCTYPE rss [<!ENTITY x SYSTEM "file://\(secret)"><!ENTITY l0 "ha">\(laughs.joined())]>
                <rss version="2.0"><channel><title>A &x; title</title><item><title>One &x; &l9;</title><guid>1</guid>
                <enclosure url="http://127.0.0.1:1/a.mp3" type="audio/mpeg" length="1"/></item></channel></rss>
                """
            let path = fleet.root + "/entities.xml"
            try feed.write(toFile: path, atomically: true, encoding: .utf8)
            let outcome = try await fleet.lockstep(["subscribe", path])
            #expect([0, 65].contains(outcome.status), "\(outcome.errors)")
            let state = try await Self.state(fleet).joined()
            #expect(!state.contains("the secret"))
            #expect(!state.contains("hahaha"))
            #expect(try await fleet.services()["feeds"]?.restarts == 0)
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `one feed that fails doesn’t affect the others`() async throws {
        try await ProcessFleet.with { fleet in
            let good = try fleet.writeFeed(episodes: 2)
            let bad = fleet.root + "/page.html"
            try "<html></html>".write(toFile: bad, atomically: true, encoding: .utf8)
            let outcome = try await fleet.lockstep(["subscribe", bad, good, "ftp://example.org/feed"])
            #expect(outcome.status == 75)
            #expect(outcome.output.contains("Subscribed to Many parts: 2 episodes."))
            #expect(outcome.output.contains("Subscribed to 1 of 3 podcasts; 2 failed."))
            #expect(!outcome.output.contains("page.html") && !outcome.output.contains("example.org"))
            #expect(outcome.errors.contains("page.html") && outcome.errors.contains("example.org"))
            let podcasts = try await fleet.succeed("podcasts", "--json")
            #expect(podcasts.contains("Many parts") && !podcasts.contains("page.html"))
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `a file that can’t be read is named`() async throws {
        try await ProcessFleet.with { fleet in
            let pipe = fleet.root + "/pipe"
            mkfifo(pipe, 0o600)
            // No process’s memory is readable at its first byte, whatever the user’s rights.
            var paths: [(String, Int32, String)] = [
                ("/proc/self/mem", 75, "fetchFailed"), ("/proc", 65, "notAFeed"), (pipe, 65, "notAFeed"),
            ]
            if geteuid() != 0 {
                let feed = try fleet.writeFeed(episodes: 1)
                chmod(feed, 0)
                paths.append((feed, 75, "fetchFailed"))
            }
            for (path, status, code) in paths {
                try await Self.check(Case("subscribe \(path)", status, code, path), fleet)
                try await Self.check(Case("feed check \(path)", status, code, path), fleet)
            }
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `missing audio raises an alert whose retry plays it later`() async throws {
        try await ProcessFleet.with(podcast: 1) { fleet in
            let audio = fleet.root + "/silence.wav"
            try FileManager.default.moveItem(atPath: audio, toPath: audio + ".away")
            try await Self.check(Case("play 1", 65, "notFound", "is empty"), fleet)
            let failed = try await fleet.lockstep(["play", "Part 1 of many", "--json"])
            #expect(failed.status == 65)
            #expect(failed.errors.contains("fileMissing") && failed.errors.contains("silence.wav"))
            let status = try await fleet.succeed("status", "--json")
            #expect(status.contains(#""state":"failed""#) && status.contains("Part 1 of many"))
            let alerts = try await fleet.succeed("alerts", "--json")
            #expect(alerts.contains(#""retry""#) && alerts.contains(#""severity":"error""#))

            // Without the file a retry fails again; with it, the episode plays and the alert is removed.
            try FileManager.default.moveItem(atPath: audio + ".away", toPath: audio)
            try await fleet.succeed("alerts", "answer", "retry")
            try await FleetObserver.with(1, of: fleet) { observers in
                try await observers[0].until("the episode plays") { $0.player?.status == .playing }
                try await observers[0].until("the alert is removed") { $0.alertsInOrder.isEmpty }
            }
            #expect(try await fleet.succeed("alerts", "--json") == "[]\n")
        }
    }

    static let withoutFleet = [
        "status", "play", "pause", "seek 5", "queue", "queue add x", "podcasts", "episodes", "alerts", "watch", "mini",
        "expanded", "ps", "restart queue", "reset-failed queue", "subscribe http://127.0.0.1/feed", "backup",
    ]

    @Test(.timeLimit(.minutes(5)))
    func `without a fleet every command fails at once`() async throws {
        let fleet = try ProcessFleet()
        for command in Self.withoutFleet {
            try await Self.check(Case(command, 69, "noFleet", "lockstep up --detach"), fleet)
        }
        #expect(try await fleet.succeed("down").contains("no fleet is running"))
        // The command doesn’t wait. The best of several runs counts because the machine may be busy.
        var best = Duration.seconds(60)
        for _ in 0..<10 {
            let start = ContinuousClock.now
            #expect(try await fleet.lockstep(["status"]).status == 69)
            best = min(best, ContinuousClock.now - start)
        }
        print("without a fleet: answered after \(best)")
        #expect(best < .seconds(1))
    }

    @Test(.timeLimit(.minutes(5)))
    func `commands in messages name the specified home`() async throws {
        let fleet = try ProcessFleet()
        let home = fleet.root + "/other home"
        let advice = "lockstep up --detach --home '\(home)'"
        for arguments in [["--home", home, "status"], ["pause", "--home=\(home)", "--json"]] {
            let outcome = try await fleet.lockstep(arguments)
            #expect(outcome.status == 69 && outcome.errors.contains(advice), "\(outcome)")
        }
        let doctor = try await fleet.lockstep(["doctor", "--home", home])
        #expect(doctor.output.contains(advice), "\(doctor)")
        // A home that is set in the environment also applies to the next command.
        #expect(try await fleet.lockstep(["status"]).errors.contains("`lockstep up --detach`"))
    }

    @Test(.timeLimit(.minutes(5)))
    func `every command refuses an empty home`() async throws {
        let fleet = try ProcessFleet()
        for command in ["up --detach", "status", "doctor", "feed check x"] {
            let outcome = try await fleet.lockstep(["--home", ""] + command.split(separator: " ").map(String.init))
            #expect(outcome.status == 64 && outcome.errors.contains("after “--home” is empty"), "\(outcome)")
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `a path that is too long for sockets is refused`() async throws {
        let fleet = try ProcessFleet()
        let environment = ["LOCKSTEP_HOME": fleet.root + "/" + String(repeating: "long", count: 30)]
        for command in ["up --detach", "up", "status", "ps"] {
            try await Self.check(
                Case(command, 78, "badConfiguration", "LOCKSTEP_HOME"), fleet, environment)
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `invalid settings are reported before anything starts`() async throws {
        let fleet = try ProcessFleet()
        try "feeds:\n  refreshMinutes: often\n".write(
            toFile: fleet.root + "/config.yaml", atomically: true, encoding: .utf8)
        try await Self.check(
            Case("up --detach", 78, "badConfiguration", "feeds.refreshMinutes"), fleet)
        #expect(fleet.pid("supervisor") == nil)
    }

    @Test(.timeLimit(.minutes(5)))
    func `the settings are passed to the services’ environment`() async throws {
        try await ProcessFleet.with(isUp: false) { fleet in
            try "feeds:\n  refreshMinutes: 90\nlog:\n  level: warning\n".write(
                toFile: fleet.root + "/config.yaml", atomically: true, encoding: .utf8)
            try await fleet.up()
            let pid = try #require(fleet.pid("feeds"))
            let environment = try Data(contentsOf: URL(fileURLWithPath: "/proc/\(pid)/environ"))
                .split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
            #expect(environment.contains("LOCKSTEP_FEEDS_REFRESH_MINUTES=90"))
            #expect(environment.contains("LOCKSTEP_LOG_LEVEL=warning"))
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `a second fleet on the same home is refused and the first keeps running`() async throws {
        try await ProcessFleet.with { fleet in
            let pids = ProcessFleet.all.compactMap { fleet.pid($0) }
            for arguments in [["up", "--detach"], ["up"]] {
                let outcome = try await fleet.lockstep(arguments)
                #expect(outcome.status == 0)
                #expect(outcome.output == "No change: the fleet is already up.\n")
            }
            let second = Process()
            second.executableURL = URL(fileURLWithPath: ProcessFleet.binaries + "/lockstep-supervisor")
            second.environment = fleet.environment
            let errors = Pipe()
            second.standardError = errors
            try second.run()
            let message = try errors.fileHandleForReading.readToEnd() ?? Data()
            second.waitUntilExit()
            #expect(second.terminationStatus == 75)
            #expect(String(decoding: message, as: UTF8.self).contains(fleet.root))
            #expect(ProcessFleet.all.compactMap { fleet.pid($0) } == pids)
        }
    }
}
