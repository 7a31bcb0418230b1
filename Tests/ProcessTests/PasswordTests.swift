import Foundation
import LockstepClient
import TestSupport
import Testing

/// Tests that a password is used for every request that needs it and is stored in one file only.
@Suite(.serialized, .timeLimit(.minutes(3))) struct PasswordTests {
    private static let password = "Geheim-4711"
    private static let user = "me@mail.example"
    private static let authorization =
        "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()

    /// The files below a folder that contain the password in clear text, percent-encoded with its user, or in Base64.
    private static func filesWithPassword(in root: String) throws -> [String] {
        let encoded = String(authorization.dropFirst(6))
        return try FileManager.default.subpathsOfDirectory(atPath: root).filter { name in
            guard !name.hasPrefix("run/"), let data = FileManager.default.contents(atPath: root + "/" + name) else {
                return false
            }
            return data.range(of: Data(password.utf8)) != nil || data.range(of: Data(encoded.utf8)) != nil
        }.sorted()
    }

    private static func serve(_ server: HTTPTestServer) {
        let audio = Tone.wav(seconds: 20)
        let items = (1...3).map { number in
            """
            <item><title>Part \(number)</title><guid>\(number)</guid>
            <enclosure url="\(server.url("/\(number).wav"))" type="audio/wav" length="\(audio.count)"/></item>
            """
        }
        let feed = "<rss><channel><title>Members</title>\(items.joined())</channel></rss>"
        server.route("/feed", .feed(feed).requiring(authorization: authorization))
        for number in 1...3 {
            server.route(
                "/\(number).wav", .audio(audio, type: "audio/wav").requiring(authorization: authorization))
        }
    }

    @Test func `a password is used for feed and audio and stored in its file alone`() async throws {
        try await HTTPTestServer.with { server in
            Self.serve(server)
            try await ProcessFleet.with { fleet in
                try await FleetProgram.with([["watch", "--json"]], of: fleet) { watches in
                    var printed: [String] = []
                    @discardableResult func run(_ words: String..., status: Int32 = 0) async throws -> String {
                        let outcome = try await fleet.lockstep(words)
                        printed += [outcome.output, outcome.errors]
                        #expect(outcome.status == status, "\(words.joined(separator: " ")): \(outcome.errors)")
                        return outcome.output
                    }
                    func subscribe(_ password: String) async throws -> ProcessFleet.Outcome {
                        let outcome = try await fleet.run(
                            "/bin/sh",
                            [
                                "-c", #"echo "$0" | "$1" subscribe --user "$2" "$3""#, password,
                                ProcessFleet.binaries + "/lockstep", Self.user, server.url("/feed"),
                            ])
                        printed += [outcome.output, outcome.errors]
                        return outcome
                    }
                    #expect(try await subscribe("wrong-one").status != 0)
                    let subscribed = try await subscribe(Self.password)
                    #expect(subscribed.status == 0 && subscribed.output.hasPrefix("Subscribed to Members"))
                    #expect(try await subscribe(Self.password).output.hasPrefix("No change"))
                    let episodes = try JSONDecoder().decode(
                        [Episode].self, from: Data(try await run("episodes", "--json").utf8))
                    try #require(episodes.count == 3)
                    try await run("refresh")
                    try await run("feed", "check", server.url("/feed"))
                    try await run("play", episodes[0].id)
                    try await run("status", "--json")
                    try await run("download", "add", episodes[1].id)
                    try await watches[0].until("a finished download") { lines in
                        lines.contains { $0.contains("stream/downloads/download/") && $0.contains("\"downloaded\"") }
                    }
                    try await run("next", status: 69)
                    server.route("/feed", .status(401))
                    let refreshed = try await fleet.lockstep(["refresh"])
                    printed += [refreshed.output, refreshed.errors]
                    #expect(refreshed.status != 0)
                    try await run("show", episodes[0].id)
                    try await run("podcasts", "--json")
                    try await run("queue", "list", "--json")
                    try await run("stop")
                    try await run("backup")
                    let doctor = try await fleet.lockstep(["doctor"])
                    printed += [doctor.output, doctor.errors]
                    let leaked = (printed + watches[0].lines).filter { text in
                        text.contains(Self.password) || text.contains(Self.authorization.dropFirst(6))
                    }
                    #expect(leaked.isEmpty, "\(leaked)")
                }
                #expect(try Self.filesWithPassword(in: fleet.root) == ["data/secrets.json"])
                try await fleet.succeed("down")
                #expect(try Self.filesWithPassword(in: fleet.root) == ["data/secrets.json"])
                let mode =
                    try FileManager.default.attributesOfItem(
                        atPath: fleet.root + "/data/secrets.json")[.posixPermissions] as? Int
                #expect(mode == 0o600)
            }
            let served = (1...3).filter { number in
                server.requests(for: "/\(number).wav").contains { $0.header("Authorization") == Self.authorization }
            }
            #expect(served.count >= 2, "one was played and one downloaded")
        }
    }

    private struct Episode: Decodable {
        var id: String
    }
}
