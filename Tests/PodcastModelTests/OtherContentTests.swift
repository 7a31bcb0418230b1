import PodcastModel
import Testing

@Suite struct OtherContentTests {
    @Test(
        arguments: [
            ("text/html; charset=utf-8", .webPage), ("TEXT/HTML", .webPage), ("application/xhtml+xml", .webPage),
            ("audio/x-mpegurl", .playlist), ("audio/mpegurl", .playlist), ("application/vnd.apple.mpegURL", .playlist),
            ("audio/x-scpls", .playlist), ("application/xspf+xml", .playlist), ("text/xml", .xml),
            ("application/rss+xml", .xml), ("application/json", .json), ("image/jpeg", .image),
            ("audio/mpeg", nil), ("video/mp4", nil), ("application/octet-stream", nil), ("text/plain", nil), ("", nil),
        ] as [(String, OtherContent?)])
    func `media types that audio never has are detected`(type: String, content: OtherContent?) {
        #expect(OtherContent(mediaType: type) == content)
    }

    @Test(
        arguments: [
            ("<!DOCTYPE html><p>", .webPage), ("\n <!doctype html>", .webPage), ("\u{FEFF}<html>", .webPage),
            ("<?xml version=\"1.0\"?><!DOCTYPE html PUBLIC", .webPage), ("#EXTM3U\n#EXT-X-VERSION:3", .playlist),
            ("[playlist]\nFile1=https://a.example/1.mp3", .playlist), ("https://a.example/1.mp3\r\n", .playlist),
            ("<?xml version=\"1.0\"?>\n<playlist version=\"1\">", .playlist), ("<?xml version=\"1.0\"?><rss>", .xml),
            ("<rss>", .xml), ("{ \"error\": 1}", .json), ("ID3\u{3}", nil), ("RIFF", nil), ("", nil), ("{", nil),
        ] as [(String, OtherContent?)])
    func `content other than audio is detected by its first bytes`(text: String, content: OtherContent?) {
        #expect(OtherContent(beginning: Array(text.utf8)) == content)
    }

    @Test func `each kind of other content has a message, and the one for a web page gives advice`() {
        let messages = OtherContent.allCases.map { $0.refusal(from: "a.example", .decoderFailed).message }
        #expect(Set(messages).count == messages.count)
        #expect(messages.first == "a.example sent a web page instead of audio; you may have to log in first.")
    }
}
