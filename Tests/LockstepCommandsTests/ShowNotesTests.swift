import Testing

@testable import LockstepCommands

@Suite struct ShowNotesTests {
    @Test(
        arguments: [
            ("<p>One &amp; two</p><ul><li>a<li>b</ul>", ["One & two", "", "• a", "• b"]),
            ("One<br>two<br/><br>three", ["One", "two", "three"]),
            ("Plain text\nwith lines\n\nand a paragraph", ["Plain text", "with lines", "", "and a paragraph"]),
            ("<p>lines\nof HTML\nare one</p>", ["lines of HTML are one"]),
            ("<script>alert('x')</script><style>p{}</style><p>text</p>", ["text"]),
            ("a<!-- <b>not</b> this -->b", ["ab"]),
            ("&#8220;x&#x201d; &hellip; &nosuch; & 1 &lt; 2", ["“x” … &nosuch; & 1 < 2"]),
            ("1 < 2 and <3", ["1 < 2 and <3"]),
            ("<p>cut off in a <a href=\"http://x", ["cut off in a"]),
            ("<p title=\"a > b\">text</p>", ["text"]),
            ("<p title=\"never closed>text</p>", ["text"]),
            ("<img alt=\"A picture\" src=x>", ["[A picture]"]),
            ("", []),
            ("<p></p><p> </p>", []),
        ] as [(String, [String])])
    func `HTML is converted to lines`(html: String, lines: [String]) {
        #expect(ShowNotes(html).lines == lines)
    }

    @Test func `links are numbered once and listed`() {
        let notes = ShowNotes(
            """
            <p>See <a href="https://a.example/?x=1&amp;y=2">the page</a>, <a href='https://b.example/'>b</a> and
            <a class="l" href=https://a.example/?x=1&amp;y=2>again</a>.</p>
            """)
        #expect(notes.lines == ["See the page [1], b [2] and again [1]."])
        #expect(
            notes.links == [
                .init(number: 1, text: "the page", url: "https://a.example/?x=1&y=2"),
                .init(number: 2, text: "b", url: "https://b.example/"),
            ])
        #expect(notes.text(width: nil).suffix(3) == ["", "[1] https://a.example/?x=1&y=2", "[2] https://b.example/"])
    }

    @Test(arguments: ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "/relative", "https://a b"])
    func `an address with an unsupported scheme isn’t listed`(url: String) {
        let notes = ShowNotes("<a href=\"\(url)\">words</a>")
        #expect(notes.links.isEmpty)
        #expect(notes.lines == ["words"])
    }

    @Test func `notes can’t control the terminal`() {
        let notes = ShowNotes("<p>a&#27;[2Jb\u{202e}c</p><a href=\"https://x.example/&#27;[0m\">y</a>")
        let text = notes.text(width: 80).joined()
        #expect(!text.unicodeScalars.contains { $0.value < 32 || $0.value == 0x202e })
    }

    @Test func `lines are wrapped between words, and addresses aren’t split`() {
        let notes = ShowNotes("<ul><li>some words for a line</ul><a href=\"https://example.org/a/long/path\">here</a>")
        #expect(
            notes.text(width: 12) == [
                "• some words", "  for a line", "", "here [1]", "", "[1] https://example.org/a/long/path",
            ])
    }

    @Test func `a megabyte of brackets is read quickly`() {
        let notes = ShowNotes(String(repeating: "<a href=\"", count: 20_000))
        #expect(notes.lines.isEmpty)
    }
}
