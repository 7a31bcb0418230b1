import FleetHome
import Foundation
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import LockstepClient
@testable import LockstepCommands

/// Tests the rows of the last printed list, and the names that shells complete.
@Suite struct ListedEpisodesTests {
    private static let ids = (0..<3).map { EpisodeID.derived(from: "\($0)") }

    private static func withLists(_ body: (LockstepHome) throws -> Void) throws {
        let folder = try TemporaryFolder()
        try body(
            try LockstepHome(
                environment: ["LOCKSTEP_HOME": folder.path], userID: 0, workingDirectory: "/",
                directoryExists: { _ in true }))
    }

    @Test func `a row is the episode of the last list of its session`() throws {
        try Self.withLists { (home: LockstepHome) throws in
            let lists = ListedEpisodes(home, session: 1)
            lists.remember(Self.ids)
            #expect(try lists.episodes(rows: 1...1) == [Self.ids[0]])
            #expect(try lists.episodes(rows: 2...3) == [Self.ids[1], Self.ids[2]])
            ListedEpisodes(home, session: 2).remember([Self.ids[1]])
            #expect(try lists.episodes(rows: 1...1) == [Self.ids[0]])
            #expect(throws: Failure.self) {
                try ListedEpisodes(home, session: 1, boot: "another").episodes(rows: 1...1)
            }
            // After a list without rows, no number means an episode of an older one.
            lists.remember([])
            #expect(throws: Failure.self) { try lists.episodes(rows: 1...1) }
        }
    }

    @Test func `a row of no list, beyond its end or of an old list is refused`() throws {
        try Self.withLists { (home: LockstepHome) throws in
            let lists = ListedEpisodes(home, session: 1)
            let now = Timestamp(milliseconds: 1_790_000_000_000)
            func refusal(_ rows: ClosedRange<Int>, after seconds: Int = 0) -> String? {
                let later = Timestamp(milliseconds: now.milliseconds + Int64(seconds) * 1_000)
                return #expect(throws: Failure.self) { try lists.episodes(rows: rows, now: later) }?.message
            }
            #expect(refusal(1...1)?.contains("none was printed") == true)
            lists.remember(Self.ids, now: now)
            #expect(refusal(4...4)?.contains("has 3 rows") == true)
            #expect(refusal(2...5)?.contains("no row %5") == true)
            #expect(refusal(5...9)?.contains("no row %5") == true)
            #expect(refusal(0...2)?.contains("no row %0") == true)
            #expect(refusal(1...1, after: ListedEpisodes.lifetime + 60)?.contains("12 h") == true)
            #expect(try lists.episodes(rows: 3...3, now: now) == [Self.ids[2]])
        }
    }

    @Test func `the number of stored lists is bounded`() throws {
        try Self.withLists { (home: LockstepHome) throws in
            for session in 1...50 {
                ListedEpisodes(home, session: Int32(session))
                    .remember(Self.ids, now: Timestamp(milliseconds: 1_000 * Int64(session)))
            }
            let names = try FileManager.default.contentsOfDirectory(atPath: home.stateFile("lists"))
            #expect(names.count == ListedEpisodes.listLimit && names.contains("50") && !names.contains("1"))
        }
    }

    @Test func `rows are replaced by IDs, except in texts`() throws {
        func resolved(_ line: String) throws -> [String] {
            try ListedEpisodes.resolved(line.split(separator: " ").map(String.init)) { rows throws(Failure) in
                Array(Self.ids[rows.lowerBound - 1..<rows.upperBound])
            }
        }
        let ids = Self.ids.map(\.text)
        #expect(try resolved("play %1") == ["play", ids[0]])
        #expect(try resolved("queue add %3 %2 --next") == ["queue", "add", ids[2], ids[1], "--next"])
        #expect(
            try resolved("bookmark add --episode %1 --note %2") == [
                "bookmark", "add", "--episode", ids[0], "--note", "%2",
            ])
        #expect(try resolved("queue add %1-%3") == ["queue", "add"] + ids[0...2])
        #expect(try resolved("queue add %2-3 %1") == ["queue", "add"] + ids[1...2] + [ids[0]])
        for text in [
            "tag add %1 P", "podcast rename P %1", "playlist create %1", "play %3-%1", "play %1-%", "play 1-%2",
            "search %1", "bookmark note b1 %1", "play 100%", "play %",
            "play %x", "watch %1",
        ] {
            #expect(try resolved(text).joined(separator: " ") == text)
        }
        let play = try #require(try Lockstep.command(["play", "%2"]) { _ throws(Failure) in [Self.ids[1]] } as? Play)
        #expect(play.episode == ids[1])
        #expect(throws: Failure.self) { try Lockstep.command(["play", "%2"]) }
        // Thousands of rows are one word for the parser.
        let many = (0..<5_000).map { EpisodeID.derived(from: "\($0)") }
        let words = try CommandLineWords(["queue", "add", "%1-%5000"]) { rows throws(Failure) in
            Array(many[rows.lowerBound - 1..<rows.upperBound])
        }
        #expect(words.words.count == 3 && CommandLineWords.episodes(Array(words.words[2...])) == many.map(\.text))
    }

    @Test func `a title is completed if it names one object and is no other word`() {
        let completions = Completion.named([
            Completion(id: "e1", title: "First light", about: "Show"), Completion(id: "e2", title: "Same", about: "A"),
            Completion(id: "e3", title: "same", about: "B"), Completion(id: "e4", title: "-x", about: "A"),
            Completion(id: "e5", title: "12", about: "A"), Completion(id: "e6", title: "latest", about: "A"),
            Completion(id: "main"),
        ])
        #expect(completions.map { $0.line(for: nil) } == ["First light", "e2", "e3", "e4", "e5", "e6", "main"])
        #expect(completions[1].line(for: "fish") == "e2\tSame, A")
    }

    @Test(arguments: [
        ("bash", #"A\\\ \\\$\\\(touch\\\ x\\\)\\\'"#), ("zsh", #"A $(touch x)':a: b"#), ("fish", "A $(touch x)'\ta: b"),
        ("", "A $(touch x)'"),
    ])
    func `a hostile title is quoted for each shell`(shell: String, line: String) {
        #expect(Completion(id: "e1", title: "A $(touch x)'", about: "a: b").line(for: shell) == line)
    }

    @Test func `bash completes a hostile title without executing it`() throws {
        let folder = try TemporaryFolder()
        let line = Completion(id: "e1", title: "A $(touch \(folder.path)/x) `y` ; \"é").line(for: "bash")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/bash")
        process.arguments = ["-c", #"IFS=$'\n' compgen -W "$1" -- A"#, "bash", line]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(output.hasPrefix(#"A\ \$\(touch\ "#) && output.hasSuffix("\\;\\ \\\"é\n"), "\(output)")
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/x"))
    }

    @Test func `the candidates of an ambiguous name fit a terminal`() {
        let title = String(repeating: "A long title ", count: 9)
        let failure = Failure(
            ambiguous: "Two.",
            [(id: "e0123456789", title: title, detail: "2026-01-02 20:00"), (id: "e01", title: "B", detail: "C")],
            detailed: true)
        let shown = Output.candidateLines(of: failure, width: 80)
        #expect(shown.count == 2 && shown.allSatisfy { DisplayText.width($0) <= 78 })
        #expect(shown[0].hasPrefix("e0123456  A long") && shown[0].hasSuffix("…  2026-01-02 20:00"))
        #expect(Output.candidateLines(of: failure, width: nil)[1] == "e01  B (C)")
    }

    @Test func `a table in a terminal has short IDs, and otherwise whole cells between tabs`() {
        let long = String(repeating: "A long title ", count: 20)
        let table = TextTable(
            [.right("%"), .flexible("episode"), .id("id")], [["1", long, "e0123456789"], ["2", "B", "e0123456abc"]])
        let shown = table.printed(width: 80)
        #expect(shown.allSatisfy { DisplayText.width($0) <= 80 })
        #expect(shown[1].hasSuffix("  e01234567") && shown[2].hasSuffix("  e0123456a"))
        #expect(table.printed(width: nil)[2] == "2\tB\te0123456abc")
    }
}
