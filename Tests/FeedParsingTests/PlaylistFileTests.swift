import Foundation
import PodcastModel
import Testing

@testable import FeedParsing

@Suite struct PlaylistFileTests {
    private func parse(
        _ bytes: some Sequence<UInt8>, _ format: PlaylistFile.Format? = nil, _ limits: PlaylistFile.Limits = .init()
    ) throws(Failure) -> PlaylistFile {
        try PlaylistFile.parse(Array(bytes), named: "list", as: format, limits: limits)
    }

    private func refusal(_ bytes: some Sequence<UInt8>, _ limits: PlaylistFile.Limits = .init()) -> Failure? {
        do throws(Failure) {
            _ = try parse(bytes, nil, limits)
            return nil
        } catch {
            return error
        }
    }

    /// A list whose texts contain what the formats could confuse.
    private func list(_ random: inout SeededGenerator) -> PlaylistFile {
        let parts = ["a", "Ä", "日本", "&", "<b>", "\"", " - ", ",", "#", "]]>", "'", "é", "👩‍🚀", ":", "%20"]
        func text(_ count: ClosedRange<Int>) -> String {
            let text = (0..<Int.random(in: count, using: &random)).map { _ in
                parts.randomElement(using: &random) ?? ""
            }.joined()
            return "x" + text + "x"
        }
        var list = PlaylistFile()
        list.title = text(0...4)
        list.entries = (0..<Int.random(in: 1...20, using: &random)).map { number in
            var entry = PlaylistFile.Entry()
            entry.episode = EpisodeID.derived(from: "\(number)")
            // An episode without audio has no address.
            entry.location = number % 7 == 6 ? "" : "https://example.org/\(number)?a=1&b=\(text(0...2))"
            entry.title = text(0...5)
            entry.podcast = text(0...3)
            entry.seconds = Bool.random(using: &random) ? Double(Int.random(in: 1...90_000, using: &random)) : nil
            return entry
        }
        return list
    }

    @Test(arguments: PlaylistFile.Format.allCases) func `a written file is read unchanged`(
        format: PlaylistFile.Format
    ) throws {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<300 {
            let list = list(&random)
            var read = try parse(list.text(as: format).utf8)
            for index in read.entries.indices { read.entries[index].line = 0 }
            #expect(read == list)
        }
    }

    @Test func `line breaks and control characters can’t add entries`() throws {
        var list = PlaylistFile()
        list.title = "A\nhttps://evil.example/1"
        var entry = PlaylistFile.Entry()
        entry.location = "https://example.org/1\nhttps://evil.example/2"
        entry.title = "T\r\nhttps://evil.example/3\u{2028}#EXTM3U\u{0}"
        list.entries = [entry]
        for format in PlaylistFile.Format.allCases {
            let read = try parse(list.text(as: format).utf8)
            #expect(read.entries.count == 1)
            #expect(read.entries[0].location.hasPrefix("https://example.org/1"))
        }
    }

    @Test func `files of other players are read`() throws {
        let plain = try parse(
            "﻿#EXTM3U\r\n#EXTINF:123 tvg-id=\"x\",Show - One\r\nhttp://a/1.mp3\r\rmusic\\b.mp3 \r\n".utf8)
        #expect(plain.entries.map(\.location) == ["http://a/1.mp3", "music\\b.mp3"])
        #expect(plain.entries.map(\.title) == ["Show - One", ""] && plain.entries.map(\.seconds) == [123, nil])
        #expect(plain.entries.map(\.line) == [3, 5])
        let xspf = try parse(
            """
            <?xml version="1.0"?><!DOCTYPE playlist [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY y "yyy">]>
            <playlist xmlns="http://xspf.org/ns/0/"><title> List </title><date>2026</date><trackList>
            <track><location>http://a/1.mp3</location><location>http://b/1.mp3</location><identifier>other</identifier>
            <title><![CDATA[One & two]]></title><album>Show</album><duration>90500</duration>
            <extension application="x"><location>http://c/</location></extension></track>
            <track><creator>P</creator><title>&x;&y;Three</title><duration>-1</duration></track>
            </trackList></playlist>
            """.utf8)
        #expect(xspf.title == "List" && xspf.entries.map(\.location) == ["http://a/1.mp3", ""])
        #expect(xspf.entries.map(\.title) == ["One & two", "Three"] && xspf.entries.map(\.podcast) == ["Show", "P"])
        #expect(xspf.entries.map(\.seconds) == [90.5, nil])
    }

