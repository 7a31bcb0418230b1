import LockstepClient
import PodcastModel
import Testing
import WireMessages

@testable import LockstepCommands

@Suite struct SettingValuesTests {
    private static func values(
        all: [String: String] = [:], podcast: [String: String] = [:], _ settings: Settings = Settings()
    ) -> SettingValues {
        func state(_ id: String, _ values: [String: String]) -> WireSettingsState {
            var state = WireSettingsState()
            state.podcast = id
            state.settings = values.sorted { $0.key < $1.key }.map { key, value in
                var setting = WireSettingsState.Setting()
                setting.key = key
                setting.value = value
                return setting
            }
            return state
        }
        return SettingValues(
            [
                Topic.settings(.playback, podcast: ""): state("", all),
                Topic.settings(.playback, podcast: "p1"): state("p1", podcast),
            ], settings: settings)
    }

    @Test func `a podcast's own value wins over that for all, and that over the standard`() {
        let values = Self.values(all: ["speed": "1.2", "gain": "3"], podcast: ["speed": "2"])
        #expect(values.value(of: .speed, podcast: "p1") == .init(text: "2", source: .podcast))
        #expect(values.value(of: .speed, podcast: "p2") == .init(text: "1.2", source: .all))
        #expect(values.value(of: .gain, podcast: "p1") == .init(text: "3", source: .all))
        #expect(values.value(of: .boost, podcast: "p1") == .init(text: "off", source: .standard))
        #expect(values.podcasts(with: .speed).map(\.podcast) == ["p1"])
    }

    @Test func `how far to skip comes from the settings' file only where nothing else says it`() {
        var settings = Settings()
        settings.skipForward = 45
        #expect(Self.values(settings).number(.skipForward, podcast: "p1") == 45)
        #expect(Self.values(settings).value(of: .skipForward, podcast: "").source == .file)
        #expect(Self.values(all: ["skipForward": "60"], settings).number(.skipForward, podcast: "p1") == 60)
        #expect(Self.values(podcast: ["skipForward": "20"], settings).number(.skipForward, podcast: "p1") == 20)
        #expect(Self.values().number(.skipForward, podcast: "") == 30)
        #expect(Self.values().number(.skipBack, podcast: "") == 10)
    }

    @Test func `a value that a later version wrote does no harm`() {
        #expect(Self.values(all: ["skipForward": "far", "unheardOf": "1"]).number(.skipForward, podcast: "") == 30)
    }

    @Test func `what holds for all alike has no value of a podcast`() {
        #expect(Self.values(podcast: ["autoPlay": "on"]).value(of: .autoPlay, podcast: "p1").text == "off")
    }

    @Test(arguments: [
        ("speed", SettingKey.speed), ("trimsilence", .trimSilence), ("trim-silence", .trimSilence),
        ("skip_forward", .skipForward),
    ])
    func `capitals and dashes of a key do not count`(text: String, key: SettingKey) throws {
        #expect(try SettingKey.named(text) == key)
    }

    @Test(arguments: [("sped", "Did you mean speed?"), ("autoDownlod", "autoDownload"), ("equaliser", "lockstep set")])
    func `a mistyped key is refused with what was meant`(text: String, advice: String) {
        #expect { try SettingKey.named(text) } throws: { error in
            (error as? Failure)?.known == .notFound && (error as? Failure)?.message.contains(advice) == true
        }
    }

    @Test func `a threshold without a unit is refused, because it may be seconds or per cent`() throws {
        let failure = #expect(throws: Failure.self) { try SettingKey.playedThreshold.value(typed: "95") }
        #expect(
            failure?.message.contains("Write 95% for a part of the length, or 95s for seconds before the end.") == true)
        for (typed, value, shown) in [
            ("95%", "95%", "95%"), ("30s", "30", "30s"), ("2 min", "120", "120s"), ("off", "off", "off"),
        ] {
            #expect(try SettingKey.playedThreshold.value(typed: typed) == value)
            #expect(SettingKey.playedThreshold.shown(value) == shown)
        }
        #expect(throws: Failure.self) { try SettingKey.playedThreshold.value(typed: "2h") }
    }

    @Test func `values are numbers, truth values and words`() {
        #expect(SettingKey.speed.json("1.5") == .number(1.5))
        #expect(SettingKey.boost.json("on") == .bool(true))
        #expect(SettingKey.playedThreshold.json("95%") == .string("95%"))
    }
}
