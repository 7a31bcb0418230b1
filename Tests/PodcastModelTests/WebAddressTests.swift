import PodcastModel
import Testing

@Test(arguments: [
    ("http://Example.COM/Feed.xml", "http://example.com/Feed.xml"),
    ("https://example.com:443", "https://example.com/"),
    ("http://example.com:8080/a?b=c#d", "http://example.com:8080/a?b=c"),
    ("  https://example.com/a b/é.mp3 ", "https://example.com/a%20b/%C3%A9.mp3"),
    ("feed://example.com/x", "http://example.com/x"),
    ("feed:https://example.com/x?y", "https://example.com/x?y"),
    ("itpc://example.com/x", "http://example.com/x"),
    ("HTTPS://user:pass@Example.com/x", "https://user:pass@example.com/x"),
    ("file:///home/a/feed.xml", "file:///home/a/feed.xml"),
    ("file://localhost/a", "file:///a"),
    ("http://example.com/a/../b/./c", "http://example.com/b/c"),
    ("http://[::1]:80/a", "http://[::1]/a"),
    ("http://example.com?x=1", "http://example.com/?x=1"),
])
func acceptsAddresses(text: String, normal: String) {
    #expect(WebAddress(text)?.text == normal)
}

@Test(arguments: [
    "", "   ", "example.com/feed", "/a/b", "ftp://example.com/", "javascript:alert(1)", "mailto:a@b", "http://",
    "http:///x",
    "http://exa mple.com/", "file://host/share", "file:relative", "http://example.com:99999/", "http://h/\u{1}",
    "data:,x", ":",
    "feed:", "feed:x", "1http://x/",
])
func refusesAddresses(text: String) {
    #expect(WebAddress(text) == nil)
}

@Test(arguments: [
    ("episode-1.mp3", "file:///demo/feed.xml", "file:///demo/episode-1.mp3"),
    ("../a b.mp3", "file:///demo/x/feed.xml", "file:///demo/a%20b.mp3"),
    ("/1.mp3", "https://h/feeds/x", "https://h/1.mp3"),
    ("//cdn.h/1.mp3", "https://h/feeds/x", "https://cdn.h/1.mp3"),
    ("?id=1", "https://h/feeds/x?y", "https://h/feeds/x?id=1"),
    ("http://other/1.mp3", "file:///demo/feed.xml", "http://other/1.mp3"),
])
func resolvesRelativeAddresses(text: String, base: String, whole: String) throws {
    let base = try #require(WebAddress(base))
    #expect(WebAddress(text, relativeTo: base)?.text == whole)
}

@Test func takesFilePathsBothWays() throws {
    let address = try #require(WebAddress(filePath: "/home/a b/ü%.xml"))
    #expect(address.text == "file:///home/a%20b/%C3%BC%25.xml" || address.filePath == "/home/a b/ü%.xml")
    #expect(address.filePath == "/home/a b/ü%.xml")
    #expect(WebAddress(filePath: "relative") == nil)
}

@Test(arguments: [
    ("http://example.com/feed", "https://EXAMPLE.com/feed/", true),
    ("http://example.com/", "http://example.com", true),
    ("http://example.com/feed?a", "http://example.com/feed?b", false),
    ("http://example.com/Feed", "http://example.com/feed", false),
])
func knowsTheSameFeed(left: String, right: String, same: Bool) throws {
    let left = try #require(WebAddress(left))
    let right = try #require(WebAddress(right))
    #expect((PodcastID.feed(at: left) == PodcastID.feed(at: right)) == same)
}
