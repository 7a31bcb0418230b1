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

    @Test func `a word of one letter is similar only to itself`() {
        #expect(NearestWord.among(["b", "ab", "a-"], to: "A") == "a-")
        #expect(NearestWord.among(["b", "ab"], to: "a") == nil)
        #expect(NearestWord.among(["xyz", "abc"], to: "ab") == "abc")
    }

    @Test(arguments: [
        ([], "", ""), (["a"], "a", "a"), (["a", "b"], "a and b", "a or b"),
        (["a", "b", "c"], "a, b and c", "a, b or c"),
    ])
    func `words are listed in a sentence`(words: [String], all: String, one: String) {
        #expect(WordList.and(words) == all && WordList.or(words) == one)
    }

    @Test func `the distance between two words counts their differences`() {
        let cases = [("", "", 0), ("a", "", 1), ("ab", "ba", 1), ("kitten", "sitting", 3), ("abc", "abc", 0)]
        for (left, right, distance) in cases { #expect(NearestWord.distance(Array(left), Array(right)) == distance) }
    }
}
