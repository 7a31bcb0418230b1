import PodcastModel
import Testing

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
func `the forms of dates in feeds are parsed`(text: String, seconds: Int64) {
    #expect(InternetDate.parse(text)?.milliseconds == seconds * 1_000)
}

@Test(arguments: [
    "", "yesterday", "Wed, 32 Oct 2002 13:00:00 GMT", "Fri, 29 Feb 2023 00:00:00 GMT", "Oct 2002",
    "12345678901234567890",
    "2002-13-02T13:00:00Z", "Wed, 02 Foo 2002 13:00:00 GMT", "Wed, 02 Oct 2002 25:00:00 GMT", "2 2 Oct Nov 2002",
    "31 Dec 1969 23:00:00 GMT", "99999999999999999999 Oct 2002",
])
func `texts that aren’t dates are refused`(text: String) {
    #expect(InternetDate.parse(text) == nil)
}

@Test(
    arguments: [
        ("120", 120), (" 5 ", 5), ("0", 0), ("-3", 0), ("1.5", 1.5), ("Wed, 02 Oct 2002 13:02:00 GMT", 120),
        ("Wed, 02 Oct 2002 12:00:00 GMT", 0), ("soon", nil), ("", nil), ("inf", nil), ("nan", nil), ("1e999", nil),
    ] as [(String, Double?)])
func `Retry-After is a number of seconds or a date`(text: String, seconds: Double?) {
    #expect(RetryAfter.parse(text, now: Timestamp(milliseconds: 1_033_563_600_000)) == seconds)
}
