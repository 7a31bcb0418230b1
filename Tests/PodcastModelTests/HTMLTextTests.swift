import PodcastModel
import Testing

@Suite struct HTMLTextTests {
    private static func words(_ html: String) -> String {
        HTMLText(Array(html.utf8)).map { event in
            switch event {
            case .text(let bytes): String(decoding: bytes, as: UTF8.self)
            case .character(let character): String(Character(character))
            case .tag(let tag): "[\(tag.isEnd ? "/" : "")\(tag.name)]"
            }
        }.joined()
    }

    @Test(arguments: [
        ("plain", "plain"), ("", ""), ("<P>a</p><br/>b", "[p]a[/p][br]b"), ("x < y > z", "x < y > z"),
        ("1 < 2, <3 and </3", "1 < 2, <3 and </3"), ("<!-- hidden <b> -->seen", "[]seen"), ("a<!-- open", "a[]"),
        ("<!DOCTYPE html><?xml ?>a", "[][]a"), ("cut <a href=\"", "cut []"),
        ("<a title=\"1 > 0\" href='x'>link</a>", "[a]link[/a]"), ("<p title=\"open>text</p>", "[p]text[/p]"),
        ("<p a\"b>text", "[p]text"), ("<h2>ü</h2>", "[h2]ü[/h2]"),
    ])
    func `HTML is split into texts and tags`(html: String, words: String) {
        #expect(Self.words(html) == words)
    }

    @Test(arguments: [
        ("a &lt;b&gt; &amp; &#39;c&#x27; &#X27;", "a <b> & 'c' '"), ("&unknown; & &;&#;", "&unknown; & &;&#;"),
        ("&#0;&#xD800;&#x110000;&#99999999999;", "&#0;&#xD800;&#x110000;&#99999999999;"),
        ("Tom&nbsp;&uuml;ber &hellip;", "Tom\u{A0}über …"), ("&amp", "&amp"), ("&", "&"), ("&ampamp;", "&ampamp;"),
    ])
    func `references are decoded, and other text is unchanged`(html: String, text: String) {
        #expect(Self.words(html) == text)
        #expect(HTMLEntities.decoded(Array(html.utf8)[...]) == text)
    }

    @Test(arguments: [
        ("<a href=\"x?a=1&amp;b=2\">", "x?a=1&b=2"), ("<a class='b' HREF = 'y z'>", "y z"), ("<a href=z>", "z"),
        ("<a/href=z>", "z"), ("<a href=\"\">", ""), ("<a title=href>", nil), ("<a href>", nil),
        ("<a hrefs=1 href=2>", "2"),
    ])
    func `an attribute is parsed with any kind of quotes`(html: String, value: String?) {
        guard case .tag(let tag)? = HTMLText(Array(html.utf8)).first(where: { _ in true }) else {
            Issue.record("\(html) has no tag")
            return
        }
        #expect(tag.attribute("href") == value)
    }

    @Test func `a megabyte of brackets is parsed quickly`() {
        for html in ["<a href=\"", "<a b='><a c=\">", "<!--", "&", "<"] {
            let events = HTMLText(Array(String(repeating: html, count: 1_000_000 / html.utf8.count).utf8))
            #expect(events.reduce(0) { count, _ in count + 1 } > 0)
        }
    }
}
