import PodcastModel

/// Addresses that have crashed programs, and random ones made of the same parts.
package enum HostileAddresses {
    /// Each has trapped an HTTP library or a resolver, or is similar to one that has.
    package static let worst = [
        "http://]/", "http://[::", "http://]/m/", "http://]/x", "http://]/c.json", "http://]/a.mp3", "http://a b/",
        "http://%00/", "http://[", "http://[]/", "http://[:::]/", "http://[::1", "http://[::1]x/", "http://[::1]:x/",
        "http://[::1%25lo]/", "http://::1/", "http://a:b:c/", "http://:80/", "http://@/", "http://a@/", "http://@:@/",
        "http://a:99999/", "http://a:-1/", "http://a:+80/", "http://a:0/", "http://a:8 0/", "http://a\u{0}b/",
        "http://a\tb/", "http://a\r\nHost: b/", "http://a%0d%0ab/", "http://a/\r\nX: y", "http://\u{feff}a/",
        "http://a\u{202e}b/", "http://a\u{200b}b/", "http://\u{ff41}.example/", "http://a/\u{301}", "http:/\u{301}/a/",
        "http://a\u{3002}b/", "http://..", "http://a..b/", "http://.a/", "http://a.../", "http://-/", "http://%/",
        "http://%zz/", "http://a%/", "http://a\\b/", "http://a|b/", "http://a^b/", "http://a`b/", "http://a{b}/",
        "http://a<b>/", "http://a\"b/", "http://1.2.3/", "http://256.1.1.1/", "http://0x7f.1/", "http://2130706433/",
        "http://1.2.3.4.5/", "http://01.02.03.04/", "http:///", "http://?", "http://#", "http:", "http:/", "http:a",
        "https://", "https://]", "file://]/x", "file:///%00", "file:///%ff", "file:", "file:////", "file://a/b",
        "feed:", "feed://]/", "feed:http://]/", "feed:feed:feed:", "pcast:file:///etc/passwd", "javascript:alert(1)",
        "data:,x", "gopher://a/", "dict://a/", "ftp://a/", "smb://a/b", "scp://a/b", "://", "//", "//]", "///", "?",
        "#",
        "%", "%00", "]", "[", "\u{0}", " ", "", "http://user:%00@a/", "http://user:%ff@a/", "http://user:%zz@a/",
        "http://a:b@c:d@e/", "http://xn--/", "http://xn--a/", "http://xn--99999999/", "http://\u{1f4a9}.example/",
        "http://" + String(repeating: "a", count: 64) + "/", "http://" + String(repeating: "a.", count: 127) + "a/",
        "http://" + String(repeating: "ü", count: 60) + "/", "http://" + String(repeating: "[", count: 5_000) + "/",
        "http://a/" + String(repeating: "x", count: 9_000), "http://a/" + String(repeating: "../", count: 2_000),
        "http://a/" + String(repeating: " ", count: 4_000), String(repeating: "http://", count: 1_000),
    ]

    private static let parts = [
        "http", "https", "file", "feed", "itpc", "ftp", ":", "//", "/", "\\", "?", "#", "@", "[", "]", "[::1]",
        "[::ffff:1.2.3.4]", "[fe80::1%25eth0]", "127.0.0.1", "255.255.255.256", "0x7f", "localhost", "example.com",
        "a.b",
        "münchen", "例え", "xn--", "%", "%00", "%0a", "%2f", "%ff", "%C3%BC", ".", "..", "...", "-", "_", "~", "+", ":80",
        ":0", ":65536", ":-1", "user:pass@", "@@", " ", "\t", "\r\n", "\u{0}", "\u{7f}", "\u{85}", "\u{a0}", "\u{301}",
        "\u{200d}", "\u{202e}", "\u{2028}", "\u{feff}", "\u{ff0f}", "\u{ff20}", "\u{fffd}", "\u{10ffff}", "\u{1f4a9}",
        "ß",
        "İ", "ﬁ", "a", "B", "7", "=", "&", ";", "<", ">", "\"", "'", "{", "}", "|", "^", "`", "$", "*", "(", ")", ",",
    ]

    /// Returns the worst addresses, then random ones, deterministic for a seed.
    package static func addresses(_ count: Int, seed: UInt64) -> [String] {
        var random = SeededGenerator(seed: seed)
        var addresses = Array(worst.prefix(count))
        while addresses.count < count { addresses.append(address(&random)) }
        return addresses
    }

    private static func address(_ random: inout SeededGenerator) -> String {
        switch random.below(3) {
        case 0:
            // The parts are in random order.
            return (0..<random.below(12)).map { _ in parts[random.below(parts.count)] }.joined()
        case 1:
            // The parts are in the right order, with any host.
            let host = (0...random.below(4)).map { _ in parts[random.below(parts.count)] }.joined()
            let path = (0..<random.below(4)).map { _ in parts[random.below(parts.count)] }.joined()
            return (random.below(2) == 0 ? "http://" : "https://") + host + "/" + path
        default:
            // A few scalars of a valid address are changed.
            var scalars = Array("http://user:word@sub.example.com:8080/a%20b/c.mp3?d=e&f=[g]#h".unicodeScalars)
            for _ in 0...random.below(4) {
                let part = Array(parts[random.below(parts.count)].unicodeScalars)
                let place = random.below(scalars.count)
                scalars.replaceSubrange(place..<min(scalars.count, place + random.below(3)), with: part)
            }
            return String(String.UnicodeScalarView(scalars))
        }
    }
}
