import FeedParsing
import PodcastModel
import Testing

let sampleFeed = """
    <?xml version="1.0" encoding="UTF-8"?>
    <rss version="2.0" xmlns:it="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:c="http://purl.org/rss/1.0/modules/content/"
         xmlns:atom="http://www.w3.org/2005/Atom" xmlns:podcast="https://podcastindex.org/namespace/1.0">
    <channel>
      <title>Sea &amp; Sky</title><link>https://sea.example/</link><language>en-gb</language>
      <description>About <![CDATA[<b>waves</b>]]></description>
      <it:author>Ada</it:author><it:image href="https://sea.example/cover.jpg"/>
      <atom:link rel="self" href="https://sea.example/feed.xml"/>
      <it:new-feed-url>https://new.example/feed.xml</it:new-feed-url>
      <image><url>https://sea.example/small.jpg</url><title>Not the title</title><link>https://not.example</link></image>
      <item>
        <title>One – first</title><guid isPermaLink="false">g-1</guid><pubDate>Wed, 02 Oct 2002 13:00:00 GMT</pubDate>
        <description>short</description><c:encoded><![CDATA[<p>long & rich</p>]]></c:encoded>
        <enclosure url="https://sea.example/1.mp3?a=1&amp;b=2" type="audio/mpeg" length="1234"/>
        <it:duration>1:02:03</it:duration><it:season>2</it:season><it:episode>7</it:episode><it:explicit>yes</it:explicit>
        <podcast:chapters url="https://sea.example/1.json" type="application/json+chapters"/>
        <podcast:transcript url="https://sea.example/1.srt" type="application/srt"/>
        <podcast:transcript url="https://sea.example/1.html" type="text/html" language="en"/>
        <podcast:transcript url="https://sea.example/1.vtt" type="text/vtt"/>
      </item>
      <item><title>Two</title><guid>g-2</guid><enclosure url="2.mp3" type="audio/mpeg"/></item>
      <item><title>A blog post</title><guid>g-3</guid></item>
    </channel></rss>
    """

@Test func `a podcast and its episodes are parsed`() throws {
    let document = try FeedParser.parse(sampleFeed.utf8)
    let channel = document.channel
    #expect(channel.title == "Sea & Sky")
    #expect(channel.description == "About <b>waves</b>")
    #expect(channel.author == "Ada")
    #expect(channel.link == "https://sea.example/")
    #expect(channel.language == "en-gb")
    #expect(channel.imageURL == "https://sea.example/cover.jpg")
    #expect(channel.selfURL == "https://sea.example/feed.xml")
    #expect(channel.newFeedURL == "https://new.example/feed.xml")
    try #require(document.items.count == 2)
    let item = document.items[0]
    #expect(item.title == "One – first")
    #expect(item.guid == "g-1")
    #expect(item.description == "<p>long & rich</p>")
    #expect(item.published == Timestamp(milliseconds: 1_033_563_600_000))
    #expect(item.duration?.seconds == 3_723)
    #expect(item.enclosureURL == "https://sea.example/1.mp3?a=1&b=2")
    #expect(item.enclosureType == "audio/mpeg")
    #expect(item.enclosureLength == 1_234)
    #expect(item.season == 2 && item.number == 7 && item.isExplicit)
    #expect(item.chaptersURL == "https://sea.example/1.json")
    #expect(item.transcriptURL == "https://sea.example/1.html" && document.items[1].transcriptURL.isEmpty)
    #expect(document.warnings.map(\.code) == ["noAudio"])
}

@Test(arguments: [1, 2, 3, 7, 64, 511, 512, 513])
func `the size of the chunks doesn’t change the parsed document`(size: Int) throws {
    let bytes = Array(sampleFeed.utf8)
    var parser = FeedParser()
    for start in stride(from: 0, to: bytes.count, by: size) {
        try parser.feed(Array(bytes[start..<min(bytes.count, start + size)]))
    }
    #expect(try parser.finish() == FeedParser.parse(bytes))
}

