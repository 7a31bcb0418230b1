import PodcastModel
import Testing

@testable import FeedParsing

@Test(
    arguments: [
        ("3600", 3_600), ("3600.5", 3_600.5), ("1:02:03", 3_723), ("62:03", 3_723), ("00:62:03", 3_723),
        ("1:02:03.5", 3_723.5),
        ("01:02:03 ", 3_723), ("1:0:0:0", 86_400), ("1h 2m 3s", 3_723), ("1h2m", 3_720), ("62 min", 3_720),
        ("1 hour, 2 minutes", 3_720), ("PT1H2M3S", 3_723), ("45 sec.", 45), (":30", 30), ("1:02:03,5", 3_723.5),
    ] as [(String, Double)])
func `common forms of durations are parsed`(text: String, seconds: Double) {
    #expect(FeedDuration.parse(text)?.seconds == seconds)
}

@Test(arguments: [
    "", "0", "00:00:00", "-5", "abc", "1:2:3:4:5", "1e5", "inf", "nan", "99999999999", "h", "::", "5 apples",
])
func `texts that aren’t durations are refused`(text: String) {
    #expect(FeedDuration.parse(text) == nil)
}
