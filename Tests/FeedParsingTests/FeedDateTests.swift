import PodcastModel
import Testing

@testable import FeedParsing

@Test(
    arguments: [
        ("Wed, 02 Oct 2002 13:00:00 GMT", 1_033_563_600),
        ("Mon, 02 Oct 2002 13:00:00 +0000", 1_033_563_600),
        ("Wed, 02 Oct 2002 15:00:00 +0200", 1_033_563_600),
        ("Wed, 02 Oct 2002 15:00:00 +02:00", 1_033_563_600),
        ("Wed, 02 Oct 2002 08:00:00 EST", 1_033_563_600),
        ("Wed, 02 Oct 2002 15:00:00 GMT+2", 1_033_563_600),
        ("Wed,02 Oct 2002 13:00:00", 1_033_563_600),
        ("02 Oct 02 13:00", 1_033_563_600),
        ("2 October 2002 13:00:00 UT", 1_033_563_600),
        ("October 2, 2002 1:00 PM", 1_033_563_600),
        ("Oct 2nd, 2002 13:00", 1_033_563_600),
        ("Wed Oct 2 2002 13:00:00 Z", 1_033_563_600),
        ("Mittwoch, 02 Oct 2002 13:00:00 GMT", 1_033_563_600),
        ("2002-10-02T13:00:00Z", 1_033_563_600),
        ("2002-10-02T15:00:00+02:00", 1_033_563_600),
        ("2002-10-02 13:00:00", 1_033_563_600),
        ("2002-10-02T13:00:00.000Z", 1_033_563_600),
        ("2002-10-02", 1_033_516_800),
        ("02 Oct 2002", 1_033_516_800),
        ("Tue, 01 Oct 2002 24:00:00 GMT", 1_033_516_800),
        ("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Fri, 31 Dec 99 23:59:60 GMT", 946_684_800),
        ("Sat, 01 Jan 100 00:00:00 GMT", 946_684_800),
        ("Wed, 02 Sept 2020 10:00:00 GMT", 1_599_040_800),
    ] as [(String, Int64)])
func readsDatesInTheWild(text: String, seconds: Int64) {
    #expect(FeedDate.parse(text)?.milliseconds == seconds * 1_000)
}

@Test(arguments: [
    "", "yesterday", "Wed, 32 Oct 2002 13:00:00 GMT", "Fri, 29 Feb 2023 00:00:00 GMT", "Oct 2002",
    "12345678901234567890",
    "2002-13-02T13:00:00Z", "Wed, 02 Foo 2002 13:00:00 GMT", "Wed, 02 Oct 2002 25:00:00 GMT", "2 2 Oct Nov 2002",
    "31 Dec 1969 23:00:00 GMT", "99999999999999999999 Oct 2002",
])
func refusesDatesThatAreNone(text: String) {
    #expect(FeedDate.parse(text) == nil)
}

@Test(
    arguments: [
        ("3600", 3_600), ("3600.5", 3_600.5), ("1:02:03", 3_723), ("62:03", 3_723), ("00:62:03", 3_723),
        ("1:02:03.5", 3_723.5),
        ("01:02:03 ", 3_723), ("1:0:0:0", 86_400), ("1h 2m 3s", 3_723), ("1h2m", 3_720), ("62 min", 3_720),
        ("1 hour, 2 minutes", 3_720), ("PT1H2M3S", 3_723), ("45 sec.", 45), (":30", 30), ("1:02:03,5", 3_723.5),
    ] as [(String, Double)])
func readsDurationsInTheWild(text: String, seconds: Double) {
    #expect(FeedDuration.parse(text)?.seconds == seconds)
}

@Test(arguments: [
    "", "0", "00:00:00", "-5", "abc", "1:2:3:4:5", "1e5", "inf", "nan", "99999999999", "h", "::", "5 apples",
])
func refusesDurationsThatAreNone(text: String) {
    #expect(FeedDuration.parse(text) == nil)
}