@Test func `an Atom feed is parsed`() throws {
    let document = try FeedParser.parse(
        """
        <feed xmlns="http://www.w3.org/2005/Atom"><title>Air</title><subtitle>Of air</subtitle><author><name>Bo</name></author>
        <link href="https://air.example/"/><entry><id>urn:1</id><title>First</title><updated>2024-01-31T12:00:00+01:00</updated>
        <link rel="enclosure" href="https://air.example/1.ogg" type="audio/ogg" length="9"/><summary>s</summary>
        <author><name>Somebody</name></author></entry></feed>
        """.utf8)
    #expect(document.channel.title == "Air")
    #expect(document.channel.author == "Bo")
    #expect(document.channel.link == "https://air.example/")
    try #require(document.items.count == 1)
    #expect(document.items[0].guid == "urn:1")
    #expect(document.items[0].enclosureURL == "https://air.example/1.ogg")
    #expect(document.items[0].published == Timestamp(milliseconds: 1_706_698_800_000))
}

func feed(_ items: String, title: String = "T") -> String {
    "<rss><channel><title>\(title)</title>\(items)</channel></rss>"
}

@Test(arguments: [
    (
        "a bare ampersand in an address", #"<item><title>A & B</title><enclosure url="http://h/?a=1&b=2&c=3"/></item>"#,
        "A & B", "http://h/?a=1&b=2&c=3"
    ),
    (
        "HTML's entities",
        #"<item><title>Caf&eacute;&nbsp;&mdash;&hellip;</title><enclosure url="http://h/1"/></item>"#, "Café\u{a0}—…",
        "http://h/1"
    ),
    (
        "a title that is not closed", #"<item><title>Open<guid>g</guid><enclosure url="http://h/1"/></item>"#, "Open",
        "http://h/1"
    ),
    (
        "an item that is not closed",
        #"<item><title>One</title><enclosure url="http://h/1"/><item><title>x</title></item>"#, "One", "http://h/1"
    ),
    (
        "a prefix that is not declared", #"<item><itunes:title>I</itunes:title><enclosure url="http://h/1"/></item>"#,
        "I", "http://h/1"
    ),
    ("a control character", "<item><title>a\u{1}b</title><enclosure url=\"http://h/1\"/></item>", "a b", "http://h/1"),
    (
        "a wrong numeric character", #"<item><title>a&#0;b&#x1F;c&#65;</title><enclosure url="http://h/1"/></item>"#,
        "a b cA", "http://h/1"
    ),
    ("upper-case tags", #"<ITEM><TITLE>U</TITLE><Enclosure url="http://h/1"/></ITEM>"#, "U", "http://h/1"),
    (
        "markup in a title", #"<item><title>a <b>bold</b> word</title><enclosure url="http://h/1"/></item>"#,
        "a bold word", "http://h/1"
    ),
    (
        "several files",
        #"<item><title>S</title><enclosure url="http://h/1.jpg" type="image/jpeg"/><enclosure url="http://h/1.mp4" type="video/mp4"/><enclosure url="http://h/1.mp3" type="audio/mpeg"/></item>"#,
        "S", "http://h/1.mp3"
    ),
    (
        "an ampersand in CDATA", #"<item><title><![CDATA[R&B; & more]]></title><enclosure url="http://h/1"/></item>"#,
        "R&B; & more", "http://h/1"
    ),
    (
        "attributes without quotes",
        #"<item><title>Q</title><guid isPermaLink=false>g</guid><enclosure url="http://h/1"/></item>"#, "Q",
        "http://h/1"
    ),
])
func `a common mistake in a feed is repaired`(_ what: String, items: String, title: String, audio: String) throws {
    let document = try FeedParser.parse(feed(items).utf8)
    try #require(!document.items.isEmpty, "\(what)")
    #expect(document.items[0].title == title, "\(what)")
    #expect(document.items[0].enclosureURL == audio, "\(what)")
}

@Test(
    arguments: [
        ("UTF-8 that is Latin-1", "utf-8", [0x63, 0x61, 0x66, 0xe9], "café"),
        ("Latin-1", "iso-8859-1", [0x63, 0x61, 0x66, 0xe9], "café"),
        ("Latin-1 that is UTF-8", "ISO-8859-1", [0x63, 0xc3, 0xa9], "cé"),
        ("Windows quotes", "utf-8", [0x93, 0x61, 0x94], "“a”"),
        ("UTF-16 that is ASCII", "utf-16", [0x61], "a"),
        ("Latin-2", "iso-8859-2", [0xb1], "ą"),
        ("an encoding that does not exist", "x-nonsense", [0x61], "a"),
        ("both at once", "utf-8", [0xe9, 0xc3, 0xa9, 0xe2, 0x80, 0xa6], "éé…"),
    ] as [(String, String, [UInt8], String)])
func `text in a wrong encoding is repaired`(_ what: String, declared: String, bytes: [UInt8], title: String) throws {
    let head = Array("<?xml version=\"1.0\" encoding=\"\(declared)\"?><rss><channel><title>".utf8)
    let tail = Array("</title><item><title>é</title><enclosure url=\"http://h/1\"/></item></channel></rss>".utf8)
    let document = try FeedParser.parse(head + bytes + tail)
    #expect(document.channel.title == title, "\(what)")
    #expect(document.items.count == 1, "\(what)")
}

@Test func `a feed in UTF-16 is parsed`() throws {
    let text =
        "<?xml version=\"1.0\" encoding=\"utf-16\"?>"
        + feed("<item><title>é</title><enclosure url=\"http://h/1\"/></item>")
    let units = text.utf16.flatMap { unit -> [UInt8] in [UInt8(unit & 0xff), UInt8(unit >> 8)] }
    let bytes: [UInt8] = [0xff, 0xfe] + units
    #expect(try FeedParser.parse(bytes).items.map(\.title) == ["é"])
}

@Test(arguments: [
    ("nothing", "", "empty"),
    ("white space", " \n\n ", "XML"),
    ("prose", String(repeating: "Hello. ", count: 200), "not XML"),
    ("a web page", "<!DOCTYPE html><html><head><title>x</title></head></html>", "web page"),
    ("a web page in lower case", "<!doctype html>\n<title>x</title><p>Hello", "web page"),
    ("a web page in lower case with a head", "<!doctype html><html><head></head></html>", "web page"),
    ("a web page with attributes", "<html lang=\"en\"><p>x", "web page"),
    ("another vocabulary", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "<svg>"),
    ("OPML", "<opml version=\"2.0\"/>", "OPML"),
    ("JSON", "{\"version\": 1}", "not XML"),
    ("a declaration only", "<?xml version=\"1.0\"?>", "no XML element"),
    (
        "a billion laughs",
        "<!DOCTYPE rss [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;\">]>"
            + feed("<item><title>&c;</title></item>"), "entities"
    ),
    (
        "an external entity",
        "<!DOCTYPE rss [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>" + feed("<item><title>&x;</title></item>"),
        "file:///etc/passwd"
    ),
    (
        "an external parameter entity",
        "<!DOCTYPE rss [<!ENTITY % x SYSTEM \"http://127.0.0.1:9/evil.dtd\"> %x;]>" + feed(""), "evil.dtd"
    ),
])
func `a document that can’t be parsed safely is refused`(_ what: String, text: String, says: String) {
    #expect {
        _ = try FeedParser.parse(text.utf8)
    } throws: { error in
        let failure = error as? Failure
        return failure?.code == "notAFeed" && failure?.message.contains(says) == true
    }
}

