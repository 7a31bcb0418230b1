import Testing

@testable import PodcastModel

@Suite struct NearestWordTests {
    @Test(arguments: [
        ("paus", "pause"), ("Pause", "pause"), ("queu", "queue"), ("stauts", "status"), ("volum", "volume"),
        ("sub-scribe", "subscribe"), ("x", nil), ("", nil), ("equaliser", nil),
    ])
    func `a mistyped word suggests the nearest known one`(text: String, word: String?) {
        let words = ["pause", "queue", "status", "volume", "subscribe"]
        #expect(NearestWord.among(words, to: text) == word)
    }

    @Test(arguments: ["", "-", "__-"])
    func `a text without letters has no suggestion, even if it is short`(text: String) {
        #expect(NearestWord.among(["x", "y"], to: text) == nil)
    }

    @Test func `the distance between two words counts their differences`() {
        let cases = [("", "", 0), ("a", "", 1), ("ab", "ba", 1), ("kitten", "sitting", 3), ("abc", "abc", 0)]
        for (left, right, distance) in cases { #expect(NearestWord.distance(Array(left), Array(right)) == distance) }
    }
}
