import Foundation
import LockstepClient
import PodcastModel
import TestSupport
import Testing

@testable import LockstepCommands

@Suite struct SettingsTests {
    private static func settings(_ text: String, _ environment: [String: String] = [:]) throws -> Settings {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        return Settings(file: try folder.file("config.yaml", text.utf8), environment: environment)
    }

    @Test func `without a file the defaults apply`() throws {
        #expect(Settings(file: "/nowhere/config.yaml", environment: [:]) == Settings())
        for text in ["", "\n", "# skip:\n#   forward: 45\n", "---\n"] {
            #expect(try Self.settings(text) == Settings())
        }
    }

    /// The uncommented sample contains the defaults, and every one of its keys is read.
    @Test func `the sample file shows every key with its default`() throws {
        let sample = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined() + "/deploy/config.yaml"
        let lines = try String(contentsOfFile: sample, encoding: .utf8).split(separator: "\n")
        let settings = try Self.settings(
            lines.filter { $0.hasPrefix("# ") && $0.contains(":") && !$0.hasSuffix(".") && !$0.contains("LOCKSTEP_") }
                .map { $0.dropFirst(2) }.joined(separator: "\n"))
        var expected = Settings()
        // The player’s own settings would override them, and have the same default.
        expected.skipForward = Double(SettingKey.skipForward.rule.defaultValue)
        expected.skipBack = Double(SettingKey.skipBack.rule.defaultValue)
        expected.serviceEnvironment = [
            "LOCKSTEP_FEEDS_REFRESH_MINUTES": "60", "LOCKSTEP_LOG_LEVEL": "info", "LOCKSTEP_AO": "pipewire",
        ]
        #expect(settings == expected)
    }

    @Test func `the file sets every key, and the environment overrides it`() throws {
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
        #expect(try Self.settings(file) == expected)
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
        #expect(try Self.settings(file, environment) == expected)
    }

    @Test(arguments: [
        (
            "skip:\n  forward: soon", [:],
            ["skip.forward in FILE, line 2, is “soon”; it must be a number from 1 to 3600."]
        ),
        ("skip:\n  forward: 0", [:], ["skip.forward in FILE, line 2, is “0”; it must be a number from 1 to 3600."]),
        ("\nskip: [1", [:], ["Couldn’t read the settings in FILE", "in line 2."]),
        ("skip:\n  forward: 30\n  back: [1\n", [:], ["Couldn’t read the settings in FILE", "in line 3."]),
        ("feeds:\n  refreshMinutes: -1", [:], ["feeds.refreshMinutes in FILE, line 2, is “-1”", "from 0 to 43200"]),
        ("log:\n  level: loud", [:], ["log.level in FILE, line 2, is “loud”", "one of trace, debug"]),
        ("", ["LOCKSTEP_FEEDS_REFRESH_MINUTES": "often"], ["LOCKSTEP_FEEDS_REFRESH_MINUTES is “often”"]),
        ("plain: perhaps", [:], ["plain in FILE, line 1, is “perhaps”; it must be true or false."]),
        ("skip:\n  foward: 30", [:], ["skip.foward in FILE, line 2, isn’t a setting. Did you mean skip.forward?"]),
        ("# one\n\nskpi:\n  forward: 30", [:], ["skpi in FILE, line 3, isn’t a setting."]),
        (
            "refreshMinutes: 5", [:],
            ["refreshMinutes in FILE, line 1, isn’t a setting. Did you mean feeds.refreshMinutes?"]
        ),
        ("feeds:\n  refresh_minutes: 5", [:], ["Did you mean feeds.refreshMinutes?"]),
        ("skip: {forward: 30, bakc: 5}", [:], ["skip.bakc in FILE, line 1, isn’t a setting. Did you mean skip.back?"]),
        (
            "equaliser: loud", [:],
            ["equaliser in FILE, line 1, isn’t a setting. The settings are skip.forward, skip.back"]
        ),
        ("skip: 30", [:], ["skip in FILE, line 1, is a group", "it holds skip.forward and skip.back."]),
        ("skip:\n  forward: [1, 2]", [:], ["skip.forward in FILE, line 2, has more than one value"]),
        ("skip:\n  forward:", [:], ["skip.forward in FILE, line 2, has no value"]),
        ("plain: true\nplain: false", [:], ["“plain” is set in line 1, and again in line 2."]),
        ("plain: \"yes", [:], ["Couldn’t read the settings in FILE", "in line 1."]),
        ("skip: {forward: 30", [:], ["“{” isn’t closed in line 1."]),
        ("skip:\n\tforward: 30", [:], ["tabs can’t be used for indentation", "in line 2."]),
        ("skip:\n    forward: 30\n  back: 5", [:], ["the indentation doesn’t match any line above it in line 3."]),
        ("plain: true\n  more: 1", [:], ["the indentation doesn’t match any line above it in line 2."]),
        ("plain", [:], ["“plain” isn’t a key with a value", "in line 1."]),
        ("plain: |\n  true", [:], ["“|” isn’t supported", "in line 1."]),
        ("skip:\n- 30", [:], ["skip in FILE, line 1, is a group"]),
        ("- plain", [:], ["FILE isn’t a mapping of settings to values"]),
        (
            "", ["LOCKSTEP_SKIP_FOWARD": "9"],
            ["LOCKSTEP_SKIP_FOWARD isn’t a setting. Did you mean LOCKSTEP_SKIP_FORWARD?"]
        ),
    ])
    func `an invalid setting is reported with its line and a valid form`(
        file: String, environment: [String: String], words: [String]
    ) throws {
        let folder = try TemporaryFolder()
        let path = try folder.file("config.yaml", file.utf8)
        let settings = Settings(file: path, environment: environment)
        #expect(settings.problems.count == 1)
        for word in words {
            #expect(settings.problems.first?.contains(word.replacingOccurrences(of: "FILE", with: path)) == true)
        }
        #expect { try settings.requireUsable() } throws: { ($0 as? Failure)?.known == .badConfiguration }
    }

