/// Finds the most similar word to a mistyped one.
public enum NearestWord {
    /// The most similar of `words`; nil if none is similar. Case, dashes and underscores are ignored.
    ///
    /// - Parameter distance: the maximum number of wrong characters; by default a third of the word’s, at least one in a
    ///   word of two or more.
    public static func among(_ words: [String], to text: String, within distance: Int? = nil) -> String? {
        let wanted = folded(text)
        guard !wanted.isEmpty else { return nil }
        let limit = distance ?? (wanted.count < 2 ? 0 : max(1, wanted.count / 3))
        let nearest = words.map { (word: $0, distance: self.distance(wanted, folded($0))) }
            .min { $0.distance < $1.distance }
        guard let nearest, nearest.distance <= min(limit, wanted.count - 1) else { return nil }
        return nearest.word
    }

    private static func folded(_ text: String) -> [Character] {
        Array(text.lowercased().filter { $0 != "_" && $0 != "-" })
    }

    /// The number of insertions, deletions, replacements and transpositions of neighbours (optimal string alignment).
    static func distance(_ left: [Character], _ right: [Character]) -> Int {
        var before: [Int] = []
        var last = Array(0...right.count)
        for row in left.indices {
            var next = [row + 1]
            for column in right.indices {
                let isSame = left[row] == right[column]
                var cost = min(last[column + 1] + 1, next[column] + 1, last[column] + (isSame ? 0 : 1))
                if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
                    cost = min(cost, before[column - 1] + 1)
                }
                next.append(cost)
            }
            (before, last) = (last, next)
        }
        return last[right.count]
    }
}
