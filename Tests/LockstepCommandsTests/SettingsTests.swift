import Foundation
import PodcastModel
import TestSupport
import Testing

@testable import LockstepCommands

@Suite struct SettingsTests {
    private static func settings(_ text: String, _ environment: [String: String] = [:]) async throws -> Settings {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        return try await Settings(file: try folder.file("config.yaml", text.utf8), environment: environment)
    }

    @Test func `without a file the defaults hold`() async throws {
        #expect(try await Settings(file: "/nowhere/config.yaml", environment: [:]) == Settings())
        for text in ["", "\n", "# skip:\n#   forward: 45\n", "---\n"] {
            #expect(try await Self.settings(text) == Settings())
        }
    }

    /// Uncommented, the sample is what it says: the defaults; and every one of its keys is read.
    @Test func `the sample shows the defaults of the keys that are read`() async throws {
        let sample = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined() + "/deploy/config.yaml"
        let lines = try String(contentsOfFile: sample, encoding: .utf8).split(separator: "\n")
        let settings = try await Self.settings(
            lines.filter { $0.hasPrefix("# ") && $0.contains(":") && !$0.hasSuffix(".") && !$0.contains("LOCKSTEP_") }
                .map { $0.dropFirst(2) }.joined(separator: "\n"))
        var expected = Settings()
        expected.serviceEnvironment = [
            "LOCKSTEP_FEEDS_REFRESH_MINUTES": "60", "LOCKSTEP_LOG_LEVEL": "info", "LOCKSTEP_AO": "pipewire",
        ]
        #expect(settings == expected)
    }

    @Test func `the file sets every key, and the environment wins over it`() async throws {
        let file = """
            skip:
              forward: 45
              back: 15
            speed:
              step: 0.25
            volume:
              step: 10
            plain: true
            feeds:
              refreshMinutes: 120
            log:
              level: debug
            ao: alsa
            """
        var expected = Settings()
        expected.skipForward = 45
        expected.skipBack = 15
        expected.speedStep = 0.25
        expected.volumeStep = 10
        expected.plain = true
        expected.serviceEnvironment = [
            "LOCKSTEP_FEEDS_REFRESH_MINUTES": "120", "LOCKSTEP_LOG_LEVEL": "debug", "LOCKSTEP_AO": "alsa",
        ]
        #expect(try await Self.settings(file) == expected)
        let environment = [
            "LOCKSTEP_SKIP_FORWARD": "60", "LOCKSTEP_SKIP_BACK": "5", "LOCKSTEP_SPEED_STEP": "0.5",
            "LOCKSTEP_VOLUME_STEP": "2", "LOCKSTEP_PLAIN": "0", "LOCKSTEP_FEEDS_REFRESH_MINUTES": "0",
            "LOCKSTEP_LOG_LEVEL": "error", "LOCKSTEP_AO": "null",
        ]
        expected.skipForward = 60
        expected.skipBack = 5
        expected.speedStep = 0.5
        expected.volumeStep = 2
        expected.plain = false
        expected.serviceEnvironment = environment.filter { name, _ in
            ["LOCKSTEP_FEEDS_REFRESH_MINUTES", "LOCKSTEP_LOG_LEVEL", "LOCKSTEP_AO"].contains(name)
        }
        #expect(try await Self.settings(file, environment) == expected)
    }

    @Test(arguments: [
        ("skip:\n  forward: soon", [:], "skip.forward"), ("skip: [1", [:], "cannot be read"),
        ("feeds:\n  refreshMinutes: -1", [:], "feeds.refreshMinutes"), ("log:\n  level: loud", [:], "log.level"),
        ("", ["LOCKSTEP_FEEDS_REFRESH_MINUTES": "often"], "LOCKSTEP_FEEDS_REFRESH_MINUTES"),
        ("plain: perhaps", [:], "plain"),
    ])
    func `a value that cannot be used is refused by its name`(
        file: String, environment: [String: String], name: String
    ) async throws {
        do {
            _ = try await Self.settings(file, environment)
            Issue.record("accepted")
        } catch let failure as Failure {
            #expect(failure.known == .badConfiguration)
            #expect(failure.message.contains(name))
        }
    }
}
