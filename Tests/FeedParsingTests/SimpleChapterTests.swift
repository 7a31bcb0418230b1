import FeedParsing
import PodcastModel
import Testing

private func item(_ chapters: String, declaration: String = #"xmlns:psc="http://podlove.org/simple-chapters""#) throws
    -> FeedEpisode
{
    let feed = """
        <rss version="2.0" \(declaration)><channel><title>T</title>
        <item><title>A</title><enclosure url="https://a.example/1.mp3" type="audio/mpeg"/>\(chapters)
        <description>after</description></item></channel></rss>
        """
    return try #require(try FeedParser.parse(feed.utf8).items.first)
}

struct SimpleChapterTests {
    @Test(arguments: [
        ("psc", #"xmlns:psc="http://podlove.org/simple-chapters""#),
        ("x", #"xmlns:x="http://podlove.org/simple-chapters/""#), ("psc", ""),
    ])
    func `chapters in the feed are parsed with their texts and addresses, with any prefix`(
        prefix: String, declaration: String
    ) throws {
        let found = try item(
            """
            <\(prefix):chapters version="1.2">
              <\(prefix):chapter start="00:01:02.5" title="Two &amp; more" href="https://a.example/2"/>
              <\(prefix):chapter start="0" title="One" image="https://a.example/1.png"></\(prefix):chapter>
            </\(prefix):chapters>
            """, declaration: declaration)
        #expect(found.chapters.map(\.start.seconds) == [0, 62.5])
        #expect(found.chapters.map(\.title) == ["One", "Two & more"])
        #expect(found.chapters.map(\.url) == ["", "https://a.example/2"])
        #expect(found.chapters.map(\.imageURL) == ["https://a.example/1.png", ""])
        #expect(found.description == "after")
    }

    @Test func `an invalid chapter is omitted and doesn’t affect the others`() throws {
        let found = try item(
            """
            <psc:chapters><psc:chapter title="nowhere"/><psc:chapter start="soon" title="x"/><psc:chapter start="-5"/>
            <psc:chapter start="7" title="Seven"/></psc:chapters>
            """)
        #expect(found.chapters.map(\.title) == ["Seven"])
    }

    @Test func `chapters are limited to a thousand and to their own episode`() throws {
        let many = (0..<5_000).map { #"<psc:chapter start="\#($0)"/>"# }.joined()
        #expect(try item("<psc:chapters>\(many)</psc:chapters>").chapters.count == 1_000)
        #expect(try item("").chapters.isEmpty)
    }
}
