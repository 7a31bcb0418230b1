import LockstepClient
import PodcastModel
import Testing
import WireMessages

@Suite struct SettingValuesTests {
    private static func values(
        all: [String: String] = [:], podcast: [String: String] = [:], file: [SettingKey: String] = [:]
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
            ], file: file)
    }

    @Test func `a podcast’s own value overrides the one for all, which overrides the default`() {
        let values = Self.values(all: ["speed": "1.2", "gain": "3"], podcast: ["speed": "2"])
        #expect(values.value(of: .speed, for: "p1") == .init(text: "2", source: .podcast))
        #expect(values.value(of: .speed, for: "p2") == .init(text: "1.2", source: .all))
        #expect(values.value(of: .gain, for: "p1") == .init(text: "3", source: .all))
        #expect(values.value(of: .boost, for: "p1") == .init(text: "off", source: .default))
        #expect(values.podcasts(with: .speed).map(\.podcast) == ["p1"])
    }

    @Test func `the settings file’s skip distance applies only where none is set`() {
        let file = [SettingKey.skipForward: "45"]
        #expect(Self.values(file: file).number(.skipForward, for: "p1") == 45)
        #expect(Self.values(file: file).value(of: .skipForward).source == .file)
        #expect(Self.values(all: ["skipForward": "60"], file: file).number(.skipForward, for: "p1") == 60)
        #expect(Self.values(podcast: ["skipForward": "20"], file: file).number(.skipForward, for: "p1") == 20)
        #expect(Self.values().number(.skipForward, for: nil) == 30)
        #expect(Self.values().number(.skipBack, for: nil) == 10)
    }

    @Test func `the default replaces a value that can’t be read`() {
        #expect(Self.values(all: ["skipForward": "far", "unheardOf": "1"]).number(.skipForward, for: nil) == 30)
    }

    @Test func `a setting that isn’t per podcast ignores a podcast’s value`() {
        #expect(Self.values(podcast: ["autoPlay": "on"]).value(of: .autoPlay, for: "p1").text == "off")
    }

    @Test func `values are written as JSON numbers, booleans and strings`() {
        #expect(SettingKey.speed.json("1.5") == .number(1.5))
        #expect(SettingKey.boost.json("on") == .bool(true))
        #expect(SettingKey.playedThreshold.json("95%") == .string("95%"))
    }
}