@Test func `an external DTD is ignored`() throws {
    let doctype =
        "<!DOCTYPE rss PUBLIC \"-//Netscape Communications//DTD RSS 0.91//EN\" \"http://127.0.0.1:9/rss.dtd\">"
    #expect(try FeedParser.parse((doctype + feed("")).utf8).channel.title == "T")
}

@Test func `the parser refuses garbage early`() {
    let chunk = (0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 131 &+ $0 >> 7) }
    var taken = 0
    #expect {
        var parser = FeedParser()
        while taken < 800 {
            try parser.feed(chunk)
            taken += 1
        }
    } throws: { ($0 as? Failure)?.code == "notAFeed" }
    #expect(taken < 8)
}

@Test func `a feed that is too long is refused`() {
    var limits = FeedLimits()
    limits.bytes = 1 << 20
    #expect {
        _ = try FeedParser.parse(feed(String(repeating: "<item/>", count: 200_000)).utf8, limits: limits)
    } throws: { ($0 as? Failure)?.code == "tooLarge" }
}

@Test func `long texts are truncated and excess items are dropped`() throws {
    var limits = FeedLimits()
    limits.text = 10_000
    limits.items = 3
    let item =
        "<item><description>\(String(repeating: "é", count: 9_000))</description><enclosure url=\"http://h/1\"/></item>"
    let document = try FeedParser.parse(feed(String(repeating: item, count: 5)).utf8, limits: limits)
    #expect(document.items.count == 3)
    #expect(document.items[0].description.utf8.count <= 10_000)
    #expect(!document.items[0].description.unicodeScalars.contains("\u{fffd}"))
    #expect(Set(document.warnings.map(\.code)).isSuperset(of: ["longText", "tooManyItems"]))
}

