import PodcastModel
import TestSupport
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
    ("http://Bücher.example/ü", "http://xn--bcher-kva.example/%C3%BC"),
    ("http://例え.испытание/", "http://xn--r8jz45g.xn--80akhbyknj4f/"),
    ("http://MÜLLER.example./", "http://xn--mller-kva.example./"),
    ("http://my_host-1.example/", "http://my_host-1.example/"),
    ("http://192.168.1.20:8000/x", "http://192.168.1.20:8000/x"),
    ("https://[2001:DB8::1]:8443/", "https://[2001:db8::1]:8443/"),
    ("https://me@mail.org:p%40ss@example.com/", "https://me%40mail.org:p%40ss@example.com/"),
    ("https://me:100%@example.com/", "https://me:100%25@example.com/"),
])
func `valid addresses are accepted`(text: String, normal: String) {
    #expect(WebAddress(text)?.text == normal)
}

@Test(arguments: [
    "", "   ", "example.com/feed", "/a/b", "ftp://example.com/", "javascript:alert(1)", "mailto:a@b", "http://",
    "http:///x",
    "http://exa mple.com/", "file://host/share", "file:relative", "http://example.com:99999/", "http://h/\u{1}",
    "data:,x", ":",
    "feed:", "feed:x", "1http://x/",
])
func `invalid addresses are refused`(text: String) {
    #expect(WebAddress(text) == nil)
}

@Test(arguments: [
    "http://]/", "http://]/m/x", "http://[::", "http://a b/", "http://%00/", "http://[]/", "http://[::1]x/",
    "http://::1/",
    "http://a:+80/", "http://a:0/", "http://a:8 0/", "http://a:b:c/", "http://a\u{0}b/", "http://a\r\nHost: b/",
    "http://a\u{200b}b/", "http://a\u{202e}b/", "http://\u{ff41}.example/", "http://a..b/",
    "http://.a/", "http://1.2.3/", "http://256.1.1.1/", "http://0x7f.1/", "http://2130706433/", "http://01.2.3.4/",
    "http://a\\b/", "http://a%2eb/", "http://a<b/", "http://user:%00@a/", "http://user:%0d%0a@a/", "http://u:%ff@a/",
    "http://\u{1f4a9}.example/", "file:///%00", "file:///%ff",
])
func `an address with a malformed server is refused`(text: String) {
    #expect(WebAddress(text) == nil)
}

@Test func `an accepted address contains nothing that another library could misinterpret`() throws {
    for text in HostileAddresses.addresses(10_000, seed: 9) {
        guard let address = WebAddress(text) else { continue }
        #expect(address.text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }, "\(text.debugDescription)")
        #expect(address.text.utf8.count <= WebAddress.limit)
        #expect(WebAddress(address.text) == address, "\(text.debugDescription) changes when it is parsed again")
        if !address.isFile { #expect(address.origin != nil, "\(text.debugDescription)") }
    }
}

@Test(arguments: [
    ("https://me%40mail.org:p%3Ass@h/", "me@mail.org", "p:ss"), ("https://me@mail.org:a:b@h/", "me@mail.org", "a:b"),
    ("https://me@h/", "me", ""), ("https://:x@h/", "", "x"), ("https://me:100%@h/", "me", "100%"),
])
func `user and password are decoded`(text: String, user: String, password: String) throws {
    let address = try #require(WebAddress(text))
    let credentials = try #require(address.credentials)
    #expect(credentials.user == user && credentials.password == password)
    #expect(address.textWithoutCredentials == "https://h/")
}

@Test(arguments: [
    ("http://h/a", "http://h"), ("https://H:443/", "https://h"), ("http://h:8080/b?c", "http://h:8080"),
    ("https://u:p@[::1]:80/", "https://[::1]:80"), ("https://[::1]/", "https://[::1]"),
])
func `an origin is scheme, host and port`(text: String, origin: String) throws {
    #expect(WebOrigin(text)?.text == origin)
    #expect(WebOrigin(origin) == WebOrigin(text))
}

@Test(arguments: [
    ("http://]/", "http://]/"), ("http://me:secret@]/x", "http://]/x"),
    ("https://me:pa/ss@h/", "https://h/"), ("https://me:pa?ss@h/", "https://h/"), ("https://me:pa#ss@h/", "https://h/"),
    ("https://me:p w@ho st/", "https://ho st/"), ("https://me:p\"w@h/", "https://h/"), ("xx:me:p@h/", "xx:h/"),
    ("http://h/@x", "http://h/@x"), ("http://a\u{7}b/", "http://ab/"), ("me@h h:80/", "h h:80/"), ("@", ""),
    ("//@h h", "//h h"), ("x@//y z", "//y z"), ("me:p@h//x y", "me:h//x y"),
])
func `a refused address is quoted without its password`(text: String, quoted: String) {
    #expect(WebAddress.quotable(text) == quoted)
}

@Test(arguments: [
    ("https://me:pa/ss@h/", true), ("https://me:pa#ss@h/", true), ("https://me:p w@h/", false), ("xx:me:p/s@h/", false),
    ("http://]/a", false), ("@", false),
])
func `a password with a character that ends the authority is explained`(text: String, isExplained: Bool) {
    #expect(Failure.unusableAddress(text).message.contains("%2F") == isExplained)
}

@Test(arguments: [
    ("episode-1.mp3", "file:///demo/feed.xml", "file:///demo/episode-1.mp3"),
    ("../a b.mp3", "file:///demo/x/feed.xml", "file:///demo/a%20b.mp3"),
    ("/1.mp3", "https://h/feeds/x", "https://h/1.mp3"),
    ("//cdn.h/1.mp3", "https://h/feeds/x", "https://cdn.h/1.mp3"),
    ("?id=1", "https://h/feeds/x?y", "https://h/feeds/x?id=1"),
    ("http://other/1.mp3", "file:///demo/feed.xml", "http://other/1.mp3"),
])
func `relative addresses are resolved`(text: String, base: String, whole: String) throws {
    let base = try #require(WebAddress(base))
    #expect(WebAddress(text, relativeTo: base)?.text == whole)
}

@Test func `file addresses and paths are converted both ways`() throws {
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
func `addresses of the same feed have the same identity`(left: String, right: String, same: Bool) throws {
    let left = try #require(WebAddress(left))
    let right = try #require(WebAddress(right))
    #expect((PodcastID.feed(at: left) == PodcastID.feed(at: right)) == same)
}

@Test(arguments: [
    ("http://]/x", "its host is malformed"), ("http://[::", "its host is malformed"),
    ("https://exa mple.org/", "its host is malformed"), ("http:///x", "it has no host"),
    ("http://example.org:99999/", "its port is malformed"), ("http://example.org:x/", "its port is malformed"),
    ("http://a%00b@example.org/", "its user name or password is malformed"),
    ("ftp://example.org/", "it must begin with http:// or https://"),
    ("example", "it must begin with http:// or https://"),
    ("http:example.org", "it must begin with http:// or https://"),
    ("", "it is empty"), ("http://example.org/\u{1}", "it contains control characters"),
    ("file://host/a", "the address of a local file must be file:// and an absolute path"),
    ("http://example.org/" + String(repeating: "a", count: 9_000), "it is longer than 8192 bytes"),
    ("http://example.org/" + String(repeating: "ä", count: 4_000), "it is longer than 8192 bytes"),
])
func `the refusal of an address names its flaw`(text: String, flaw: String) {
    #expect(WebAddress(text) == nil)
    #expect(Failure.unusableAddress(text).message.hasSuffix("isn’t a usable address: \(flaw)."))
}
