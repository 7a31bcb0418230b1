import BusKit
import LibC
import SupervisorControl
import TestSupport
import Testing

@testable import FleetSupervisor

@Suite struct LogTests {
    @Test(arguments: [
        ("a\nb\n", ["a", "b"]), ("a\n\n\nb", ["a"]), ("", []), ("\n", []),
    ])
    func `output is split into lines`(_ text: String, _ lines: [String]) {
        var splitter = LineSplitter()
        #expect(splitter.lines(Array(text.utf8)[...]).map { String(decoding: $0, as: UTF8.self) } == lines)
    }

    @Test func `a line in pieces is joined and a long one is truncated`() {
        var splitter = LineSplitter()
        #expect(splitter.lines(Array("ab".utf8)[...]).isEmpty)
        #expect(splitter.lines(Array("c\n".utf8)[...]) == [Array("abc".utf8)])
        for _ in 0..<4 { #expect(splitter.lines([UInt8](repeating: 65, count: 50_000)[...]).isEmpty) }
        #expect(splitter.lines(Array("\nnext\n".utf8)[...]).map(\.count) == [65_536, 4])
    }

    @Test func `text is converted to JSON, and JSON is unchanged`() {
        let json = Array(#"{"a":1}"#.utf8)
        #expect(LogRecord.json(json, service: "queue", at: 5) == json)
        let text = LogRecord.json(Array("say \"hi\"\u{1}".utf8), service: "queue", at: 5)
        #expect(
            String(decoding: text, as: UTF8.self)
                == #"{"at":5,"level":"notice","service":"queue","message":"say \"hi\"\u0001"}"#)
    }

    @Test func `lines of all services are ordered by time`() throws {
        let temporary = try TemporaryFolder()
        let home = try LockstepHome(
            environment: ["LOCKSTEP_HOME": temporary.path], userID: 0, workingDirectory: "/",
            directoryExists: { _ in true })
        try home.prepare()
        let service = [#"{"at":1,"message":"a"}"#, #"{"at":4,"message":"d"}"#, #"{"message":"e"}"#]
        let own = [2, 3, 9].map { LogRecord.json("\($0)", level: .info, service: "supervisor", at: $0) }
        try SmallFile.replaceWhole(home.logDirectory + "/bus.log", with: service.joined(separator: "\n") + "\n")
        try SmallFile.replaceWhole(
            home.logDirectory + "/supervisor.log",
            with: own.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "\n") + "\n")
        let lines = LogReader(home).last(5, of: nil)
        #expect(lines.count == 5)
        let messages = lines.map { $0.suffix(3).dropLast(2) }
        #expect(messages == ["2", "3", "d", "e", "9"])
    }

    @Test func `logs are rotated and five files are kept`() throws {
        let temporary = try TemporaryFolder()
        let folder = temporary.path
        let writer = try #require(LogWriter(folder: folder, fileLimit: 100))
        for number in 0..<200 { writer.append("queue", Array("line \(number)".utf8)) }
        writer.close()
        let names = SystemCall.names(in: folder)
        #expect(names == ["queue.log", "queue.log.1", "queue.log.2", "queue.log.3", "queue.log.4"])
        for name in names { #expect(try SmallFile.contents(folder + "/" + name).count <= 100) }
        #expect(SmallFile.text(of: folder + "/queue.log").hasSuffix("line 199\n"))
    }

    @Test func `lines that can’t be written to a full disk are dropped and counted`() throws {
        let temporary = try TemporaryFolder()
        let folder = temporary.path
        symlink("/dev/full", folder + "/queue.log")
        let writer = try #require(LogWriter(folder: folder))
        for number in 0..<7 { writer.append("queue", Array("line \(number)".utf8)) }
        writer.close()
    }
}
