import Foundation
import PodcastModel
import TestSupport
import Testing

@testable import FleetHome

struct SmallFileTests {
    private let temporary: TemporaryFolder
    private var folder: String { temporary.path }

    init() throws { temporary = try TemporaryFolder() }

    @Test func `a file is replaced atomically and leaves no temporary file`() throws {
        let path = folder + "/bus.epoch"
        for text in ["1\n", "1700000000000\n"] {
            try SmallFile.replace(path, with: text)
            #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["bus.epoch"])
    }

    @Test func `a file of the same length is overwritten in place and any other isn’t overwritten`() throws {
        let path = folder + "/queue.generation"
        #expect(!SmallFile.overwrite(path, with: "1700000001\n"))
        try SmallFile.replace(path, with: "1700000000\n")
        #expect(SmallFile.overwrite(path, with: "1700000001\n"))
        #expect(!SmallFile.overwrite(path, with: "17\n"))
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "1700000001\n")
    }

    @Test func `a missing folder is reported by name`() {
        do throws(Failure) {
            try SmallFile.replace(folder + "/absent/bus.epoch", with: "1\n")
            Issue.record("it was written")
        } catch {
            #expect(error.known == .badConfiguration)
            #expect(error.message.contains("/absent/bus.epoch"))
        }
    }
}
