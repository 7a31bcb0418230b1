import PodcastModel
import Testing

@Suite struct CalendarTimeTests {
    @Test(arguments: [
        (0, "19700101T000000000Z", "1970-01-01 00:00 UTC"),
        (951_782_400_000, "20000229T000000000Z", "2000-02-29 00:00 UTC"),
        (1_767_323_045_678, "20260102T030405678Z", "2026-01-02 03:04 UTC"),
        (4_102_444_799_999, "20991231T235959999Z", "2099-12-31 23:59 UTC"),
        (-1, "19691231T235959999Z", "1969-12-31 23:59 UTC"),
    ])
    func writesAndReadsUTC(milliseconds: Int64, compact: String, readable: String) {
        let time = CalendarTime(Timestamp(milliseconds: milliseconds))
        #expect(time.compact == compact)
        #expect(time.readable == readable)
        #expect(CalendarTime(compact: compact)?.timestamp.milliseconds == milliseconds)
    }

    @Test(arguments: ["", "20260102", "20261302T030405678Z", "2026010aT030405678Z", "20260102T030405678X"])
    func refusesOtherTexts(text: String) {
        #expect(CalendarTime(compact: text) == nil)
    }
}