    /// The text in UTF-16 with a byte order mark.
    private func little(_ text: String) -> [UInt8] {
        ("\u{feff}" + text).utf16.flatMap { unit -> [UInt8] in
            [UInt8(truncatingIfNeeded: unit), UInt8(truncatingIfNeeded: unit >> 8)]
        }
    }

    @Test func `foreign encodings are read`() throws {
        let text = "#EXTM3U\n#EXTINF:1,Füße\nhttp://a/ü.mp3\n"
        let latin = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
        let big = stride(from: 0, to: little(text).count, by: 2).flatMap { index in
            [little(text)[index + 1], little(text)[index]]
        }
        for bytes in [latin, little(text), big, [0xef, 0xbb, 0xbf] + Array(text.utf8)] {
            let list = try parse(bytes)
            #expect(list.entries.map(\.title) == ["Füße"] && list.entries.map(\.location) == ["http://a/ü.mp3"])
        }
        let xspf =
            "<?xml version=\"1.0\" encoding=\"UTF-16\"?><playlist><trackList><track><title>ü</title></track></trackList></playlist>"
        #expect(try parse(little(xspf)).entries.map(\.title) == ["ü"])
    }

    @Test func `other and broken files are refused`() {
        let cases: [(String, String)] = [
            ("", "it has no entries"), ("\n#EXTM3U\n# nothing\n", "it has no entries"),
            ("a\0b\n", "it isn’t text"), ("[playlist]\nFile1=x\n", "PLS"),
            ("#EXTM3U\n#EXT-X-VERSION:3\nx.ts\n", "HLS"), ("<rss></rss>", "its first element is <rss>"),
            ("<playlist><trackList></trackList></playlist>", "it has no tracks"),
            ("<playlist><trackList><track><location>x", "the XML"),
            ("<playlist><trackList><track></track></playlist>", "the XML is broken at line 1"),
        ]
        for (text, reason) in cases {
            let failure = refusal(text.utf8)
            #expect(
                failure?.known == .malformed && failure?.message.contains(reason) == true,
                "\(text): \(failure?.message ?? "")")
        }
        var limits = PlaylistFile.Limits()
        limits.entries = 2
        #expect(refusal("a\nb\nc\n".utf8, limits)?.known == .tooLarge)
        let tracks = String(repeating: "<track/>", count: 3)
        #expect(refusal("<playlist><trackList>\(tracks)</trackList></playlist>".utf8, limits)?.known == .tooLarge)
        limits.bytes = 3
        #expect(refusal("abcd".utf8, limits)?.known == .tooLarge)
        limits = PlaylistFile.Limits()
        limits.text = 10
        #expect(throws: Never.self) {
            try #expect(parse(String(repeating: "x", count: 50).utf8, nil, limits).entries[0].location.count == 10)
        }
    }

    @Test func `a hundred thousand lines and deep nesting are read or refused`() throws {
        let lines = String(repeating: "http://example.org/a.mp3\n", count: 100_000)
        #expect(try parse(lines.utf8).entries.count == 100_000)
        #expect(refusal((lines + "x\n").utf8)?.known == .tooLarge)
        let deep = "<playlist>" + String(repeating: "<a>", count: 100_000)
        #expect(refusal(deep.utf8)?.known == .malformed)
    }
}
