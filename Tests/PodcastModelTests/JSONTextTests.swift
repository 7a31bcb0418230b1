import PodcastModel
import Testing

@Suite struct JSONTextTests {
    @Test(arguments: [
        ("", "\"\""), ("plain ü 🎧", "\"plain ü 🎧\""), ("a\"b\\c", #""a\"b\\c""#), ("a\nb\rc\td", #""a\nb\rc\td""#),
        ("\u{0}\u{1b}[2J", #""\u0000\u001b[2J""#), ("\u{7f}", #""\u007f""#),
        ("a\u{80}\u{9b}2J\u{9f}\u{a0}", "\"a\\u0080\\u009b2J\\u009f\u{a0}\""), ("\u{2028}\u{2029}", #""\u2028\u2029""#),
        ("\r\n", #""\r\n""#),
    ])
    func `text is one line of JSON`(_ text: String, _ json: String) {
        #expect(JSONText.quoted(text) == json)
    }
}
