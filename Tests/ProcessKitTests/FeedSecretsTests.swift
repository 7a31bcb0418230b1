import Foundation
import PodcastModel
import TestSupport
import Testing

@testable import FleetHome

@Suite struct FeedSecretsTests {
    private let mine = WebCredentials(user: "me@mail.example", password: "pä:ss %/word")
    private let feeds = WebCredentials(user: "feed", password: "token")

    private func origin(_ text: String) throws -> WebOrigin { try #require(WebOrigin(text)) }

    @Test func `credentials are used for their own podcast and server only`() throws {
        var secrets = FeedSecrets()
        secrets.set(mine, for: "p1", at: try origin("https://host.example"), isGiven: true)
        func found(_ podcast: String, _ url: String) throws -> WebCredentials? {
            secrets.credentials(of: podcast, at: try #require(WebAddress(url)))
        }
        #expect(try found("p1", "https://host.example/any/1.mp3") == mine)
        #expect(try found("p1", "https://HOST.example:443/") == mine)
        for url in ["http://host.example/", "https://host.example:8443/", "https://a.host.example/", "file:///x"] {
            #expect(try found("p1", url) == nil, "\(url)")
        }
        #expect(try found("p2", "https://host.example/") == nil)
    }

    @Test func `credentials from a feed never replace those that a user entered`() throws {
        var secrets = FeedSecrets()
        let origin = try origin("https://host.example")
        secrets.set(feeds, for: "p1", at: origin, isGiven: false)
        secrets.set(mine, for: "p1", at: origin, isGiven: true)
        secrets.set(feeds, for: "p1", at: origin, isGiven: false)
        #expect(secrets.credentials(of: "p1") == [origin: mine])
        for number in 0..<100 {
            secrets.set(feeds, for: "p1", at: try self.origin("https://h\(number).example"), isGiven: false)
        }
        #expect(secrets.credentials(of: "p1").count == FeedSecrets.originLimit)
    }

    @Test func `the file of passwords is readable by the user only, and returns the written passwords`() throws {
        let folder = try TemporaryFolder()
        let file = SecretsFile(path: folder.path + "/secrets.json")
        #expect(try file.read().isEmpty)
        var secrets = FeedSecrets()
        secrets.set(mine, for: "p1", at: try origin("https://host.example:8443"), isGiven: true)
        try file.write(secrets)
        #expect(try file.read() == secrets)
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let reader = SecretsReader(file)
        #expect(reader.credentials(of: "p1").values.map(\.user) == ["me@mail.example"])
        secrets.remove("p1")
        secrets.set(feeds, for: "p2", at: try origin("http://host.example"), isGiven: false)
        try file.write(secrets)
        #expect(reader.credentials(of: "p1").isEmpty && reader.credentials(of: "p2").count == 1)
    }

    @Test(arguments: [
        "", "{", "[]", "{\"version\":1}", "{\"version\":1,\"podcasts\":{\"p1\":[{\"password\":\"geheim\"}]}}",
    ])
    func `a damaged file causes an error that doesn’t quote it, and can be moved aside`(content: String) throws {
        let folder = try TemporaryFolder()
        let file = SecretsFile(path: folder.path + "/secrets.json")
        try content.write(toFile: file.path, atomically: false, encoding: .utf8)
        let failure = #expect(throws: Failure.self) { try file.read() }
        #expect(failure?.message.contains("geheim") == false)
        let loaded = try file.load(at: Timestamp(milliseconds: 7))
        #expect(loaded.secrets.isEmpty)
        #expect(loaded.damage?.contains(file.path + ".damaged-7") == true && loaded.damage?.contains("geheim") == false)
        #expect(try String(contentsOfFile: file.path + ".damaged-7", encoding: .utf8) == content)
        #expect(try file.load(at: Timestamp(milliseconds: 8)).damage == nil)
    }

    @Test func `an unreadable password file isn’t moved`() throws {
        let folder = try TemporaryFolder()
        // Even for root, a folder can be opened but not read, and a link to itself can’t be opened.
        let directory = SecretsFile(path: folder.path + "/directory.json")
        try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: false)
        let circle = SecretsFile(path: folder.path + "/circle.json")
        try FileManager.default.createSymbolicLink(atPath: circle.path, withDestinationPath: circle.path)
        for file in [directory, circle] {
            let failure = #expect(throws: Failure.self) { try file.load(at: Timestamp(milliseconds: 7)) }
            #expect(failure?.known == .storageFailed && failure?.message.contains(file.path) == true)
        }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == [
                "circle.json", "directory.json",
            ])
    }

    @Test func `the description of credentials contains neither user nor password`() throws {
        var secrets = FeedSecrets()
        secrets.set(mine, for: "p1", at: try origin("https://host.example"), isGiven: true)
        var dumped = ""
        dump(secrets, to: &dumped)
        dump(mine, to: &dumped)
        for text in ["\(mine)", "\(secrets)", String(reflecting: mine), String(reflecting: secrets), dumped] {
            #expect(!text.contains("ss %") && !text.contains("mail"), "\(text)")
        }
    }
}
