import PodcastModel
import Testing

@Suite struct CalendarTimeTests {
    @Test(arguments: [
        (0, "19700101T000000000Z", "1970-01-01 00:00"),
        (951_782_400_000, "20000229T000000000Z", "2000-02-29 00:00"),
        (1_767_323_045_678, "20260102T030405678Z", "2026-01-02 03:04"),
        (4_102_444_799_999, "20991231T235959999Z", "2099-12-31 23:59"),
        (-1, "19691231T235959999Z", "1969-12-31 23:59"),
    ])
    func `a UTC time is formatted and parsed`(milliseconds: Int64, compact: String, minute: String) {
        let time = CalendarTime(Timestamp(milliseconds: milliseconds))
        #expect(time.compact == compact)
        #expect(time.minuteText == minute)
        #expect(CalendarTime(compact: compact)?.timestamp.milliseconds == milliseconds)
    }

    @Test(arguments: [
        "", "20260102", "20261302T030405678Z", "2026010aT030405678Z", "20260102T030405678X", "20260231T030405678Z",
        "20250229T030405678Z", "20260100T030405678Z", "20260102T240405678Z", "20260102T036005678Z",
        "20260102T030460678Z",
    ])
    func `a text that isn’t a date and time is refused`(text: String) {
        #expect(CalendarTime(compact: text) == nil)
    }

    @Test(arguments: [
        (Int64(0), "1970-01-01T00:00:00.000Z"), (1_767_323_045_678, "2026-01-02T03:04:05.678Z"),
        (-1, "1969-12-31T23:59:59.999Z"), (-86_400_000, "1969-12-31T00:00:00.000Z"),
        (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
    ])
    func `a time is formatted as RFC 3339, to the minute and to the second`(milliseconds: Int64, text: String) {
        let time = CalendarTime(Timestamp(milliseconds: milliseconds))
        #expect(time.rfc3339 == text)
        #expect(time.secondText == text.prefix(19).replacing("T", with: " "))
        #expect(time.minuteText == text.prefix(16).replacing("T", with: " "))
        #expect(time.dayText == text.prefix(10))
    }

    @Test(arguments: [Int64.min, .max])
    func `an out-of-range time from a peer doesn’t trap`(milliseconds: Int64) {
        #expect(!CalendarTime(Timestamp(milliseconds: milliseconds)).secondText.isEmpty)
    }
}
