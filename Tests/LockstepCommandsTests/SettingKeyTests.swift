import PodcastModel
import Testing

@testable import LockstepCommands

@Suite struct SettingKeyTests {
    @Test(arguments: [
        ("speed", SettingKey.speed), ("trimsilence", .trimSilence), ("trim-silence", .trimSilence),
        ("skip_forward", .skipForward),
    ])
    func `capitals and dashes in a setting’s name are ignored`(text: String, key: SettingKey) throws {
        #expect(try SettingKey.named(text) == key)
    }

    @Test(arguments: [("sped", "Did you mean speed?"), ("autoDownlod", "autoDownload"), ("equaliser", "lockstep set")])
    func `a misspelt setting is refused with the nearest name`(text: String, advice: String) {
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
}
