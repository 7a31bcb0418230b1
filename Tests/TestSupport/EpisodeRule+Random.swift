public import PodcastModel

extension EpisodeRule.Condition {
    /// A random condition over few values, so that random episodes meet some of them.
    public static func random(using generator: inout SeededGenerator, depth: Int = 3) -> Self {
        if depth > 0, Bool.random(using: &generator) {
            switch Int.random(in: 0..<3, using: &generator) {
            case 0: return .not(random(using: &generator, depth: depth - 1))
            case 1: return .all(several(using: &generator, depth: depth - 1))
            default: return .any(several(using: &generator, depth: depth - 1))
            }
        }
        return term(using: &generator)
    }

    private static func several(using generator: inout SeededGenerator, depth: Int) -> [Self] {
        (0..<Int.random(in: 2...3, using: &generator)).map { _ in random(using: &generator, depth: depth) }
    }

    /// The words of random titles and notes.
    public static let words = ["swift", "rust", "news", "weekly", "talk", "radio"]

    private static func term(using generator: inout SeededGenerator) -> Self {
        let word = words.randomElement(using: &generator) ?? ""
        let comparison = EpisodeRule.Comparison.allCases.randomElement(using: &generator) ?? .less
        let inequality = comparison == .equal ? .greater : comparison
        switch Int.random(in: 0..<9, using: &generator) {
        case 0: return .tag(word)
        case 1: return .podcast(["p1", "p2", "Show p1", "nothing"].randomElement(using: &generator) ?? "p1")
        case 2: return .list(["main", "commute"].randomElement(using: &generator) ?? "main")
        case 3: return .text(EpisodeRule.TextField.allCases.randomElement(using: &generator) ?? .title, word)
        case 4:
            let field = EpisodeRule.LengthField.allCases.randomElement(using: &generator) ?? .length
            return .length(field, inequality, seconds: Double(Int.random(in: 0..<8, using: &generator) * 600))
        case 5:
            let field = EpisodeRule.DateField.allCases.randomElement(using: &generator) ?? .added
            return .age(field, inequality, seconds: Double(Int.random(in: 0..<10, using: &generator) * 86_400))
        case 6:
            let field = EpisodeRule.DateField.allCases.randomElement(using: &generator) ?? .added
            let day = CalendarDay(year: 2026, month: 9, day: Int.random(in: 10...25, using: &generator))
            return day.map { .day(field, comparison, $0) } ?? .mark(.new)
        case 7: return .season(comparison, Int.random(in: 0..<4, using: &generator))
        default: return .mark(EpisodeRule.Mark.allCases.randomElement(using: &generator) ?? .played)
        }
    }
}
