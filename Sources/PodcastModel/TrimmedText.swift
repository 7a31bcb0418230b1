extension StringProtocol {
    /// The text without surrounding white space.
    package var trimmed: SubSequence {
        var text = drop(while: \.isWhitespace)
        while text.last?.isWhitespace == true { text.removeLast() }
        return text
    }
}
