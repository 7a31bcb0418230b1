import PodcastModel
import TestSupport
import Testing

@Suite struct EpisodeRuleTests {
    @Test(arguments: [
        ("unplayed", "unplayed"), ("not played", "unplayed"), ("NOT (NOT Played)", "played"),
        (
            "unplayed and (length < 20m or tag News) and published < 7d and not queued",
            "unplayed and (length < 20m or tag news) and published < 7d and not queued"
        ),
        ("length<1h30m", "length < 90m"), ("length >= 12:34", "length >= 754s"), ("length < 1.1h", "length < 66m"),
        ("remaining < 0.00001s", "remaining < 0s"), ("heard < 1.0005d", "heard < 86443.200s"),
        ("title ~ \"a\\\"\u{301}\"", "title ~ \"a\\\"\u{301}\""), ("remaining > 90 ", "remaining > 90s"),
        ("heard > 2w", "heard > 14d"), ("published = 2026-01-31", "published = 2026-01-31"),
        ("podcast \"This Week\"", "podcast \"This Week\""), ("title ~ “a b”", "title ~ \"a b\""),
        ("title ~ \"and\"", "title ~ \"and\""), ("text ~ \"say \\\"hi\\\"\"", "text ~ \"say \\\"hi\\\"\""),
        ("has chapters and has Transcript", "has chapters and has transcript"), ("favorite", "favourite"),
        ("(new or started) and (downloaded)", "(new or started) and downloaded"),
        ("season = 2 or gone", "season = 2 or gone"),
        ("new and started or gone", "new and started or gone"), ("in commute", "in commute"),
    ])
    func `a rule has a canonical text`(text: String, canonical: String) throws {
        let rule = try EpisodeRule(text)
        #expect(rule.description == canonical)
        #expect(try EpisodeRule(rule.description) == rule)
    }

    @Test(arguments: [
        ("unplaid", "column 1: “unplaid” isn’t a field of an episode; did you mean “unplayed”?"),
        ("new and", "column 8: a field is missing before the end"),
        ("new started", "column 5: “and” or “or” is missing"),
        ("(new", "column 5: “)” is missing"), ("length 20m", "column 8: “<” or “>” is missing after “length”"),
        ("length < x", "column 10: “x” isn’t a length"), ("length = 20m", "column 8: a length can’t be compared"),
        ("published < 2026-02-30", "column 13: “2026-02-30” isn’t an age"),
        ("published = 7d", "column 11: an age can’t"),
        ("title swift", "column 7: “~” is missing after “title”"), ("tag and new", "column 5: a tag is missing"),
        ("title ~ \"x", "column 9: the quotation mark isn’t closed"), ("has wings", "column 5: “wings” isn’t"),
        ("season = x", "column 10: “x” isn’t a season number"), ("new \\", "column 5: “\\” has no meaning"),
        ("length < 1000y", "column 10: “1000y” isn’t a length"), ("published < 101y", "column 13: “101y” isn’t an age"),
        ("  ", "The rule is empty"), ("title ~ \"  \"", "column 9: a text is missing"),
    ])
    func `an error names its column`(text: String, message: String) {
        let failure = #expect(throws: Failure.self) { try EpisodeRule(text) }
        #expect(failure?.known == .invalidArgument)
        #expect(failure?.message.contains(message) == true, "\(failure?.message ?? "")")
    }

    @Test func `an unknown field without a similar one is answered with all fields`() {
        let failure = #expect(throws: Failure.self) { try EpisodeRule("zzz") }
        #expect(failure?.message.contains("The fields: unplayed, played, started") == true)
    }

    @Test func `length, nesting and number of conditions are limited`() throws {
        let long = String(repeating: "x", count: EpisodeRule.lengthLimit)
        #expect(throws: Failure.self) { try EpisodeRule("tag \(long)") }
        let deep = String(repeating: "not ", count: 10_000 / 4) + "new"
        #expect(throws: Failure.self) { try EpisodeRule(deep) }
        let nested = String(repeating: "(", count: 40) + "new" + String(repeating: ")", count: 40)
        #expect(throws: Failure.self) { try EpisodeRule(nested) }
        let deepest = String(repeating: "(", count: 30) + "not new" + String(repeating: ")", count: 30)
        #expect(try EpisodeRule(deepest).description == "not new")
        let searches = Array(repeating: "text ~ a", count: 5).joined(separator: " and ")
        #expect(throws: Failure.self) { try EpisodeRule(searches) }
        let many = Array(repeating: "new", count: 65).joined(separator: " or ")
        #expect(throws: Failure.self) { try EpisodeRule(many) }
        _ = try EpisodeRule(Array(repeating: "new", count: 64).joined(separator: " or "))
    }

    @Test func `the canonical text of any rule is the same rule`() throws {
        var generator = SeededGenerator(seed: 11)
        for _ in 0..<2_000 {
            let rule = EpisodeRule(.random(using: &generator))
            #expect(try EpisodeRule(rule.description) == rule, "\(rule)")
        }
    }

    @Test func `any text is parsed or refused`() {
        var generator = SeededGenerator(seed: 12)
        let words = [
            "new", "and", "or", "not", "(", ")", "length", "<", "20m", "\"", "“", "~", "title", "é", "\\", " ", "=",
            "2026-01-01",
        ]
        for _ in 0..<5_000 {
            let text = (0..<Int.random(in: 0...12, using: &generator)).map { _ in
                words.randomElement(using: &generator)!
            }.joined(separator: Bool.random(using: &generator) ? " " : "")
            if let rule = try? EpisodeRule(text) { #expect((try? EpisodeRule(rule.description)) == rule, "\(text)") }
        }
    }

    @Test func `ages and days are compared with the moments of an episode`() throws {
        let now = Timestamp(milliseconds: 1_790_000_000_000)
        let context = EpisodeRule.Context(now: now) { day in
            CalendarTime(compact: "\(day)".replacing("-", with: "") + "T000000000Z")!.timestamp
        }
        var facts = EpisodeFacts()
        func matches(_ text: String) throws -> Bool { try EpisodeRule(text).matches(facts, in: context) }
        #expect(try !matches("published < 7d") && !matches("published > 7d") && matches("not published < 7d"))
        facts.published = Timestamp(milliseconds: now.milliseconds - 6 * 86_400_000)
        #expect(try matches("published < 7d") && !matches("published > 7d") && matches("published >= 6d"))
        let day = CalendarTime(facts.published!).dayText
        #expect(try matches("published = \(day)") && !matches("published < \(day)") && matches("published <= \(day)"))
        #expect(try !matches("published > \(day)") && matches("published > 1999-12-31"))
    }
}
