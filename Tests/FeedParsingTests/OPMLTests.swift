import Foundation
import PodcastModel
import TestSupport
import Testing

@testable import FeedParsing

@Suite struct OPMLTests {
    private func parse(_ text: String, _ limits: OPMLDocument.Limits = .init()) throws -> OPMLDocument {
        try OPMLDocument.parse(Array(text.utf8), named: "list.opml", limits: limits)
    }

    private func body(_ outlines: String) -> String { "<opml version=\"2.0\"><body>\(outlines)</body></opml>" }

    private func refusal(_ bytes: [UInt8], _ limits: OPMLDocument.Limits = .init()) -> Failure? {
        do throws(Failure) {
            _ = try OPMLDocument.parse(bytes, named: "list.opml", limits: limits)
            return nil
        } catch {
            return error
        }
    }

    @Test func `nested outlines become tags`() throws {
        let document = try parse(
            body(
                """
                <outline text="Plain" xmlUrl="https://a.example/"/>
                <outline text="News"><outline text=" Daily "><outline title="B" text="text" type="rss" xmlUrl=" https://b.example/?a=1&amp;b=2 "/>
                </outline><outline text="news"><outline text="C" XMLURL="https://c.example/"/></outline></outline>
                """))
        #expect(document.problems == [])
        #expect(
            document.outlines.map(\.url) == ["https://a.example/", "https://b.example/?a=1&b=2", "https://c.example/"])
        #expect(document.outlines.map(\.title) == ["Plain", "B", "C"])
        #expect(document.outlines.map(\.tags) == [[], ["News", "Daily"], ["News"]])
        #expect(document.outlines.map(\.ownTitle) == ["", "", ""])
        #expect(document.outlines.map(\.line) == [1, 2, 3])
    }

    @Test func `entries without an address and references to other lists are listed, and the rest is read`() throws {
        let document = try parse(
            body(
                """
                <outline text="No address" type="rss"/>
                <outline text="Other list" type="include" url="list.opml"/>
                <outline type="podcast-playlist" text="A player’s own entry"/>
                <outline text="A" xmlUrl="https://a.example/"/>
                """))
        #expect(document.outlines.map(\.url) == ["https://a.example/"])
        #expect(document.problems.map(\.name) == ["No address", "Other list"])
        #expect(document.problems.map(\.line) == [1, 2])
    }

    @Test func `what precedes broken XML is read`() throws {
        let document = try parse(
            "<opml><body>\n<outline text=\"A & B\" xmlUrl=\"https://a.example/\"/>\n<outline text=\"C\" xmlUrl=\"https://c.exa"
        )
        #expect(document.outlines.map(\.url) == ["https://a.example/"] && document.outlines.first?.title == "A & B")
        #expect(document.problems.count == 1 && document.problems.first?.reason.contains("its end") == true)
    }

    @Test(arguments: [
        ("", "is empty"), (" \n\t", "is empty"), ("{\"a\":1}", "isn’t XML"), ("https://a.example/\n", "isn’t XML"),
        ("<rss version=\"2.0\"><channel/></rss>", "lockstep subscribe"), ("<html><body/></html>", "web page"),
        ("<playlist/>", "<playlist>"), ("<", "list of podcasts"),
    ])
    func `anything but OPML is refused`(text: String, words: String) {
        let failure = refusal(Array(text.utf8))
        #expect(failure?.known == .malformed)
        #expect(failure?.message.hasPrefix("list.opml ") == true && failure?.message.contains(words) == true)
    }

    @Test func `foreign encodings are converted, and binary data is refused`() throws {
        let text =
            "<?xml version=\"1.0\" encoding=\"CODE\"?>"
            + body("<outline text=\"Größe\" xmlUrl=\"https://a.example/\"/>")
        for (encoding, name) in [
            (String.Encoding.utf16, "UTF-16"), (.isoLatin1, "ISO-8859-1"), (.windowsCP1252, "utf-8"), (.utf8, "utf-8"),
            (.utf16LittleEndian, "UTF-16LE"), (.utf16BigEndian, "UTF-16BE"),
        ] {
            let bytes = Array(try #require(text.replacing("CODE", with: name).data(using: encoding)))
            let document = try OPMLDocument.parse(bytes, named: "list.opml in \(name)")
            #expect(document.outlines.map(\.title) == ["Größe"], "\(name)")
        }
        var random = SeededGenerator(seed: 5)
        for length in [1, 100, 100_000] {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(refusal(bytes)?.known == .malformed)
        }
        #expect(refusal(Array(repeating: 0, count: 70_000))?.known == .malformed)
        let lines = Array(String(repeating: "not a list\n", count: 100_000).utf8)
        #expect(refusal(lines)?.known == .malformed)
    }

    @Test func `entities are not expanded, and no file is read`() throws {
        let lol = (1...9).map { "<!ENTITY l\($0) \"\(String(repeating: "&l\($0 - 1);", count: 10))\">" }.joined()
        for types in [lol + "<!ENTITY l0 \"lol\">", "<!ENTITY l9 SYSTEM \"file:///etc/passwd\">"] {
            let text =
                "<!DOCTYPE opml [\(types)]>"
                + body("<outline text=\"x&l9;\" xmlUrl=\"https://a.example/\">&l9;</outline>")
            let document = try parse(text)
            #expect(document.outlines.allSatisfy { $0.title.utf8.count < 10 }, "\(document.outlines)")
        }
    }

    @Test func `lists beyond the limits are refused`() throws {
        var limits = OPMLDocument.Limits()
        limits.outlines = 100
        let entry = "<outline text=\"A\" xmlUrl=\"https://a.example/\"/>"
        #expect(try parse(body(String(repeating: entry, count: 100)), limits).outlines.count == 100)
        #expect(refusal(Array(body(String(repeating: entry, count: 101)).utf8), limits)?.known == .tooLarge)
        let nested =
            String(repeating: "<outline text=\"a\">", count: 60) + entry + String(repeating: "</outline>", count: 60)
        #expect(refusal(Array(body(nested).utf8))?.message.contains("50 folders") == true)
        let bomb = String(repeating: "<outline text=\"a\">", count: 100_000)
        #expect(refusal(Array("<opml><body>\(bomb)".utf8))?.known == .tooLarge)
        let other = String(repeating: "<b>", count: 100_000)
        #expect(try parse("<opml><body>\(other)").problems.count == 1)
        limits.bytes = 50
        #expect(refusal(Array(body(entry).utf8), limits)?.known == .tooLarge)
    }

    @Test func `a written list is read back with the same addresses, titles and tags`() throws {
        var random = SeededGenerator(seed: 11)
        let pieces = [
            "a", "Ä", "<", ">", "&", "\"", "'", "&amp;", "🎧", "日本", " ", "]]>", "<!--", "\\", "%", "\t", "\n",
            "\u{9b}", "\u{202e}",
        ]
        func text() -> String {
            "x" + (0..<6).map { _ in pieces[Int.random(in: 0..<pieces.count, using: &random)] }.joined() + "x"
        }
        let tags = ["News", "a/b, c", "\"x\"", "日本", "R&D"]
        let outlines = (0..<200).map { number in
            OPMLDocument.Outline(
                "https://h\(number).example/f?a=1&b=\"<'>%20", title: text(),
                ownTitle: Bool.random(using: &random) ? text() : "",
                tags: tags.filter { _ in Int.random(in: 0..<4, using: &random) == 0 })
        }
        let written = OPMLDocument(outlines: outlines).text
        // `lockstep export` prints the list.
        #expect(!written.unicodeScalars.contains { $0.properties.isBidiControl || (0x7f...0x9f).contains($0.value) })
        let read = try parse(written)
        #expect(read.problems == [])
        var merged: [String: OPMLDocument.Outline] = [:]
        for var outline in read.outlines {
            outline.line = 0
            outline.tags = (merged[outline.url]?.tags ?? []) + outline.tags
            merged[outline.url] = outline
        }
        #expect(merged.count == 200)
        for outline in outlines {
            let found = try #require(merged[outline.url])
            #expect(found.title == outline.title && found.ownTitle == outline.ownTitle)
            #expect(Set(found.tags) == Set(outline.tags))
        }
    }
}
