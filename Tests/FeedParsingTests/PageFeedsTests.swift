import Foundation
import PodcastModel
import TestSupport
import Testing

@testable import FeedParsing

@Suite struct PageFeedsTests {
    private func find(_ page: String, at address: String = "https://a.example/shows/one") throws -> [PageFeed] {
        PageFeeds.find(in: Array(page.utf8), at: try #require(WebAddress(address)))
    }

    @Test func `links to feeds are found with their titles, each once`() throws {
        let feeds = try find(
            """
            <!DOCTYPE html><html><head><title>x</title>
            <LINK REL="alternate home" TYPE="application/RSS+xml; charset=utf-8" HREF="/feed.xml?a=1&amp;b=2" TITLE="Größe &amp; more">
            <link href="feed.atom" rel='alternate' type='application/atom+xml'/>
            <link rel=alternate type=application/rss+xml href=//b.example/feed>
            <link rel="alternate" type="application/rss+xml" href="http://B.example/feed/" title="again">
            <link rel="alternate" type="application/json" href="/feed.json"><link rel="stylesheet" href="x.css">
            <link rel="alternate" type="application/rss+xml"><link rel="alternate" hreflang="de" href="/de">
            </head><body>
            """)
        #expect(
            feeds.map(\.address.text) == [
                "https://a.example/feed.xml?a=1&b=2", "https://a.example/shows/feed.atom", "https://b.example/feed",
            ])
        #expect(feeds.map(\.title) == ["Größe & more", "", ""])
    }

    @Test func `local files, passwords and the feed of comments are left out`() throws {
        let link = "<link rel=\"alternate\" type=\"application/rss+xml\" href="
        #expect(try find("<html>\(link)\"file:///etc/passwd\"></html>") == [])
        #expect(try find("\(link)\"feed.xml\">", at: "file:///tmp/page.html") == [])
        #expect(try find("\(link)\"javascript:alert(1)\">\(link)\"\">").count <= 1)
        #expect(try find("\(link)\"https://u:geheim@a.example/\">").map(\.address.text) == ["https://a.example/"])
        let comments = "\(link)\"/comments/feed/\">"
        #expect(try find("\(comments)\(link)\"/feed/\">").map(\.address.path) == ["/feed/"])
        #expect(try find(comments).map(\.address.path) == ["/comments/feed/"])
        let base = "<base href=\"https://c.example/x/\">\(link)\"feed\">"
        #expect(try find(base).map(\.address.text) == ["https://c.example/x/feed"])
    }

    @Test func `any page is read within the limits`() throws {
        let link = "<link rel=\"alternate\" type=\"application/rss+xml\" href=\"/"
        let many = (0..<1_000).map { "\(link)\($0)\">" }.joined()
        #expect(try find(many).count == PageFeeds.limit)
        let late = String(repeating: " ", count: PageFeeds.pageLimit) + link + "late\">"
        #expect(try find(late) == [])
        #expect(try find(String(repeating: "<div>", count: 150_000) + link + "deep\">").count <= 1)
        var random = SeededGenerator(seed: 3)
        let page = Array("<html><head>\(link)feed\" title=\"ä\"></head></html>".utf8)
        let address = try #require(WebAddress("https://a.example/"))
        for _ in 0..<2_000 {
            var bytes = page
            for _ in 0..<4 {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            #expect(PageFeeds.find(in: bytes, at: address).count <= 1)
        }
        #expect(PageFeeds.find(in: [], at: address) == [])
    }
}