@Test func `the episodes of a truncated feed before its end are parsed`() throws {
    let whole = feed(
        "<item><title>1</title><enclosure url=\"http://h/1\"/></item><item><title>2</title><enclosure url=\"http://h/2\"/><guid>"
    )
    let document = try FeedParser.parse(whole.utf8.prefix(whole.utf8.count - 20))
    #expect(document.items.map(\.title) == ["1"])
    #expect(document.warnings.contains { $0.code == "cutOff" })
}

@Test func `deep nesting doesn’t crash the parser`() throws {
    let deep = String(repeating: "<a>", count: 100_000)
    let document = try? FeedParser.parse(
        feed("<item><title>1</title><enclosure url=\"http://h/1\"/></item>" + deep).utf8)
    #expect(document?.items.count == 1)
}

@Test func `a report counts the episodes of a feed`() throws {
    let report = FeedReport(try FeedParser.parse(sampleFeed.utf8))
    #expect(report.episodes == 2)
    #expect(report.withGUID == 2)
    #expect(report.withDuration == 1)
    #expect(report.withChapters == 1)
    #expect(report.newest == report.oldest)
}

@Test func `a report names the newest episodes and those with problems`() throws {
    let items = (1...8).map { number in
        let date = number == 3 ? "yesterday" : "0\(number) Oct 2024 13:00:00 GMT"
        let title = number == 4 ? "" : "<title>Episode \(number)</title>"
        let length = number > 5 ? "<itunes:duration>long</itunes:duration>" : ""
        return "<item>\(length)<pubDate>\(date)</pubDate>\(title)<enclosure url=\"http://h/\(number)\"/></item>"
    }
    let report = FeedReport(try FeedParser.parse(feed(items.joined() + "<item><title>Text only</title></item>").utf8))
    #expect(report.newestItems.map(\.title) == ["Episode 8", "Episode 7", "Episode 6", "Episode 5", ""])
    #expect(report.oldestItem?.title == "Episode 3")
    let named = Dictionary(report.warnings.map { ($0.code, $0.items) }) { first, _ in first }
    #expect(named["badDate"] == ["Episode 3"])
    #expect(named["badDuration"] == ["Episode 6", "Episode 7", "Episode 8"])
    #expect(named["noTitle"] == ["item 4"])
    #expect(named["noAudio"] == ["Text only"])
}
