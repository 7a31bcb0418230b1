/// Text as JSON has it (RFC 8259).
public enum JSONText {
    /// `text` with its quotes. Escaped is what JSON demands, and also what terminals and line readers act upon: DEL, the
    /// C1 control characters (U+0080 to U+009F) and the two line separators of Unicode. So the result is one line whatever it holds.
    public static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            case ..<" ", "\u{7f}"..."\u{9f}", "\u{2028}", "\u{2029}":
                quoted += "\\u" + padded(String(scalar.value, radix: 16), 4)
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