    @Test func `an invalid setting keeps its default, and others apply`() throws {
        let settings = try Self.settings("skip:\n  forward: soon\n  back: 7\nnonsense: 1\nvolume:\n  step: 99\n")
        #expect(settings.skipForward == nil && settings.skipBack == 7 && settings.volumeStep == 5)
        #expect(settings.problems.count == 3)
    }

    @Test(arguments: [
        "ao: alsa", "\"ao\": \"alsa\"", "'ao' : 'alsa' # the card", "---\nao:   alsa\t# the card\n...\nnonsense",
        "\u{feff}ao: alsa\r\n", "# one\n\n  ao: alsa\n  plain: ~\n",
    ])
    func `values are read with quotation marks, comments and other line ends`(text: String) throws {
        let settings = try Self.settings(text)
        #expect(settings.serviceEnvironment == ["LOCKSTEP_AO": "alsa"])
        #expect(settings.problems.filter { !$0.contains("plain") }.isEmpty, "\(settings.problems)")
    }

    @Test func `quoted values keep their special characters`() throws {
        let file = "ao: \"a # \\\"b\\\" \"\nskip: {forward: '45', \"back\": 15}"
        let settings = try Self.settings(file)
        #expect(settings.serviceEnvironment == ["LOCKSTEP_AO": "a # \"b\" "])
        #expect(settings.skipForward == 45 && settings.skipBack == 15 && settings.problems.isEmpty)
    }

    @Test func `environment variables of other programs aren’t reported`() throws {
        let names = [
            "HOME", "PROGRAMS", "FLEET_RUN", "SUPERVISOR_PID", "X", "LOG", "BUILD", "TEST_LIMIT", "CHAOS_SEEDS",
        ]
        let environment = Dictionary(uniqueKeysWithValues: names.map { ("LOCKSTEP_" + $0, "x") })
        #expect(try Self.settings("", environment).problems.isEmpty)
    }
}
